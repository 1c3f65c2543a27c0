"""Variant: a value that says its own type, in the binary form of Spark and Parquet.

The metadata is a dictionary of keys, and the value a tree; each node begins with a byte that says
what it is. A Variant is one node of a tree: navigating copies nothing. What is malformed raises
VariantError where it is read.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import math
import struct
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["EXACT", "Variant", "VariantError"]

#: Scales and adds without rounding, whatever the number of digits.
EXACT: Final = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)

_PRIMITIVE, _SHORT_TEXT, _OBJECT, _ARRAY = range(4)
_VERSION: Final = 1
#: Objects have their fields in the order of keys, so that larger ones can be searched.
_SEARCH_FROM: Final = 32
_EPOCH: Final = datetime.datetime(1970, 1, 1)
_EPOCH_DAY: Final = datetime.date(1970, 1, 1).toordinal()
_DAYS: Final = range(1 - _EPOCH_DAY, datetime.date.max.toordinal() - _EPOCH_DAY + 1)
_DAY_MICROS: Final = 24 * 60 * 60 * 1_000_000
#: By code: the type, and the bytes of its whole number.
_TYPES: Final = (
    ("NULL", 0),
    ("BOOLEAN", 0),
    ("BOOLEAN", 0),
    ("BYTE", 1),
    ("SHORT", 2),
    ("INT", 4),
    ("LONG", 8),
    ("DOUBLE", 0),
    ("DECIMAL4", 4),
    ("DECIMAL8", 8),
    ("DECIMAL16", 16),
    ("DATE", 4),
    ("TIMESTAMP_TZ", 8),
    ("TIMESTAMP_NTZ", 8),
    ("FLOAT", 0),
    ("BINARY", 0),
    ("STRING", 0),
    ("TIME", 8),
    ("TIMESTAMP_NANOS_TZ", 8),
    ("TIMESTAMP_NANOS_NTZ", 8),
    ("UUID", 0),
)
_TRUE: Final = 1
_DECIMAL_DIGITS: Final = {4: 9, 8: 18, 16: 38}
_INTS: Final = ("BYTE", "SHORT", "INT", "LONG")


class VariantError(ValueError):
    """The bytes are no Variant, or cannot become one."""


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """`position` is where the node begins in `tree`."""

    tree: bytes
    metadata: bytes
    position: int = 0

    def __post_init__(self) -> None:
        version = _slice(self.metadata, 0, 1)[0] & 0x0F
        if version != _VERSION:
            raise VariantError(f"unsupported variant metadata version: {version}")

    @property
    def value(self) -> bytes:
        """The node's own bytes, which may be followed by others: a node says where it ends."""
        return self.tree[self.position :]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Variant):
            return NotImplemented
        return self.value == other.value and self.metadata == other.metadata

    def __hash__(self) -> int:
        return hash((self.value, self.metadata))

    # What it is.

    @property
    def type(self) -> str:
        """Such as OBJECT, LONG or TIMESTAMP_TZ."""
        basic, info = self._header()
        if basic != _PRIMITIVE:
            return {_SHORT_TEXT: "STRING", _OBJECT: "OBJECT", _ARRAY: "ARRAY"}[basic]
        return _TYPES[info][0]

    def _header(self) -> tuple[int, int]:
        first = _slice(self.tree, self.position, 1)[0]
        basic, info = first & 3, first >> 2
        if basic == _PRIMITIVE and info >= len(_TYPES):
            raise VariantError(f"unknown variant primitive type: {info}")
        return basic, info

    def scalar(self) -> Any:
        """The value of a node that is neither object nor array; times as the numbers they are."""
        basic, info = self._header()
        start = self.position + 1
        if basic == _SHORT_TEXT:
            return _text(_slice(self.tree, start, info))
        if basic != _PRIMITIVE:
            raise VariantError(f"variant is an {self.type.lower()}")
        name, size = _TYPES[info]
        match name:
            case "NULL":
                return None
            case "BOOLEAN":
                return info == _TRUE
            case "DOUBLE":
                return struct.unpack("<d", _slice(self.tree, start, 8))[0]
            case "FLOAT":
                return struct.unpack("<f", _slice(self.tree, start, 4))[0]
            case "STRING":
                return _text(self._sized(start))
            case "BINARY":
                return self._sized(start)
            case "UUID":
                return uuid.UUID(bytes=_slice(self.tree, start, 16))
            case "DECIMAL4" | "DECIMAL8" | "DECIMAL16":
                scale = _slice(self.tree, start, 1)[0]
                return _decimal(_number(self.tree, start + 1, size, signed=True), scale, size)
            case _:
                return _number(self.tree, start, size, signed=True)

    def _sized(self, start: int) -> bytes:
        return _slice(self.tree, start + 4, _number(self.tree, start, 4))

    # Objects and arrays.

    def field(self, key: str) -> Variant | None:
        """Of an object; None if it has none of that key."""
        found = self._parts(_OBJECT)
        if found.count < _SEARCH_FROM:
            indexes = (each for each in range(found.count) if self._key(found, each) == key)
            index = next(indexes, None)
        else:
            index = self._searched(found, key)
        return None if index is None else self._part(found, index)

    def _searched(self, found: _Parts, key: str) -> int | None:
        low, high = 0, found.count - 1
        while low <= high:
            middle = (low + high) // 2
            there = self._key(found, middle)
            if there == key:
                return middle
            if there < key:
                low = middle + 1
            else:
                high = middle - 1
        return None

    def element(self, index: int) -> Variant | None:
        """Of an array; None if it ends before."""
        found = self._parts(_ARRAY)
        return self._part(found, index) if 0 <= index < found.count else None

    def fields(self) -> Iterator[tuple[str, Variant]]:
        found = self._parts(_OBJECT)
        for index in range(found.count):
            yield self._key(found, index), self._part(found, index)

    def elements(self) -> Iterator[Variant]:
        found = self._parts(_ARRAY)
        for index in range(found.count):
            yield self._part(found, index)

    def _parts(self, wanted: int) -> _Parts:
        basic, info = self._header()
        if basic != wanted:
            raise VariantError(f"variant is not an {'object' if wanted == _OBJECT else 'array'}")
        offset_size = (info & 3) + 1
        id_size = ((info >> 2) & 3) + 1 if wanted == _OBJECT else 0
        is_large = (info >> (4 if wanted == _OBJECT else 2)) & 1
        count_size = 4 if is_large else 1
        count = _number(self.tree, self.position + 1, count_size)
        ids = self.position + 1 + count_size
        offsets = ids + count * id_size
        return _Parts(count, id_size, ids, offset_size, offsets)

    def _part(self, found: _Parts, index: int) -> Variant:
        offset = _number(self.tree, found.offsets + found.offset_size * index, found.offset_size)
        return Variant(self.tree, self.metadata, found.data + offset)

    def _key(self, found: _Parts, index: int) -> str:
        id = _number(self.tree, found.ids + found.id_size * index, found.id_size)
        size = (self.metadata[0] >> 6) + 1
        count = _number(self.metadata, 1, size)
        if id >= count:
            raise VariantError("malformed variant: field id out of range")
        start, end = (_number(self.metadata, 1 + (each + 1) * size, size) for each in (id, id + 1))
        if start > end:
            raise VariantError("malformed variant: non-monotonic metadata offsets")
        return _text(_slice(self.metadata, 1 + (count + 2) * size + start, end - start))

    # JSON.

    def to_json(self) -> str:
        """As Confluent's clients write it: times of ISO 8601 with seconds, decimals plain."""
        name = self.type
        if name == "OBJECT":
            parts = (f"{_quoted(key)}:{each.to_json()}" for key, each in self.fields())
            return f"{{{','.join(parts)}}}"
        if name == "ARRAY":
            return f"[{','.join(each.to_json() for each in self.elements())}]"
        value = self.scalar()
        match name:
            case "NULL":
                return "null"
            case "BOOLEAN":
                return "true" if value else "false"
            case "STRING":
                return _quoted(value)
            case "FLOAT":
                return _float_text(value)
            case "DOUBLE":
                return _double_text(value)
            case "BINARY":
                return f'"{base64.b64encode(value).decode()}"'
            case "DECIMAL4" | "DECIMAL8" | "DECIMAL16":
                return format(value, "f")
            case "DATE":
                return f'"{_date_text(value)}"'
            case "TIME":
                return f'"{_time_text(value)}"'
            case _ if name.startswith("TIMESTAMP"):
                nanos = value if "NANOS" in name else value * 1000
                return f'"{_moment_text(nanos)}{"" if name.endswith("NTZ") else "Z"}"'
            case "UUID":
                return f'"{value}"'
        return str(value)


