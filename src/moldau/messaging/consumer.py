"""MessageConsumer: receives the messages of a queue or a subscription."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Protocol, Self

from moldau.messaging.feed import Feed, Receiver, Token
from moldau.messaging.machine.errors import IllegalStateError
from moldau.messaging.machine.messages import Message

__all__ = ["MessageConsumer", "MessageListener", "Receiving"]

MessageListener = Callable[[Message], object]


class Receiving(Protocol):
    """The session, as its consumers see it."""

    def check_open(self) -> None: ...

    def check_receiving(self) -> None: ...

    def received(self, token: Token) -> Message: ...

    def listening(self) -> None: ...

    def forget(self, consumer: MessageConsumer) -> None: ...


class MessageConsumer:
    """Made by `Session.create_consumer` and its relatives."""

    def __init__(
        self,
        session: Receiving,
        feed: Feed,
        receiver: Receiver,
        release: Callable[[], None],
    ) -> None:
        self._session = session
        self.feed = feed
        self._receiver = receiver
        self._release = release
        self._listener: MessageListener | None = None
        self._closed = False

    @property
    def selector(self) -> str | None:
        return None if self._receiver.selector is None else self._receiver.selector.text

    def receive(self, timeout: float | None = None) -> Message | None:
        """The next message; None after `timeout` seconds, or when the consumer is closed.

        Without a timeout it waits. Nothing is received while the connection is stopped.

        >>> message = consumer.receive(timeout=1)
        """
        self._check()
        self._session.check_receiving()
        token = self.next_token(timeout)
        return None if token is None else self._session.received(token)

    def receive_no_wait(self) -> Message | None:
        """The next message if there is one now."""
        return self.receive(0)

    def next_token(self, timeout: float | None) -> Token | None:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else max(deadline - time.monotonic(), 0)
            token = self.feed.take(self._receiver, left)
            if token is None or not _is_expired(token):
                return token
            token.settle(accepted=True)

    def __iter__(self) -> Iterator[Message]:
        """Messages until the consumer is closed."""
        while (message := self.receive()) is not None:
            yield message

    @property
    def message_listener(self) -> MessageListener | None:
        return self._listener

    @message_listener.setter
    def message_listener(self, listener: MessageListener | None) -> None:
        """Called for each message, in the session's own thread. If it raises, the message is
        delivered again."""
        self._check()
        self._listener = listener
        if listener is not None:
            self._session.listening()

    def _check(self) -> None:
        self._session.check_open()
        if self._closed:
            raise IllegalStateError("the consumer is closed")

    def close(self) -> None:
        """Messages that it was given and has not received go to others."""
        if not self._closed:
            self._closed = True
            self._session.forget(self)
            self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_expired(token: Token) -> bool:
    expiration = token.message.expiration
    return bool(expiration) and expiration <= time.time_ns() // 1_000_000
