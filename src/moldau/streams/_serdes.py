# cython: annotation_typing=False
"""The serdes that most records pass, and the form in which the core calls all others.

The file is plain Python, and with `_serdes.pxd` beside it also the source of a compiled module with
the same names and results.
"""

from __future__ import annotations

import json
import struct
from types import SimpleNamespace
from typing import Any

from moldau.streams.errors import StreamsError
from moldau.streams.records import MAX_TIMESTAMP, Window, Windowed

try:
    import cython
except ImportError:
    # Only the compiler needs the real one, and it does not let its name be assigned.
    globals()["cython"] = SimpleNamespace(compiled=False)

if not cython.compiled:
    # The compiler takes them from the .pxd, as C.
    from moldau.streams.longs import followed, pack_long, unpack_long


class CoreSerde:
    """A serde as the core calls it; `None` stands for null on both sides."""

    __slots__ = ()

    def serialize(self, topic: str, value: Any) -> bytes | None:
        """The bytes of a value."""
        raise NotImplementedError

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        """The value of some bytes."""
        raise NotImplementedError

    def deserialize_after(self, topic: str, data: bytes, start: int) -> Any:
        """The value of the bytes that begin at `start`."""
        return self.deserialize(topic, data[start:])


class OtherSerde(CoreSerde):
    """Any object with the two methods of a serde."""

    __slots__ = ("_deserialize", "_serialize", "inner")

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self._serialize = inner.serialize
        self._deserialize = inner.deserialize

    def serialize(self, topic: str, value: Any) -> bytes | None:
        data: bytes | None = self._serialize(topic, value)
        return data

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        return self._deserialize(topic, data)


def core_serde(serde: Any) -> CoreSerde:
    """A serde in the form that the core calls."""
    return serde if isinstance(serde, CoreSerde) else OtherSerde(serde)


class BytesSerde(CoreSerde):
    """Bytes as they are."""

    __slots__ = ()

    def serialize(self, topic: str, value: Any) -> bytes | None:
        return None if value is None else bytes(value)

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        return None if data is None else bytes(data)


class StringSerde(CoreSerde):
    """Text in UTF-8."""

    __slots__ = ()

    def serialize(self, topic: str, value: Any) -> bytes | None:
        if value is None:
            return None
        if not isinstance(value, str):
            raise StreamsError(f"the string serde cannot write {value!r}: give another serde")
        text = value
        return text.encode()

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        if data is None:
            return None
        raw = data
        return raw.decode()


class LongSerde(CoreSerde):
    """Whole numbers of 64 bits."""

    __slots__ = ()

    def serialize(self, topic: str, value: Any) -> bytes | None:
        if value is None:
            return None
        try:
            return pack_long(value)
        except (OverflowError, TypeError, struct.error) as error:
            raise StreamsError(
                f"the long serde of topic {topic} cannot write {value!r}: {error}"
            ) from error

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        return None if data is None else self.deserialize_after(topic, data, 0)

    def deserialize_after(self, topic: str, data: bytes, start: int) -> Any:
        if len(data) != start + 8:
            raise StreamsError(
                f"Size of data received by the long serde of topic {topic} is not 8: "
                f"{len(data) - start} bytes"
            )
        return unpack_long(data, start)


_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_decode = json.loads


class JsonSerde(CoreSerde):
    """Any value as JSON, without spaces."""

    __slots__ = ()

    def serialize(self, topic: str, value: Any) -> bytes | None:
        return None if value is None else _encode(value).encode()

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        return None if data is None else _decode(data)


class DefaultSerde(CoreSerde):
    """Stands for the application's default serde until a host sets it."""

    __slots__ = ("_core", "_inner", "what")

    def __init__(self, what: str) -> None:
        self.what = what
        self._inner: Any = None
        self._core: CoreSerde | None = None

    @property
    def inner(self) -> Any:
        """The serde that a host has set."""
        return self._inner

    @inner.setter
    def inner(self, serde: Any) -> None:
        self._inner = serde
        self._core = None if serde is None else core_serde(serde)

    def _missing(self, topic: str) -> StreamsError:
        return StreamsError(
            f"no {self.what} serde for {topic}: pass {self.what}_serde to the step, or "
            f"default_{self.what}_serde to the host"
        )

    def serialize(self, topic: str, value: Any) -> bytes | None:
        if value is None:
            return None
        if self._core is None:
            raise self._missing(topic)
        return self._core.serialize(topic, value)

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        if data is None:
            return None
        if self._core is None:
            raise self._missing(topic)
        return self._core.deserialize(topic, data)

    def deserialize_after(self, topic: str, data: bytes, start: int) -> Any:
        if self._core is None:
            raise self._missing(topic)
        return self._core.deserialize_after(topic, data, start)


class TimeWindowedSerde(CoreSerde):
    """A windowed key in a topic: the key's bytes and the start; the end follows from the size."""

    __slots__ = ("_inner", "_size_ms")

    def __init__(self, inner: Any, size_ms: int) -> None:
        self._inner = core_serde(inner)
        self._size_ms = size_ms

    def base_key(self, topic: str, value: Any) -> bytes:
        """The bytes of the key without its window."""
        return self._inner.serialize(topic, value[0]) or b""

    def serialize(self, topic: str, value: Any) -> bytes | None:
        if value is None:
            return None
        return followed(self.base_key(topic, value), value[1][0])

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        if data is None:
            return None
        raw = data
        start = unpack_long(raw, len(raw) - 8)
        end = min(start + self._size_ms, MAX_TIMESTAMP)
        return Windowed(self._inner.deserialize(topic, raw[:-8]), Window(start, end))


class SessionWindowedSerde(CoreSerde):
    """A session's key in a topic and in a changelog: the key's bytes, the end and the start."""

    __slots__ = ("_inner",)

    def __init__(self, inner: Any) -> None:
        self._inner = core_serde(inner)

    def base_key(self, topic: str, value: Any) -> bytes:
        """The bytes of the key without its window."""
        return self._inner.serialize(topic, value[0]) or b""

    def serialize(self, topic: str, value: Any) -> bytes | None:
        if value is None:
            return None
        start, end = value[1]
        return followed(followed(self.base_key(topic, value), end), start)

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        if data is None:
            return None
        raw = data
        size = len(raw) - 16
        window = Window(unpack_long(raw, size + 8), unpack_long(raw, size))
        return Windowed(self._inner.deserialize(topic, raw[:size]), window)