@dataclass(frozen=True, slots=True)
class _Parts:
    """Where the parts of an object or array are."""

    count: int
    id_size: int
    ids: int
    offset_size: int
    offsets: int

    @property
    def data(self) -> int:
        return self.offsets + (self.count + 1) * self.offset_size


def _slice(data: bytes, start: int, size: int) -> bytes:
    if start < 0 or start + size > len(data):
        raise VariantError("malformed variant: index out of bounds")
    return data[start : start + size]


def _number(data: bytes, start: int, size: int, *, signed: bool = False) -> int:
    return int.from_bytes(_slice(data, start, size), "little", signed=signed)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise VariantError("malformed variant: a text is not UTF-8") from None


def _decimal(unscaled: int, scale: int, size: int) -> decimal.Decimal:
    digits = _DECIMAL_DIGITS[size]
    if abs(unscaled) >= 10**digits or scale > digits:
        raise VariantError("malformed variant: decimal out of range")
    return decimal.Decimal(unscaled).scaleb(-scale, context=EXACT)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _is_plain(number: float) -> bool:
    """Whether it is written as a whole number and .0; -0.0 keeps its sign otherwise."""
    is_negative_zero = number == 0 and math.copysign(1, number) < 0
    return number.is_integer() and abs(number) < 1e16 and not is_negative_zero


