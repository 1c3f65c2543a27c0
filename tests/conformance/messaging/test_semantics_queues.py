"""The semantics of messaging: connections, sessions and queues."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.client import Admin, Consumer, NewTopic, TopicPartition
from moldau.messaging import (
    Connection,
    ConnectionFactory,
    DeliveryMode,
    IllegalStateError,
    InvalidClientIdError,
    InvalidDestinationError,
    Queue,
    Session,
)
from support.messaging import WAIT_S, new_name, send, texts
from support.processes import BrokerProcess
from support.waiting import eventually

# Connections and sessions.


def test_nothing_is_received_before_start_and_while_stopped(factory: ConnectionFactory) -> None:
    with factory.create_connection() as connection:
        session = connection.create_session()
        queue = session.create_queue(new_name("queue"))
        consumer = session.create_consumer(queue)
        send(session, queue, "one")
        assert consumer.receive(0.5) is None
        connection.start()
        assert texts(consumer, 1) == ["one"]
        connection.stop()
        send(session, queue, "two")
        assert consumer.receive(0.5) is None
        connection.start()
        assert texts(consumer, 1) == ["two"]


def test_the_client_id_is_set_once_and_first(factory: ConnectionFactory) -> None:
    with factory.create_connection() as connection:
        with pytest.raises(InvalidClientIdError):
            connection.client_id = ""
        connection.client_id = "till"
        with pytest.raises(IllegalStateError):
            connection.client_id = "other"
    with factory.create_connection() as connection:
        connection.create_session()
        with pytest.raises(IllegalStateError):
            connection.client_id = "late"
    with (
        factory.create_connection(client_id="till") as one,
        factory.create_connection(client_id="till") as two,
    ):
        assert one.client_id == two.client_id == "till"


def test_a_closed_session_and_connection_refuse_calls(factory: ConnectionFactory) -> None:
    connection = factory.create_connection()
    session = connection.create_session()
    connection.close()
    connection.close()
    with pytest.raises(IllegalStateError):
        session.create_producer()
    with pytest.raises(IllegalStateError):
        connection.start()


def test_errors_of_listeners_go_to_the_exception_listener(
    connection: Connection, queue: Queue
) -> None:
    problems: list[Exception] = []
    connection.exception_listener = problems.append
    session = connection.create_session()
    consumer = session.create_consumer(queue)

    def fail_once(message: Any) -> None:
        if not message.redelivered:
            raise ValueError("not now")

    consumer.message_listener = fail_once
    send(connection.create_session(), queue, "work")
    eventually(lambda: any(isinstance(each, ValueError) for each in problems), what="the error")


# Queues.


def test_each_message_of_a_queue_is_for_one_consumer(
    factory: ConnectionFactory, connection: Connection, session: Session, queue: Queue
) -> None:
    with factory.create_connection() as other:
        other.start()
        consumers = [session.create_consumer(queue), other.create_session().create_consumer(queue)]
        send(session, queue, *(str(number) for number in range(40)))
        got: list[str] = []

        def all_received() -> bool:
            for each in consumers:
                while (message := each.receive(0.05)) is not None:
                    got.append(message.text)  # type: ignore[attr-defined]
            return len(got) >= 40

        eventually(all_received, what="40 messages")
    assert sorted(got, key=int) == [str(number) for number in range(40)]


def test_a_queue_keeps_messages_until_somebody_comes(session: Session, queue: Queue) -> None:
    send(session, queue, "early")
    assert texts(session.create_consumer(queue), 1) == ["early"]


def test_messages_of_a_producer_come_in_order(session: Session, queue: Queue) -> None:
    sent = [str(number) for number in range(200)]
    send(session, queue, *sent)
    assert texts(session.create_consumer(queue), 200) == sent


def test_messages_of_a_group_come_in_order(
    broker: BrokerProcess, session: Session, queue: Queue
) -> None:
    """Also from a queue with several partitions, of which each has its groups."""
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(queue.name, 3, 1)])
    with session.create_producer(queue) as producer:
        for number in range(60):
            message = session.create_text_message(str(number))
            message.set_property("JMSXGroupID", f"table {number % 5}")
            producer.send(message)
    consumer = session.create_consumer(queue)
    got: dict[str, list[int]] = {}
    for _ in range(60):
        found: Any = consumer.receive(WAIT_S)
        got.setdefault(found.get_property("JMSXGroupID"), []).append(int(found.text))
    assert got == {f"table {group}": list(range(group, 60, 5)) for group in range(5)}


def test_persistent_messages_are_there_when_send_returns(
    broker: BrokerProcess, session: Session, queue: Queue
) -> None:
    def end() -> int:
        with Consumer(bootstrap_servers=broker.bootstrap) as reader:
            return sum(reader.end_offsets([TopicPartition(queue.name, 0)]).values())

    send(session, queue, "first")
    assert end() == 1
    send(session, queue, "second", delivery_mode=DeliveryMode.NON_PERSISTENT)
    consumer = session.create_consumer(queue)
    modes = [consumer.receive(WAIT_S).delivery_mode for _ in range(2)]  # type: ignore[union-attr]
    assert modes == [DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT]
    assert end() == 2


def test_a_browser_looks_without_taking(session: Session, queue: Queue) -> None:
    send(session, queue, "a", "b")
    browser = session.create_browser(queue)
    assert [each.text for each in browser] == ["a", "b"]
    assert [each.text for each in session.create_browser(queue, "JMSPriority > 5")] == []
    assert texts(session.create_consumer(queue), 2) == ["a", "b"]
    eventually(lambda: not list(browser), what="the queue is empty")


def test_a_temporary_queue_is_its_connections_own(
    factory: ConnectionFactory, connection: Connection, session: Session
) -> None:
    queue = session.create_temporary_queue()
    with factory.create_connection() as other:
        stranger = other.create_session()
        with pytest.raises(InvalidDestinationError):
            stranger.create_consumer(queue)
        send(stranger, queue, "for you")
    assert texts(session.create_consumer(queue), 1) == ["for you"]
    with pytest.raises(IllegalStateError):
        session.delete_temporary(queue)


def test_temporary_queues_are_gone_with_their_connection(factory: ConnectionFactory) -> None:
    with factory.create_connection() as connection:
        name = connection.create_session().create_temporary_queue().name
    with factory.create_connection() as other:
        found = other._context.admin.list_topics()
    assert name not in found
