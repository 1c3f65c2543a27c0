"""Values become values of other types as Connect's casts make them."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from moldau.data import builders, logical, values
from moldau.data.builders import array, map_of
from moldau.data.errors import DataError
from moldau.data.schema import Schema, Type

MOMENT = datetime.datetime(2026, 11, 17, 8, 30, 15, 250000, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        (Type.INT8, 300, 44),
        (Type.INT8, "-1.9", -1),
        (Type.INT16, 40_000, -25_536),
        (Type.INT32, 2.9, 2),
        (Type.INT32, Decimal("7.5"), 7),
        (Type.INT64, float("nan"), 0),
        (Type.INT64, float("inf"), 2**63 - 1),
    ],
)
def test_an_integer_is_cut_as_java_cuts_it(kind: Type, value: Any, found: int) -> None:
    assert values.convert_integer(kind, value) == found


def test_dates_and_times_are_numbers_too() -> None:
    assert values.convert_integer(Type.INT32, datetime.date(1970, 1, 3), logical.DATE) == 2
    assert values.convert_integer(Type.INT64, MOMENT, logical.TIMESTAMP) == 1_794_904_215_250


def test_floats_are_rounded_to_their_size() -> None:
    assert values.convert_float(Type.FLOAT64, "0.1") == 0.1
    assert values.convert_float(Type.FLOAT32, 0.1) == 0.10000000149011612
    assert values.convert_float(Type.FLOAT32, 1e300) == float("inf")


@pytest.mark.parametrize("value", [None, True, "x", "NaN", "1e999999", [], MOMENT])
def test_what_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(DataError, match="Unable to convert"):
        values.as_integer(value)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (b"\x00\x9c", "1.56"),
        (Decimal("1.5"), "1.5"),
        (5, "5.0"),
        (0.1, "0.1"),
        ("1.50", "1.50"),
    ],
)
def test_decimals_come_from_bytes_numbers_and_texts(value: Any, found: str) -> None:
    assert str(values.convert_decimal(value, 2)) == found


@pytest.mark.parametrize(
    ("target", "value", "found"),
    [
        (logical.DATE, MOMENT, datetime.date(2026, 11, 17)),
        (logical.DATE, 1, datetime.date(1970, 1, 2)),
        (logical.TIME, MOMENT, datetime.time(8, 30, 15, 250000)),
        (logical.TIME, "1000", datetime.time(0, 0, 1)),
        (
            logical.TIMESTAMP,
            datetime.date(1970, 1, 2),
            datetime.datetime(1970, 1, 2, tzinfo=datetime.UTC),
        ),
        (
            logical.TIMESTAMP,
            datetime.time(1),
            datetime.datetime(1970, 1, 1, 1, tzinfo=datetime.UTC),
        ),
        (logical.TIMESTAMP, MOMENT, MOMENT),
    ],
)
def test_dates_times_and_timestamps_become_one_another(
    target: Schema, value: Any, found: Any
) -> None:
    assert values.convert_temporal(target, value) == found


@pytest.mark.parametrize(
    ("target", "value"),
    [
        (logical.DATE, datetime.time(1)),
        (logical.TIME, datetime.date(2026, 1, 1)),
        (logical.DATE, None),
    ],
)
def test_a_time_is_no_date(target: Schema, value: Any) -> None:
    with pytest.raises(DataError, match="Unable to convert"):
        values.convert_temporal(target, value)


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ("x", builders.STRING),
        (True, builders.BOOLEAN),
        (5, builders.INT64),
        (1.5, builders.FLOAT64),
        (b"x", builders.BYTES),
        ([1, 2], array(builders.INT64)),
        ([1, None], array(builders.OPTIONAL_INT64)),
        ([1, "x"], None),
        ([], None),
        ({"a": [1]}, map_of(builders.STRING, array(builders.INT64))),
        ({}, None),
        (MOMENT, None),
    ],
)
def test_a_plain_value_says_its_schema(value: Any, schema: Schema | None) -> None:
    assert values.infer_schema(value) == schema
