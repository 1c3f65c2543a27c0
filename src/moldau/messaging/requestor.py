"""QueueRequestor: a request, and the reply to it."""

from __future__ import annotations

import time
from typing import Self

from moldau.messaging.machine.destinations import Destination
from moldau.messaging.machine.messages import Message
from moldau.messaging.session import Session

__all__ = ["Requestor", "reply_to"]


class Requestor:
    """Sends requests to a destination and receives replies in a temporary queue of its own.

    >>> reply = Requestor(session, session.create_queue("prices")).request(message, timeout=5)
    """

    def __init__(self, session: Session, destination: Destination) -> None:
        self._session = session
        self._producer = session.create_producer(destination)
        self._queue = session.create_temporary_queue()
        self._consumer = session.create_consumer(self._queue)

    def request(self, message: Message, timeout: float | None = None) -> Message | None:
        """The reply; None after `timeout` seconds. Replies to earlier requests are dropped."""
        message.reply_to = self._queue
        self._producer.send(message)
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else max(deadline - time.monotonic(), 0)
            reply = self._consumer.receive(left)
            if reply is None or reply.correlation_id in (None, message.message_id):
                return reply

    def close(self) -> None:
        self._consumer.close()
        self._producer.close()
        self._session.delete_temporary(self._queue)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def reply_to(session: Session, request: Message, reply: Message) -> None:
    """Send a reply to where a request wants it, with the request's ID as correlation ID."""
    reply.correlation_id = request.message_id
    with session.create_producer(request.reply_to) as producer:
        producer.send(reply)
