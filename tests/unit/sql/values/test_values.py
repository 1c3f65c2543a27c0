"""Casts, coercions, arithmetic, comparisons and texts of SQL's values."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from moldau.sql.errors import KsqlException
from moldau.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    MapType,
    SqlType,
    StructType,
)
from moldau.sql.values import arithmetic, coercion, comparisons, decimals
from moldau.sql.values.casts import UnsupportedCast, cast
from moldau.sql.values.like import like

AB = StructType((("A", INTEGER), ("B", STRING)))


@pytest.mark.parametrize(
    ("source", "target", "value", "expected"),
    [
        (INTEGER, BIGINT, 5, 5),
        (BIGINT, INTEGER, 2**31, -(2**31)),
        (DOUBLE, INTEGER, 1e20, 2**31 - 1),
        (DOUBLE, BIGINT, -1.9, -1),
        (DOUBLE, INTEGER, math.nan, 0),
        (DOUBLE, STRING, 1e10, "1.0E10"),
        (DOUBLE, STRING, 100.0, "100.0"),
        (BOOLEAN, STRING, True, "true"),
        (STRING, BOOLEAN, " tRu ", True),
        (STRING, BOOLEAN, "y", True),
        (STRING, BOOLEAN, "nonsense", False),
        (STRING, INTEGER, " 12 ", 12),
        (STRING, DOUBLE, "1.5e3", 1500.0),
        (STRING, DecimalType(4, 2), "1.239", Decimal("1.24")),
        (INTEGER, DecimalType(4, 2), 12, Decimal("12.00")),
        (DOUBLE, DecimalType(4, 2), 1.005, Decimal("1.01")),
        (DecimalType(4, 2), DecimalType(3, 1), Decimal("1.25"), Decimal("1.3")),
        (DecimalType(4, 2), INTEGER, Decimal("-1.99"), -1),
        (DecimalType(4, 2), STRING, Decimal("1.10"), "1.10"),
        (STRING, TIMESTAMP, "2020-05-26T23:59:58.123", 1_590_537_598_123),
        (STRING, TIMESTAMP, "2020-05-26T23:59:58.000+0200", 1_590_530_398_000),
        (STRING, TIMESTAMP, "2020-05-26T23:59:58Z", 1_590_537_598_000),
        (STRING, TIMESTAMP, "2020-05", 1_588_291_200_000),
        (STRING, DATE, "2020", 18_262),
        (STRING, TIME, "01:02:03.5", 3_723_500),
        (TIMESTAMP, STRING, 0, "1970-01-01T00:00:00.000"),
        (TIMESTAMP, DATE, -1, -1),
        (TIMESTAMP, TIME, 86_400_005, 5),
        (DATE, TIMESTAMP, 2, 172_800_000),
        (DATE, STRING, 18_000, "2019-04-14"),
        (TIME, STRING, 3_720_999, "01:02"),
        (STRING, BYTES, "YWI=", b"ab"),
        (ArrayType(INTEGER), ArrayType(STRING), [1, None], ["1", None]),
        (ArrayType(DOUBLE), STRING, [1.0, None], "[1.0, null]"),
        (MapType(STRING, INTEGER), MapType(STRING, BIGINT), {"a": 1}, {"a": 1}),
        (MapType(STRING, INTEGER), STRING, {"a": 1, "b": None}, "{a=1, b=null}"),
        (AB, STRING, (1, None), "Struct{A=1}"),
        (AB, StructType((("B", STRING), ("A", BIGINT), ("C", DATE))), (1, "x"), ("x", 1, None)),
        (INTEGER, STRING, None, None),
    ],
)
def test_a_value_is_cast(source: SqlType, target: SqlType, value: Any, expected: Any) -> None:
    found = cast(source, target)(value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (BOOLEAN, INTEGER),
        (INTEGER, TIMESTAMP),
        (BYTES, STRING),
        (TIME, TIMESTAMP),
        (ArrayType(INTEGER), INTEGER),
        (ArrayType(BOOLEAN), ArrayType(INTEGER)),
    ],
)
def test_a_cast_that_ksqldb_does_not_have_is_refused(source: SqlType, target: SqlType) -> None:
    with pytest.raises(UnsupportedCast) as caught:
        cast(source, target)
    assert str(caught.value) == f"Cast of {source} to {target} is not supported"


@pytest.mark.parametrize(
    ("source", "target", "value"),
    [
        (STRING, INTEGER, "1.5"),
        (STRING, INTEGER, "99999999999"),
        (STRING, DOUBLE, "NaN"),
        (STRING, DATE, "2020-02-30"),
        (STRING, TIME, "25:00"),
        (STRING, TIMESTAMP, "yesterday"),
        (STRING, BYTES, "%%"),
        (INTEGER, DecimalType(2, 1), 10),
        (DecimalType(4, 1), DecimalType(2, 1), Decimal("123.4")),
    ],
)
def test_a_value_without_an_equivalent_is_an_error(
    source: SqlType, target: SqlType, value: Any
) -> None:
    with pytest.raises(KsqlException):
        cast(source, target)(value)


@pytest.mark.parametrize(
    ("left", "symbol", "right", "values", "expected", "result"),
    [
        (INTEGER, "+", INTEGER, (2**31 - 1, 1), -(2**31), INTEGER),
        (INTEGER, "*", BIGINT, (2, 2**40), 2**41, BIGINT),
        (INTEGER, "/", INTEGER, (-7, 2), -3, INTEGER),
        (INTEGER, "%", INTEGER, (-7, 2), -1, INTEGER),
        (DOUBLE, "/", INTEGER, (1.0, 0), math.inf, DOUBLE),
        (DOUBLE, "%", DOUBLE, (-7.5, 2.0), -1.5, DOUBLE),
        (STRING, "+", STRING, ("a", "b"), "ab", STRING),
        (
            DecimalType(4, 2),
            "+",
            INTEGER,
            (Decimal("1.10"), 2),
            Decimal("3.10"),
            DecimalType(13, 2),
        ),
        (
            DecimalType(4, 2),
            "*",
            DecimalType(3, 1),
            (Decimal("1.10"), Decimal("2.0")),
            Decimal("2.200"),
            DecimalType(8, 3),
        ),
        (
            DecimalType(2, 1),
            "/",
            DecimalType(2, 1),
            (Decimal("1.0"), Decimal("4.0")),
            Decimal("0.250000"),
            DecimalType(8, 6),
        ),
        (
            DecimalType(4, 2),
            "%",
            DecimalType(4, 2),
            (Decimal("5.50"), Decimal("2.00")),
            Decimal("1.50"),
            DecimalType(4, 2),
        ),
        (DecimalType(4, 2), "-", DOUBLE, (Decimal("1.50"), 0.5), 1.0, DOUBLE),
    ],
)
def test_arithmetic_is_javas(
    left: SqlType, symbol: str, right: SqlType, values: Any, expected: Any, result: SqlType
) -> None:
    found = arithmetic.binary(symbol, left, right)
    assert found.result == result
    value = found.evaluate(*values)
    assert value == expected
    if isinstance(expected, Decimal):
        assert value.as_tuple() == expected.as_tuple()


@pytest.mark.parametrize(
    ("left", "symbol", "right", "values"),
    [
        (INTEGER, "/", INTEGER, (1, 0)),
        (DecimalType(2, 1), "/", DecimalType(2, 1), (Decimal("1.0"), Decimal("3.0"))),
        (DecimalType(2, 1), "/", DecimalType(2, 1), (Decimal("1.0"), Decimal("0.0"))),
    ],
)
def test_arithmetic_without_a_result_is_an_error(
    left: SqlType, symbol: str, right: SqlType, values: Any
) -> None:
    with pytest.raises(KsqlException):
        arithmetic.binary(symbol, left, right).evaluate(*values)


def test_arithmetic_on_other_types_is_refused() -> None:
    with pytest.raises(KsqlException, match=r"Unsupported arithmetic types\. STRING INTEGER"):
        arithmetic.result_type("+", STRING, INTEGER)
    with pytest.raises(KsqlException, match=r"Unsupported arithmetic types\. ARRAY MAP"):
        arithmetic.result_type("+", ArrayType(INTEGER), MapType(STRING, STRING))


@pytest.mark.parametrize(
    ("left", "symbol", "right", "values", "expected"),
    [
        (INTEGER, "<", DOUBLE, (1, 1.5), True),
        (INTEGER, "=", INTEGER, (None, None), False),
        (INTEGER, "<>", INTEGER, (None, 1), False),
        (INTEGER, "IS DISTINCT FROM", INTEGER, (None, 1), True),
        (INTEGER, "IS NOT DISTINCT FROM", INTEGER, (None, None), True),
        (DOUBLE, "=", DecimalType(2, 1), (0.1, Decimal("0.1")), True),
        (DecimalType(3, 2), "=", DecimalType(2, 1), (Decimal("1.10"), Decimal("1.1")), True),
        (STRING, ">=", TIMESTAMP, ("1970-01-02", 86_400_000), True),
        (DATE, "<", TIMESTAMP, (1, 86_400_001), True),
        (TIME, "=", STRING, (3_600_000, "01:00"), True),
        (ArrayType(INTEGER), "=", ArrayType(INTEGER), ([1], [1]), True),
        (BYTES, ">", BYTES, (b"b", b"a"), True),
    ],
)
def test_values_are_compared(
    left: SqlType, symbol: str, right: SqlType, values: Any, expected: bool
) -> None:
    assert comparisons.compare(left, symbol, right)(*values) is expected


def test_comparisons_that_ksqldb_refuses() -> None:
    assert not comparisons.is_valid(BOOLEAN, "<", BOOLEAN)
    assert not comparisons.is_valid(INTEGER, "=", STRING)
    assert not comparisons.is_valid(TIME, "=", DATE)
    with pytest.raises(KsqlException, match="Comparison with NULL not supported: NULL = INTEGER"):
        comparisons.is_valid(None, "=", INTEGER)


@pytest.mark.parametrize(
    ("text", "pattern", "escape", "expected"),
    [
        ("foo", "f%", None, True),
        ("foo", "_o_", None, True),
        ("foo", "o", None, False),
        ("50%", "50!%", "!", True),
        ("50x", "50!%", "!", False),
        ("a.b", "a.b", None, True),
        ("axb", "a.b", None, False),
        ("a\nb", "a%", None, False),
    ],
)
def test_like(text: str, pattern: str, escape: str | None, expected: bool) -> None:
    assert like(text, pattern, escape) is expected


def test_a_pattern_must_not_end_with_its_escape() -> None:
    with pytest.raises(KsqlException, match="must not end with escape"):
        like("x", "x!", "!")


def test_coercion_widens_and_never_loses() -> None:
    assert coercion.common_type(INTEGER, DecimalType(4, 2)) == DecimalType(12, 2)
    assert coercion.common_type(DOUBLE, INTEGER) is None
    assert coercion.common_type(INTEGER, STRING) is None
    assert coercion.common_type(INTEGER, STRING, lax=True) is STRING
    assert coercion.coercer(STRING, DATE)("2019-04-14") == 18_000
    assert coercion.coercer(ArrayType(INTEGER), ArrayType(DOUBLE))([1, None]) == [1.0, None]
    with pytest.raises(coercion.CannotCoerce):
        coercion.coercer(STRING, BOOLEAN, lax=True)("maybe")
    with pytest.raises(coercion.CannotCoerce):
        coercion.coercer(DecimalType(4, 2), DecimalType(3, 1))(Decimal("1.25"))


def test_types_of_decimal_literals() -> None:
    assert decimals.type_of(Decimal("0.01")) == DecimalType(3, 2)
    assert decimals.type_of(Decimal("12.340")) == DecimalType(5, 3)
    assert decimals.plain(Decimal("1E+3")) == "1000"
    assert decimals.plain(Decimal("-0.00")) == "0.00"
