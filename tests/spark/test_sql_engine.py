"""ENGINE='spark-sql': Spark writes the same records as the streams topology; and DataFrames."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest

from moldau.sql.client.frames import spark_frame
from moldau.sql.engine.engine import KsqlEngine
from moldau.sql.engine.ports import MemoryTopics
from moldau.sql.formats import format_for
from moldau.sql.functions.registry import built_in
from moldau.sql.sparksql.frames import run
from moldau.streams.hosts.driver import TopologyTestDriver
from moldau.streams.machine.error_handlers import Handlers, skip_on_error
from moldau.streams.records import Produced
from support.repeats import mostly_long

SOURCES = """
    CREATE STREAM s (id STRING KEY, n INT, l BIGINT, t STRING, b BOOLEAN, d DOUBLE)
        WITH (kafka_topic='s', value_format='JSON');
"""
QUERIES = [
    "SELECT * FROM s",
    "SELECT id, n + 1 AS more, l * n AS product, t FROM s WHERE n + l > 1 AND b",
    "SELECT id, CASE WHEN n IS NULL THEN 'none' WHEN n > 1 THEN t END AS c, n = 1 AS one FROM s",
    "SELECT id, t, d, CAST(n AS STRING) AS shown, ROWOFFSET AS o FROM s "
    "WHERE NOT (t = 'x' OR n < 0) AND l IN (1, 9223372036854775807, -1)",
    "SELECT id, n - l AS m FROM s WHERE t <> 'x' OR n BETWEEN 1 AND 5",
]


def _records() -> list[tuple[bytes | None, bytes | None]]:
    numbers = [None, -1, 1, 2147483647]
    longs = [None, 1, 9223372036854775807]
    found: list[tuple[bytes | None, bytes | None]] = []
    for index, (n, big, t, b) in enumerate(
        itertools.product(numbers, longs, [None, "x", "ż'\\"], [None, True, False])
    ):
        value = {"N": n, "L": big, "T": t, "B": b, "D": index / 4}
        found.append((f"k{index % 7}".encode(), json.dumps(value).encode()))
    return [*found, (b"k", None), (None, b'{"N": 1}'), (b"k", b"not json"), (b"k", b'{"n": "7"}')]


def _by_streams(query: Any) -> list[tuple[Any, ...]]:
    driver = TopologyTestDriver(
        query.built.topology,
        application_id=query.application_id,
        handlers=Handlers(deserialization=skip_on_error),
    )
    found = []
    with driver:
        for offset, (key, value) in enumerate(_records()):
            driver.pipe(Produced("s", key, value, 1000 + offset))
        while (record := driver.take("O")) is not None:
            found.append((record.key, record.value, record.timestamp))
    return found


@pytest.mark.parametrize("query", mostly_long(QUERIES, "more statements", keep=QUERIES[1:3]))
def test_the_records_are_the_same(spark: Any, query: str) -> None:
    engine = KsqlEngine(functions=built_in(), formats=format_for, topics=MemoryTopics())
    engine.execute_script(f"{SOURCES} CREATE STREAM o WITH (engine='spark-sql') AS {query};")
    planned = engine.queries["CSAS_O_0"]
    assert planned.spark is not None
    rows = [
        (key, value, 0, offset, datetime.fromtimestamp((1000 + offset) / 1000, UTC))
        for offset, (key, value) in enumerate(_records())
    ]
    given = spark.createDataFrame(
        rows, "key binary, value binary, partition int, offset bigint, timestamp timestamp"
    )
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        found = run(planned.spark, given).collect()
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)

    def plain(value: Any) -> bytes | None:
        return None if value is None else bytes(value)

    shown = sorted(
        ((plain(each[0]), plain(each[1]), each[2]) for each in found), key=lambda each: each[2]
    )
    assert shown == _by_streams(planned)


def test_a_data_frame_of_spark(spark: Any) -> None:
    columns = [
        ("ID", "STRING"), ("N", "INTEGER"), ("C", "DECIMAL(6, 2)"), ("Y", "BYTES"),
        ("TS", "TIMESTAMP"), ("DA", "DATE"), ("TI", "TIME"), ("A", "ARRAY<INTEGER>"),
        ("M", "MAP<STRING, DOUBLE>"), ("S", "STRUCT<`X` INTEGER, `Y` STRING>"),
    ]  # fmt: skip
    row = (
        "a", 1, Decimal("1.50"), b"\0", datetime(2024, 1, 1, tzinfo=UTC), date(2024, 1, 1),
        time(1, 2), [1, None], {"k": 0.5}, {"X": 1, "Y": "y"},
    )  # fmt: skip
    frame = spark_frame(spark, columns, [row, (None,) * len(columns)])
    assert [each.simpleString() for each in (field.dataType for field in frame.schema)] == [
        "string", "int", "decimal(6,2)", "binary", "timestamp", "date", "time(6)", "array<int>",
        "map<string,double>", "struct<X:int,Y:string>",
    ]  # fmt: skip
    assert frame.where("C > 1 AND S.X = 1 AND M['k'] < 1").count() == 1
