"""The semantics of messaging: messages and selectors."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.client import Consumer, Producer
from moldau.messaging import (
    BytesMessage,
    ConnectionFactory,
    InvalidSelectorError,
    MapMessage,
    MessageFormatError,
    MessageNotWriteableError,
    Queue,
    Session,
    StreamMessage,
    Topic,
)
from support.messaging import WAIT_S, new_name, send, texts
from support.processes import BrokerProcess
from support.waiting import eventually

# Messages.


def test_all_types_of_messages_arrive_as_they_were(session: Session, queue: Queue) -> None:
    stream = session.create_stream_message()
    values = [True, 7, 2.5, "text", b"\x00\xff", None]
    for value in values:
        stream.write(value)
    with session.create_producer(queue) as producer:
        for message in (
            session.create_text_message("grüße"),
            session.create_text_message(None),
            session.create_bytes_message(b"\x00\x01"),
            session.create_map_message({"a": 1, "b": b"\xff", "c": None}),
            stream,
            session.create_message(),
        ):
            producer.send(message)
    consumer = session.create_consumer(queue)
    got: list[Any] = [consumer.receive(WAIT_S) for _ in range(6)]
    assert (got[0].text, got[1].text) == ("grüße", None)
    assert isinstance(got[2], BytesMessage)
    assert got[2].data == b"\x00\x01"
    assert isinstance(got[3], MapMessage)
    assert got[3].values == {"a": 1, "b": b"\xff", "c": None}
    assert isinstance(got[4], StreamMessage)
    assert [got[4].read() for _ in values] == values
    with pytest.raises(EOFError):
        got[4].read()


def test_objects_are_refused_unless_pickle_is_allowed(
    broker: BrokerProcess, session: Session, queue: Queue
) -> None:
    with pytest.raises(MessageFormatError, match="allow_pickle"):
        session.create_producer(queue).send(session.create_object_message({1, 2}))
    trusting = ConnectionFactory(bootstrap_servers=broker.bootstrap, allow_pickle=True)
    with trusting.create_connection() as connection:
        connection.start()
        own = connection.create_session()
        for _ in range(2):
            own.create_producer(queue).send(own.create_object_message({1, 2}))
        message: Any = own.create_consumer(queue).receive(WAIT_S)
    assert message.value == {1, 2}
    # Whoever does not trust the writer does not get the other one.
    send(session, queue, "text")
    assert texts(session.create_consumer(queue), 1) == ["text"]


def test_header_fields_and_properties_travel_as_headers(
    broker: BrokerProcess, session: Session, queue: Queue
) -> None:
    message = session.create_text_message("x")
    message.correlation_id, message.type = "c-1", "order"
    message.reply_to = session.create_queue("answers")
    for name, value in {"colour": "red", "size": 3, "price": 2.5, "urgent": True}.items():
        message.set_property(name, value)
    session.create_producer(queue).send(message, priority=7)
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": new_name("look")}
    with Consumer(settings, auto_offset_reset="earliest") as reader:
        reader.subscribe([queue.name])
        record = eventually(lambda: list(reader.poll(0.5)), what="the record")[0]
    headers = dict(record.headers)
    assert (headers["colour"], headers["size"], headers["JMSPriority"]) == (b"red", b"3", b"7")
    got: Any = session.create_consumer(queue).receive(WAIT_S)
    assert got.properties == {"colour": "red", "size": 3, "price": 2.5, "urgent": True}
    assert (got.message_id, got.correlation_id, got.type) == (message.message_id, "c-1", "order")
    assert (got.priority, got.reply_to, got.destination) == (7, Queue("answers"), queue)
    assert (got.timestamp, got.redelivered) == (message.timestamp, False)
    assert got.message_id.startswith("ID:")


def test_records_of_other_clients_are_bytes_messages(
    broker: BrokerProcess, session: Session, queue: Queue
) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send(queue.name, b"raw", headers={"colour": "red"})
    got = session.create_consumer(queue, "colour = 'red'").receive(WAIT_S)
    assert isinstance(got, BytesMessage)
    assert (got.data, got.get_property("colour")) == (b"raw", "red")


def test_a_received_message_is_read_only_until_cleared(session: Session, queue: Queue) -> None:
    send(session, queue, "x")
    message: Any = session.create_consumer(queue).receive(WAIT_S)
    with pytest.raises(MessageNotWriteableError):
        message.text = "y"
    with pytest.raises(MessageNotWriteableError):
        message.set_property("a", 1)
    message.clear_body()
    message.clear_properties()
    message.text = "y"
    message.set_property("a", 1)


# Selectors.


def test_a_selector_chooses_messages_of_a_topic(session: Session, topic: Topic) -> None:
    consumer = session.create_consumer(topic, "colour IN ('red', 'blue') AND size > 2")
    producer = session.create_producer(topic)
    for colour, size in (("red", 1), ("green", 5), ("blue", 3)):
        message = session.create_text_message(colour)
        message.set_property("colour", colour)
        message.set_property("size", size)
        producer.send(message)
    assert texts(consumer, 1) == ["blue"]
    assert consumer.receive(0.3) is None


def test_messages_that_one_consumer_of_a_queue_does_not_select_are_for_others(
    factory: ConnectionFactory, session: Session, queue: Queue
) -> None:
    producer = session.create_producer(queue)
    red = session.create_consumer(queue, "colour = 'red'")
    for number in range(6):
        message = session.create_text_message(str(number))
        message.set_property("colour", "red" if number % 2 else "blue")
        producer.send(message)
    assert texts(red, 3) == ["1", "3", "5"]
    assert red.receive(0.3) is None
    red.close()
    with factory.create_connection() as other:
        other.start()
        blue = other.create_session().create_consumer(queue, "colour = 'blue'")
        assert sorted(texts(blue, 3)) == ["0", "2", "4"]


def test_a_wrong_selector_is_refused(session: Session, queue: Queue) -> None:
    with pytest.raises(InvalidSelectorError):
        session.create_consumer(queue, "colour = = 'red'")
