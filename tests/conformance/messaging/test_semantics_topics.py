"""The semantics of messaging: topics and their subscriptions."""

from __future__ import annotations

import pytest

from moldau.messaging import (
    ConnectionFactory,
    IllegalStateError,
    InvalidDestinationError,
    Session,
    Topic,
)
from support.messaging import new_name, send, texts
from support.waiting import eventually


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
