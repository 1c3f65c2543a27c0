"""How far the source is copied, as the offsets topic has it: in Connect's format, under the name of
MirrorMaker 2's connector, so that either continues where the other stopped."""

from __future__ import annotations

import json

from moldau.client.topics import TopicPartition
from moldau.mirror.machine.records import BadRecord

__all__ = ["SourcePositions"]


class SourcePositions:
    """The last copied offset of each partition. `replay` is the only mutator."""

    def __init__(self, connector: str, cluster: str) -> None:
        self._connector = connector
        self._cluster = cluster
        self._last: dict[TopicPartition, int] = {}

    def key(self, partition: TopicPartition) -> bytes:
        where = {
            "cluster": self._cluster,
            "partition": partition.partition,
            "topic": partition.topic,
        }
        return json.dumps([self._connector, where], separators=(",", ":")).encode()

    @staticmethod
    def value(last_offset: int) -> bytes:
        return json.dumps({"offset": last_offset}, separators=(",", ":")).encode()

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        try:
            connector, where = json.loads(key or b"")
            offset = None if value is None else int(json.loads(value)["offset"])
            partition = TopicPartition(str(where["topic"]), int(where["partition"]))
            cluster = where["cluster"]
        except (ValueError, TypeError, KeyError):
            # Offsets of the other connectors have other fields.
            if b'"topic"' in (key or b"") and b'"group"' not in (key or b""):
                raise BadRecord(f"{key!r}: {value!r} is not an offset") from None
            return
        if connector != self._connector or cluster != self._cluster:
            return
        if offset is None:
            self._last.pop(partition, None)
        else:
            self._last[partition] = offset

    def next(self, partition: TopicPartition) -> int | None:
        """Where to continue; None for a partition that is not begun."""
        last = self._last.get(partition)
        return None if last is None or last < 0 else last + 1
