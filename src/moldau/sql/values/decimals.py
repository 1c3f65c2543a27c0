"""DECIMAL: Java's BigDecimal over Python's Decimal."""

from __future__ import annotations

from decimal import (
    ROUND_CEILING,
    ROUND_DOWN,
    ROUND_FLOOR,
    ROUND_HALF_DOWN,
    ROUND_HALF_UP,
    Context,
    Decimal,
    Inexact,
    InvalidOperation,
)

from moldau.sql.errors import KsqlException
from moldau.sql.types import BIGINT, INTEGER, DecimalType, SqlType

__all__ = [
    "EXACT",
    "WIDE",
    "cast_decimal",
    "cast_double",
    "cast_integer",
    "cast_text",
    "ensure_fit",
    "plain",
    "rescale",
    "to_decimal_type",
    "type_of",
    "widen",
]

#: Wider than any DECIMAL, so that nothing is rounded by the context.
WIDE = Context(prec=10_000, rounding=ROUND_HALF_UP)
#: The same, but an inexact result is an error, as with Java's RoundingMode.UNNECESSARY.
EXACT = Context(prec=10_000, rounding=ROUND_HALF_UP, traps=[Inexact, InvalidOperation])

HALF_UP = ROUND_HALF_UP
HALF_DOWN = ROUND_HALF_DOWN
DOWN = ROUND_DOWN
FLOOR = ROUND_FLOOR
CEILING = ROUND_CEILING

_INT_AS_DECIMAL = DecimalType(10, 0)
_BIGINT_AS_DECIMAL = DecimalType(19, 0)


def unit(scale: int) -> Decimal:
    """The Decimal with `scale` digits after the point to quantize by."""
    return Decimal((0, (1,), -scale))


def rescale(value: Decimal, scale: int, rounding: str = ROUND_HALF_UP) -> Decimal:
    """BigDecimal.setScale."""
    return value.quantize(unit(scale), rounding=rounding, context=WIDE)


def rescale_exactly(value: Decimal, scale: int) -> Decimal:
    """BigDecimal.setScale with RoundingMode.UNNECESSARY."""
    try:
        return value.quantize(unit(scale), context=EXACT)
    except (Inexact, InvalidOperation):
        raise KsqlException("Rounding necessary") from None


def scale_of(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return -exponent if isinstance(exponent, int) else 0


def precision_of(value: Decimal) -> int:
    return max(len(value.as_tuple().digits), 1)


def plain(value: Decimal) -> str:
    """BigDecimal.toPlainString: no exponent, and no sign before a zero."""
    return f"{value if value else value.copy_abs():f}"


def _ensure_max(value: Decimal, wanted: DecimalType) -> None:
    digits = wanted.precision - wanted.scale
    if value and value.adjusted() >= digits:
        raise KsqlException(
            f"Numeric field overflow: A field with precision {wanted.precision} and scale "
            f"{wanted.scale} must round to an absolute value less than 10^{digits}. "
            f"Got {plain(value)}"
        )


def ensure_fit(value: Decimal, wanted: DecimalType) -> Decimal:
    """The value with the type's scale; an error if that would round it."""
    _ensure_max(value, wanted)
    try:
        return value.quantize(unit(wanted.scale), context=EXACT)
    except (Inexact, InvalidOperation):
        raise KsqlException(
            f"Cannot fit decimal '{plain(value)}' into DECIMAL({wanted.precision}, "
            f"{wanted.scale}) without rounding. (Requires {precision_of(value)},{scale_of(value)})"
        ) from None


def cast_decimal(value: Decimal, wanted: DecimalType) -> Decimal:
    _ensure_max(value, wanted)
    return rescale(value, wanted.scale)


def cast_integer(value: int, wanted: DecimalType) -> Decimal:
    exact = Decimal(value)
    rounded = Context(prec=wanted.precision, rounding=ROUND_HALF_UP).plus(exact)
    _ensure_max(rounded, wanted)
    return rescale_exactly(rounded, wanted.scale)


def cast_double(value: float, wanted: DecimalType) -> Decimal:
    # Decimal(float) is exact, as Java's new BigDecimal(double) is.
    exact = Decimal(value)
    if not exact.is_finite():
        raise KsqlException("Infinite or NaN")
    rounded = Context(prec=wanted.precision, rounding=ROUND_HALF_UP).plus(exact)
    _ensure_max(rounded, wanted)
    return rescale(rounded, wanted.scale)


def cast_text(text: str, wanted: DecimalType) -> Decimal:
    return cast_decimal(from_text(text.strip()), wanted)


def from_text(text: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise KsqlException(f"{text!r} is not a decimal number") from None
    if not value.is_finite() or "_" in text:
        raise KsqlException(f"{text!r} is not a decimal number")
    return value


def to_decimal_type(sql_type: SqlType) -> DecimalType:
    """The DECIMAL that holds every value of an exact number's type."""
    if isinstance(sql_type, DecimalType):
        return sql_type
    if sql_type is INTEGER:
        return _INT_AS_DECIMAL
    if sql_type is BIGINT:
        return _BIGINT_AS_DECIMAL
    from_name = getattr(sql_type, "value", None) or type(sql_type).__name__.removesuffix("Type")
    raise KsqlException(f"Cannot convert {from_name.upper()} to DECIMAL.")


def widen(left: SqlType, right: SqlType) -> DecimalType:
    """The smallest DECIMAL that holds the values of both types."""
    one, other = to_decimal_type(left), to_decimal_type(right)
    whole = max(one.precision - one.scale, other.precision - other.scale)
    scale = max(one.scale, other.scale)
    return DecimalType(whole + scale, scale)


def type_of(value: Decimal) -> DecimalType:
    """The type of a literal."""
    scale = max(scale_of(value), 0)
    if scale_of(value) < 0:
        value = rescale(value, 0)
    if abs(value) < 1:
        return DecimalType(scale + 1, scale)
    return DecimalType(precision_of(value), scale)
