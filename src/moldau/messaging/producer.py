"""MessageProducer: sends messages to a destination."""

from __future__ import annotations

import uuid
from typing import Protocol, Self

from moldau.client import KafkaError, Producer
from moldau.messaging.context import Context, now_ms
from moldau.messaging.machine.destinations import Destination
from moldau.messaging.machine.errors import (
    IllegalStateError,
    InvalidDestinationError,
    MessageFormatError,
    MessagingError,
)
from moldau.messaging.machine.messages import DEFAULT_PRIORITY, DeliveryMode, Message
from moldau.messaging.machine.records import CONNECTION, headers_of, value_of

__all__ = ["MessageProducer", "Sending"]

SEND_S = 60.0


class Sending(Protocol):
    """The session, as its producers see it."""

    transacted: bool

    def check_open(self) -> None: ...

    def sending_producer(self) -> Producer: ...


class MessageProducer:
    """Made by `Session.create_producer`. Its attributes are the defaults of `send`."""

    def __init__(self, session: Sending, context: Context, destination: Destination | None) -> None:
        self._session = session
        self._context = context
        self.destination = destination
        self.delivery_mode = DeliveryMode.PERSISTENT
        self.priority = DEFAULT_PRIORITY
        self.time_to_live = 0.0
        self.delivery_delay = 0.0
        self._closed = False

    def send(
        self,
        message: Message,
        *,
        destination: Destination | None = None,
        delivery_mode: DeliveryMode | None = None,
        priority: int | None = None,
        time_to_live: float | None = None,
        delivery_delay: float | None = None,
    ) -> None:
        """Send a message; times are in seconds. Sets its header fields, as JMS says.

        Returns when a persistent message is acknowledged by all replicas in the ISR; in a
        transacted session, and with NON_PERSISTENT, at once. Raises MessagingError.

        >>> producer.send(session.create_text_message("two beers"), priority=7)
        """
        self._session.check_open()
        if self._closed:
            raise IllegalStateError("the producer is closed")
        target = self._target(destination)
        self._set_fields(
            message,
            target,
            DeliveryMode(self.delivery_mode if delivery_mode is None else delivery_mode),
            self.priority if priority is None else priority,
            self.time_to_live if time_to_live is None else time_to_live,
            self.delivery_delay if delivery_delay is None else delivery_delay,
        )
        headers = [*headers_of(message), (CONNECTION, self._context.id.encode())]
        value = value_of(message, self._context.pickling)
        group = message.get_property("JMSXGroupID")
        self._context.ensure_topic(target.name)
        try:
            future = self._session.sending_producer().send(
                target.name,
                value,
                None if group is None else str(group).encode(),
                timestamp=message.timestamp,
                headers=headers,
            )
            waits = message.delivery_mode == DeliveryMode.PERSISTENT
            if waits and not self._session.transacted:
                future.result(SEND_S)
        except (KafkaError, TimeoutError) as error:
            raise MessagingError(f"the message was not sent to {target}: {error}") from error

    def _target(self, destination: Destination | None) -> Destination:
        if destination is not None and self.destination is not None:
            raise IllegalStateError(
                f"the producer sends to {self.destination}: create one without a destination to "
                "choose it for each message"
            )
        found = destination or self.destination
        if found is None:
            raise InvalidDestinationError("the producer has no destination: pass one to send")
        return found

    def _set_fields(
        self,
        message: Message,
        target: Destination,
        mode: DeliveryMode,
        priority: int,
        time_to_live: float,
        delay: float,
    ) -> None:
        if not 0 <= priority <= 9:
            raise MessageFormatError(f"the priority {priority} is not 0 to 9")
        if time_to_live < 0 or delay < 0:
            raise MessageFormatError("time_to_live and delivery_delay must not be negative")
        sent_ms = now_ms()
        message.message_id = f"ID:{uuid.uuid4()}"
        message.timestamp = sent_ms
        message.destination = target
        message.delivery_mode = mode
        message.priority = priority
        message.delivery_time = sent_ms + round(delay * 1000) if delay else 0
        message.expiration = sent_ms + round((delay + time_to_live) * 1000) if time_to_live else 0

    def close(self) -> None:
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
