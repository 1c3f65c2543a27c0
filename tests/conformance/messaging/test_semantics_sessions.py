"""The semantics of messaging: what sessions acknowledge, commit and roll back."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from moldau.messaging import (
    AcknowledgeMode,
    Connection,
    ConnectionFactory,
    IllegalStateError,
    Queue,
    Session,
    TextMessage,
)
from support.messaging import WAIT_S, left_in, new_name, send, texts
from support.processes import BrokerProcess
from support.repeats import mostly_long
from support.waiting import eventually

# Acknowledging.


def test_auto_acknowledges_what_was_received(
    factory: ConnectionFactory, session: Session, queue: Queue
) -> None:
    send(session, queue, "one", "two")
    with factory.create_connection() as other:
        other.start()
        assert texts(other.create_session().create_consumer(queue), 1) == ["one"]
    assert texts(session.create_consumer(queue), 1) == ["two"]


def test_client_acknowledges_all_that_the_session_received(
    factory: ConnectionFactory, session: Session, queue: Queue
) -> None:
    send(session, queue, "one", "two", "three")
    with factory.create_connection() as other:
        other.start()
        consumer = other.create_session("client").create_consumer(queue)
        consumer.receive(WAIT_S)
        second = consumer.receive(WAIT_S)
        assert second is not None
        second.acknowledge()
        assert texts(consumer, 1) == ["three"]
    message = session.create_consumer(queue).receive(WAIT_S)
    assert isinstance(message, TextMessage)
    assert (message.text, message.redelivered) == ("three", True)


def test_recover_delivers_again_in_order(connection: Connection, queue: Queue) -> None:
    session = connection.create_session(AcknowledgeMode.CLIENT)
    send(session, queue, "one", "two")
    consumer = session.create_consumer(queue)
    assert texts(consumer, 2) == ["one", "two"]
    session.recover()
    again = [consumer.receive(WAIT_S) for _ in range(2)]
    assert [(each.text, each.redelivered, each.delivery_count) for each in again] == [
        ("one", True, 2), ("two", True, 2),
    ]  # fmt: skip


def test_dups_ok_acknowledges_lazily_and_at_close(
    broker: BrokerProcess, factory: ConnectionFactory, session: Session, queue: Queue
) -> None:
    send(session, queue, *(str(number) for number in range(25)))
    with factory.create_connection() as other:
        other.start()
        consumer = other.create_session("dups_ok").create_consumer(queue)
        assert len(texts(consumer, 24)) == 24
        # Twenty are acknowledged, and the other four when the session is closed.
        eventually(lambda: left_in(broker, queue) == 5, what="20 are acknowledged")
    eventually(lambda: left_in(broker, queue) == 1, what="24 are acknowledged")
    assert texts(session.create_consumer(queue), 1) == ["24"]


def test_a_listener_acknowledges_by_returning(
    connection: Connection, session: Session, queue: Queue
) -> None:
    send(session, queue, "work")
    seen: list[tuple[str, int]] = []

    def listener(message: Any) -> None:
        seen.append((message.text, message.delivery_count))
        if message.delivery_count < 2:
            raise RuntimeError("once more")

    own = connection.create_session()
    consumer = own.create_consumer(queue)
    consumer.message_listener = listener
    eventually(lambda: len(seen) >= 2, what="two deliveries")
    assert seen == [("work", 1), ("work", 2)]
    with pytest.raises(IllegalStateError):
        consumer.receive(0)


# Transactions.


def test_a_commit_sends_and_acknowledges_together(
    factory: ConnectionFactory, session: Session, queue: Queue
) -> None:
    out = session.create_queue(new_name("out"))
    send(session, queue, "order")
    results = session.create_consumer(out)
    with factory.create_connection() as other:
        other.start()
        work = other.create_session(transacted=True)
        assert texts(work.create_consumer(queue), 1) == ["order"]
        send(work, out, "bill")
        assert results.receive(0.5) is None
        work.commit()
        assert texts(results, 1) == ["bill"]
    assert session.create_consumer(queue).receive(0.5) is None


CRASHING = """
import os, sys
from moldau.messaging import ConnectionFactory
from moldau.messaging.transaction import SessionTransaction

server, inbox, outbox, moment = sys.argv[1:]
commit = SessionTransaction.commit

def dying(self, notes):
    done = moment == "after" and commit(self, notes)
    os._exit(9)

SessionTransaction.commit = dying
connection = ConnectionFactory(bootstrap_servers=server).create_connection()
connection.start()
session = connection.create_session(transacted=True)
order = session.create_consumer(session.create_queue(inbox)).receive(60)
sender = session.create_producer(session.create_queue(outbox))
sender.send(session.create_text_message("bill of " + order.text))
session.commit()
"""


@pytest.mark.parametrize("moment", mostly_long(["after", "before"], "the easier moment"))
def test_a_program_that_dies_in_its_commit_has_effects_once(
    hasty: BrokerProcess, moment: str
) -> None:
    """After the transaction and before the acknowledgement the message is delivered again by the
    broker, and dropped, because the transaction has noted it. Before, nothing has happened."""
    factory = ConnectionFactory(bootstrap_servers=hasty.bootstrap)
    with factory.create_connection() as connection:
        connection.start()
        session = connection.create_session()
        queue, out = (session.create_queue(new_name(name)) for name in ("in", "out"))
        send(session, queue, "order")
        command = [sys.executable, "-c", CRASHING, hasty.bootstrap, queue.name, out.name, moment]
        died = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert died.returncode == 9, died.stderr
        work = connection.create_session(transacted=True)
        consumer = work.create_consumer(queue)
        if moment == "before":
            message = consumer.receive(WAIT_S)
            assert isinstance(message, TextMessage)
            assert (message.text, message.redelivered) == ("order", True)
            send(work, out, "bill of order")
            work.commit()
        eventually(lambda: left_in(hasty, queue) == 0, what="the order is acknowledged")
        assert consumer.receive(0.2) is None
        bills = session.create_consumer(out)
        assert texts(bills, 1) == ["bill of order"]
        assert bills.receive(0.5) is None


def test_a_rollback_sends_nothing_and_delivers_again(connection: Connection, queue: Queue) -> None:
    work = connection.create_session(transacted=True)
    out = work.create_queue(new_name("out"))
    send(connection.create_session(), queue, "order")
    consumer = work.create_consumer(queue)
    assert texts(consumer, 1) == ["order"]
    send(work, out, "wrong bill")
    work.rollback()
    message = consumer.receive(WAIT_S)
    assert isinstance(message, TextMessage)
    assert (message.text, message.redelivered) == ("order", True)
    send(work, out, "bill")
    work.commit()
    results = connection.create_session().create_consumer(out)
    assert texts(results, 1) == ["bill"]
    assert results.receive(0.3) is None


def test_commit_needs_a_transacted_session(session: Session) -> None:
    with pytest.raises(IllegalStateError):
        session.commit()
    with pytest.raises(IllegalStateError):
        session.rollback()


def test_closing_rolls_back(factory: ConnectionFactory, session: Session, queue: Queue) -> None:
    out = session.create_queue(new_name("out"))
    send(session, queue, "order")
    with factory.create_connection() as other:
        other.start()
        work = other.create_session(transacted=True)
        assert texts(work.create_consumer(queue), 1) == ["order"]
        send(work, out, "bill")
        work.close()
    assert texts(session.create_consumer(queue), 1) == ["order"]
    send(session, out, "marker")
    assert texts(session.create_consumer(out), 1) == ["marker"]
