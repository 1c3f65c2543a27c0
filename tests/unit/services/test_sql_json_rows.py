"""Which JSON values a column takes: what ksqlDB's coercion for its HTTP interface takes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from moldau.services.sql.machine.json_rows import row_values
from moldau.sql.errors import KsqlException
from moldau.sql.types import Column, parse


def _taken(kind: str, value: Any) -> Any:
    return row_values({"a": value}, (Column("A", parse(kind)),))[0]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("BOOLEAN", True, True),
        ("INTEGER", 5, 5),
        ("BIGINT", 5, 5),
        ("BIGINT", 2**40, 2**40),
        ("DOUBLE", 5, 5.0),
        ("DOUBLE", 2**40, float(2**40)),
        ("DOUBLE", 1.5, 1.5),
        ("DECIMAL(6, 2)", 5, Decimal("5.00")),
        ("DECIMAL(6, 2)", 1.005, Decimal("1.01")),
        ("DECIMAL(6, 2)", "1.255", Decimal("1.26")),
        ("STRING", "x", "x"),
        ("BYTES", "AQI=", b"\x01\x02"),
        ("DATE", "1970-01-03", 2),
        ("TIME", "00:00:01", 1000),
        ("TIMESTAMP", "1970-01-01T00:00:02", 2000),
        ("ARRAY<BIGINT>", [1, None, 2**40], [1, None, 2**40]),
        ("MAP<STRING, DOUBLE>", {"k": 1}, {"k": 1.0}),
        ("STRUCT<B INTEGER, C STRING>", {"b": 1, "unknown": 2}, (1, None)),
        ("STRUCT<b INTEGER>", {"b": 1}, (1,)),
        ("STRUCT<`b` INTEGER>", {"`b`": 1}, (1,)),
        ("ARRAY<STRUCT<B ARRAY<STRING>>>", [{"B": ["x"]}], [(["x"],)]),
        ("STRING", None, None),
    ],
)
def test_what_fits_is_taken(kind: str, value: Any, expected: Any) -> None:
    found = _taken(kind, value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value", "called"),
    [
        ("STRING", {"b": 1}, "OBJECT"),
        ("STRING", [1], "ARRAY"),
        ("STRING", 1, "INTEGER"),
        ("STRING", True, "BOOLEAN"),
        ("BOOLEAN", "true", "STRING"),
        ("BOOLEAN", 1, "INTEGER"),
        ("INTEGER", "1", "STRING"),
        ("INTEGER", 2**31, "BIGINT"),
        ("INTEGER", 1.0, "DOUBLE"),
        ("INTEGER", True, "BOOLEAN"),
        ("BIGINT", 2**63, "NUMBER"),
        ("DOUBLE", "1.0", "STRING"),
        ("DECIMAL(3, 2)", "100", "STRING"),
        ("DECIMAL(3, 2)", 100, "INTEGER"),
        ("DECIMAL(3, 2)", "NaN", "STRING"),
        ("DECIMAL(3, 2)", "x", "STRING"),
        ("DECIMAL(3, 2)", True, "BOOLEAN"),
        ("DATE", "yesterday", "STRING"),
        ("TIMESTAMP", 5, "INTEGER"),
        ("BYTES", "?", "STRING"),
        ("ARRAY<INTEGER>", {"b": 1}, "OBJECT"),
        ("ARRAY<INTEGER>", ["x"], "ARRAY"),
        ("MAP<STRING, INTEGER>", [1], "ARRAY"),
        ("STRUCT<B INTEGER>", "{}", "STRING"),
        ("STRUCT<B STRING>", {"b": {}}, "OBJECT"),
    ],
)
def test_what_does_not_fit_is_refused(kind: str, value: Any, called: str) -> None:
    with pytest.raises(KsqlException) as caught:
        _taken(kind, value)
    shown = f"Can't coerce a field of type {called} into type {parse(kind)}: column A"
    assert str(caught.value) == shown


def test_a_name_is_given_once() -> None:
    with pytest.raises(KsqlException, match="Found duplicate column / struct field name: A"):
        row_values({"a": 1, "A": 2}, (Column("A", parse("INTEGER")),))
