"""The records of a mirror's internal topics, byte for byte as MirrorMaker 2 writes them.

`OffsetRun` is Moldau's own: MirrorMaker 2 keeps one pair of offsets per partition, which is not
enough to translate an offset exactly.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from moldau.client.topics import TopicPartition

__all__ = ["BadRecord", "Checkpoint", "Heartbeat", "OffsetRun", "OffsetSync"]

_VERSION = 0
_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_TWO_LONGS = struct.Struct(">qq")
_THREE_LONGS = struct.Struct(">qqq")


class BadRecord(ValueError):
    """Bytes that are not such a record."""


def _string(text: str) -> bytes:
    data = text.encode()
    return _SHORT.pack(len(data)) + data


class _Reader:
    def __init__(self, data: bytes | None, what: str) -> None:
        if data is None:
            raise BadRecord(f"{what}: there are no bytes")
        self._data = data
        self._position = 0
        self._what = what

    def take(self, layout: struct.Struct) -> tuple[int, ...]:
        try:
            found: tuple[int, ...] = layout.unpack_from(self._data, self._position)
        except struct.error:
            raise BadRecord(f"{self._what}: {len(self._data)} bytes are too few") from None
        self._position += layout.size
        return found

    def string(self) -> str:
        (size,) = self.take(_SHORT)
        end = self._position + size
        if size < 0 or end > len(self._data):
            raise BadRecord(f"{self._what}: a text of {size} bytes is not there")
        part, self._position = self._data[self._position : end], end
        try:
            return part.decode()
        except UnicodeDecodeError:
            raise BadRecord(f"{self._what}: a text is not UTF-8") from None

    def version(self) -> None:
        (version,) = self.take(_SHORT)
        if version != _VERSION:
            raise BadRecord(f"{self._what}: version {version} is not known")


@dataclass(frozen=True, slots=True)
class OffsetSync:
    """The record at `upstream_offset` of the source is at `downstream_offset` of the target."""

    partition: TopicPartition
    upstream_offset: int
    downstream_offset: int

    def key(self) -> bytes:
        return _string(self.partition.topic) + _INT.pack(self.partition.partition)

    def value(self) -> bytes:
        return _TWO_LONGS.pack(self.upstream_offset, self.downstream_offset)

    @classmethod
    def parse(cls, key: bytes | None, value: bytes | None) -> OffsetSync:
        reader = _Reader(key, "the key of an offset sync")
        partition = TopicPartition(reader.string(), *reader.take(_INT))
        return cls(partition, *_Reader(value, "an offset sync").take(_TWO_LONGS))


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A group's offset in the source, and where the group would continue in the target."""

    group_id: str
    partition: TopicPartition
    """Of the target."""
    upstream_offset: int
    downstream_offset: int
    metadata: str = ""

    def key(self) -> bytes:
        place = _string(self.partition.topic) + _INT.pack(self.partition.partition)
        return _string(self.group_id) + place

    def value(self) -> bytes:
        offsets = _TWO_LONGS.pack(self.upstream_offset, self.downstream_offset)
        return _SHORT.pack(_VERSION) + offsets + _string(self.metadata)

    @classmethod
    def parse(cls, key: bytes | None, value: bytes | None) -> Checkpoint:
        reader = _Reader(key, "the key of a checkpoint")
        group_id = reader.string()
        partition = TopicPartition(reader.string(), *reader.take(_INT))
        body = _Reader(value, "a checkpoint")
        body.version()
        upstream, downstream = body.take(_TWO_LONGS)
        return cls(group_id, partition, upstream, downstream, body.string())


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A mirror from `source` to `target` was running at `timestamp`."""

    source: str
    target: str
    timestamp: int

    def key(self) -> bytes:
        return _string(self.source) + _string(self.target)

    def value(self) -> bytes:
        return _SHORT.pack(_VERSION) + _LONG.pack(self.timestamp)

    @classmethod
    def parse(cls, key: bytes | None, value: bytes | None) -> Heartbeat:
        reader = _Reader(key, "the key of a heartbeat")
        source, target = reader.string(), reader.string()
        body = _Reader(value, "a heartbeat")
        body.version()
        return cls(source, target, *body.take(_LONG))


@dataclass(frozen=True, slots=True)
class OffsetRun:
    """`count` records in sequence: `upstream + i` of the source is `downstream + i` of the target.

    `position` is where the mirror continued in the source after them, so that offsets of records
    that are not copied (transaction markers, aborted records) are known too.
    """

    partition: TopicPartition
    """Of the source."""
    upstream: int
    downstream: int
    count: int
    position: int

    @property
    def upstream_end(self) -> int:
        return self.upstream + self.count

    @property
    def downstream_end(self) -> int:
        return self.downstream + self.count

    def key(self) -> bytes:
        place = _string(self.partition.topic) + _INT.pack(self.partition.partition)
        return place + _LONG.pack(self.upstream)

    def value(self) -> bytes:
        return _SHORT.pack(_VERSION) + _THREE_LONGS.pack(self.downstream, self.count, self.position)

    @classmethod
    def parse_key(cls, key: bytes | None) -> tuple[TopicPartition, int]:
        """The partition and the first upstream offset."""
        reader = _Reader(key, "the key of an offset run")
        partition = TopicPartition(reader.string(), *reader.take(_INT))
        return partition, *reader.take(_LONG)  # type: ignore[return-value]

    @classmethod
    def parse(cls, key: bytes | None, value: bytes | None) -> OffsetRun:
        partition, upstream = cls.parse_key(key)
        body = _Reader(value, "an offset run")
        body.version()
        return cls(partition, upstream, *body.take(_THREE_LONGS))
