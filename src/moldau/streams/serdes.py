"""How keys and values become bytes: Kafka's own serdes, by name, and those of windowed keys.

A step takes a serde as a name ("string"), or as any object with the two methods of `Serde`.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from moldau.streams._serdes import BytesSerde, JsonSerde, LongSerde, StringSerde
from moldau.streams._serdes import SessionWindowedSerde as SessionWindowedSerde
from moldau.streams._serdes import TimeWindowedSerde as TimeWindowedSerde
from moldau.streams.errors import StreamsError

T = TypeVar("T")
K = TypeVar("K")

_LONG = struct.Struct(">q")
_TWO_LONGS = struct.Struct(">qq")


class Serde(Protocol[T]):
    """A pair of functions; `None` stands for a null key or a tombstone on both sides."""

    def serialize(self, topic: str, value: T | None) -> bytes | None:
        """The bytes of a value."""

    def deserialize(self, topic: str, data: bytes | None) -> T | None:
        """The value of some bytes."""


SerdeLike = str | Serde[Any]


class SimpleSerde(Generic[T]):
    """A serde made of two functions that never see null.

    SimpleSerde(lambda text: text.encode(), lambda data: data.decode())
    """

    __slots__ = ("_from_bytes", "_to_bytes")

    def __init__(self, to_bytes: Callable[[T], bytes], from_bytes: Callable[[bytes], T]) -> None:
        self._to_bytes = to_bytes
        self._from_bytes = from_bytes

    def serialize(self, topic: str, value: T | None) -> bytes | None:
        return None if value is None else self._to_bytes(value)

    def deserialize(self, topic: str, data: bytes | None) -> T | None:
        return None if data is None else self._from_bytes(data)


class _Number(Generic[T]):
    __slots__ = ("_name", "_struct")

    def __init__(self, name: str, layout: str) -> None:
        self._name = name
        self._struct = struct.Struct(layout)

    def serialize(self, topic: str, value: T | None) -> bytes | None:
        if value is None:
            return None
        try:
            return self._struct.pack(value)
        except struct.error as error:
            raise StreamsError(
                f"the {self._name} serde of topic {topic} cannot write {value!r}: {error}"
            ) from error

    def deserialize(self, topic: str, data: bytes | None) -> T | None:
        if data is None:
            return None
        if len(data) != self._struct.size:
            raise StreamsError(
                f"Size of data received by the {self._name} serde of topic {topic} is not "
                f"{self._struct.size}: {len(data)} bytes"
            )
        value: T = self._struct.unpack(data)[0]
        return value


BYTES: Serde[bytes] = BytesSerde()
STRING: Serde[str] = StringSerde()
SHORT: Serde[int] = _Number("short", ">h")
INTEGER: Serde[int] = _Number("integer", ">i")
LONG: Serde[int] = LongSerde()
FLOAT: Serde[float] = _Number("float", ">f")
DOUBLE: Serde[float] = _Number("double", ">d")
BOOLEAN: Serde[bool] = _Number("boolean", "?")
UUID: Serde[uuid.UUID] = SimpleSerde(
    lambda value: str(value).encode(), lambda data: uuid.UUID(data.decode())
)
JSON: Serde[Any] = JsonSerde()

NAMED: dict[str, Serde[Any]] = {
    "bytes": BYTES,
    "string": STRING,
    "short": SHORT,
    "integer": INTEGER,
    "int": INTEGER,
    "long": LONG,
    "float": FLOAT,
    "double": DOUBLE,
    "boolean": BOOLEAN,
    "uuid": UUID,
    "json": JSON,
}


_REGISTRY = "use {0}_serde(schema, registry=...) of moldau.streams.schemas"
#: Serdes that need more than a name.
_CONSTRUCTED = {
    "avro": _REGISTRY.format("avro"),
    "json_schema": _REGISTRY.format("json_schema"),
    "protobuf": _REGISTRY.format("protobuf"),
    "pickle": "it runs code from the topic, so ask for it with pickle_serde() of "
    "moldau.streams.schemas",
}


def serde(like: SerdeLike | None) -> Serde[Any] | None:
    """The serde of a name; a serde is returned as it is, `None` stands for the default serde."""
    if not isinstance(like, str):
        return like
    found = NAMED.get(like)
    if found is None and like in _CONSTRUCTED:
        raise ValueError(f"the serde {like!r} has no name of its own: {_CONSTRUCTED[like]}")
    if found is None:
        raise ValueError(f"no serde is called {like!r}; there are {', '.join(sorted(NAMED))}")
    return found