def _double_text(number: float) -> str:
    if not math.isfinite(number):
        return _not_finite(number)
    return f"{int(number)}.0" if _is_plain(number) else repr(number)


def _float_text(number: float) -> str:
    """The shortest text that is this number among those of 32 bits."""
    if not math.isfinite(number):
        return _not_finite(number)
    if _is_plain(number):
        return f"{int(number)}.0"
    for digits in range(1, 10):
        near = float(f"{number:.{digits}g}")
        try:
            if struct.unpack("<f", struct.pack("<f", near))[0] == number:
                return repr(near)
        except OverflowError:
            continue
    return repr(number)


def _not_finite(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"


def _date_text(day: int) -> str:
    if day not in _DAYS:
        raise VariantError(
            f"date epoch day ({day}) must be in range [{_DAYS.start}, {_DAYS.stop - 1}]"
        )
    return datetime.date.fromordinal(day + _EPOCH_DAY).isoformat()


def _time_text(micros: int) -> str:
    if not 0 <= micros < _DAY_MICROS:
        raise VariantError(
            f"time microseconds of day ({micros}) must be in range [0, {_DAY_MICROS - 1}]"
        )
    return _moment_text(micros * 1000)[11:]


def _moment_text(nanos: int) -> str:
    """Without a zone; the fraction has 0, 3, 6 or 9 digits."""
    seconds, rest = divmod(nanos, 1_000_000_000)
    try:
        moment = _EPOCH + datetime.timedelta(seconds=seconds)
    except OverflowError:
        raise VariantError(f"timestamp out of range: {seconds} seconds") from None
    fraction = f".{rest:09d}" if rest else ""
    while fraction.endswith("000"):
        fraction = fraction[:-3]
    return moment.isoformat(timespec="seconds") + fraction
