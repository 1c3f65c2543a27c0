"""When files are complete, for one partition of a topic.

Records are collected in order, one open file per folder. When any of them is complete, all of them
are, so what is committed to Kafka never has a gap. A file is named after its first offset, and what
completes it depends on the records alone (unless a schedule by the wall clock is set): a file that
is written again has the same name and contents. That is exactly once.

A file is complete when: it has `flush_size` records; a record comes with another schema; a record
comes that is `rotate_ms` newer than the first one of the file; the schedule says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from moldau.connect.api.records import SinkRecord
from moldau.connect.connectors.files.machine.partitioners import Partitioner, TimestampExtractor
from moldau.data.schema import Schema


@dataclass(slots=True)
class OpenFile:
    folder: str
    first_offset: int
    schema: Schema | None
    first_ms: int
    records: list[SinkRecord] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Rotation:
    """`rotate_ms` and `schedule_ms` are -1 for never."""

    flush_size: int
    rotate_ms: int = -1
    schedule_ms: int = -1


class PartitionFiles:
    """Events: a record, the time. Effect: files to be stored, together."""

    def __init__(
        self, rotation: Rotation, partitioner: Partitioner, timestamp: TimestampExtractor
    ) -> None:
        self._rotation = rotation
        self._partitioner = partitioner
        self._timestamp = timestamp
        self._open: dict[str, OpenFile] = {}
        self._opened_at_ms: int | None = None
        #: The offset after the last record that was taken.
        self.next_offset: int | None = None

    @property
    def is_empty(self) -> bool:
        return not self._open

    @property
    def count(self) -> int:
        return sum(len(each.records) for each in self._open.values())

    def is_complete_before(self, record: SinkRecord, now_ms: int) -> bool:
        """Whether the open files must be stored before this record is taken."""
        found = self._open.get(self._partitioner(record, now_ms))
        if found is not None and found.schema != record.value_schema:
            return True
        if self._rotation.rotate_ms <= 0 or found is None:
            return False
        return self._timestamp(record, now_ms) - found.first_ms >= self._rotation.rotate_ms

    def take(self, record: SinkRecord, now_ms: int) -> bool:
        """Add a record. Returns whether its file is complete now."""
        folder = self._partitioner(record, now_ms)
        found = self._open.get(folder)
        if found is None:
            first_ms = self._timestamp(record, now_ms) if self._rotation.rotate_ms > 0 else 0
            found = OpenFile(folder, record.original_offset, record.value_schema, first_ms)
            self._open[folder] = found
            if self._opened_at_ms is None:
                self._opened_at_ms = now_ms
        found.records.append(record)
        self.next_offset = record.original_offset + 1
        return len(found.records) >= self._rotation.flush_size

    def is_due(self, now_ms: int) -> bool:
        """Whether the schedule wants the open files stored."""
        interval_ms = self._rotation.schedule_ms
        if interval_ms <= 0 or self._opened_at_ms is None:
            return False
        return now_ms // interval_ms > self._opened_at_ms // interval_ms

    def open_files(self) -> Sequence[OpenFile]:
        return tuple(self._open.values())

    def stored(self) -> int | None:
        """The open files are stored: returns the offset that may be committed."""
        self._open.clear()
        self._opened_at_ms = None
        return self.next_offset
