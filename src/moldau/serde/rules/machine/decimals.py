"""Arithmetic of CEL's `decimals`, as Java's BigDecimal does it.

Sums, products, remainders and roundings are exact; quotients and roots have 38 digits, rounded half
up. A result that would have too many digits to be held is refused before it is computed. What is
wrong raises ValueError.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from typing import Final

from moldau.data.variant import EXACT

__all__ = [
    "added",
    "decimal_of_bytes",
    "decimal_of_text",
    "divided",
    "multiplied",
    "plain_text",
    "remainder",
    "rounded",
    "square_root",
    "subtracted",
    "truncated",
    "unscaled_bytes",
]

_PRECISION: Final = 38
_DIVIDING: Final = decimal.Context(
    prec=_PRECISION,
    rounding=decimal.ROUND_HALF_UP,
    Emax=decimal.MAX_EMAX,
    Emin=decimal.MIN_EMIN,
)
#: Digits of anything that is computed or written.
_DIGITS_MAX: Final = 10_000_000
#: Digits of what comes from or becomes bytes: that takes quadratic time.
_COEFFICIENT_MAX: Final = 4300
_DIGITS_PER_BYTE: Final = 2.408
_SCALE_MAX: Final = 2**31 - 1


def decimal_of_text(text: str) -> Decimal:
    """What BigDecimal takes: finite, without underscores and spaces."""
    wrong = ValueError(f"decimal: invalid number '{text}'")
    if "_" in text or text != text.strip():
        raise wrong
    try:
        number = Decimal(text)
    except decimal.InvalidOperation:
        raise wrong from None
    if not number.is_finite() or abs(_exponent(number)) > _SCALE_MAX:
        raise wrong
    return _without_sign_of_zero(number)


def decimal_of_bytes(data: bytes, scale: int) -> Decimal:
    """`data` is the unscaled number, its first byte the highest."""
    digits = int(len(data) * _DIGITS_PER_BYTE) + 1
    _check("decimal(bytes, scale)", "the coefficient", digits, _COEFFICIENT_MAX)
    return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-scale, context=EXACT)


def unscaled_bytes(number: Decimal) -> tuple[bytes, int, int]:
    """The unscaled number in as few bytes as it takes, its digits, and the scale."""
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{number} is not a finite number")
    if len(digits) > _COEFFICIENT_MAX:
        raise ValueError(f"a decimal of {len(digits)} digits cannot be written")
    if not -_SCALE_MAX - 1 <= -exponent <= _SCALE_MAX:
        raise ValueError(f"a decimal with a scale of {-exponent} cannot be written")
    unscaled = int("".join(map(str, digits)) or "0")
    unscaled = -unscaled if sign else unscaled
    bits = (unscaled if unscaled >= 0 else ~unscaled).bit_length() + 1
    return unscaled.to_bytes((bits + 7) // 8, "big", signed=True), len(digits), -exponent


def plain_text(number: Decimal) -> str:
    """Never with an exponent."""
    _check("string", "the plain form", _digits(number) + abs(_exponent(number)))
    return format(_without_sign_of_zero(number), "f")


def added(one: Decimal, other: Decimal) -> Decimal:
    _check_aligned("decimals.add", one, other)
    return EXACT.add(one, other)


def subtracted(one: Decimal, other: Decimal) -> Decimal:
    _check_aligned("decimals.sub", one, other)
    return EXACT.subtract(one, other)


def multiplied(one: Decimal, other: Decimal) -> Decimal:
    return EXACT.multiply(one, other)


def divided(one: Decimal, other: Decimal) -> Decimal:
    if not other:
        raise ValueError("decimals.div: division by zero")
    try:
        return _DIVIDING.divide(one, other)
    except decimal.DecimalException as error:
        raise ValueError(f"decimals.div: {type(error).__name__}") from None


def remainder(one: Decimal, other: Decimal) -> Decimal:
    """With the sign of the dividend."""
    if not other:
        raise ValueError("decimals.mod: division by zero")
    if one:
        digits = max(0, one.adjusted() - other.adjusted()) + 1
        _check("decimals.mod", "the integral quotient", digits)
    return EXACT.remainder(one, other)


def square_root(number: Decimal) -> Decimal:
    """An exact one has half the scale, as far as there are digits for it."""
    if number < 0:
        raise ValueError("decimals.sqrt: square root of negative number")
    root = _DIVIDING.sqrt(number)
    if EXACT.multiply(root, root) != number:
        return root
    wanted = int(-_exponent(number) / 2)
    if not root:
        return rounded("decimals.sqrt", root, wanted, decimal.ROUND_HALF_UP)
    shortest = root.normalize(context=EXACT)
    smallest = -_exponent(shortest)
    room = _PRECISION - len(shortest.as_tuple().digits)
    scale = max(smallest, min(wanted, smallest + room))
    return rounded("decimals.sqrt", shortest, scale, decimal.ROUND_HALF_UP)


def rounded(function: str, number: Decimal, scale: int, rounding: str) -> Decimal:
    if number:
        digits = max(1, _digits(number) + scale + _exponent(number))
        _check(function, f"a scale of {scale}", digits)
    try:
        step = Decimal(1).scaleb(-scale, context=EXACT)
        return number.quantize(step, rounding=rounding, context=EXACT)
    except (decimal.InvalidOperation, decimal.Overflow, decimal.Underflow):
        raise ValueError(f"{function}: cannot represent a scale of {scale}") from None


def truncated(number: Decimal, scale: int) -> Decimal:
    """Towards zero. A number that has no more digits stays as it is."""
    if scale >= -_exponent(number):
        return number
    return rounded("decimals.trunc", number, scale, decimal.ROUND_DOWN)


def _check_aligned(function: str, one: Decimal, other: Decimal) -> None:
    """Both are brought to the finer scale; a zero costs nothing there."""
    scale = -min(_exponent(one), _exponent(other))
    digits = max(_digits(each) + scale + _exponent(each) if each else 1 for each in (one, other))
    _check(function, "aligning the operands", digits + 1)


def _check(function: str, what: str, digits: int, limit: int = _DIGITS_MAX) -> None:
    if digits > limit:
        raise ValueError(f"{function}: {what} needs {digits} digits, more than {limit}")


def _exponent(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int):
        raise ValueError(f"decimal: not a finite number '{number}'")
    return exponent


def _digits(number: Decimal) -> int:
    return number.adjusted() - _exponent(number) + 1


def _without_sign_of_zero(number: Decimal) -> Decimal:
    """BigDecimal has no negative zero."""
    return abs(number) if not number and number.is_signed() else number
