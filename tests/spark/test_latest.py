"""A compacted topic as a table: what a lookup finds, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from moldau.client import Admin, Producer
from moldau.spark.latest import ROWS_MAX, TOPIC, TopicTable, TopicTableError
from moldau.testing import Broker
from support.waiting import eventually


@contextmanager
def table_of(broker: Broker, topic: str, *, rows_max: int = 100) -> Iterator[TopicTable]:
    settings = {"bootstrap.servers": broker.bootstrap_servers, TOPIC: topic, ROWS_MAX: rows_max}
    table = TopicTable(settings)
    try:
        yield table
    finally:
        table.close()


def send(broker: Broker, topic: str, *pairs: tuple[str, str | None]) -> None:
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        for key, value in pairs:
            producer.send(topic, key=key.encode(), value=None if value is None else value.encode())


def test_the_latest_value_counts_and_none_deletes(broker: Broker, topic: str) -> None:
    broker.create_topic(topic, partitions=3)
    send(broker, topic, ("a", "1"), ("b", "1"), ("c", "1"), ("a", "2"), ("b", None))
    with table_of(broker, topic) as table:
        table.catch_up()
        keys = [b"a", b"b", b"c", b"d", None]
        assert table.values_of(keys) == [b"2", None, b"1", None, None]
        send(broker, topic, ("b", "3"), ("c", None), ("", "empty"))
        table.catch_up()
        assert table.values_of([*keys, b""]) == [b"2", b"3", None, None, None, b"empty"]
        assert len(table) == 3


def test_what_is_not_committed_is_not_seen(broker: Broker, topic: str) -> None:
    broker.create_topic(topic)
    config = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic}
    with table_of(broker, topic) as table, Producer(config) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, key=b"a", value=b"aborted")
        producer.flush()
        table.catch_up()
        assert table.values_of([b"a"]) == [None]
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send(topic, key=b"a", value=b"committed")
        producer.commit_transaction()
        table.catch_up()
        assert table.values_of([b"a"]) == [b"committed"]


def test_a_topic_that_grows_and_one_that_is_made_anew(broker: Broker, topic: str) -> None:
    broker.create_topic(topic)
    send(broker, topic, ("a", "1"), ("b", "1"))
    with table_of(broker, topic) as table:
        table.catch_up()
        with Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
            admin.create_partitions({topic: 4})
            send(broker, topic, *((f"k{number}", "2") for number in range(20)))
            table.catch_up()
            assert table.values_of([b"a", b"k3", b"k19"]) == [b"1", b"2", b"2"]
            admin.delete_topics([topic])
            eventually(lambda: topic not in admin.list_topics(), what="the topic is gone")
        broker.create_topic(topic)
        send(broker, topic, ("c", "3"))

        def is_new() -> bool:
            table.catch_up()
            return table.values_of([b"a", b"k3", b"c"]) == [None, None, b"3"]

        eventually(is_new, what="the new topic is seen")


def test_more_keys_than_may_be_held_are_refused(broker: Broker, topic: str) -> None:
    broker.create_topic(topic)
    send(broker, topic, *((f"k{number}", "v") for number in range(11)))
    refused = pytest.raises(TopicTableError, match=f"topic {topic} has more than 10 keys")
    with table_of(broker, topic, rows_max=10) as table, refused:
        table.catch_up()


def test_a_topic_that_is_not_there_is_named(broker: Broker, topic: str) -> None:
    refused = pytest.raises(TopicTableError, match=f"there is no topic '{topic}'")
    with table_of(broker, topic) as table, refused:
        table.catch_up()
