"""How keys and values become bytes: Kafka's own serdes, by name, and those of windowed keys.

A step takes a serde as a name ("string"), or as any object with the two methods of `Serde`.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Sequence
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


class _Void:
    """Null only."""

    __slots__ = ()

    def serialize(self, topic: str, value: None) -> bytes | None:
        return None

    def deserialize(self, topic: str, data: bytes | None) -> None:
        if data is not None:
            raise StreamsError("Data should be null for a VoidDeserializer.")


VOID: Serde[None] = _Void()

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
    "void": VOID,
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


#: The serdes whose values are all of one size, which lists do not repeat for each.
_SIZES: tuple[tuple[Serde[Any], int], ...] = (
    (SHORT, 2),
    (INTEGER, 4),
    (LONG, 8),
    (FLOAT, 4),
    (DOUBLE, 8),
    (UUID, 36),
)
_OF_ONE_SIZE, _OF_ANY_SIZE = b"\x00", b"\x01"
_NULL_SIZE = b"\xff\xff\xff\xff"


class ListSerde(Generic[T]):
    """A list of values of another serde, in the bytes of Kafka's: ListSerde("string")."""

    __slots__ = ("_inner", "_size")

    def __init__(self, inner: str | Serde[T]) -> None:
        self._inner: Serde[T] = serde(inner) or BYTES  # type: ignore[assignment]
        self._size = next((size for each, size in _SIZES if each is self._inner), None)

    def serialize(self, topic: str, value: Sequence[T | None] | None) -> bytes | None:
        if value is None:
            return None
        parts = [_OF_ANY_SIZE]
        if self._size is not None:
            nulls = [index for index, each in enumerate(value) if each is None]
            parts = [_OF_ONE_SIZE, *(number.to_bytes(4) for number in (len(nulls), *nulls))]
        parts.append(len(value).to_bytes(4))
        for each in value:
            data = None if each is None else self._inner.serialize(topic, each) or b""
            if self._size is None:
                parts.append(_NULL_SIZE if data is None else len(data).to_bytes(4))
            parts.append(data or b"")
        return b"".join(parts)

    def deserialize(self, topic: str, data: bytes | None) -> list[T | None] | None:
        if data is None:
            return None
        at = 1

        def number() -> int:
            nonlocal at
            at += 4
            if at > len(data):
                raise StreamsError(f"the list serde of topic {topic} cannot read {data!r}")
            return int.from_bytes(data[at - 4 : at], signed=True)

        size, nulls = None, set[int]()
        if data[:1] == _OF_ONE_SIZE:
            if self._size is None:
                raise StreamsError(f"the list of topic {topic} is one of values of equal size")
            size, nulls = self._size, {number() for _ in range(number())}
        found: list[T | None] = []
        for index in range(number()):
            length = -1 if index in nulls else number() if size is None else size
            if length < 0:
                found.append(None)
                continue
            if at + length > len(data):
                raise StreamsError(f"the list serde of topic {topic} cannot read {data!r}")
            found.append(self._inner.deserialize(topic, data[at : at + length]))
            at += length
        return found
