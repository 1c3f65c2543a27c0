"""How far a task has read: offsets, the partitions' times, and what processors want kept.

The metadata of a committed offset is Kafka Streams': a version, the partition's time, and a time
per processor (the last windows whose final results were emitted).
"""

from __future__ import annotations

import base64
import struct
from typing import NamedTuple

from moldau.streams._records import PartitionProgress

_HEAD = struct.Struct(">bq")
_COUNT = struct.Struct(">i")
_TIME = struct.Struct(">q")
_VERSION = 2
UNKNOWN = -1


class TopicPartition(NamedTuple):
    """A partition of an input topic."""

    topic: str
    partition: int


class CommittedOffset(NamedTuple):
    """What is committed for an input partition: the next offset, and metadata as text."""

    offset: int
    metadata: str


def encode_metadata(partition_time: int, processors: dict[str, int]) -> str:
    """The metadata of an offset, as Kafka Streams commits it."""
    parts = [_HEAD.pack(_VERSION, partition_time)]
    if processors:
        parts.append(_COUNT.pack(len(processors)))
        for name, time in processors.items():
            data = name.encode()
            parts += [_COUNT.pack(len(data)), data, _TIME.pack(time)]
    return base64.b64encode(b"".join(parts)).decode()


def decode_metadata(text: str | None) -> tuple[int, dict[str, int]]:
    """The partition's time and the processors' times; unknown where the text is foreign."""
    try:
        data = base64.b64decode(text or "", validate=True)
        version, partition_time = _HEAD.unpack_from(data)
        if version not in (1, _VERSION):
            return UNKNOWN, {}
        processors: dict[str, int] = {}
        position = _HEAD.size
        count = 0
        if version == _VERSION and len(data) > position:
            (count,) = _COUNT.unpack_from(data, position)
            position += 4
        for _ in range(count):
            (size,) = _COUNT.unpack_from(data, position)
            name = data[position + 4 : position + 4 + size].decode()
            (time,) = _TIME.unpack_from(data, position + 4 + size)
            processors[name] = time
            position += 12 + size
    except (ValueError, struct.error):
        return UNKNOWN, {}
    return partition_time, processors


class Progress:
    """What a task has consumed since it was created or last committed."""

    def __init__(self) -> None:
        self._partitions: dict[TopicPartition, PartitionProgress] = {}
        #: Times that processors keep across restarts, by a name of theirs.
        self.processors: dict[str, int] = {}

    def partition(self, topic: str, partition: int) -> PartitionProgress:
        """How far a partition was read."""
        place = TopicPartition(topic, partition)
        return self._partitions.setdefault(place, PartitionProgress())

    def resume(self, partition: TopicPartition, metadata: str | None) -> int:
        """Take over what was committed for a partition; its time."""
        time, processors = decode_metadata(metadata)
        progress = self.partition(*partition)
        progress.time = max(time, progress.time)
        for name, kept in processors.items():
            self.processors[name] = max(kept, self.processors.get(name, kept))
        return time

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The next offset of each partition that was read from since the last commit."""
        return {
            place: progress.position
            for place, progress in self._partitions.items()
            if progress.position >= 0
        }

    def to_commit(self) -> dict[TopicPartition, CommittedOffset]:
        """What is to be committed for the partitions that were read from."""
        return {
            place: CommittedOffset(offset, self._metadata(place))
            for place, offset in self.positions.items()
        }

    def _metadata(self, place: TopicPartition) -> str:
        return encode_metadata(self._partitions[place].time, self.processors)

    def committed(self) -> None:
        """What `to_commit` returned is committed."""
        for progress in self._partitions.values():
            progress.position = -1
