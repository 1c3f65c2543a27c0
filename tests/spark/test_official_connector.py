"""Spark's own connector against Moldau: what users of `format("kafka")` rely on, on our broker."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from moldau.client import Admin, Consumer, NewTopic, Producer
from moldau.spark import topic_format
from spark.running import committed, finished
from support.processes import BrokerProcess

# Young enough for the broker to keep the records.
BASE_MS = int(time.time()) * 1000 - 60_000
HEADERS = [("trace", b"\x00\x01"), ("trace", b"again"), ("empty", b"")]


@pytest.fixture
def options(bootstrap: str, official: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": bootstrap, "startingOffsets": "earliest"}


def create(bootstrap: str, *names: str, partitions: int = 2) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(name, partitions) for name in names])


def fill(bootstrap: str, topic: str, values: range, timestamp: int | None = None) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for value in values:
            producer.send(
                topic,
                value=b"%d" % value,
                key=b"k%d" % value,
                partition=value % 2,
                timestamp=None if timestamp is None else timestamp + value * 1000,
                headers=HEADERS,
            )


def values_in(spark: Any, options: dict[str, str], topic: str, **more: str) -> list[int]:
    frame = spark.read.format("kafka").options(**options, subscribe=topic, **more).load()
    return sorted(int(row.value) for row in frame.select("value").collect())


def run(frame: Any, options: dict[str, str], topic: str, checkpoint: str) -> Any:
    """All there is, to another topic; the query when it has ended."""
    writer = frame.writeStream.format("kafka").options(**options, topic=topic)
    writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    [query] = finished(lambda: [writer.start()])
    return query


@pytest.mark.slow("the first in a run loads the connector's classes")
def test_batches_are_read_with_headers_by_pattern_and_by_time(
    spark: Any, options: dict[str, str], bootstrap: str, topic: str
) -> None:
    create(bootstrap, f"{topic}-a", f"{topic}-b")
    fill(bootstrap, f"{topic}-a", range(10), timestamp=BASE_MS)
    fill(bootstrap, f"{topic}-b", range(10, 20), timestamp=BASE_MS)
    both = spark.read.format("kafka").options(**options, subscribePattern=f"{topic}-.*")
    rows = both.option("includeHeaders", "true").load().collect()
    assert sorted(int(row.value) for row in rows) == list(range(20))
    row = next(row for row in rows if row.value == b"13")
    assert (row.key, row.topic, row.partition, row.offset) == (b"k13", f"{topic}-b", 1, 1)
    assert row.timestampType == 0
    assert int(row.timestamp.timestamp() * 1000) == BASE_MS + 13_000
    assert [(each.key, bytes(each.value)) for each in row.headers] == HEADERS
    ranged = {
        "startingOffsetsByTimestamp": {f"{topic}-a": {"0": BASE_MS + 4000, "1": BASE_MS + 4000}},
        "endingOffsets": {f"{topic}-a": {"0": 4, "1": -1}},
    }
    options = options | {key: json.dumps(value) for key, value in ranged.items()}
    assert values_in(spark, options, f"{topic}-a") == [4, 5, 6, 7, 9]


def test_batches_are_written_with_key_headers_topic_and_partition(
    spark: Any, options: dict[str, str], bootstrap: str, topic: str
) -> None:
    create(bootstrap, topic)
    frame = spark.range(6).selectExpr(
        "cast(concat('k', id) as binary) key",
        "cast(cast(id as string) as binary) value",
        "array(struct('origin' key, cast('spark' as binary) value)) headers",
        f"'{topic}' topic",
        "cast(id % 2 as int) partition",
    )
    frame.write.format("kafka").options(**options, includeHeaders="true").save()
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0), (topic, 1)])
        got = []
        while len(got) < 6:
            got += consumer.poll(10)
    assert {(int(record.value), record.partition) for record in got} == {
        (number, number % 2) for number in range(6)
    }
    assert {tuple(record.headers) for record in got} == {(("origin", b"spark"),)}


def test_a_stream_goes_on_where_it_stopped(
    spark: Any, options: dict[str, str], bootstrap: str, topic: str, checkpoint: str
) -> None:
    target = f"{topic}-out"
    create(bootstrap, topic, target)
    fill(bootstrap, topic, range(10))
    stream = spark.readStream.format(topic_format(spark)).options(
        **options, subscribe=topic, maxOffsetsPerTrigger="4"
    )
    frame = stream.load().select("key", "value")
    query = run(frame, options, target, checkpoint)
    batches = [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]
    assert sum(batches) == 10
    assert max(batches) <= 4
    fill(bootstrap, topic, range(10, 13))
    run(frame, options, target, checkpoint)
    assert values_in(spark, options, target) == list(range(13))


def test_transactions_are_read_when_they_are_committed(
    spark: Any, options: dict[str, str], bootstrap: str, topic: str
) -> None:
    create(bootstrap, topic)
    with Producer(bootstrap_servers=bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        for values, commit in ((range(3), True), (range(3, 6), False), (range(6, 9), True)):
            producer.begin_transaction()
            for value in values:
                producer.send(topic, value=b"%d" % value, partition=value % 2)
            producer.flush()
            if commit:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    committed(bootstrap, topic)
    careful = options | {"kafka.isolation.level": "read_committed"}
    assert values_in(spark, careful, topic) == [0, 1, 2, 6, 7, 8]
    assert values_in(spark, options, topic) == list(range(9))


@pytest.mark.long("starts Apache Kafka")
def test_the_same_code_runs_against_apache_kafka(
    spark: Any, kafka: BrokerProcess, topic: str, checkpoint: str
) -> None:
    """Users can move: nothing but the address changes, also with our connector."""
    target = f"{topic}-out"
    create(kafka.bootstrap, topic, target)
    fill(kafka.bootstrap, topic, range(20))
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "startingOffsets": "earliest"}
    frame = spark.readStream.format("moldau")
    writer = (
        frame.options(**options, subscribe=topic, maxOffsetsPerTrigger="16")
        .load()
        .selectExpr("key", "cast(cast(string(value) as int) * 2 as string) value")
        .writeStream.format("moldau")
        .options(**options, topic=target)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
    )
    finished(lambda: [writer.start()])
    got = committed(kafka.bootstrap, target)
    assert sorted(int(record.value) for record in got) == [2 * number for number in range(20)]
    careful = options | {"kafka.isolation.level": "read_committed", "subscribe": target}
    assert spark.read.format("moldau").options(**careful).load().count() == 20
