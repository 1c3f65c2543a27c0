"""Snapshot files of the metadata log.

A snapshot holds the whole image at an end offset (exclusive) and epoch, which are its name. It is
written under another name and renamed when it is synced, so a snapshot that exists is complete. A
damaged one stops the start instead of being skipped, because the log before it may be gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from moldau.broker.log.disk import Disk, File
from moldau.broker.raft.machine.batches import (
    MetadataBatch,
    decode_metadata_batches,
    encode_controls,
    encode_records,
    quorum_controls,
)
from moldau.broker.raft.machine.errors import MetadataError
from moldau.broker.raft.machine.snapshot_id import SnapshotId
from moldau.broker.raft.machine.voters import VoterSet
from moldau.invariant import invariant
from moldau.times import WallMs
from moldau.wire.messages import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)

__all__ = [
    "BOOTSTRAP_FILE",
    "Snapshot",
    "SnapshotId",
    "SnapshotWriter",
    "list_snapshots",
    "read_snapshot",
    "remove_leftovers",
    "snapshot_parts",
]

BOOTSTRAP_FILE = "bootstrap.checkpoint"
PARTIAL_SUFFIX = ".part"
DELETED_SUFFIX = ".deleted"
RECORDS_PER_BATCH = 1000


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The content of a snapshot file. `voters` is None if it has none (static quorums)."""

    last_contained_log_timestamp: int
    kraft_version: int
    voters: VoterSet | None
    records: tuple[Any, ...]


def list_snapshots(disk: Disk, directory: str) -> list[SnapshotId]:
    """Complete snapshots, oldest first."""
    if not disk.is_dir(directory):
        return []
    found = (SnapshotId.of_file(name) for name in disk.list_dir(directory))
    return sorted(snapshot for snapshot in found if snapshot is not None)


def remove_leftovers(disk: Disk, directory: str) -> None:
    """Snapshots that were being written or deleted when the node stopped."""
    for name in disk.list_dir(directory):
        for suffix in (PARTIAL_SUFFIX, DELETED_SUFFIX):
            if SnapshotId.of_file(name.removesuffix(suffix)) is not None and name.endswith(suffix):
                disk.remove(f"{directory}/{name}", missing_ok=True)


def read_snapshot(disk: Disk, path: str) -> Snapshot:
    data = disk.read_bytes(path)
    batches = list(decode_metadata_batches(data, path))
    _check_order(path, batches)
    controls = [control for batch in batches for control in batch.controls]
    if not controls or not isinstance(controls[0], SnapshotHeaderRecord):
        raise MetadataError(f"{path}: the snapshot does not begin with a header record")
    if not isinstance(controls[-1], SnapshotFooterRecord) or len(data) != _size(batches):
        raise MetadataError(
            f"{path}: the snapshot is incomplete. Restore the file, or remove the log directory and"
            " format it again"
        )
    kraft_version = 0
    voters = None
    for control in controls:
        if isinstance(control, KRaftVersionRecord):
            kraft_version = control.kraft_version
        elif isinstance(control, VotersRecord):
            voters = VoterSet.from_record(control)
    return Snapshot(
        last_contained_log_timestamp=controls[0].last_contained_log_timestamp,
        kraft_version=kraft_version,
        voters=voters,
        records=tuple(record for batch in batches for record in batch.records),
    )


def _check_order(path: str, batches: list[MetadataBatch]) -> None:
    """The batches' checksums do not cover offsets and epochs; these must fit together."""
    offset = 0
    for batch in batches:
        if batch.base_offset != offset or batch.epoch != batches[0].epoch:
            raise MetadataError(
                f"{path}: the batch after offset {offset - 1} has another offset or epoch"
            )
        offset = batch.next_offset


def _size(batches: list[MetadataBatch]) -> int:
    return sum(batch.size for batch in batches)


def snapshot_parts(
    records: Iterable[Any],
    *,
    epoch: int,
    now_ms: WallMs,
    metadata_version: int,
    last_contained_log_timestamp: int,
    kraft_version: int = 0,
    voters: VoterSet | None = None,
) -> Iterator[bytes]:
    """The bytes of a snapshot, batch by batch, so that other work can be done in between."""
    header = SnapshotHeaderRecord(
        version=0, last_contained_log_timestamp=last_contained_log_timestamp
    )
    controls: list[Any] = [header]
    if kraft_version > 0:
        invariant(voters is not None, "a snapshot of a dynamic quorum without its voters")
        controls += quorum_controls(kraft_version, voters or VoterSet())
    yield encode_controls(controls, base_offset=0, epoch=epoch, now_ms=now_ms)
    offset = len(controls)
    remaining = iter(records)
    while batch := list(islice(remaining, RECORDS_PER_BATCH)):
        yield encode_records(
            batch,
            base_offset=offset,
            epoch=epoch,
            now_ms=now_ms,
            metadata_version=metadata_version,
        )
        offset += len(batch)
    footer = SnapshotFooterRecord(version=0)
    yield encode_controls([footer], base_offset=offset, epoch=epoch, now_ms=now_ms)


class SnapshotWriter:
    """Writes one snapshot: `append` its parts, `sync` off the event loop, then `freeze`."""

    def __init__(self, disk: Disk, directory: str, snapshot_id: SnapshotId) -> None:
        self._disk = disk
        self._path = f"{directory}/{snapshot_id.file_name}"
        self._partial = self._path + PARTIAL_SUFFIX
        disk.remove(self._partial, missing_ok=True)
        self._file: File = disk.open(self._partial, create=True)
        self.size = 0

    def append(self, part: bytes) -> None:
        self._file.write(part, self.size)
        self.size += len(part)

    def sync(self) -> None:
        self._file.sync()

    def freeze(self) -> None:
        """Rename the file: from here on the snapshot exists."""
        self._file.close()
        self._disk.rename(self._partial, self._path, sync=True)

    def abandon(self) -> None:
        self._file.close()
        self._disk.remove(self._partial, missing_ok=True)
