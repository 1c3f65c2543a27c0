"""+, -, *, / and %: result types, and Java's arithmetic on values that are not NULL."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation, Overflow
from typing import Any

from moldau.sql.errors import KsqlException
from moldau.sql.types import (
    BIGINT,
    DOUBLE,
    INTEGER,
    STRING,
    BaseType,
    DecimalType,
    SqlType,
    is_numeric,
)
from moldau.sql.values import decimals
from moldau.sql.values.casts import cast_not_null, wrap_int, wrap_long

Operation = Callable[[Any, Any], Any]

_DIVIDE_SCALE_MIN = 6


@dataclass(frozen=True, slots=True)
class Arithmetic:
    result: SqlType
    evaluate: Operation


def base_name(sql_type: SqlType) -> str:
    """The kind of a type, as ksqlDB's messages name it."""
    if isinstance(sql_type, BaseType):
        return sql_type.value
    return type(sql_type).__name__.removesuffix("Type").upper()


_RANK: dict[SqlType, int] = {INTEGER: 0, BIGINT: 1, DOUBLE: 3}


def _rank(sql_type: SqlType) -> int:
    return 2 if isinstance(sql_type, DecimalType) else _RANK[sql_type]


def result_type(symbol: str, left: SqlType | None, right: SqlType | None) -> SqlType:
    """The type of `left symbol right`, or ksqlDB's error."""
    if left is None or right is None:
        shown = ["null" if each is None else str(each) for each in (left, right)]
        raise KsqlException(f"Arithmetic on types {shown[0]} and {shown[1]} are not supported.")
    if symbol == "+" and left is STRING and right is STRING:
        return STRING
    if not (is_numeric(left) and is_numeric(right)):
        raise KsqlException(f"Unsupported arithmetic types. {base_name(left)} {base_name(right)}")
    wider = right if _rank(left) <= _rank(right) else left
    if not isinstance(wider, DecimalType):
        return wider
    return _decimal_result(symbol, decimals.to_decimal_type(left), decimals.to_decimal_type(right))


def _decimal_result(symbol: str, left: DecimalType, right: DecimalType) -> DecimalType:
    scale = max(left.scale, right.scale)
    left_whole, right_whole = left.precision - left.scale, right.precision - right.scale
    match symbol:
        case "+" | "-":
            return DecimalType(scale + max(left_whole, right_whole) + 1, scale)
        case "*":
            return DecimalType(left.precision + right.precision + 1, left.scale + right.scale)
        case "/":
            scale = max(_DIVIDE_SCALE_MIN, left.scale + right.precision + 1)
            return DecimalType(left_whole + right.scale + scale, scale)
        case _:
            return DecimalType(min(left_whole, right_whole) + scale, scale)


def binary(symbol: str, left: SqlType | None, right: SqlType | None) -> Arithmetic:
    """`left symbol right`, on values that are not NULL. It raises where Java does."""
    result = result_type(symbol, left, right)
    if left is None or right is None or result is STRING:
        return Arithmetic(result, operator.add)
    if isinstance(result, DecimalType):
        return Arithmetic(result, _decimal(symbol, left, right, result))
    if result is DOUBLE:
        return Arithmetic(result, _double(symbol, left, right))
    return Arithmetic(result, _INTEGER[symbol] if result is INTEGER else _LONG[symbol])


def negate(sql_type: SqlType) -> Callable[[Any], Any]:
    if sql_type is INTEGER:
        return lambda value: wrap_int(-value)
    if sql_type is BIGINT:
        return lambda value: wrap_long(-value)
    if isinstance(sql_type, DecimalType):
        return lambda value: value.copy_negate() if value else value
    if sql_type is DOUBLE:
        return operator.neg
    raise KsqlException(f"Negation on unsupported type: {sql_type}")


def _quotient(left: int, right: int) -> int:
    if right == 0:
        raise KsqlException("/ by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise KsqlException("/ by zero")
    return left - right * _quotient(left, right)


def _whole(wrap: Callable[[int], int]) -> dict[str, Operation]:
    return {
        "+": lambda left, right: wrap(left + right),
        "-": lambda left, right: wrap(left - right),
        "*": lambda left, right: wrap(left * right),
        "/": lambda left, right: wrap(_quotient(left, right)),
        "%": lambda left, right: wrap(_remainder(left, right)),
    }


_INTEGER = _whole(wrap_int)
_LONG = _whole(wrap_long)


def _divide(left: float, right: float) -> float:
    if right:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _modulo(left: float, right: float) -> float:
    if right == 0 or math.isinf(left):
        return math.nan
    return math.fmod(left, right)


def _times(left: float, right: float) -> float:
    return left * right


_DOUBLE: dict[str, Operation] = {
    "+": operator.add,
    "-": operator.sub,
    "*": _times,
    "/": _divide,
    "%": _modulo,
}


def _double(symbol: str, left: SqlType, right: SqlType) -> Operation:
    plain = _DOUBLE[symbol]
    if left is DOUBLE and right is DOUBLE:
        return plain
    return lambda one, other: plain(float(one), float(other))


def _decimal(symbol: str, left: SqlType, right: SqlType, result: DecimalType) -> Operation:
    from_left = cast_not_null(left, decimals.to_decimal_type(left))
    from_right = cast_not_null(right, decimals.to_decimal_type(right))
    # An inexact result is an error: that is what ksqlDB's expressions ask of BigDecimal.
    context = Context(
        prec=result.precision, traps=[Inexact, InvalidOperation, DivisionByZero, Overflow]
    )
    work: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
        "+": context.add,
        "-": context.subtract,
        "*": context.multiply,
        "/": context.divide,
        "%": context.remainder,
    }
    step, scale = work[symbol], result.scale

    def evaluate(one: Any, other: Any) -> Decimal:
        try:
            value = step(from_left(one), from_right(other))
        except (DivisionByZero, InvalidOperation):
            raise KsqlException("Division by zero") from None
        except (Inexact, Overflow):
            raise KsqlException("Rounding necessary") from None
        return decimals.rescale_exactly(value, scale)

    return evaluate
