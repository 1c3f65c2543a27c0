"""Messages as records, and the buffers between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from moldau.messaging import (
    ConnectionFactory,
    InvalidDestinationError,
    MapMessage,
    Message,
    MessageFormatError,
    MessagingError,
    ObjectMessage,
    Queue,
    TemporaryQueue,
    TextMessage,
    Topic,
)
from moldau.messaging.machine.buffer import Buffer, Timed
from moldau.messaging.machine.destinations import parse_destination
from moldau.messaging.machine.records import Pickling, headers_of, read_message, value_of

NO_PICKLE = Pickling()


def round_trip(message: Message) -> Message:
    return read_message(
        value_of(message, NO_PICKLE), headers_of(message), timestamp=5, delivery_count=1,
        pickling=NO_PICKLE,
    )  # fmt: skip


def test_header_fields_round_trip() -> None:
    message = TextMessage("x")
    message.message_id, message.correlation_id, message.type = "ID:1", "c", "t"
    message.reply_to, message.destination = TemporaryQueue("answers"), Topic("news")
    message.expiration, message.priority, message.delivery_time = 99, 7, 50
    found = round_trip(message)
    assert isinstance(found, TextMessage)
    assert (found.text, found.message_id, found.correlation_id) == ("x", "ID:1", "c")
    assert (found.reply_to, found.destination) == (TemporaryQueue("answers"), Topic("news"))
    assert (found.expiration, found.priority, found.delivery_time) == (99, 7, 50)
    assert (found.timestamp, found.delivery_count, found.redelivered) == (5, 1, False)


@pytest.mark.parametrize(
    ("name", "value"),
    [("1a", 1), ("", 1), ("a-b", 1), ("AND", 1), ("like", 1), ("JMSPriority", 1), ("a", None),
     ("a", [1]), ("a", 2**63), ("a", b"x")],
)  # fmt: skip
def test_properties_that_jms_does_not_have_are_refused(name: str, value: Any) -> None:
    with pytest.raises(MessageFormatError):
        Message().set_property(name, value)


def test_values_that_bodies_cannot_have_are_refused() -> None:
    with pytest.raises(MessageFormatError):
        MapMessage({"a": [1]})
    with pytest.raises(MessageFormatError):
        MapMessage({"": 1})
    with pytest.raises(MessageFormatError, match="allow_pickle"):
        value_of(ObjectMessage(1), NO_PICKLE)


@pytest.mark.parametrize(
    ("value", "headers"),
    [
        (b"{", [("JMSXMessageType", b"map")]),
        (b"[]", [("JMSXMessageType", b"map")]),
        (b"\xff", [("JMSXMessageType", b"text")]),
        (b"x", [("JMSXMessageType", b"poem")]),
        (b"x", [("JMSXMessageType", b"object")]),
        (b"x", [("JMSPriority", b"high")]),
        (b"x", [("JMSReplyTo", b"nowhere")]),
        (b"x", [("JMSXPropertyTypes", b"[]")]),
    ],
)
def test_records_that_are_no_messages(value: bytes, headers: list) -> None:
    with pytest.raises(MessageFormatError):
        read_message(value, headers, timestamp=0, delivery_count=1, pickling=NO_PICKLE)


def test_destinations_are_texts_and_back() -> None:
    for each in (Queue("a"), Topic("b"), TemporaryQueue("c")):
        assert parse_destination(str(each)) == each
    with pytest.raises(InvalidDestinationError):
        parse_destination("a")


@dataclass
class Item:
    message: Message


def item(priority: int, due_ms: int = 0) -> Item:
    message = Message()
    message.priority, message.delivery_time = priority, due_ms
    return Item(message)


def test_a_buffer_gives_by_priority_and_then_by_age() -> None:
    buffer: Buffer[Item] = Buffer(10)
    low, high, middle, later = item(1), item(9), item(4), item(4)
    for each in (low, high, middle, later):
        buffer.put(each)
    assert buffer.room == 6
    again = item(4)
    buffer.put_back(again)
    assert [buffer.take() for _ in range(6)] == [high, again, middle, later, low, None]


def test_timed_messages_come_when_due() -> None:
    timed: Timed[Item] = Timed()
    late, soon = item(4, 20), item(4, 10)
    timed.put(late)
    timed.put(soon)
    assert (timed.due(5), timed.next_ms()) == ([], 10)
    assert timed.due(10) == [soon]
    timed.put(soon)
    timed.drop(soon)
    timed.drop(soon)
    assert timed.due(30) == [late]


def test_wrong_settings_are_refused() -> None:
    for wrong in ({"max_deliveries": 10}, {"prefetch": 0}, {"dead_letter_suffix": ""}):
        with pytest.raises(MessagingError):
            ConnectionFactory(bootstrap_servers="localhost:9092", **wrong)  # type: ignore[arg-type]
