"""The semantics of messaging: messages that consumers have and have not acknowledged."""

from __future__ import annotations

import threading
from typing import Any

from moldau.messaging import (
    AcknowledgeMode,
    Connection,
    ConnectionFactory,
    Queue,
    Session,
    TextMessage,
)
from moldau.messaging.feed import ShareFeed
from support.messaging import HASTY_S, WAIT_S, left_in, new_name, send, texts
from support.processes import BrokerProcess
from support.waiting import eventually


def test_messages_come_although_earlier_ones_are_not_acknowledged(
    connection: Connection, session: Session, queue: Queue
) -> None:
    consumer = connection.create_session(AcknowledgeMode.CLIENT).create_consumer(queue)
    send(session, queue, "first")
    assert len(texts(consumer, 1)) == 1
    send(session, queue, "second")
    assert texts(consumer, 1) == ["second"]


def test_others_do_not_wait_for_a_delayed_message(session: Session, queue: Queue) -> None:
    consumer = session.create_consumer(queue)
    send(session, queue, "later", delivery_delay=600)
    feed = consumer.feed
    eventually(lambda: len(feed._held) == 1, what="the delayed message is held")
    send(session, queue, "now")
    assert texts(consumer, 1) == ["now"]


def test_a_message_stays_with_its_consumer_longer_than_its_lock(hasty: BrokerProcess) -> None:
    """The lock is renewed: another consumer does not get it, and its consumer can acknowledge."""
    factory = ConnectionFactory(bootstrap_servers=hasty.bootstrap)
    with factory.create_connection() as connection, factory.create_connection() as other:
        connection.start()
        other.start()
        session = connection.create_session(AcknowledgeMode.CLIENT)
        queue = session.create_queue(new_name("queue"))
        send(session, queue, "job")
        consumer = session.create_consumer(queue)
        message: Any = consumer.receive(WAIT_S)
        waiting = other.create_session().create_consumer(queue)
        assert waiting.receive(HASTY_S * 1.6) is None
        message.acknowledge()
        eventually(lambda: left_in(hasty, queue) == 0, what="nothing is left")
        assert isinstance(consumer.feed, ShareFeed)
        assert consumer.feed.refused == 0


def test_a_message_whose_lock_is_lost_goes_to_others(hasty: BrokerProcess) -> None:
    """As when a program is stopped for a while. Its acknowledgement does not count any more, also
    not for another message of the partition."""
    factory = ConnectionFactory(bootstrap_servers=hasty.bootstrap)
    with factory.create_connection() as connection, factory.create_connection() as other:
        connection.start()
        other.start()
        problems: list[Exception] = []
        connection.exception_listener = problems.append
        session = connection.create_session(AcknowledgeMode.CLIENT)
        queue = session.create_queue(new_name("queue"))
        send(session, queue, "lost")
        consumer = session.create_consumer(queue)
        feed = consumer.feed
        assert isinstance(feed, ShareFeed)
        lost: Any = consumer.receive(WAIT_S)
        second = other.create_session().create_consumer(queue)
        with feed.changed:
            # Its thread cannot renew.
            assert texts(second, 1) == ["lost"]
        eventually(lambda: problems, what="the loss is noticed")
        second.close()
        send(session, queue, "good")
        assert texts(consumer, 1) == ["good"]
        lost.acknowledge()
        assert feed.refused == 1
        eventually(lambda: left_in(hasty, queue) == 0, what="nothing is left")


def test_a_slow_listener_does_not_stop_others(
    factory: ConnectionFactory, connection: Connection, session: Session, queue: Queue
) -> None:
    """Although one feed reads for both of them."""
    begun, go_on = threading.Event(), threading.Event()

    def listener(message: Any) -> None:
        begun.set()
        go_on.wait(WAIT_S)

    slow = connection.create_session().create_consumer(queue, "speed = 'slow'")
    slow.message_listener = listener
    try:
        with session.create_producer(queue) as producer:
            message = session.create_text_message("long")
            message.set_property("speed", "slow")
            producer.send(message)
        assert begun.wait(WAIT_S)
        quick = session.create_consumer(queue, "speed IS NULL")
        for number in range(5):
            send(session, queue, str(number))
            assert texts(quick, 1) == [str(number)]
    finally:
        go_on.set()


def test_messages_of_a_dead_consumer_are_delivered_to_others(
    factory: ConnectionFactory, session: Session, queue: Queue
) -> None:
    send(session, queue, "job")
    with factory.create_connection() as other:
        other.start()
        own = other.create_session("client")
        assert texts(own.create_consumer(queue), 1) == ["job"]
    message = session.create_consumer(queue).receive(WAIT_S)
    assert isinstance(message, TextMessage)
    assert (message.text, message.redelivered) == ("job", True)
