"""PRINT: which formats the records of a topic may have, and how each is shown.

A candidate is dropped with the first record that it cannot read. What is left is what ksqlDB
prints: `Key format: KAFKA_BIGINT or KAFKA_DOUBLE`. The first that is left shows a record.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Final

__all__ = ["FormatGuess", "Printer"]

NO_DATA: Final = "¯\\_(ツ)_/¯ - no data processed"
NULL: Final = "<null>"
MIXED: Final = "MIXED FORMAT"
#: Of schema identifiers of Confluent's framing.
_SCHEMA_MAGIC: Final = 0
_FRAME_BYTES: Final = 5
_WINDOW_BYTES: Final = 8

Read = Callable[[bytes], str]
Schemas = Callable[[bytes], tuple[str, str] | None]


def _json(data: bytes) -> str:
    text = data.decode()
    found = json.loads(text)
    if isinstance(found, dict | list):
        return text
    raise ValueError("neither an object nor an array")


def _int(data: bytes) -> str:
    return str(struct.unpack(">i", data)[0])


def _bigint(data: bytes) -> str:
    return str(struct.unpack(">q", data)[0])


def _double(data: bytes) -> str:
    return repr(struct.unpack(">d", data)[0])


def _string(data: bytes) -> str:
    text = data.decode()
    if any(ord(each) < 32 and each not in "\t\r\n" for each in text):
        raise ValueError("not a text")
    return text


def _session(inner: Read) -> Read:
    """A key of a session: its key, then the end and the start of the window."""

    def read(data: bytes) -> str:
        end, start = struct.unpack(">qq", data[-2 * _WINDOW_BYTES :])
        _check_window(start, end)
        return f"[{inner(_not_empty(data[: -2 * _WINDOW_BYTES]))}@{start}/{end}]"

    return read


def _windowed(inner: Read) -> Read:
    """A key of a window: its key, then the start of the window."""

    def read(data: bytes) -> str:
        (start,) = struct.unpack(">q", data[-_WINDOW_BYTES:])
        _check_window(start, start)
        return f"[{inner(_not_empty(data[:-_WINDOW_BYTES]))}@{start}/-]"

    return read


#: Times of windows that are taken for such: from 2000 to 2100, or close to 1970 as tests have it.
_TIMES: Final = ((946_684_800_000, 4_102_444_800_000), (0, 1_000_000_000))


def _check_window(start: int, end: int) -> None:
    if not any(low <= start <= end < high for low, high in _TIMES):
        raise ValueError("not the times of a window")


def _not_empty(data: bytes) -> bytes:
    if not data:
        raise ValueError("no key before the window")
    return data


_SIMPLE: Final[tuple[tuple[str, Read], ...]] = (
    ("JSON", _json),
    ("KAFKA_INT", _int),
    ("KAFKA_BIGINT", _bigint),
    ("KAFKA_DOUBLE", _double),
)


def _candidates(*, is_key: bool) -> dict[str, Read]:
    found = dict(_SIMPLE)
    if is_key:
        inner = (("KAFKA_STRING", _string), ("KAFKA_INT", _int), ("KAFKA_BIGINT", _bigint))
        for name, read in inner:
            found[f"SESSION({name})"] = _session(read)
        for name, read in inner:
            found[f"HOPPING({name})"] = _windowed(read)
            found[f"TUMBLING({name})"] = _windowed(read)
    found["KAFKA_STRING"] = _string
    return found


class FormatGuess:
    """Of the keys or the values of a topic."""

    def __init__(self, *, is_key: bool, schemas: Schemas = lambda data: None) -> None:
        """`schemas` gives the format and the JSON of bytes that name a schema of the registry."""
        self._left = _candidates(is_key=is_key)
        self._schemas = schemas
        self._names: list[str] = []
        self._registered: str | None = None
        self._has_seen = False

    @property
    def shown(self) -> str:
        if not self._has_seen:
            return NO_DATA
        if self._registered is not None:
            return self._registered
        return " or ".join(self._left) if self._left else "UNRECOGNIZED_BYTES"

    def text(self, data: bytes | None) -> str:
        """A key or value as PRINT shows it; what cannot be it is no candidate from then on."""
        if data is None:
            return NULL
        found = self._with_schema(data)
        if found is not None:
            return found
        readings = dict(_readings(self._left, data))
        if self._has_seen and not readings and self._left:
            # Another format from here on: nothing is known of the topic as a whole.
            self._registered = MIXED
            readings = dict(_readings(_candidates(is_key=False), data))
        elif readings:
            self._left = {name: self._left[name] for name in self._left if name in readings}
        else:
            self._left = {}
        self._has_seen = True
        return next(iter(readings.values()), None) or data.hex(" ").upper()

    def _with_schema(self, data: bytes) -> str | None:
        if len(data) < _FRAME_BYTES or data[0] != _SCHEMA_MAGIC:
            return None
        found = self._schemas(data)
        if found is None:
            return None
        name, text = found
        if self._has_seen and self._registered != name:
            name = MIXED
        self._registered, self._has_seen = name, True
        return text


def _readings(candidates: dict[str, Read], data: bytes) -> Iterable[tuple[str, str]]:
    for name, read in candidates.items():
        try:
            yield name, read(data)
        except (ValueError, struct.error):
            continue


class Printer:
    """The lines of PRINT: the formats when they change, then a line per record."""

    def __init__(self, key: FormatGuess, value: FormatGuess) -> None:
        self._key = key
        self._value = value
        self._shown: dict[str, str] = {}

    def lines(
        self, *, key: bytes | None, value: bytes | None, timestamp: int, partition: int
    ) -> list[str]:
        key_text, value_text = self._key.text(key), self._value.text(value)
        found: list[str] = []
        for what, guess in (("Key", self._key), ("Value", self._value)):
            if self._shown.get(what) != guess.shown:
                self._shown[what] = guess.shown
                found.append(f"{what} format: {guess.shown}")
        found.append(
            f"rowtime: {_time(timestamp)}, key: {key_text}, value: {value_text}, "
            f"partition: {partition}"
        )
        return found


def _time(timestamp_ms: int) -> str:
    moment: Any = datetime.fromtimestamp(timestamp_ms // 1000, UTC)
    return f"{moment:%Y/%m/%d %H:%M:%S}.{timestamp_ms % 1000:03} Z"
