"""Session: makes producers and consumers, and decides when messages are acknowledged.

For one thread at a time. A session with message listeners has a thread of its own for them.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, Protocol, Self

from moldau.client import KafkaError, Producer
from moldau.messaging.browser import QueueBrowser
from moldau.messaging.consumer import MessageConsumer
from moldau.messaging.context import Context
from moldau.messaging.feed import Feed, Receiver, ShareFeed, Token
from moldau.messaging.machine.destinations import (
    Destination,
    Queue,
    TemporaryQueue,
    TemporaryTopic,
    Topic,
)
from moldau.messaging.machine.errors import (
    IllegalStateError,
    InvalidDestinationError,
    MessagingError,
    TransactionRolledBackError,
)
from moldau.messaging.machine.groups import durable_group, queue_group, shared_group
from moldau.messaging.machine.messages import (
    BytesMessage,
    MapMessage,
    Message,
    ObjectMessage,
    StreamMessage,
    TextMessage,
)
from moldau.messaging.machine.selector import parse_selector
from moldau.messaging.producer import MessageProducer
from moldau.messaging.topic_feed import TopicFeed
from moldau.messaging.transaction import SessionTransaction

__all__ = ["AcknowledgeMode", "Session"]

_LAZY: Final = 20
_FLUSH_S: Final = 15.0
_LISTEN_S: Final = 0.1


class AcknowledgeMode(Enum):
    AUTO = "auto"
    CLIENT = "client"
    DUPS_OK = "dups_ok"
    TRANSACTED = "transacted"


class Feeds(Protocol):
    """The connection, as its sessions see it."""

    def share_feed(
        self, destination: Destination, group: str, receiver: Receiver, *, from_start: bool
    ) -> ShareFeed: ...

    def release_feed(self, feed: ShareFeed, receiver: Receiver) -> None: ...

    def create_temporary(self, prefix: str) -> str: ...

    def delete_temporary(self, name: str) -> None: ...

    def forget_session(self, session: Session) -> None: ...


class Session:
    """Made by `Connection.create_session`."""

    def __init__(self, context: Context, feeds: Feeds, mode: AcknowledgeMode) -> None:
        self._context = context
        self._feeds = feeds
        self.acknowledge_mode = mode
        self.transacted = mode is AcknowledgeMode.TRANSACTED
        self._consumers: list[MessageConsumer] = []
        self._unacknowledged: list[Token] = []
        self._transaction = SessionTransaction(context)
        self._listener_thread: threading.Thread | None = None
        self._lock = threading.RLock()
        self._closed = False

    # Messages.

    def create_message(self) -> Message:
        return Message()

    def create_text_message(self, text: str | None = None) -> TextMessage:
        return TextMessage(text)

    def create_bytes_message(self, data: bytes = b"") -> BytesMessage:
        return BytesMessage(data)

    def create_map_message(self, values: Mapping[str, Any] | None = None) -> MapMessage:
        return MapMessage(values)

    def create_stream_message(self) -> StreamMessage:
        return StreamMessage()

    def create_object_message(self, value: Any = None) -> ObjectMessage:
        return ObjectMessage(value)

    # Destinations.

    def create_queue(self, name: str) -> Queue:
        """The queue of this name; its Kafka topic is created when it is first used."""
        return Queue(_checked(name))

    def create_topic(self, name: str) -> Topic:
        return Topic(_checked(name))

    def create_temporary_queue(self) -> TemporaryQueue:
        """A queue that lives as long as the connection."""
        self.check_open()
        return TemporaryQueue(self._feeds.create_temporary("temp-queue"), self._context.id)

    def create_temporary_topic(self) -> TemporaryTopic:
        self.check_open()
        return TemporaryTopic(self._feeds.create_temporary("temp-topic"), self._context.id)

    def delete_temporary(self, destination: TemporaryQueue | TemporaryTopic) -> None:
        if any(each.feed.destination == destination for each in self._consumers):
            raise IllegalStateError(f"{destination} still has a consumer")
        self._feeds.delete_temporary(destination.name)

    # Producers and consumers.

    def create_producer(self, destination: Destination | None = None) -> MessageProducer:
        """Without a destination, each `send` has one."""
        self.check_open()
        return MessageProducer(self, self._context, destination)

    def create_consumer(
        self, destination: Destination, selector: str | None = None, *, no_local: bool = False
    ) -> MessageConsumer:
        """For a queue, or for a topic as a subscription that is not durable."""
        self.check_open()
        self._check_temporary(destination)
        if isinstance(destination, Topic):
            return self._topic_consumer(destination, selector, no_local)
        return self._share_consumer(
            destination, queue_group(destination.name), selector, from_start=True
        )

    def create_durable_subscriber(
        self, topic: Topic, name: str, selector: str | None = None
    ) -> MessageConsumer:
        """A subscription that goes on while it has no consumer; it belongs to the client ID."""
        if self._context.client_id is None:
            raise IllegalStateError("a durable subscription needs a connection with a client ID")
        group = durable_group(self._context.client_id, name)
        self._check_alone(group)
        return self._share_consumer(topic, group, selector, from_start=False)

    def create_shared_consumer(
        self, topic: Topic, name: str, selector: str | None = None
    ) -> MessageConsumer:
        """One of several consumers that share a subscription."""
        group = shared_group(self._context.client_id, name, topic.name, durable=False)
        return self._share_consumer(topic, group, selector, from_start=False)

    def create_shared_durable_consumer(
        self, topic: Topic, name: str, selector: str | None = None
    ) -> MessageConsumer:
        group = shared_group(self._context.client_id, name, topic.name, durable=True)
        return self._share_consumer(topic, group, selector, from_start=False)

    def unsubscribe(self, name: str) -> None:
        """End a durable subscription. Raises IllegalStateError while it has a consumer."""
        self.check_open()
        groups = [shared_group(self._context.client_id, name, "", durable=True)]
        if self._context.client_id is not None:
            groups.append(durable_group(self._context.client_id, name))
        if any(
            isinstance(each.feed, ShareFeed) and each.feed.group in groups
            for each in self._consumers
        ):
            raise IllegalStateError(f"the subscription {name} still has a consumer")
        results = self._context.admin.delete_share_groups(groups, check=False)
        if len(results.errors) == len(groups):
            error = results.errors[groups[-1]]
            raise InvalidDestinationError(
                f"there is no durable subscription {name} without consumers: {error}"
            ) from error

    def create_browser(self, queue: Queue, selector: str | None = None) -> QueueBrowser:
        self.check_open()
        self._context.ensure_topic(queue.name)
        return QueueBrowser(self._context, queue, parse_selector(selector))

    def _share_consumer(
        self, destination: Destination, group: str, selector: str | None, *, from_start: bool
    ) -> MessageConsumer:
        self.check_open()
        receiver = Receiver(self._context.settings.prefetch, parse_selector(selector))
        self._context.ensure_topic(destination.name)
        feed = self._feeds.share_feed(destination, group, receiver, from_start=from_start)
        consumer = MessageConsumer(
            self, feed, receiver, lambda: self._feeds.release_feed(feed, receiver)
        )
        self._consumers.append(consumer)
        return consumer

    def _topic_consumer(
        self, topic: Topic, selector: str | None, no_local: bool
    ) -> MessageConsumer:
        size = max(self._context.settings.prefetch, 100)
        receiver = Receiver(size, parse_selector(selector), no_local=no_local)
        self._context.ensure_topic(topic.name)
        try:
            feed = TopicFeed(self._context, topic, receiver)
        except KafkaError as error:
            raise MessagingError(f"{topic} cannot be subscribed to: {error}") from error
        feed.start()
        consumer = MessageConsumer(self, feed, receiver, feed.close)
        self._consumers.append(consumer)
        return consumer

    def _check_alone(self, group: str) -> None:
        found = self._context.admin.describe_share_groups([group], check=False)
        description = found.values_by_key.get(group)
        if description is not None and description.members:
            raise IllegalStateError(
                f"the durable subscription {group.rsplit(':', 1)[1]} already has a consumer; use "
                "create_shared_durable_consumer for several"
            )

    def _check_temporary(self, destination: Destination) -> None:
        if isinstance(destination, TemporaryQueue | TemporaryTopic) and (
            destination.connection != self._context.id
        ):
            raise InvalidDestinationError(
                f"{destination} belongs to another connection, which alone may consume from it"
            )

    # Acknowledging.

    def received(self, token: Token) -> Message:
        mode = self.acknowledge_mode
        message = token.message
        if mode is AcknowledgeMode.AUTO:
            token.settle(accepted=True)
            return message
        with self._lock:
            self._unacknowledged.append(token)
            if mode is AcknowledgeMode.DUPS_OK and len(self._unacknowledged) >= _LAZY:
                self._settle(accepted=True)
        if mode is AcknowledgeMode.CLIENT:
            message._acknowledge = self.acknowledge
        return message

    def acknowledge(self) -> None:
        """Acknowledge everything that the session has received, and wait for the broker."""
        self.check_open()
        feeds = self._settle(accepted=True)
        for feed in feeds:
            feed.flush(_FLUSH_S)

    def recover(self) -> None:
        """Deliver again what was received and not acknowledged."""
        self.check_open()
        if self.transacted:
            raise IllegalStateError("a transacted session is rolled back, not recovered")
        self._settle(accepted=False)

    def _settle(self, *, accepted: bool) -> set[Feed]:
        with self._lock:
            tokens, self._unacknowledged = self._unacknowledged, []
        if not accepted:
            # The last first: who puts one back in front then has them in order.
            tokens.reverse()
        feeds = {token._feed for token in tokens}
        for feed in feeds:
            feed.settle_all([token for token in tokens if token._feed is feed], accepted)
        return feeds

    # Transactions.

    def sending_producer(self) -> Producer:
        return self._transaction.producer() if self.transacted else self._context.producer

    def commit(self) -> None:
        """Send what was sent and acknowledge what was received since the last commit.

        What was received is noted in the transaction, so that a message whose acknowledgement does
        not reach the broker is not delivered again. Raises TransactionRolledBackError if nothing of
        it happened.
        """
        self._check_transacted()
        notes = self._notes()
        try:
            noted = self._transaction.commit(notes)
        except KafkaError as error:
            self._settle(accepted=False)
            raise TransactionRolledBackError(f"the commit failed: {error}") from error
        refused = self._refused()
        done = [feed.flush(_FLUSH_S) for feed in self._settle(accepted=True)]
        if noted and all(done) and self._refused() == refused:
            self._transaction.acknowledged(notes)

    def rollback(self) -> None:
        """Send nothing of it, and deliver again what was received."""
        self._check_transacted()
        self._transaction.abort()
        self._settle(accepted=False)

    def _notes(self) -> list[bytes]:
        with self._lock:
            tokens = list(self._unacknowledged)
        return [
            token._feed.note_of(token) for token in tokens if isinstance(token._feed, ShareFeed)
        ]

    def _refused(self) -> int:
        feeds = {each.feed for each in self._consumers}
        return sum(feed.refused for feed in feeds if isinstance(feed, ShareFeed))

    def _check_transacted(self) -> None:
        self.check_open()
        if not self.transacted:
            raise IllegalStateError("the session is not transacted")

    # Listeners.

    def listening(self) -> None:
        with self._lock:
            if self._listener_thread is None:
                self._listener_thread = threading.Thread(
                    target=self._listen, name="messaging listeners", daemon=True
                )
                self._listener_thread.start()

    def check_receiving(self) -> None:
        if self._listener_thread is not None:
            raise IllegalStateError("the session has a message listener: it cannot receive too")

    def _listen(self) -> None:
        while not self._closed:
            consumers = [each for each in self._consumers if each.message_listener is not None]
            for consumer in consumers:
                pause_s = _LISTEN_S / max(len(consumers), 1)
                token = consumer.next_token(pause_s)
                listener = consumer.message_listener
                if token is None:
                    continue
                if listener is None:
                    token.settle(accepted=False)
                    continue
                self._call(listener, token)

    def _call(self, listener: Any, token: Token) -> None:
        message = token.message
        is_auto = self.acknowledge_mode is AcknowledgeMode.AUTO
        if not is_auto:
            self.received(token)
        try:
            listener(message)
        except Exception as error:
            self._context.report(error)
            if is_auto:
                token.settle(accepted=False)
            elif self.acknowledge_mode is AcknowledgeMode.DUPS_OK:
                self._settle(accepted=False)
            return
        if is_auto:
            token.settle(accepted=True)

    # The end.

    def check_open(self) -> None:
        if self._closed or self._context.closed:
            raise IllegalStateError("the session is closed")

    def forget(self, consumer: MessageConsumer) -> None:
        if consumer in self._consumers:
            self._consumers.remove(consumer)

    def close(self) -> None:
        """A transaction is rolled back; what was not acknowledged is delivered again."""
        if self._closed:
            return
        if self.transacted:
            self._transaction.abort()
        lazy = self.acknowledge_mode is AcknowledgeMode.DUPS_OK
        feeds = self._settle(accepted=lazy)
        self._closed = True
        thread = self._listener_thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_FLUSH_S)
        for feed in feeds:
            feed.flush(5)
        for consumer in list(self._consumers):
            consumer.close()
        self._transaction.close()
        self._feeds.forget_session(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _checked(name: str) -> str:
    if not isinstance(name, str) or not name:
        raise InvalidDestinationError("a destination has a name")
    return name
