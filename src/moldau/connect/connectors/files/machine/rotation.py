"""When files are complete, for one partition of a topic.

Records are collected in order, one open file per folder. When any of them is complete, all of them
are, so what is committed to Kafka never has a gap. A file is named after its first offset, and what
completes it depends on the records alone (unless a schedule by the wall clock is set): a file that
is written again has the same name and contents. That is exactly once.

The files are complete when: they have `flush_size` records together; a record comes with another
schema (whose version is not to be projected to that of its file); a record comes that is
`rotate_ms` newer than the first of them, or goes to another folder than the one before; the
schedule says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from moldau.connect.api.records import SinkRecord
from moldau.connect.connectors.files.machine.partitioners import Partitioner, TimestampExtractor
from moldau.data.errors import DataError
from moldau.data.projection import project
from moldau.data.schema import Schema

COMPATIBILITIES: Final = ("NONE", "BACKWARD", "FORWARD", "FULL")


@dataclass(slots=True)
class OpenFile:
    folder: str
    first_offset: int
    schema: Schema | None
    records: list[SinkRecord] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Rotation:
    """`rotate_ms` and `schedule_ms` are -1 for never. `changes_of_folder` counts with `rotate_ms`
    only, which is by the wall clock or by the times of records."""

    flush_size: int
    rotate_ms: int = -1
    schedule_ms: int = -1
    compatibility: str = "NONE"
    wall_clock: bool = False
    changes_of_folder: bool = True
    keys: bool = False
    """Whether the keys of a file have one schema, too."""


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
        #: The time of the first record in the open files, and the folder of the last.
        self._first_ms = 0
        self._last_folder: str | None = None
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
        folder = self._partitioner(record, now_ms)
        found = self._open.get(folder)
        if found is not None:
            if self._rotation.keys and found.records[0].key_schema != record.key_schema:
                return True
            if found.schema != record.value_schema and self._changes(found.schema, record):
                return True
        if self._rotation.rotate_ms <= 0 or not self._open:
            return False
        if self._rotation.changes_of_folder and folder != self._last_folder:
            return True
        return self._time_of(record, now_ms) - self._first_ms >= self._rotation.rotate_ms

    def _time_of(self, record: SinkRecord, now_ms: int) -> int:
        return now_ms if self._rotation.wall_clock else self._timestamp(record, now_ms)

    def _changes(self, current: Schema | None, record: SinkRecord) -> bool:
        """Whether a record with another schema begins a new file."""
        compatibility, schema = self._rotation.compatibility, record.value_schema
        if compatibility == "NONE" or current is None or schema is None:
            return True
        if current.version is None or schema.version is None:
            raise DataError(
                f"record {record.topic}-{record.partition}@{record.offset} has another schema, and "
                f"schema.compatibility={compatibility} needs versions of both, as those of a "
                "registry have"
            )
        if compatibility == "FORWARD":
            return schema.version < current.version
        return schema.version > current.version

    def fitted(self, record: SinkRecord, now_ms: int) -> SinkRecord:
        """The record with the schema of its file; SchemaProjectorError if that cannot be."""
        found = self._open.get(self._partitioner(record, now_ms))
        if found is None or found.schema is None or record.value_schema is None:
            return record
        if found.schema == record.value_schema:
            return record
        value = project(record.value_schema, record.value, found.schema)
        return record.new_record(value=value, value_schema=found.schema)

    def take(self, record: SinkRecord, now_ms: int) -> bool:
        """Add a record. Returns whether the files are complete now."""
        folder = self._partitioner(record, now_ms)
        found = self._open.get(folder)
        if found is None:
            if not self._open and self._rotation.rotate_ms > 0:
                self._first_ms = self._time_of(record, now_ms)
            found = OpenFile(folder, record.original_offset, record.value_schema)
            self._open[folder] = found
            if self._opened_at_ms is None:
                self._opened_at_ms = now_ms
        found.records.append(record)
        self._last_folder = folder
        self.next_offset = record.original_offset + 1
        return self.count >= self._rotation.flush_size

    def is_due(self, now_ms: int) -> bool:
        """Whether the schedule, or the interval by the wall clock, wants the open files stored."""
        rotation = self._rotation
        if rotation.wall_clock and 0 < rotation.rotate_ms <= now_ms - self._first_ms and self._open:
            return True
        interval_ms = rotation.schedule_ms
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
