"""Messaging as in JMS 1.1, on Kafka's topics and share groups.

    from moldau.messaging import ConnectionFactory

A queue is a topic with one share group, a durable or shared subscription is a share group of its
topic, any other subscription a consumer without a group. docs/messaging.md has the semantics, row
by row.
"""

from __future__ import annotations

from moldau.messaging.browser import QueueBrowser
from moldau.messaging.connection import Connection, ConnectionFactory
from moldau.messaging.consumer import MessageConsumer
from moldau.messaging.machine.destinations import (
    Destination,
    Queue,
    TemporaryQueue,
    TemporaryTopic,
    Topic,
)
from moldau.messaging.machine.errors import (
    IllegalStateError,
    InvalidClientIdError,
    InvalidDestinationError,
    InvalidSelectorError,
    MessageFormatError,
    MessageNotWriteableError,
    MessagingError,
    TransactionRolledBackError,
)
from moldau.messaging.machine.messages import (
    BytesMessage,
    DeliveryMode,
    MapMessage,
    Message,
    ObjectMessage,
    StreamMessage,
    TextMessage,
)
from moldau.messaging.producer import MessageProducer
from moldau.messaging.requestor import Requestor, reply_to
from moldau.messaging.session import AcknowledgeMode, Session

__all__ = [
    "AcknowledgeMode",
    "BytesMessage",
    "Connection",
    "ConnectionFactory",
    "DeliveryMode",
    "Destination",
    "IllegalStateError",
    "InvalidClientIdError",
    "InvalidDestinationError",
    "InvalidSelectorError",
    "MapMessage",
    "Message",
    "MessageConsumer",
    "MessageFormatError",
    "MessageNotWriteableError",
    "MessageProducer",
    "MessagingError",
    "ObjectMessage",
    "Queue",
    "QueueBrowser",
    "Requestor",
    "Session",
    "StreamMessage",
    "TemporaryQueue",
    "TemporaryTopic",
    "TextMessage",
    "Topic",
    "TransactionRolledBackError",
    "reply_to",
]
