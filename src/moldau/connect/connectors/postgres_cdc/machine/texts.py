"""Texts of PostgreSQL's less common types as values: intervals, money, bits, hstore, points."""

from __future__ import annotations

import datetime
import json
import re
import struct
from decimal import Decimal
from typing import Final

from moldau.data import builders
from moldau.data.errors import DataError
from moldau.data.struct import Struct

POINT: Final = builders.struct(
    {
        "x": builders.FLOAT64,
        "y": builders.FLOAT64,
        "wkb": builders.OPTIONAL_BYTES,
        "srid": builders.OPTIONAL_INT32,
    },
    name="io.debezium.data.geometry.Point",
    version=1,
    doc="Geometry (POINT)",
)
_DAYS_PER_MONTH: Final = 365.25 / 12
_INTERVAL: Final = re.compile(
    r"P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)D)?"
    r"(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?\d+(?:\.\d+)?)S)?)?"
)
_CENTS: Final = re.compile(r"[.,](\d{1,2})\D*$")
_HSTORE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"=>(?:"((?:[^"\\]|\\.)*)"|NULL)')


def _parts(text: str) -> tuple[list[int], Decimal]:
    """Years, months, days, hours and minutes, and seconds, of a text of ISO 8601."""
    found = _INTERVAL.fullmatch(text)
    if found is None:
        raise DataError(f"not an interval: {text}")
    *whole, seconds = found.groups()
    return [int(each or 0) for each in whole], Decimal(seconds or 0)


def interval_micros(text: str) -> int:
    """A month counts as a twelfth of 365.25 days."""
    (years, months, days, hours, minutes), seconds = _parts(text)
    whole = (years * 12 + months) * _DAYS_PER_MONTH + days
    return int((((whole * 24 + hours) * 60 + minutes) * 60 + float(seconds)) * 1e6)


def interval_text(text: str) -> str:
    """Every part is written, as in P1Y0M3DT0H5M6.5S."""
    (years, months, days, hours, minutes), seconds = _parts(text)
    shown = f"{seconds:f}"
    if "." in shown:
        shown = shown.rstrip("0").rstrip(".")
    return f"P{years}Y{months}M{days}DT{hours}H{minutes}M{shown}S"


def money(text: str) -> Decimal:
    """An amount as a locale writes it: $1,234.50 and 1.234,50 €."""
    cents = _CENTS.search(text)
    places = len(cents.group(1)) if cents else 0
    digits = "".join(each for each in text if each.isdigit())
    if not digits:
        raise DataError(f"not an amount: {text}")
    amount = Decimal(int(digits)).scaleb(-places)
    return -amount if "-" in text or "(" in text else amount


def bits(text: str) -> bytes:
    """The last bit first, in as few bytes as hold those that are set."""
    number = int(text, 2)
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


def hstore(text: str) -> dict[str, str | None]:
    return {
        _unescaped(key): None if value is None else _unescaped(value)
        for key, value in (each.groups() for each in _HSTORE.finditer(text))
    }


def hstore_json(text: str) -> str:
    return json.dumps(hstore(text), separators=(",", ":"), ensure_ascii=False)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def point(text: str) -> Struct:
    x, y = (float(each) for each in text.strip("()").split(","))
    wkb = struct.pack("<BIdd", 1, 1, x, y)
    return Struct(POINT, {"x": x, "y": y, "wkb": wkb, "srid": None})


def zoned_time(text: str) -> str:
    """A time with an offset, in UTC, as in 10:15:30.25Z."""
    head, _, rest = text.partition(".")
    digits = re.match(r"\d*", rest)
    fraction = digits.group() if digits else ""
    offset = rest[len(fraction) :] if fraction else head[8:]
    moment = datetime.datetime.fromisoformat(f"2000-01-02T{head[:8]}{offset}")
    moment = moment.astimezone(datetime.UTC)
    fraction = fraction.rstrip("0")
    return f"{moment:%H:%M:%S}" + (f".{fraction}" if fraction else "") + "Z"
