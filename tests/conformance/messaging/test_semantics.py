"""The semantics of messaging, a test for each row of the table in docs/messaging.md."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from moldau.messaging import (
    AcknowledgeMode,
    BytesMessage,
    Connection,
    ConnectionFactory,
    DeliveryMode,
    IllegalStateError,
    InvalidClientIdError,
    InvalidDestinationError,
    InvalidSelectorError,
    MapMessage,
    MessageFormatError,
    MessageNotWriteableError,
    Queue,
    Requestor,
    Session,
    StreamMessage,
    TextMessage,
    Topic,
    reply_to,
)
from support.processes import BrokerProcess, moldau
from support.repeats import mostly_long
from support.waiting import eventually

WAIT_S = 30.0
_numbers = itertools.count(1)


def new_name(prefix: str) -> str:
    return f"{prefix}-{next(_numbers)}"


@pytest.fixture(scope="module")
def factory(broker: BrokerProcess) -> ConnectionFactory:
    return ConnectionFactory(bootstrap_servers=broker.bootstrap, max_deliveries=3)


@pytest.fixture
def connection(factory: ConnectionFactory) -> Iterator[Connection]:
    with factory.create_connection(client_id=new_name("client")) as made:
        made.start()
        yield made


@pytest.fixture
def session(connection: Connection) -> Session:
    return connection.create_session()


@pytest.fixture
def queue(session: Session) -> Queue:
    return session.create_queue(new_name("queue"))


@pytest.fixture
def topic(session: Session) -> Topic:
    return session.create_topic(new_name("topic"))


def send(session: Session, destination: Any, *texts: str, **options: Any) -> None:
    with session.create_producer(destination) as producer:
        for text in texts:
            producer.send(session.create_text_message(text), **options)


def texts(consumer: Any, count: int) -> list[str]:
    return [consumer.receive(WAIT_S).text for _ in range(count)]


def left_in(broker: BrokerProcess, queue: Queue) -> int | None:
    """How much of a queue is not acknowledged; None if that is not known yet."""
    group = f"queue:{queue.name}"
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        offsets = admin.list_share_group_offsets(group)[group].values()
    lags = [each.lag for each in offsets if each.lag is not None]
    return sum(lags) if lags else None


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


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that soon delivers again what a dead consumer has."""
    settings = [
        "group.share.record.lock.duration.ms=1500",
        "group.share.min.record.lock.duration.ms=1000",
    ]
    with moldau(tmp_path_factory.mktemp("hasty"), settings) as broker:
        yield broker


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


# Topics.


def test_every_subscription_has_every_message_from_its_beginning_on(
    session: Session, topic: Topic
) -> None:
    send(session, topic, "before")
    consumers = [session.create_consumer(topic) for _ in range(2)]
    send(session, topic, "one", "two")
    assert [texts(each, 2) for each in consumers] == [["one", "two"]] * 2


def test_a_durable_subscription_goes_on_without_its_consumer(
    factory: ConnectionFactory,
) -> None:
    client_id = new_name("shop")
    with factory.create_connection(client_id=client_id) as connection:
        connection.start()
        session = connection.create_session()
        topic = session.create_topic(new_name("news"))
        with session.create_durable_subscriber(topic, "desk") as consumer:
            send(session, topic, "one")
            assert texts(consumer, 1) == ["one"]
        send(session, topic, "two")
    with factory.create_connection(client_id=client_id) as connection:
        connection.start()
        session = connection.create_session()
        assert texts(session.create_durable_subscriber(topic, "desk"), 1) == ["two"]


def test_a_durable_subscription_has_one_consumer(session: Session, topic: Topic) -> None:
    with session.create_durable_subscriber(topic, "desk") as consumer:
        send(session, topic, "one")
        assert texts(consumer, 1) == ["one"]
        with pytest.raises(IllegalStateError):
            session.create_durable_subscriber(topic, "desk")


def test_a_durable_subscription_needs_a_client_id(factory: ConnectionFactory) -> None:
    with factory.create_connection() as connection:
        session = connection.create_session()
        with pytest.raises(IllegalStateError):
            session.create_durable_subscriber(session.create_topic("news"), "desk")


def test_unsubscribe_ends_a_durable_subscription(session: Session, topic: Topic) -> None:
    consumer = session.create_durable_subscriber(topic, "desk")
    with pytest.raises(IllegalStateError):
        session.unsubscribe("desk")
    consumer.close()

    def is_ended() -> bool:
        try:
            session.unsubscribe("desk")
        except InvalidDestinationError:
            return False
        return True

    eventually(is_ended, what="the group has no members and is deleted")
    send(session, topic, "unseen")
    again = session.create_durable_subscriber(topic, "desk")
    send(session, topic, "seen")
    assert texts(again, 1) == ["seen"]


@pytest.mark.parametrize("durable", [False, True])
def test_consumers_share_a_subscription(
    factory: ConnectionFactory, session: Session, topic: Topic, durable: bool
) -> None:
    with factory.create_connection() as first, factory.create_connection() as second:
        consumers = []
        for each in (first, second):
            each.start()
            own = each.create_session()
            create = own.create_shared_durable_consumer if durable else own.create_shared_consumer
            consumers.append(create(topic, "crew"))
        send(session, topic, *(str(number) for number in range(30)))
        got: list[str] = []

        def all_received() -> bool:
            for each in consumers:
                while (message := each.receive(0.05)) is not None:
                    got.append(message.text)  # type: ignore[attr-defined]
            return len(got) >= 30

        eventually(all_received, what="30 messages")
    assert sorted(got, key=int) == [str(number) for number in range(30)]
    # Only a durable one goes on while it has no consumers.
    send(session, topic, "meanwhile")
    with factory.create_connection() as third:
        third.start()
        own = third.create_session()
        create = own.create_shared_durable_consumer if durable else own.create_shared_consumer
        consumer = create(topic, "crew")
        send(session, topic, "later")
        assert texts(consumer, 2 if durable else 1)[0] == ("meanwhile" if durable else "later")


def test_no_local_leaves_out_the_connections_own_messages(
    factory: ConnectionFactory, session: Session, topic: Topic
) -> None:
    consumer = session.create_consumer(topic, no_local=True)
    send(session, topic, "own")
    with factory.create_connection() as other:
        send(other.create_session(), topic, "foreign")
    assert texts(consumer, 1) == ["foreign"]


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


# Delivery.


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
    sent_s = time.time()
    # It would have expired, if that did not count from the end of the delay.
    send(session, queue, "later", delivery_delay=2.0, time_to_live=1.9)
    send(session, queue, "now")
    assert sorted(texts(consumer, 2)) == ["later", "now"]
    assert time.time() >= sent_s + 2.0


def test_others_do_not_wait_for_a_delayed_message(session: Session, queue: Queue) -> None:
    consumer = session.create_consumer(queue)
    send(session, queue, "later", delivery_delay=4.0)
    assert consumer.receive(1.0) is None
    send(session, queue, "now")
    assert texts(consumer, 2) == ["now", "later"]


def test_messages_come_although_earlier_ones_are_not_acknowledged(
    connection: Connection, session: Session, queue: Queue
) -> None:
    consumer = connection.create_session(AcknowledgeMode.CLIENT).create_consumer(queue)
    send(session, queue, "first")
    assert len(texts(consumer, 1)) == 1
    send(session, queue, "second")
    received = consumer.receive(2.0)
    assert received is not None
    assert received.text == "second"


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
