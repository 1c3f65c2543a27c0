"""Which pipelines run without Spark, and what is left to Spark."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.pipelines.tasks.machine.choosing import (
    begun_by_task,
    choose,
    engine_of,
    moved_to_spark,
)
from moldau.pipelines.tasks.machine.expressions import NotTranslated, Uncertain
from moldau.pipelines.tasks.machine.plan import plan_of, reason_for_spark

SCHEMA = "id BIGINT NOT NULL, amount DOUBLE, name STRING, ok BOOLEAN"


def definition(query: str = "SELECT id FROM input", **fields: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": "p",
        "source": {"topic": "in", "schema": SCHEMA},
        "steps": [{"sql": query}],
        "sink": {"topic": "out"},
    }
    return made | fields


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT id FROM input WHERE id >= 0 AND name LIKE 'a%'", None),
        ("SELECT count(*) AS n FROM input GROUP BY id", "a query that is not a plain SELECT"),
        ("SELECT md5(name) AS m FROM input", "md5()"),
        ("SELECT ID FROM input", "column ID"),
        ("SELECT id + 1 FROM input", "id + 1 without a name"),
        ("SELECT id, name AS id FROM input", "names of columns"),
        ("SELECT id FROM input WHERE (ok)", "a condition that begins with names in brackets"),
        ("SELECT id FROM input WHERE name = 5", "string compared with int"),
        ("SELECT id FROM input WHERE id = 1.5 + 1", "arithmetic with decimals"),
        ("SELECT cast(amount AS STRING) AS a FROM input", "cast of double to string"),
        (r"SELECT id FROM input WHERE name = 'a\\n'", r"'a\\n'"),
        ("SELECT id FROM input WHERE id % 2 = 0", "%"),
        ("SELECT DATE '2026-01-01' AS d FROM input", "DATE"),
        ("SELECT id FROM input i", "a query that is not a plain SELECT"),
        ("SELECT _offset AS o FROM input", "column _offset"),
    ],
)
def test_what_of_a_query_needs_spark(query: str, reason: str | None) -> None:
    found = reason_for_spark(definition(query))
    assert (found is None) if reason is None else (found is not None and reason in found)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"trigger": "available now"}, "trigger: available now"),
        ({"source": {"pattern": "a.*", "schema": SCHEMA}}, "source: pattern"),
        ({"source": {"topic": "t", "schema": "at TIMESTAMP"}}, "schema: at TIMESTAMP"),
        ({"source": {"topic": "t", "schema": SCHEMA, "minPartitions": 4}}, "source: minPartitions"),
        ({"sink": {"delta": "/tmp/x"}}, "sink: delta"),
        ({"sink": {"topic": "t", "headers": {"a": "id"}}}, "sink: headers"),
        ({"steps": [{"python": "f.py:f"}]}, "steps: python"),
        ({"outputMode": "update"}, "outputMode"),
    ],
)
def test_what_of_a_definition_needs_spark(fields: dict[str, Any], reason: str) -> None:
    assert reason_for_spark(definition(**fields)) == reason


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b"{'id': 1}", id="other quotes, which Spark reads"),
        pytest.param(b'{"id": "1"}', id="a number as text"),
        pytest.param(b'{"name": "x"}', id="null where the schema says NOT NULL"),
        pytest.param(b'{"id": 1} {"id": 2}', id="a second value"),
        pytest.param(b'{"id": 1, "id": 2}', id="a field twice"),
        pytest.param(b'{"id": 9223372036854775807}', id="an overflow"),
        pytest.param(b"\xff", id="not UTF-8"),
        pytest.param(b'{"id": 1, "amount": 1e22}', id="a double that Java writes otherwise"),
    ],
)
def test_a_record_that_is_not_certain_is_left_to_spark(value: bytes) -> None:
    convert = plan_of(definition("SELECT id + 1 AS more, amount FROM input")).convert
    with pytest.raises(Uncertain):
        convert(value)


PLAIN, SPARKS = definition(), definition("SELECT md5(name) AS m FROM input")


@pytest.mark.parametrize(
    ("fields", "before", "has_checkpoint", "engine", "begun"),
    [
        pytest.param(PLAIN, None, False, "task", False, id="new and small"),
        pytest.param(SPARKS, None, False, "spark", False, id="new, needs Spark"),
        pytest.param(PLAIN, None, True, "spark", False, id="a checkpoint is there"),
        pytest.param(PLAIN, {}, False, "spark", False, id="known before there were tasks"),
        pytest.param(PLAIN, {"engine": "task"}, False, "task", False, id="stays"),
        pytest.param(SPARKS, {"engine": "task"}, False, "spark", True, id="grows"),
        pytest.param(
            PLAIN | {"engine": "spark"}, {"engine": "task"}, False, "spark", True, id="is moved"
        ),
        pytest.param(PLAIN | {"engine": "spark"}, None, False, "spark", False, id="asked for"),
        pytest.param(
            PLAIN, moved_to_spark({"engine": "task"}), False, "spark", True, id="was handed over"
        ),
    ],
)
def test_the_engine(
    fields: dict[str, Any],
    before: dict[str, Any] | None,
    has_checkpoint: bool,
    engine: str,
    begun: bool,
) -> None:
    found = choose(fields, before, has_checkpoint=has_checkpoint)
    assert (engine_of(found), begun_by_task(found)) == (engine, begun)


def test_a_task_that_cannot_be_one_is_refused() -> None:
    with pytest.raises(NotTranslated, match="md5"):
        choose(SPARKS | {"engine": "task"}, None, has_checkpoint=False)
    with pytest.raises(NotTranslated, match="checkpoint of Spark"):
        choose(PLAIN | {"engine": "task"}, {"engine": "spark"}, has_checkpoint=True)
