"""The semantics of messaging: when messages come, and what becomes of those that do not."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from moldau.client import Admin, Consumer, Producer
from moldau.messaging import (
    AcknowledgeMode,
    Connection,
    MessageFormatError,
    Queue,
    Requestor,
    Session,
    TextMessage,
    reply_to,
)
from support.messaging import WAIT_S, new_name, send, texts
from support.processes import BrokerProcess
from support.waiting import eventually


def test_a_request_has_its_reply(connection: Connection, session: Session, queue: Queue) -> None:
    def serve() -> None:
        own = connection.create_session()
        request = own.create_consumer(queue).receive(WAIT_S)
        assert isinstance(request, TextMessage)
        reply_to(own, request, own.create_text_message(f"re: {request.text}"))

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    with Requestor(session, queue) as requestor:
        reply: Any = requestor.request(session.create_text_message("price?"), WAIT_S)
    server.join(WAIT_S)
    assert reply.text == "re: price?"


def test_expired_messages_are_not_delivered(
    broker: BrokerProcess, session: Session, queue: Queue
) -> None:
    send(session, queue, "short", time_to_live=0.05)
    sent_s = time.monotonic()
    eventually(lambda: time.monotonic() > sent_s + 0.1, what="the message has expired")
    send(session, queue, "long", time_to_live=600)
    assert texts(session.create_consumer(queue), 1) == ["long"]
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        assert f"{queue.name}.dlq" not in admin.list_topics()


def test_higher_priorities_come_first(session: Session, queue: Queue) -> None:
    for priority in (1, 4, 9):
        send(session, queue, str(priority), priority=priority)
    consumer = session.create_consumer(queue)
    feed = consumer.feed
    eventually(lambda: len(consumer._receiver.buffer) == 3, what="three messages are here")
    assert feed is not None
    assert texts(consumer, 3) == ["9", "4", "1"]
    with pytest.raises(MessageFormatError):
        send(session, queue, "x", priority=10)


def test_delayed_messages_come_when_they_are_due(session: Session, queue: Queue) -> None:
    consumer = session.create_consumer(queue)
    send(session, queue, "the consumer has joined")
    assert len(texts(consumer, 1)) == 1
    # The delay begins with the message's timestamp, which has whole milliseconds.
    sent_ms = time.time_ns() // 1_000_000
    # It would have expired, if that did not count from the end of the delay.
    send(session, queue, "later", delivery_delay=2.0, time_to_live=1.9)
    send(session, queue, "now")
    assert sorted(texts(consumer, 2)) == ["later", "now"]
    assert time.time_ns() // 1_000_000 >= sent_ms + 2_000


def test_the_redelivery_count_grows_and_ends_in_the_dead_letter_queue(
    connection: Connection, session: Session, queue: Queue
) -> None:
    send(session, queue, "poison")
    own = connection.create_session(AcknowledgeMode.CLIENT)
    consumer = own.create_consumer(queue)
    counts = []
    for _ in range(3):
        message = consumer.receive(WAIT_S)
        assert message is not None
        counts.append(message.get_property("JMSXDeliveryCount"))
        own.recover()
    assert counts == [1, 2, 3]
    dead: Any = session.create_consumer(session.create_queue(f"{queue.name}.dlq")).receive(WAIT_S)
    assert dead.text == "poison"
    assert consumer.receive(0.3) is None


def test_unreadable_messages_go_to_the_dead_letter_queue(
    broker: BrokerProcess, session: Session, queue: Queue
) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send(queue.name, b"{", headers={"JMSXMessageType": "map"})
    send(session, queue, "good")
    assert texts(session.create_consumer(queue), 1) == ["good"]
    name = f"{queue.name}.dlq"
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": new_name("look")}
    with Consumer(settings, auto_offset_reset="earliest") as reader:
        reader.subscribe([name])
        record = eventually(lambda: list(reader.poll(0.5)), what="the dead letter")[0]
    headers = dict(record.headers)
    assert (record.value, headers["__connect.errors.topic"]) == (b"{", queue.name.encode())
