"""Pipelines that run without Spark give Spark's results: random records through both."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import reduce
from typing import Any

import pytest

from moldau.invariant import of_type
from moldau.pipelines.build import sinks
from moldau.pipelines.build.frames import Flows
from moldau.pipelines.definition import Drop, Pipeline, Rename, Topic
from moldau.pipelines.tasks.machine.expressions import Uncertain
from moldau.pipelines.tasks.machine.plan import plan_of

SCHEMA = "n INT, b BIGINT, d DOUBLE, s STRING, t STRING, f BOOLEAN"
FRAME = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int"
)
Record = tuple[bytes | None, bytes | None]
#: Each with a key.
QUERIES = [
    ("SELECT n, b, d, s, t, f FROM input", None),
    ("SELECT * FROM input WHERE n >= 0", "s"),
    ("SELECT n AS `a b`, s FROM input WHERE n > 1 AND b < 100 OR f", "upper(s)"),
    ("SELECT n FROM input WHERE NOT (n = 1 OR s = 'x') AND f IS NOT NULL", "n"),
    ("SELECT s FROM input WHERE s < t", "s"),
    ("SELECT n, b FROM input WHERE n <=> b OR d <=> n", "b"),
    ("SELECT n + b AS x, n * 2 - 1 AS y, -b AS z, -d AS w FROM input WHERE n <> b", None),
    ("SELECT n + 1 AS x FROM input WHERE d + 0.5 > n", "x"),
    ("SELECT n / 2 AS h FROM input WHERE n BETWEEN -3 AND 3", "cast(h AS BIGINT)"),
    ("SELECT n FROM input WHERE n > 0.5 AND d < 2.25", None),
    ("SELECT n FROM input WHERE n IN (1, 2, NULL) OR s NOT IN ('x', 'ab')", None),
    ("SELECT upper(s) AS u, lower(t) AS l, length(s) AS c, trim(t) AS m FROM input", "u"),
    ("SELECT s || '-' || t AS j, concat(s, t) AS k FROM input WHERE s LIKE '%b_'", None),
    ("SELECT coalesce(s, t, '?') AS c, coalesce(n, 7) AS k FROM input WHERE f <> false", "c"),
    ("SELECT CASE WHEN n > 1 THEN 'big' WHEN f THEN s ELSE t END AS c FROM input", "c"),
    ("SELECT CASE WHEN d > 0 THEN d END AS c, f AND n > 0 AS g FROM input", None),
    ("SELECT cast(b AS INT) AS i, cast(n AS DOUBLE) AS e, cast(f AS STRING) AS g FROM input", "i"),
    ("SELECT cast(d AS BIGINT) AS i, cast(b AS STRING) AS g FROM input", "g"),
    ("SELECT cast(s AS INT) AS i FROM input WHERE length(s) > 0", "i"),
    ("SELECT n FROM input WHERE b = d OR b > d", None),
    ("SELECT (n) AS p, s IS NULL AS q FROM input WHERE (n > 0) AND f", "q"),
    ("SELECT n FROM input WHERE n = NULL OR NULL IS NULL", None),
]
TEXTS = ["", "x", "ab", "abc", " ab ", "Zz", "é", "\U0001f600", 'q"\\/\n\t\x01\x1f\x7f', "12", "-7"]
PLAIN: dict[str, list[Any]] = {
    "n": [0, 1, 2, -3, 2**31 - 1, -(2**31), None],
    "b": [0, 1, 2, 100, 2**31, 2**63 - 1, -(2**63), 2**53 + 1, None],
    "d": [0.0, -0.0, 0.5, 1, 2.25, -1.75, 123456.125, 1e-3, 9007199254740993, None],
    "s": [*TEXTS, None],
    "t": [*TEXTS, None],
    "f": [True, False, None],
}
#: Fields that are not of their types, and others.
ODD: list[tuple[str, Any]] = [
    ("n", 1.0),
    ("n", "1"),
    ("n", 2**31),
    ("d", "NaN"),
    ("d", 1e300),
    ("d", 0.1 + 0.2),
    ("s", 5),
    ("s", {"a": [1, 2.0]}),
    ("f", "true"),
    ("N", 5),
    ("extra", {"deep": [None, 1e5, "x"]}),
]
RAW = [
    *(b"", b"null", b"[]", b"{}", b"{'n': 1}", b'{"n": 1} x', b'{"n": 01}', b'[{"n": 1}]'),
    *(b'{"n": 1, "n": 2}', b'{"d": -0}', b'{"d": 1e400}', b'{"d": NaN}', b'\xff{"n": 1}'),
    *(b' \n{"n" : 1 , "s":"\\u00e9\\/"}\t', b'{"s":"\\ud83d"}', b'{"s":"\ttab"}', b'{"d": 1E2}'),
    *(b'{"b": 9223372036854775808}', b'{"d": 0.30000000000000004}', b'{"n": null, "s": "null"}'),
]


def values(seed: int, count: int) -> Iterator[bytes | None]:
    chance = random.Random(seed)
    yield None
    yield from RAW
    for _ in range(count):
        fields = {name: chance.choice(known) for name, known in PLAIN.items()}
        if chance.random() < 0.2:
            fields.pop(chance.choice(list(fields)))
        if chance.random() < 0.2:
            fields["d"] = round(chance.uniform(-2000, 2000), chance.randrange(1, 9))
        if chance.random() < 0.15:
            name, value = chance.choice(ODD)
            fields[name] = value
        yield json.dumps(fields, ensure_ascii=chance.random() < 0.5).encode()


def pipeline_of(query: str, key: str | None, *, longer: bool) -> Pipeline:
    steps: list[Any] = [query]
    if longer:
        first = "SELECT n, b, d, s, t, f, 1 AS gone, n AS former FROM input"
        steps = [first, Drop(("gone",)), Rename({"former": "older"}), Drop(("older",)), query]
    return Pipeline(
        "same", source=Topic("in", schema=SCHEMA), steps=steps, sink=Topic("out", key=key)
    )


def certain_of(pipeline: Pipeline, seed: int) -> tuple[list[bytes | None], list[Record]]:
    """The values that are translated for certain, and the records they become."""
    convert = plan_of(pipeline.to_json()).convert
    certain, expected = [], []
    for value in values(seed, 150):
        try:
            made = convert(value)
        except Uncertain:
            continue
        certain.append(value)
        if made is not None:
            expected.append(made)
    return certain, expected


@pytest.mark.long("Spark analyses many queries; unit tests have the answers of some")
@pytest.mark.slow("Spark analyses many queries")
def test_what_is_certain_is_what_spark_makes_of_it(spark: Any) -> None:
    expected: list[list[Record]] = []
    parts = []
    for number, (query, key) in enumerate(QUERIES):
        pipeline = pipeline_of(query, key, longer=number % 5 == 0)
        certain, made = certain_of(pipeline, number)
        assert len(certain) > 40, query
        expected.append(made)
        rows = [(None, value, "in", 0, offset, None, 0) for offset, value in enumerate(certain)]
        frame = spark.createDataFrame(rows, FRAME).coalesce(1)
        flow = Flows(spark, pipeline, "127.0.0.1:1", lambda source, frame=frame: frame).build()
        shown = "key" if key is not None else "cast(NULL AS BINARY) AS key"
        records = sinks.records(flow, of_type(pipeline.sink, Topic), pipeline)
        parts.append(records.selectExpr(f"{number} AS query", shown, "value"))
    found: list[list[Record]] = [[] for _ in QUERIES]
    for row in reduce(lambda one, other: one.unionAll(other), parts).collect():
        found[row.query].append((row.key and bytes(row.key), row.value and bytes(row.value)))
    for (query, _), ours, sparks in zip(QUERIES, expected, found, strict=True):
        assert ours == sparks, query
