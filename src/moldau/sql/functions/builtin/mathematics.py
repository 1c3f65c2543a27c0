"""Mathematical functions, with the results of java.lang.Math at the edges."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

from moldau.sql.errors import KsqlException
from moldau.sql.functions.declarations import (
    ArgumentTypes,
    Evaluate,
    Overload,
    ScalarFunction,
    overload,
    scalar,
)
from moldau.sql.types import DecimalType, SqlType
from moldau.sql.values import decimals
from moldau.sql.values.casts import cast, double_to_long, wrap_int, wrap_long

_Double = Callable[[float], float]


def _nan_on_error(compute: Callable[..., float]) -> Callable[..., float]:
    """Java gives NaN or an infinity where Python raises."""

    def guarded(*values: float) -> float:
        try:
            return compute(*values)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return guarded


def _log(value: float) -> float:
    if value > 0:
        return math.log(value)
    return -math.inf if value == 0 else math.nan


def _log_base(base: float, value: float) -> float:
    if base <= 0 or base == 1:
        return math.nan
    above, below = _log(value), _log(base)
    return above / below if below else math.copysign(math.inf, above)


def _cot(value: float) -> float:
    tangent = math.tan(value)
    return 1 / tangent if tangent else math.copysign(math.inf, tangent)


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except ZeroDivisionError:
        return math.inf
    except ValueError:
        if base == 0:
            odd = exponent % 2 == 1
            return math.copysign(math.inf, base) if odd else math.inf
        return math.nan
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf


def _sinh(value: float) -> float:
    try:
        return math.sinh(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _ceil(value: float) -> float:
    return float(math.ceil(value)) if math.isfinite(value) else value


def _floor(value: float) -> float:
    return float(math.floor(value)) if math.isfinite(value) else value


def round_half_up(value: float) -> int:
    """Math.round: halves go up, towards positive infinity."""
    if not math.isfinite(value):
        return double_to_long(value)
    below = math.floor(value)
    return double_to_long(below + 1 if value - below >= 0.5 else below)


def _rounding(value: Decimal) -> str:
    return decimals.HALF_UP if value > 0 else decimals.HALF_DOWN


def _round_places(value: float, places: int) -> float:
    exact = Decimal(repr(value))
    return float(decimals.rescale(exact, places, _rounding(exact)))


def _round_decimal(value: Decimal) -> Decimal:
    return decimals.rescale(value, 0, _rounding(value))


def _round_decimal_places(value: Decimal, places: int) -> Decimal:
    rounded = decimals.rescale(value, places, _rounding(value))
    return decimals.rescale(rounded, decimals.scale_of(value))


def _truncate_places(value: float, places: int) -> float:
    return float(decimals.rescale(Decimal(repr(value)), places, decimals.DOWN))


def _truncate_decimal_places(value: Decimal, places: int) -> Decimal:
    truncated = decimals.rescale(value, places, decimals.DOWN)
    return decimals.rescale(truncated, decimals.scale_of(value))


def _same(arguments: ArgumentTypes) -> SqlType:
    return _decimal(arguments)


def _decimal(arguments: ArgumentTypes) -> DecimalType:
    first = arguments[0]
    if not isinstance(first, DecimalType):
        raise KsqlException(f"expected a DECIMAL, not {first}")
    return first


def _without_scale(arguments: ArgumentTypes) -> SqlType:
    first = _decimal(arguments)
    return DecimalType(first.precision - first.scale, 0)


def _unary(name: str, description: str, example: str, compute: _Double) -> ScalarFunction:
    guarded = _nan_on_error(compute)
    parameter = "exponent" if name == "exp" else "value"
    return scalar(
        name,
        "MATHEMATICAL",
        description,
        example,
        overload(f"(INT {parameter}) -> DOUBLE", lambda value: guarded(float(value))),
        overload(f"(BIGINT {parameter}) -> DOUBLE", lambda value: guarded(float(value))),
        overload(f"(DOUBLE {parameter}) -> DOUBLE", guarded),
    )


def _binary(
    name: str, first: str, second: str, compute: Callable[[float, float], float]
) -> list[Overload]:
    guarded = _nan_on_error(compute)

    def widened(one: int, other: int) -> float:
        return guarded(float(one), float(other))

    return [
        overload(f"(INT {first}, INT {second}) -> DOUBLE", widened),
        overload(f"(BIGINT {first}, BIGINT {second}) -> DOUBLE", widened),
        overload(f"(DOUBLE {first}, DOUBLE {second}) -> DOUBLE", guarded),
    ]


def _extreme(pick: Callable[..., object]) -> list[Overload]:
    def choose(*values: object) -> object:
        given = [value for value in values if value is not None]
        return pick(given) if given else None

    def bind_decimal(arguments: ArgumentTypes, result: SqlType) -> Evaluate:
        # Values keep their own type until the end; the result has the widest one.
        widen = [cast(each, result) for each in arguments]

        def evaluate(*values: object) -> object:
            return choose(*(to(value) for to, value in zip(widen, values, strict=True)))

        return evaluate

    kinds = ("INT", "BIGINT", "DOUBLE", "STRING", "BYTES", "DATE", "TIME", "TIMESTAMP")
    found = [
        overload(f"({each} val, {each}... vals) -> {each}", choose, nulls=True) for each in kinds
    ]
    found.append(
        overload(
            "(DECIMAL val, DECIMAL... vals) -> DECIMAL",
            bind=bind_decimal,
            nulls=True,
            result_of=_widest,
        )
    )
    return found


def _widest(arguments: ArgumentTypes) -> SqlType:
    known = [each for each in arguments if each is not None]
    found = decimals.to_decimal_type(known[0])
    for each in known[1:]:
        found = decimals.widen(found, each)
    return found


def _identity(value: int) -> int:
    return value


FUNCTIONS = [
    scalar(
        "Abs",
        "MATHEMATICAL",
        "The absolute value of a number.",
        "ABS(-3) -> 3",
        overload("(INT val) -> INT", lambda value: wrap_int(abs(value))),
        overload("(BIGINT val) -> BIGINT", lambda value: wrap_long(abs(value))),
        overload("(DOUBLE val) -> DOUBLE", abs),
        overload("(DECIMAL val) -> DECIMAL", lambda value: value.copy_abs(), result_of=_same),
    ),
    _unary("acos", "The arc cosine, in radians.", "ACOS(1.0) -> 0.0", math.acos),
    _unary("asin", "The arc sine, in radians.", "ASIN(0.0) -> 0.0", math.asin),
    _unary("atan", "The arc tangent, in radians.", "ATAN(0.0) -> 0.0", math.atan),
    scalar(
        "atan2",
        "MATHEMATICAL",
        "The angle, in radians, of the point (x, y) seen from the origin.",
        "ATAN2(0.0, 1.0) -> 0.0",
        *_binary("atan2", "y", "x", math.atan2),
    ),
    _unary("cbrt", "The cube root.", "CBRT(27.0) -> 3.0", math.cbrt),
    scalar(
        "Ceil",
        "MATHEMATICAL",
        "The smallest integer that is not less than the number.",
        "CEIL(1.2) -> 2.0",
        overload("(INT val) -> INT", _identity),
        overload("(BIGINT val) -> BIGINT", _identity),
        overload("(DOUBLE val) -> DOUBLE", _ceil),
        overload(
            "(DECIMAL val) -> DECIMAL",
            lambda value: decimals.rescale(
                decimals.rescale(value, 0, decimals.CEILING), decimals.scale_of(value)
            ),
            result_of=_same,
        ),
    ),
    _unary("cos", "The cosine of an angle in radians.", "COS(0.0) -> 1.0", math.cos),
    _unary("cosh", "The hyperbolic cosine.", "COSH(0.0) -> 1.0", math.cosh),
    _unary("cot", "The cotangent of an angle in radians.", "COT(0.7853981) -> 1.0000001", _cot),
    _unary("degrees", "An angle in radians, as degrees.", "DEGREES(PI()) -> 180.0", math.degrees),
    _unary("exp", "Euler's number to the power of the argument.", "EXP(0) -> 1.0", math.exp),
    scalar(
        "Floor",
        "MATHEMATICAL",
        "The largest integer that is not greater than the number.",
        "FLOOR(1.8) -> 1.0",
        overload("(INT val) -> INT", _identity),
        overload("(BIGINT val) -> BIGINT", _identity),
        overload("(DOUBLE val) -> DOUBLE", _floor),
        overload(
            "(DECIMAL val) -> DECIMAL",
            lambda value: decimals.rescale(
                decimals.rescale(value, 0, decimals.FLOOR), decimals.scale_of(value)
            ),
            result_of=_same,
        ),
    ),
    scalar(
        "greatest",
        "MATHEMATICAL",
        "The greatest of its arguments that are not NULL.",
        "GREATEST(1, 3, 2) -> 3",
        *_extreme(max),
    ),
    scalar(
        "least",
        "MATHEMATICAL",
        "The least of its arguments that are not NULL.",
        "LEAST(1, 3, 2) -> 1",
        *_extreme(min),
    ),
    _unary("ln", "The natural logarithm.", "LN(1.0) -> 0.0", _log),
    scalar(
        "log",
        "MATHEMATICAL",
        "The logarithm to a base, or the natural one.",
        "LOG(2, 8) -> 3.0",
        *_unary("log", "", "", _log).overloads,
        *_binary("log", "base", "value", _log_base),
    ),
    scalar(
        "pi", "MATHEMATICAL", "The number pi.", "PI()", overload("() -> DOUBLE", lambda: math.pi)
    ),
    scalar(
        "power",
        "MATHEMATICAL",
        "A number raised to the power of another.",
        "POWER(2, 3) -> 8.0",
        *_binary("power", "base", "exponent", _power),
    ),
    _unary("radians", "An angle in degrees, as radians.", "RADIANS(0) -> 0.0", math.radians),
    scalar(
        "Round",
        "MATHEMATICAL",
        "The nearest number with so many decimal places, halves rounded up; the nearest integer "
        "without a second argument.",
        "ROUND(1.25, 1) -> 1.3",
        overload("(BIGINT val) -> BIGINT", _identity),
        overload("(INT val) -> BIGINT", _identity),
        overload("(DOUBLE val) -> BIGINT", round_half_up),
        overload("(DOUBLE val, INT decimalPlaces) -> DOUBLE", _round_places),
        overload("(DECIMAL val) -> DECIMAL", _round_decimal, result_of=_without_scale),
        overload(
            "(DECIMAL val, INT decimalPlaces) -> DECIMAL", _round_decimal_places, result_of=_same
        ),
    ),
    scalar(
        "sign",
        "MATHEMATICAL",
        "-1, 0 or 1 for a negative number, zero or a positive one.",
        "SIGN(-3) -> -1",
        overload("(INT value) -> INT", lambda value: (value > 0) - (value < 0)),
        overload("(BIGINT value) -> INT", lambda value: (value > 0) - (value < 0)),
        overload("(DOUBLE value) -> INT", lambda value: (value > 0) - (value < 0)),
    ),
    _unary("sin", "The sine of an angle in radians.", "SIN(0.0) -> 0.0", math.sin),
    _unary("sinh", "The hyperbolic sine.", "SINH(0.0) -> 0.0", _sinh),
    _unary("sqrt", "The square root.", "SQRT(9) -> 3.0", math.sqrt),
    _unary("tan", "The tangent of an angle in radians.", "TAN(0.0) -> 0.0", math.tan),
    _unary("tanh", "The hyperbolic tangent.", "TANH(0.0) -> 0.0", math.tanh),
    scalar(
        "trunc",
        "MATHEMATICAL",
        "The number without the digits after so many decimal places; without any by default.",
        "TRUNC(1.29, 1) -> 1.2",
        overload("(BIGINT val) -> BIGINT", _identity),
        overload("(INT val) -> BIGINT", _identity),
        overload("(DOUBLE val) -> BIGINT", double_to_long),
        overload("(DOUBLE val, INT decimalPlaces) -> DOUBLE", _truncate_places),
        overload(
            "(DECIMAL val) -> DECIMAL",
            lambda value: decimals.rescale(value, 0, decimals.DOWN),
            result_of=_without_scale,
        ),
        overload(
            "(DECIMAL val, INT decimalPlaces) -> DECIMAL",
            _truncate_decimal_places,
            result_of=_same,
        ),
    ),
]
