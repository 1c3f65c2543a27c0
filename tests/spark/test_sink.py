"""What rows become records, and what is refused before anything is written."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from moldau.client import Admin, ConsumerRecord
from moldau.client.admin import NewTopic
from spark.running import committed


@pytest.fixture
def target(bootstrap: str, topic: str) -> str:
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        admin.create_topics([NewTopic(topic, 2, 1)])
    return topic


@pytest.fixture
def records(bootstrap: str) -> Callable[[str], list[ConsumerRecord]]:
    """All that a reader of committed records finds in a topic."""
    return lambda topic: committed(bootstrap, topic)


def write(frame: Any, bootstrap: str, **options: str) -> None:
    writer = frame.write.format("moldau").option("kafka.bootstrap.servers", bootstrap)
    writer.options(**options).mode("append").save()


def test_columns_become_records(spark: Any, bootstrap: str, target: str, records: Any) -> None:
    # Of today, for retention goes by it.
    timestamp_ms = round(time.time()) * 1000 - 322
    frame = spark.sql(
        f"""
        SELECT 'k' AS key, 'v' AS value, '{target}' AS topic, 1 AS partition,
               timestamp_millis({timestamp_ms}) AS timestamp,
               array(named_struct('key', 'h', 'value', binary('x'))) AS headers, 42 AS other
        UNION ALL
        SELECT NULL, NULL, '{target}', NULL, NULL, NULL, 43
        """
    )
    write(frame, bootstrap)
    by_value = {record.value: record for record in records(target)}
    assert by_value.keys() == {b"v", None}
    full = by_value[b"v"]
    assert (full.key, full.partition, full.timestamp) == (b"k", 1, timestamp_ms)
    assert list(full.headers) == [("h", b"x")]
    assert by_value[None].key is None


def test_named_batch_is_written_once(spark: Any, bootstrap: str, target: str, records: Any) -> None:
    def write_version(version: int) -> None:
        frame = spark.range(3).selectExpr(f"concat('{version}-', id) AS value")
        write(frame, bootstrap, topic=target, txnAppId=target, txnVersion=str(version))

    for version in (1, 1, 2, 1):
        write_version(version)
    found = sorted(record.value.decode() for record in records(target))
    assert found == ["1-0", "1-1", "1-2", "2-0", "2-1", "2-2"]


def test_batch_all_at_once(spark: Any, bootstrap: str, target: str, records: Any) -> None:
    frame = spark.range(3).selectExpr("string(id) AS value")
    for _ in range(2):
        write(frame, bootstrap, topic=target, exactlyOnce="true")
    assert sorted(record.value for record in records(target)) == [
        b"0",
        b"0",
        b"1",
        b"1",
        b"2",
        b"2",
    ]


@pytest.mark.parametrize(
    ("columns", "options", "problem"),
    [
        (["string(id) AS value"], {}, "topic option required when no 'topic' attribute"),
        (["string(id) AS text"], {"topic": "t"}, "Required attribute 'value' not found"),
        (["id AS value"], {"topic": "t"}, "value attribute unsupported type BIGINT"),
        (["'' AS value"], {"topic": "t", "kafka.key.serializer": "x"}, "'key.serializer' is not"),
    ],
)
def test_refused(
    spark: Any, bootstrap: str, columns: list[str], options: dict[str, str], problem: str
) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException) as caught:
        write(spark.range(1).selectExpr(*columns), bootstrap, **options)
    assert problem in str(caught.value)


def test_overwrite_is_refused(spark: Any, bootstrap: str, target: str) -> None:
    frame = spark.range(1).selectExpr("string(id) AS value")
    writer = frame.write.format("moldau").option("kafka.bootstrap.servers", bootstrap)
    with pytest.raises(Exception, match="Save mode Overwrite not allowed"):
        writer.option("topic", target).mode("overwrite").save()
