"""Messages whose dead-letter queue cannot be written for a while."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.client import Consumer, Producer, TopicPartition
from moldau.messaging import Connection, Queue, Session
from moldau.messaging.machine.errors import MessagingError
from support.messaging import left_in, send, texts
from support.processes import BrokerProcess
from support.waiting import eventually


def test_a_dead_letter_that_cannot_be_written_stops_nobody_and_is_tried_again(
    broker: BrokerProcess,
    connection: Connection,
    session: Session,
    queue: Queue,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problems: list[Exception] = []
    connection.exception_listener = problems.append
    write = connection._context.dead_letter

    def fail_twice(record: Any, why: str) -> None:
        if len(problems) < 2:
            raise MessagingError("not now")
        write(record, why)

    monkeypatch.setattr(connection._context, "dead_letter", fail_twice)
    consumer = session.create_consumer(queue)
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send(queue.name, b"{", headers={"JMSXMessageType": "map"})
    send(session, queue, "good")
    assert texts(consumer, 1) == ["good"]
    eventually(lambda: left_in(broker, queue) == 0, what="both are acknowledged")
    assert [str(each) for each in problems] == ["not now"] * 2
    dead = TopicPartition(f"{queue.name}.dlq", 0)
    with Consumer(bootstrap_servers=broker.bootstrap) as reader:
        assert reader.end_offsets([dead]) == {dead: 1}
