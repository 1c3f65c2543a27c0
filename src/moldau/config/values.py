"""How a configuration text becomes a typed value and back, by Java's rules.

Numbers are bounded by their Java width, lists split at commas, and what is rendered equals what
Java would print: a client that compares DescribeConfigs answers sees no difference.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any

from moldau.config.errors import ConfigError

__all__ = ["ConfigType", "Password", "parse_value", "render_double", "render_value"]


class ConfigType(IntEnum):
    """Numbered as DescribeConfigs numbers them on the wire."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Password:
    """A secret that is hidden when printed or logged."""

    __slots__ = ("value",)

    HIDDEN = "[hidden]"

    def __init__(self, value: str) -> None:
        self.value = value

    def __str__(self) -> str:
        return self.HIDDEN

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Password) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
_DIGITS = frozenset("0123456789")
_DOUBLE_CHARACTERS = frozenset("0123456789.eE+-")


def parse_value(key: str, kind: ConfigType, text: str) -> Any:
    """The typed value of `text`, or ConfigError saying what would have been accepted."""
    if kind is ConfigType.PASSWORD:
        return Password(text.strip())
    text = text.strip()
    if kind is ConfigType.STRING or kind is ConfigType.CLASS:
        return text
    if kind in _BITS:
        return _parse_integer(key, kind, text)
    if kind is ConfigType.BOOLEAN:
        lowered = text.lower()
        if lowered == "true":
            return True
        if lowered == "false":
            return False
        raise ConfigError.invalid(key, text, "Expected value to be either true or false")
    if kind is ConfigType.LIST:
        return tuple(part.strip() for part in text.split(",")) if text else ()
    return _parse_double(key, text)


def _parse_integer(key: str, kind: ConfigType, text: str) -> int:
    bits = _BITS[kind]
    digits = text[1:] if text[:1] in ("+", "-") else text
    least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    allowed = f"Not a number of type {kind.name}"
    if digits and _DIGITS.issuperset(digits):
        # Longer than any value of the width: refused before Python builds a huge integer.
        if len(digits.lstrip("0")) <= 19 and least <= (value := int(text)) <= most:
            return value
        allowed += f" (allowed: {least} to {most})"
    raise ConfigError.invalid(key, _shortened(text), allowed)


def _parse_double(key: str, text: str) -> float:
    body = text[:-1] if text[-1:] in ("d", "D", "f", "F") else text
    if body.lstrip("+-") in ("NaN", "Infinity") and len(body) - len(body.lstrip("+-")) <= 1:
        return float(body)
    if body and _DOUBLE_CHARACTERS.issuperset(body):
        try:
            return float(body)
        except ValueError:
            pass
    raise ConfigError.invalid(key, _shortened(text), "Not a number of type DOUBLE")


def _shortened(text: str) -> str:
    return text if len(text) <= 100 else text[:97] + "..."


def render_value(kind: ConfigType, value: Any) -> str | None:
    """The text Java prints for a value of this type; None stays None."""
    if value is None:
        return None
    if kind is ConfigType.BOOLEAN:
        return "true" if value else "false"
    if kind is ConfigType.LIST:
        return ",".join(value)
    if kind is ConfigType.DOUBLE:
        return render_double(float(value))
    return str(value)


def render_double(value: float) -> str:
    """Java's Double.toString: plain between 1e-3 and 1e7, otherwise one digit, dot and E."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    magnitude = abs(value)
    if magnitude == 0.0:
        return sign + "0.0"
    # repr gives the shortest digits that read back as the same double, as Java does.
    mantissa, _, exponent_text = f"{magnitude!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    exponent = len(whole) - 1 + int(exponent_text or "0")
    if whole == "0":
        exponent = -(len(fraction) - len(fraction.lstrip("0"))) - 1 + int(exponent_text or "0")
    digits = digits.rstrip("0") or "0"
    if 1e-3 <= magnitude < 1e7:
        if exponent >= 0:
            padded = digits.ljust(exponent + 2, "0")
            return f"{sign}{padded[: exponent + 1]}.{padded[exponent + 1 :]}"
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
