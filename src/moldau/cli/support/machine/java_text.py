"""How Java prints values, where scripts compare what Kafka's tools print."""

from __future__ import annotations

import struct
from decimal import Decimal

from moldau.wire.message_json import compact_json

__all__ = ["Float32", "java_double", "java_text"]


class Float32(float):
    """A float that was 32 bits wide, so that it is printed with as many digits as it needs."""


def java_text(value: object) -> bytes:
    """As Java prints the object; strings and bytes as they are."""
    match value:
        case bytes() | bytearray() | memoryview():
            return bytes(value)
        case str():
            return value.encode()
        case None:
            return b"null"
        case bool():
            return b"true" if value else b"false"
        case Float32():
            return _java_number(value, _shortest_float32(value)).encode()
        case float():
            return java_double(value).encode()
        case list() | tuple():
            return b"[" + b", ".join(map(java_text, value)) + b"]"
        case dict():
            return compact_json(value).encode()
        case _:
            return str(value).encode()


def java_double(value: float) -> str:
    """`Double.toString`: as few digits as Python, scientific notation from ten million on."""
    return _java_number(value, repr(float(value)))


def _java_number(value: float, shortest: str) -> str:
    """`shortest` has the fewest digits that mean `value`."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    number = Decimal(shortest)
    exponent = number.adjusted()
    if value == 0 or -3 <= exponent < 7:
        text = f"{number:f}"
        return text if "." in text else f"{text}.0"
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _shortest_float32(value: float) -> str:
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if struct.pack(">f", float(text)) == struct.pack(">f", value):
            return text
    return repr(float(value))
