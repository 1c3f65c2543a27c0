"""Topics in Spark: what users of `format("kafka")` rely on holds for `format("moldau")` alike."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, NewPartitions, NewTopic, Producer
from moldau.client.admin import RecordsToDelete
from moldau.client.topics import TopicPartition
from moldau.spark import lag
from moldau.testing import Broker
from spark.running import SECONDS_MAX, at_work, finished
from support.repeats import mostly_long
from support.waiting import eventually


@pytest.fixture(params=mostly_long(["moldau", "kafka"], "the other way round"))
def connector(request: pytest.FixtureRequest) -> str:
    """Either connector; Spark's own only where it can be had."""
    if request.param == "kafka":
        request.getfixturevalue("official")
    return str(request.param)


@pytest.fixture
def options(bootstrap: str, topic: str) -> dict[str, str]:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 2)])
    return {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "failOnDataLoss": "true",
    }


def send(bootstrap: str, topic: str, values: range, partition: int | None = None) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for value in values:
            producer.send(
                topic,
                key=None if value % 3 else b"k%d" % value,
                value=b"%d" % value,
                partition=value % 2 if partition is None else partition,
                headers=[("n", b"%d" % value)] if value % 2 else [],
            )


def run(frame: Any, checkpoint: str, **trigger: Any) -> list[Any]:
    """The progress of all batches of a query that reads what there is."""
    writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
    writer = writer.trigger(**(trigger or {"availableNow": True}))
    [query] = finished(lambda: [writer.start()])
    return [each for each in query.recentProgress if each.numInputRows]


def last_offsets(checkpoint: str) -> Any:
    files = [each for each in Path(checkpoint, "offsets").iterdir() if each.name.isdigit()]
    newest = max(files, key=lambda each: int(each.name))
    return json.loads(newest.read_text().splitlines()[-1])


