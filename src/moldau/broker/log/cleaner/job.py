"""Jobs that the broker sends to a worker and the results it receives, one JSON line each.

A job names everything the work depends on, so that the same job on the same files gives
the same new segments. Offsets and sizes are what the broker saw when it made the job.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from moldau.broker.log.cleaner.filtering import LastBatch
from moldau.broker.log.cleaner.machine.schedule import SourceSegment


class CleanJob(NamedTuple):
    directory: str
    first_dirty_offset: int
    upper_offset: int
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    # Every closed segment below the upper offset, in order.
    segments: tuple[SourceSegment, ...]
    # Base offsets of all segments that have a transaction index, the active one's too: a
    # transaction may end far behind its data.
    txn_index_offsets: tuple[int, ...]
    producers: dict[int, LastBatch]
    map_size_max: int
    buffer_size: int
    bytes_per_second_max: float | None

    def encode(self) -> bytes:
        fields = self._asdict()
        fields["producers"] = [[key, *last] for key, last in self.producers.items()]
        return _line(fields)

    @classmethod
    def decode(cls, line: bytes) -> CleanJob:
        fields = json.loads(line)
        fields["segments"] = tuple(SourceSegment(*segment) for segment in fields["segments"])
        fields["txn_index_offsets"] = tuple(fields["txn_index_offsets"])
        fields["producers"] = {key: LastBatch(*last) for key, *last in fields["producers"]}
        return cls(**fields)


class CleanedSegment(NamedTuple):
    """A new segment is complete and durable under its `.cleaned` names."""

    base_offset: int
    replaces: tuple[int, ...]  # base offsets of the old segments
    size: int
    index_size: int
    time_index_size: int
    txn_index_size: int


class CleanDone(NamedTuple):
    """The whole job is done; below `end_offset` the log is clean."""

    end_offset: int
    map_entries: int
    bytes_read: int
    bytes_written: int
    records_invalid: int


class CleanFailed(NamedTuple):
    """The job cannot be done. `corrupt`: trying again would not help."""

    reason: str
    corrupt: bool


CleanEvent = CleanedSegment | CleanDone | CleanFailed

_EVENTS: dict[str, Any] = {
    "segment": CleanedSegment,
    "done": CleanDone,
    "failed": CleanFailed,
}


def encode_event(event: CleanEvent) -> bytes:
    kind = next(kind for kind, event_class in _EVENTS.items() if type(event) is event_class)
    return _line({"kind": kind, **event._asdict()})


def decode_event(line: bytes) -> CleanEvent:
    fields = json.loads(line)
    event_class = _EVENTS[fields.pop("kind")]
    if "replaces" in fields:
        fields["replaces"] = tuple(fields["replaces"])
    event: CleanEvent = event_class(**fields)
    return event


def _line(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"
