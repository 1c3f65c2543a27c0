"""JSON and numbers written as Java writes them.

Texts of schemas are compared as texts and stored by others, so a number in one must look as Jackson
prints it: a double in its shortest form with a point, and `E` for large and small ones.
"""

from __future__ import annotations

import json
import math
import re
import struct
from decimal import Decimal
from typing import Any

from moldau.data.errors import DataError

_LOW_ESCAPE = re.compile(r"\\\\|\\u00[01][0-9a-f]")
_FLOAT32 = struct.Struct(">f")


def double_text(value: float) -> str:
    """Java's Double.toString."""
    return _java_number(repr(value))


def float_text(value: float) -> str:
    """Java's Float.toString: the shortest text that reads as the same float32."""
    return _java_number(_shortest_float32(value))


def shortest_float32(value: float) -> float:
    """The double that prints as the float32 `value` does: 0.1, not 0.10000000149011612."""
    return float(_shortest_float32(value))


def to_float32(value: float) -> float:
    """The float32 nearest to a double; infinite if there is none."""
    try:
        return float(_FLOAT32.unpack(_FLOAT32.pack(value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _shortest_float32(value: float) -> str:
    if math.isfinite(value):
        for digits in range(1, 9):
            text = f"{value:.{digits}g}"
            if to_float32(float(text)) == value:
                return repr(float(text))
        return repr(float(f"{value:.9g}"))
    return repr(value)


def _java_number(text: str) -> str:
    """From Python's shortest text: Java takes other powers of ten for the exponent form."""
    named = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text)
    if named is not None:
        return named
    sign, digits, exponent = Decimal(text).as_tuple()
    shown = "".join(map(str, digits)).rstrip("0") or "0"
    point = len(digits) + int(exponent)  # the number is 0.DIGITS times ten to this power
    minus = "-" if sign else ""
    if shown == "0":
        return minus + "0.0"
    if -3 < point <= 7:
        whole = shown[:point].ljust(point, "0") if point > 0 else "0"
        fraction = shown[point:] if point > 0 else "0" * -point + shown
        return f"{minus}{whole}.{fraction or '0'}"
    return f"{minus}{shown[0]}.{shown[1:] or '0'}E{point - 1}"


def quoted(text: str) -> str:
    """A JSON string as Jackson writes it: nothing escaped that need not be, hex in capitals."""
    written = json.encoder.encode_basestring(text)
    if "\\u" in written:
        # An escaped backslash first, so that what follows it is left alone.
        written = _LOW_ESCAPE.sub(lambda found: found[0][:2] + found[0][2:].upper(), written)
    return written


def compact(value: Any) -> str:
    """JSON without spaces, for what `json.loads` gives and for Decimal."""
    written: list[str] = []
    _write(value, written)
    return "".join(written)


def _write(value: Any, out: list[str]) -> None:
    # One call per level and no generators: schemas are deep, and the stack is not.
    if isinstance(value, str):
        out.append(quoted(value))
    elif isinstance(value, dict):
        mark = "{"
        for key, each in value.items():
            if isinstance(each, str):
                out.append(f"{mark}{quoted(key)}:{quoted(each)}")
            else:
                out.append(f"{mark}{quoted(key)}:")
                _write(each, out)
            mark = ","
        out.append("}" if value else "{}")
    elif isinstance(value, list):
        mark = "["
        for each in value:
            out.append(mark)
            _write(each, out)
            mark = ","
        out.append("]" if value else "[]")
    else:
        out.append(_scalar(value))


def _scalar(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case int():
            return str(value)
        case float():
            # Jackson quotes what JSON has no number for.
            return double_text(value) if math.isfinite(value) else f'"{double_text(value)}"'
        case Decimal():
            return decimal_text(value)
        case _:
            raise DataError(f"JSON has no {type(value).__name__}")


def decimal_text(value: Decimal) -> str:
    """Java's BigDecimal.toString, which is Python's except for a zero's sign."""
    return str(value if value else value.copy_abs())


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def parse(text: str | bytes, *, decimals: bool = False) -> Any:
    """Strict JSON; with `decimals`, fractions as exact Decimals. ValueError for anything else."""
    try:
        return json.loads(text, parse_float=Decimal if decimals else None, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("JSON is nested too deeply") from None
    except ArithmeticError:
        raise ValueError("JSON has a number with an exponent beyond all bounds") from None