def test_rows_and_columns_are_those_of_sparks_own_connector(
    spark: Any, options: dict[str, str], bootstrap: str, topic: str, connectors: tuple[str, ...]
) -> None:
    send(bootstrap, topic, range(20))
    options["includeHeaders"] = "true"
    seen = []
    for connector in connectors:
        frame = spark.read.format(connector).options(**options).load()
        seen.append((frame.schema, frame.orderBy("partition", "offset").collect()))
    assert all(each == seen[0] for each in seen)
    schema, rows = seen[0]
    assert schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    assert [(row.partition, row.offset, int(row.value)) for row in rows] == [
        (value % 2, value // 2, value) for value in (*range(0, 20, 2), *range(1, 20, 2))
    ]
    assert rows[0].key == b"k0"
    assert rows[1].key is None
    assert (rows[0].headers, rows[10].headers[0].value) == (None, b"1")


def test_a_range_is_read_in_as_many_tasks_as_are_asked_for(
    spark: Any, options: dict[str, str], bootstrap: str, topic: str, connectors: tuple[str, ...]
) -> None:
    from pyspark.sql.functions import spark_partition_id

    send(bootstrap, topic, range(20))
    del options["subscribe"]
    for connector in connectors:
        frame = (
            spark.read.format(connector)
            .options(**options, assign=f'{{"{topic}":[1]}}', minPartitions="3")
            .option("startingOffsets", f'{{"{topic}":{{"1":2}}}}')
            .option("endingOffsets", f'{{"{topic}":{{"1":8}}}}')
            .load()
        )
        tasks = frame.groupBy(spark_partition_id().alias("task")).count().collect()
        assert sorted(each["count"] for each in tasks) == [2, 2, 2], connector


def test_a_query_goes_on_where_it_was_with_either_connector(
    spark: Any,
    options: dict[str, str],
    bootstrap: str,
    topic: str,
    connector: str,
    connectors: tuple[str, ...],
    checkpoint: str,
) -> None:
    """In batches of its size, and, where both can be had, with the other's checkpoint."""
    send(bootstrap, topic, range(12))
    options["maxOffsetsPerTrigger"] = "8"
    first, second = run(spark.readStream.format(connector).options(**options).load(), checkpoint)
    assert (first.numInputRows, second.numInputRows) == (8, 4)
    assert json.loads(first.sources[0].endOffset) == {topic: {"0": 4, "1": 4}}
    assert lag(first).records == 4
    assert lag(first).partitions == {f"{topic}-0": 2, f"{topic}-1": 2}
    assert lag(second).records == 0
    send(bootstrap, topic, range(10))
    [other] = set(connectors) - {connector} or {connector}
    frame = spark.readStream.format(other).options(**options).load()
    # Once is for all that there is, whatever the size of batches.
    [third] = run(frame, checkpoint, once=True)
    assert third.numInputRows == 10
    assert last_offsets(checkpoint) == {topic: {"0": 11, "1": 11}}


def test_a_running_query_reads_what_comes_and_shows_it_in_its_group(
    spark: Any, options: dict[str, str], broker: Broker, topic: str, checkpoint: str
) -> None:
    """The group has the query's name, and new partitions are read from their first record."""
    bootstrap = broker.bootstrap_servers
    frame = spark.readStream.format("moldau").options(**options).load()
    name = topic.replace("-", "_")
    writer = (
        frame.selectExpr("CAST(CAST(value AS STRING) AS INT) AS value")
        .writeStream.format("memory")
        .queryName(name)
    )
    send(bootstrap, topic, range(3), partition=0)
    # A memory table cannot go on from a checkpoint, so each start has its own.
    places = (f"{checkpoint}-{number}" for number in itertools.count())
    query = at_work(lambda: writer.option("checkpointLocation", next(places)).start())

    def seen() -> list[int]:
        assert query.exception() is None
        return sorted(row.value for row in spark.table(name).collect())

    eventually(lambda: seen() == [0, 1, 2], what="the first records", seconds_max=SECONDS_MAX)
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_partitions({topic: NewPartitions(3)})
    send(bootstrap, topic, range(3, 5), partition=2)
    eventually(
        lambda: seen() == [0, 1, 2, 3, 4],
        what="those of the new partition",
        seconds_max=SECONDS_MAX,
    )
    read = {(topic, 0): 3, (topic, 1): 0, (topic, 2): 2}
    group = broker.group(f"moldau-spark-{name}")
    eventually(
        lambda: group.committed() == read, what="the group's offsets", seconds_max=SECONDS_MAX
    )
    assert lag(query.lastProgress).records == 0
    assert lag(query.lastProgress).seconds == 0.0


def test_records_that_are_gone_fail_the_query_or_are_passed_over(
    spark: Any, options: dict[str, str], bootstrap: str, topic: str
) -> None:
    from pyspark.errors import PySparkException

    send(bootstrap, topic, range(8), partition=0)
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(5)})
    options["startingOffsets"] = f'{{"{topic}":{{"0":2,"1":0}}}}'
    reader = spark.read.format("moldau")
    with pytest.raises(PySparkException, match=rf"{topic}-0: offsets 2 to 8.*failOnDataLoss"):
        reader.options(**options).load().collect()
    lenient = reader.options(**{**options, "failOnDataLoss": "false"}).load()
    assert sorted(int(row.value) for row in lenient.collect()) == [5, 6, 7]


@pytest.mark.parametrize(
    ("more", "schema", "problem"),
    [
        ({"startingOffset": "latest"}, None, "Did you mean startingOffsets"),
        ({"assign": "{}"}, None, "Only one of the following options"),
        ({"kafka.auto.offset.reset": "latest"}, None, "'auto.offset.reset' is not supported"),
        ({}, "value STRING", "fixed schema and cannot be set with a custom one"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(
    spark: Any, more: dict[str, str], schema: str | None, problem: str
) -> None:
    from pyspark.errors import PySparkException

    reader = spark.read.format("moldau").options(
        **{"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t", **more}
    )
    if schema is not None:
        reader = reader.schema(schema)
    with pytest.raises(PySparkException, match=problem):
        reader.load().collect()
