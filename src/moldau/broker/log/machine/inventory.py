"""What a clean stop records of every log, so that the next start need not open the files.

Invariants: after a clean stop an inventory is used only with the clean-shutdown mark that it was
written for, and a log's facts only while its directory has had no files added, renamed or removed
since, and its segments have the sizes that they name. To look at every file of thousands of logs
would take longer than the rest of a start.
After a kill the facts of a log are used only if, in addition, its indexes have the sizes that they
name and no segment was written to since: such a log is as the clean stop has synced it.
Everything in it can be found in the files as well, so a missing or damaged one costs time only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from moldau.wire.checksums import crc32c

VERSION = 3

Entry = tuple[int, int]


class SegmentFacts(NamedTuple):
    """The sizes of its files, and the last entries of the indexes, None where there are none."""

    base_offset: int
    size: int
    offset_index_size: int
    time_index_size: int
    txn_index_size: int
    offset_entry: Entry | None
    time_entry: Entry | None
    max_timestamp: int
    max_timestamp_offset: int


class LogFacts(NamedTuple):
    """`snapshots` are the offsets of the producer snapshots, in ascending order; `written_ms` is
    when each segment was last written to, by the file system's clock."""

    entries_changed: int
    written_ms: tuple[int, ...]
    topic_id: UUID | None
    end_offset: int
    epochs: tuple[Entry, ...]
    snapshots: tuple[int, ...]
    segments: tuple[SegmentFacts, ...]


def encode_inventory(mark_ms: int, logs: Mapping[str, LogFacts]) -> bytes:
    """Facts by the names of the logs' directories, for the mark written at `mark_ms`."""
    rows = {
        name: (*facts[:2], facts.topic_id and facts.topic_id.hex, *facts[3:])
        for name, facts in logs.items()
    }
    body = json.dumps({"mark": mark_ms, "logs": rows}, separators=(",", ":")).encode()
    return b"%d %d\n" % (VERSION, crc32c(body)) + body


def decode_inventory(data: bytes, mark_ms: int | None) -> dict[str, LogFacts]:
    """Empty if it is damaged, of another version or of another mark; None: of any mark."""
    header, _, body = data.partition(b"\n")
    if header != b"%d %d" % (VERSION, crc32c(body)):
        return {}
    content = json.loads(body)
    if mark_ms is not None and content["mark"] != mark_ms:
        return {}
    # All partitions of a topic have one id, and to make one takes longer than the rest.
    ids: dict[str | None, UUID | None] = {None: None}
    found: dict[str, LogFacts] = {}
    for name, row in content["logs"].items():
        changed, written_ms, topic_id, end, epochs, snapshots, segments = row
        if topic_id not in ids:
            ids[topic_id] = UUID(topic_id)
        found[name] = LogFacts(
            changed,
            tuple(written_ms),
            ids[topic_id],
            end,
            tuple(map(tuple, epochs)),
            tuple(snapshots),
            tuple(map(_segment, segments)),
        )
    return found


def _segment(row: list[Any]) -> SegmentFacts:
    row[5:7] = [entry and tuple(entry) for entry in row[5:7]]
    return SegmentFacts._make(row)
