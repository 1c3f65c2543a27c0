"""Requests that Splunk has taken but not indexed yet.

Events: a request was sent, ids were acknowledged, time passed. What is not acknowledged in time is
sent again under a new id. Offsets from the first record on that is waiting are not committed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from moldau.connect.api import TopicPartition
from moldau.connect.connectors.splunk.machine.events import Batch


@dataclass(frozen=True, slots=True)
class Waiting:
    server: int
    ack_id: int
    batch: Batch
    since_ms: int


class Acknowledgements:
    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._waiting: dict[tuple[int, int], Waiting] = {}

    @property
    def count(self) -> int:
        """How many records wait."""
        return sum(len(each.batch.records) for each in self._waiting.values())

    def sent(self, each: Waiting) -> None:
        self._waiting[each.server, each.ack_id] = each

    def ids(self, server: int) -> list[int]:
        return [each.ack_id for each in self._waiting.values() if each.server == server]

    def acknowledged(self, server: int, ids: Iterable[int]) -> None:
        for each in ids:
            self._waiting.pop((server, each), None)

    def take_late(self, now_ms: int) -> list[Waiting]:
        """Those to send again, which no longer wait."""
        late = [
            each for each in self._waiting.values() if now_ms - each.since_ms >= self._timeout_ms
        ]
        for each in late:
            del self._waiting[each.server, each.ack_id]
        return late

    def first_offsets(self) -> dict[TopicPartition, int]:
        """The first offset that waits, by partition."""
        found: dict[TopicPartition, int] = {}
        for each in self._waiting.values():
            for record in each.batch.records:
                at = TopicPartition(record.original_topic, record.original_partition)
                found[at] = min(found.get(at, record.original_offset), record.original_offset)
        return found

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Partitions go to others, which send again what is waiting."""
        gone = set(partitions)
        for key, each in list(self._waiting.items()):
            places = {
                TopicPartition(record.original_topic, record.original_partition)
                for record in each.batch.records
            }
            if places <= gone:
                del self._waiting[key]
