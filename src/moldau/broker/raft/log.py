"""RaftLog: the metadata log on disk, its snapshots and the quorum-state file.

Invariants: the log and its newest snapshot together hold everything that is committed. The log
begins no later than the oldest snapshot ends, so that the log continues every snapshot.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from moldau.broker.config import LogConfig
from moldau.broker.config.broker_keys import BROKER_KEYS
from moldau.broker.log.background import Background
from moldau.broker.log.context import AppendOrigin, LogContext, LogDirState
from moldau.broker.log.disk import Disk
from moldau.broker.log.loader import open_log
from moldau.broker.log.log import Log
from moldau.broker.raft.machine.batches import MetadataBatch, decode_metadata_batches
from moldau.broker.raft.machine.election_file import (
    QUORUM_STATE_FILE,
    CorruptQuorumState,
    Election,
    decode_election,
    encode_election,
)
from moldau.broker.raft.machine.log_names import METADATA_PARTITION, METADATA_TOPIC
from moldau.broker.raft.machine.rpcs import EndOfEpoch
from moldau.broker.raft.machine.voters import VoterSet
from moldau.broker.raft.snapshots import (
    Snapshot,
    SnapshotId,
    SnapshotWriter,
    list_snapshots,
    read_snapshot,
    remove_leftovers,
)
from moldau.config.section import Section
from moldau.invariant import invariant
from moldau.times import WallMs
from moldau.wire.uuids import METADATA_TOPIC_ID

METADATA_DIR = f"{METADATA_TOPIC}-{METADATA_PARTITION}"
READ_SIZE = 1 << 20

logger = logging.getLogger(__name__)


class RaftLogConfig(Section, keys=BROKER_KEYS, prefix="metadata."):
    """Fields named after metadata.log.* and metadata.max.retention.*."""

    log_segment_bytes: int
    log_segment_ms: int
    max_retention_bytes: int
    max_retention_ms: int

    def log_config(self) -> LogConfig:
        # Retention goes by snapshots, not by the rules of other logs.
        return LogConfig(
            cleanup_policy=("delete",),
            retention_ms=-1,
            retention_bytes=-1,
            segment_bytes=self.log_segment_bytes,
            segment_ms=self.log_segment_ms,
        )


class RaftLog:
    """Appends and reads on the event loop, syncs in the background. One node owns it."""

    def __init__(
        self,
        directory: str,
        log: Log,
        *,
        disk: Disk,
        background: Background,
        config: RaftLogConfig,
    ) -> None:
        self.directory = directory
        self.log = log
        self._disk = disk
        self._background = background
        self._config = config
        self.snapshots = list_snapshots(disk, directory)

    @classmethod
    def open(
        cls,
        metadata_log_dir: str,
        *,
        disk: Disk,
        background: Background,
        config: RaftLogConfig,
        now_ms: WallMs,
        clean_shutdown: bool = False,
        dir_state: LogDirState | None = None,
    ) -> RaftLog:
        """Open the log in `metadata_log_dir`, truncated at the first damaged batch."""
        directory = f"{metadata_log_dir}/{METADATA_DIR}"
        disk.make_dirs(directory)
        remove_leftovers(disk, directory)
        snapshots = list_snapshots(disk, directory)
        log = open_log(
            LogContext(disk=disk, background=background),
            dir_state or LogDirState(metadata_log_dir),
            directory,
            METADATA_TOPIC,
            METADATA_PARTITION,
            config.log_config(),
            now_ms=now_ms,
            topic_id=METADATA_TOPIC_ID,
            clean_shutdown=clean_shutdown,
            recovery_point=snapshots[-1].end_offset if snapshots else 0,
            log_start_offset=snapshots[0].end_offset if snapshots else 0,
        )
        if snapshots and _is_outdated(log, snapshots[-1]):
            # The snapshot is newer than the log, which is of no use then.
            log.truncate_fully_and_start_at(snapshots[-1].end_offset, now_ms=now_ms)
        return cls(directory, log, disk=disk, background=background, config=config)

    @property
    def end_offset(self) -> int:
        return self.log.log_end_offset

    @property
    def start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, 0 if there is none."""
        newest = self.snapshots[-1].epoch if self.snapshots else 0
        return max(self.log.latest_epoch, newest, 0)

    def end_of_epoch(self, epoch: int) -> EndOfEpoch:
        """The highest epoch in the log that is not above `epoch`, and where it ends; the log's end
        if there is none."""
        known, end_offset = self.log.end_offset_for_epoch(epoch)
        if end_offset < 0:
            return EndOfEpoch(epoch=self.last_epoch, end_offset=self.end_offset)
        oldest = self.snapshots[0] if self.snapshots else None
        if oldest is not None and end_offset == oldest.end_offset and known == epoch:
            # Older than the log: the oldest snapshot has the epoch at its start.
            return EndOfEpoch(epoch=oldest.epoch, end_offset=end_offset)
        return EndOfEpoch(epoch=known, end_offset=end_offset)

    def append(self, batch: bytes, *, epoch: int, now_ms: WallMs) -> None:
        """Append one batch that already has its offsets and epoch."""
        self.log.append_as_leader(
            batch, leader_epoch=epoch, now_ms=now_ms, origin=AppendOrigin.RAFT_LEADER
        )

    def append_fetched(self, batches: bytes | memoryview, *, now_ms: WallMs) -> None:
        """Append the leader's batches; ApiError if they do not fit or are damaged."""
        self.log.append_as_follower(batches, now_ms=now_ms)

    def truncate_to(self, offset: int, *, now_ms: WallMs) -> None:
        """Remove what was never committed. If a power failure brings some of it back, that is above
        the recovery point, so the start checks it, and the leader has it truncated again."""
        invariant(offset >= self.log.high_watermark, "a truncation below the high watermark")
        self.log.truncate_to(offset, now_ms=now_ms)

    def read_bytes(self, from_offset: int, size_max: int) -> bytes:
        """Whole batches from `from_offset` on, at least one if there is any."""
        if from_offset >= self.end_offset:
            return b""
        found = self.log.read(
            from_offset, size_max, upper_offset=self.end_offset, min_one_batch=True
        )
        return b"".join(bytes(buffer) for buffer in found.buffers)

    def read_chunk(
        self, snapshot_id: SnapshotId, position: int, size_max: int
    ) -> tuple[int, bytes]:
        """The size of a snapshot's file, and its bytes from `position` on."""
        path = f"{self.directory}/{snapshot_id.file_name}"
        size = self._disk.size(path)
        if not 0 <= position < size:
            return size, b""
        file = self._disk.open(path)
        try:
            return size, file.read(position, min(size_max, size - position))
        finally:
            file.close()

    async def sync(self, up_to: int, *, now_ms: WallMs) -> None:
        """Return when everything before `up_to` is on disk; concurrent calls share an fsync."""
        await self.log.flush_async(up_to, now_ms=now_ms)

    def read(self, from_offset: int) -> Iterator[MetadataBatch]:
        """Every batch that ends after `from_offset`, in order."""
        offset = from_offset
        while offset < self.end_offset:
            found = self.log.read(
                offset, READ_SIZE, upper_offset=self.end_offset, min_one_batch=True
            )
            before = offset
            for buffer in found.buffers:
                for batch in decode_metadata_batches(buffer, self.directory):
                    offset = batch.next_offset
                    yield batch
            invariant(offset > before, f"{self.directory}: reading at {before} makes no progress")

    def commit(self, high_watermark: int) -> None:
        self.log.set_high_watermark(high_watermark)

    def latest_snapshot(self) -> tuple[SnapshotId, Snapshot] | None:
        if not self.snapshots:
            return None
        newest = self.snapshots[-1]
        return newest, read_snapshot(self._disk, f"{self.directory}/{newest.file_name}")

    def start_snapshot(self, snapshot_id: SnapshotId) -> SnapshotWriter:
        invariant(
            snapshot_id.end_offset <= self.log.high_watermark,
            "a snapshot of records that are not committed",
        )
        return SnapshotWriter(self._disk, self.directory, snapshot_id)

    async def finish_snapshot(self, writer: SnapshotWriter, snapshot_id: SnapshotId) -> None:
        await self._background.run(writer.sync)
        await self._background.run(writer.freeze)
        if snapshot_id.end_offset < self.start_offset:
            # A later one was fetched meanwhile, and the log begins at its end.
            self.drop_fetched(snapshot_id)
            return
        self.snapshots = sorted({*self.snapshots, snapshot_id})

    def start_fetched_snapshot(self, snapshot_id: SnapshotId) -> SnapshotWriter:
        return SnapshotWriter(self._disk, self.directory, snapshot_id)

    async def keep_fetched(self, writer: SnapshotWriter) -> None:
        """Sync a fetched snapshot; it is in use once it is installed."""
        await self._background.run(writer.sync)
        await self._background.run(writer.freeze)

    def drop_fetched(self, snapshot_id: SnapshotId) -> None:
        self._disk.remove(f"{self.directory}/{snapshot_id.file_name}", missing_ok=True)

    def install_snapshot(self, snapshot_id: SnapshotId, *, now_ms: WallMs) -> Snapshot:
        """Replace the log and every older snapshot with a fetched snapshot."""
        snapshot = read_snapshot(self._disk, f"{self.directory}/{snapshot_id.file_name}")
        self.log.truncate_fully_and_start_at(snapshot_id.end_offset, now_ms=now_ms)
        self.log.set_high_watermark(snapshot_id.end_offset)
        older, self.snapshots = self.snapshots, [snapshot_id]
        for old in older:
            if old != snapshot_id:
                self._disk.remove(f"{self.directory}/{old.file_name}", missing_ok=True)
        return snapshot

    def clean(self, now_ms: WallMs) -> int:
        """Remove snapshots past their retention, and the log before them; returns how many.

        The newest snapshot always stays. An older one is removed, with the log up to the next one,
        when it is too old, or when the log and the snapshots together are too large.
        """
        removed = 0
        while len(self.snapshots) > 1 and (
            self._total_size() > self._config.max_retention_bytes or self._is_old(now_ms)
        ):
            self._remove_oldest(now_ms)
            removed += 1
        return removed

    def _total_size(self) -> int:
        sizes = (self._disk.size(f"{self.directory}/{s.file_name}") for s in self.snapshots)
        return self.log.size + sum(sizes)

    def _is_old(self, now_ms: WallMs) -> bool:
        oldest = self._disk.mtime_ms(f"{self.directory}/{self.snapshots[0].file_name}")
        return now_ms - oldest > self._config.max_retention_ms

    def _remove_oldest(self, now_ms: WallMs) -> None:
        oldest, following = self.snapshots[0], self.snapshots[1]
        # First the log start offset, then the file: a crash in between leaves a snapshot too many.
        self.log.advance_log_start_offset(following.end_offset)
        self.log.delete_old_segments(now_ms)
        del self.snapshots[0]
        self._disk.remove(f"{self.directory}/{oldest.file_name}", missing_ok=True)
        logger.info("removed metadata snapshot %s: a newer one replaces it", oldest.file_name)

    def load_election(self) -> Election:
        path = f"{self.directory}/{QUORUM_STATE_FILE}"
        if not self._disk.exists(path):
            return Election()
        try:
            return decode_election(self._disk.read_bytes(path))
        except CorruptQuorumState as error:
            raise CorruptQuorumState(
                f"{self.directory}/{error}. Restore the file from a backup; deleting it is safe"
                " only in a quorum of one voter"
            ) from error

    def save_election(self, election: Election, *, kraft_version: int, voters: VoterSet) -> None:
        data = encode_election(election, kraft_version=kraft_version, voter_ids=voters.voters)
        self._disk.write_atomic(f"{self.directory}/{QUORUM_STATE_FILE}", data, sync=True)

    def close(self, *, clean: bool = True) -> None:
        self.log.close(clean=clean)


def _is_outdated(log: Log, newest: SnapshotId) -> bool:
    """Whether the snapshot was fetched, and the node stopped before it replaced the log."""
    end_offset = log.log_end_offset
    if end_offset < newest.end_offset:
        return True
    return end_offset > newest.end_offset and log.latest_epoch < newest.epoch
