"""One partition's log: what producers append, followers copy and consumers read.

What always holds: log_start_offset <= high_watermark <= log_end_offset; offsets below
log_end_offset are in whole, checked batches on disk (though durable only below the
recovery point); a batch is in the file before any state speaks of it. Everything here
runs on the loop's thread and only makes system calls that the page cache answers; fsync
and unlinking go to the background. An I/O error takes the log directory offline, and
every later call raises LogDirFailure.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from moldau.broker.log import copying, reader, surgery
from moldau.broker.log.context import AppendInfo, AppendOrigin, LogContext, LogDirState
from moldau.broker.log.disk import Buffer
from moldau.broker.log.flusher import Flusher
from moldau.broker.log.machine.checkpoints import encode_epochs, encode_partition_metadata
from moldau.broker.log.machine.leader_epochs import LeaderEpochs
from moldau.broker.log.machine.names import LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA
from moldau.broker.log.machine.producer_state import ProducerStates, Verification
from moldau.broker.log.machine.validation import ValidatedBatch, ValidationRules, validate_batch
from moldau.broker.log.producer_snapshots import ProducerSnapshots
from moldau.broker.log.reader import ReadResult, TimestampOffset
from moldau.broker.log.replay import end_marker, record_batch
from moldau.broker.log.segment import Segment
from moldau.broker.log.segments import Segments
from moldau.broker.log.transaction_index import AbortedTransaction
from moldau.invariant import invariant
from moldau.times import WALL_ZERO, WallMs
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.records import BatchHeader, read_header

if TYPE_CHECKING:
    from moldau.broker.config import LogConfig

__all__ = ["AppendInfo", "AppendOrigin", "Log", "ReadResult"]

NEVER_CUT = 2**63 - 1
EPOCH_MAX = 2**31 - 1


class Log:
    __slots__ = (
        "_checkpointed_epoch",
        "_flush_messages",
        "_rules",
        "_segment_bytes",
        "_segment_ms",
        "config",
        "context",
        "dir",
        "dir_state",
        "flusher",
        "high_watermark",
        "is_future",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "lowest_cut",
        "partition",
        "producers",
        "segments",
        "snapshots",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        context: LogContext,
        dir_state: LogDirState,
        directory: str,
        topic: str,
        partition: int,
        config: LogConfig,
        *,
        segments: Segments,
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
        high_watermark: int,
        leader_epochs: LeaderEpochs,
        producers: ProducerStates,
        snapshots: ProducerSnapshots,
        topic_id: uuid.UUID | None,
        now_ms: WallMs,
        is_future: bool = False,
        new_files: bool = True,
        unsynced_files: Iterable[str] = (),
        unwritten_epochs: bool = False,
    ) -> None:
        self.context = context
        self.dir_state = dir_state
        self.dir = directory
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.segments = segments
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.high_watermark = min(max(high_watermark, log_start_offset), log_end_offset)
        self.leader_epochs = leader_epochs
        # The latest epoch that its file has, or will have after the next flush.
        self._checkpointed_epoch = leader_epochs.latest_epoch
        self.producers = producers
        self.snapshots = snapshots
        self.is_future = is_future
        # Where the log was cut since the cleaner last looked: what it had read from there
        # on may have been written anew since.
        self.lowest_cut = NEVER_CUT
        self.flusher = Flusher(
            context, dir_state, directory, segments, recovery_point, now_ms, new_files
        )
        for name in unsynced_files:
            self.flusher.note_new_file(name)
        if unwritten_epochs:
            self._note_unwritten_epochs()
        # Going through the batches again has found transactions that were decided long ago.
        producers.on_high_watermark(self.high_watermark)
        self.update_config(config)

    def __repr__(self) -> str:
        return f"Log({self.dir}, {self.log_start_offset}..{self.log_end_offset})"

    # What callers ask --------------------------------------------------------------

    @property
    def recovery_point(self) -> int:
        return self.flusher.recovery_point

    @property
    def latest_epoch(self) -> int:
        """The latest leader epoch, of the last batch or assigned since; -1 if none is known."""
        return self.leader_epochs.latest_epoch

    @property
    def size(self) -> int:
        return self.segments.size

    @property
    def last_stable_offset(self) -> int:
        """Below it every transaction is decided: what read_committed consumers may see."""
        first = self.producers.first_unstable_offset
        if first is None or first >= self.high_watermark:
            return self.high_watermark
        return max(first, self.log_start_offset)

    @property
    def offline(self) -> bool:
        return self.dir_state.failure is not None

    def update_config(self, config: LogConfig) -> None:
        self.config = config
        self._rules = _rules_for(config)
        self._segment_bytes = config.segment_bytes
        # Only closed segments are compacted, so max.compaction.lag.ms bounds their age too.
        self._segment_ms = (
            min(config.segment_ms, config.max_compaction_lag_ms)
            if config.compact
            else config.segment_ms
        )
        self._flush_messages = config.flush_messages
        for segment in self.segments:
            segment.index_interval_bytes = config.index_interval_bytes
        self.segments.active.resize_indexes(config.segment_index_bytes)

    # Appending ----------------------------------------------------------------------

    def append_as_leader(
        self,
        batch: Buffer,
        *,
        leader_epoch: int,
        now_ms: WallMs,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        produce_version: int = 13,
        transaction_version: int = 0,
        guard: Verification | None = None,
    ) -> AppendInfo:
        """Append one batch at the end, giving it its offsets and leader epoch in place.

        `guard` proves that a transactional batch belongs to an open transaction, None asks
        for no proof. Raises ApiError when the batch is refused; nothing has changed then.
        """
        if self.dir_state.failure is not None:
            raise self.dir_state.failure.again()
        if origin is AppendOrigin.RAFT_LEADER:
            return copying.append_stamped(self, memoryview(batch), now_ms)
        valid = validate_batch(
            batch,
            self._rules,
            offset=self.log_end_offset,
            now_ms=now_ms,
            leader_epoch=leader_epoch,
            produce_version=produce_version,
            from_client=origin is AppendOrigin.CLIENT,
        )
        producer_id = valid.producer_id
        if producer_id >= 0:
            if valid.is_control:
                return self._append_marker(valid.buffer, now_ms, transaction_version)
            duplicate = self._check_producer(valid, origin, guard)
            if duplicate is not None:
                return duplicate
        self._write(
            valid.buffer,
            valid.size,
            valid.base_offset,
            valid.last_offset,
            valid.max_timestamp,
            leader_epoch,
            now_ms,
        )
        if producer_id >= 0:
            self.producers.record_batch(
                producer_id,
                valid.producer_epoch,
                valid.last_sequence,
                first_offset=valid.base_offset,
                last_offset=valid.last_offset,
                timestamp=valid.max_timestamp,
                transactional=valid.is_transactional,
            )
        return AppendInfo(
            valid.base_offset,
            valid.last_offset,
            valid.log_append_time_ms,
            self.log_start_offset,
            False,
            self.flush_due,
            valid.size,
        )

    def _check_producer(
        self, valid: ValidatedBatch, origin: AppendOrigin, guard: Verification | None
    ) -> AppendInfo | None:
        """Refuse what is out of order; the former answer when the batch is a repetition."""
        from_client = origin is AppendOrigin.CLIENT
        if from_client:
            duplicate = self.producers.find_duplicate(
                valid.producer_id, valid.producer_epoch, valid.base_sequence, valid.last_sequence
            )
            if duplicate is not None:
                return AppendInfo(
                    duplicate.first_offset,
                    duplicate.last_offset,
                    duplicate.timestamp,
                    self.log_start_offset,
                    True,
                    # It may come again before the flush that the first one waits for has ended.
                    duplicate.last_offset + 1 - self.flusher.recovery_point >= self._flush_messages,
                    0,
                )
        self.producers.check(
            valid.producer_id,
            valid.producer_epoch,
            valid.base_sequence,
            transactional=valid.is_transactional,
            check_sequence=from_client,
            guard=guard,
        )
        return None

    def _append_marker(
        self, batch: memoryview, now_ms: WallMs, transaction_version: int
    ) -> AppendInfo:
        header = read_header(batch)
        marker = end_marker(header, batch)
        if marker is not None:
            self.producers.check_marker(
                header.producer_id, header.producer_epoch, marker[1], transaction_version
            )
        self.write_recorded(batch, header, now_ms)
        return AppendInfo(
            header.base_offset,
            header.last_offset,
            -1,
            self.log_start_offset,
            False,
            self.flush_due,
            header.size,
        )

    def append_as_follower(
        self, batches: Buffer, *, now_ms: WallMs, epoch_max: int = EPOCH_MAX
    ) -> AppendInfo:
        """Append what the leader sent: whole batches with their offsets and epochs, up to the
        first of an epoch after `epoch_max`.

        A cut-off last batch is left out. Raises ApiError when a batch is damaged or does
        not continue the log; batches before it are in the log then.
        """
        if self.dir_state.failure is not None:
            raise self.dir_state.failure.again()
        return copying.append_fetched(self, memoryview(batches), now_ms, epoch_max)

    def write_recorded(self, batch: memoryview, header: BatchHeader, now_ms: WallMs) -> None:
        """Put a batch that has its place at the end of the log; see `copying`."""
        self._write(
            batch,
            header.size,
            header.base_offset,
            header.last_offset,
            header.max_timestamp,
            header.partition_leader_epoch,
            now_ms,
        )
        aborted = record_batch(self.producers, header, batch)
        if aborted is not None:
            try:
                self.segments.active.txn_index.append(aborted)
            except OSError as error:
                raise self.dir_state.fail(f"writing {self.dir}", error) from error

    def _write(
        self,
        batch: Buffer,
        size: int,
        base_offset: int,
        last_offset: int,
        max_timestamp: int,
        leader_epoch: int,
        now_ms: WallMs,
    ) -> None:
        """Put one checked batch into the active segment, rolling it first when due."""
        if size > self._segment_bytes:
            raise ApiError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{size} bytes are more than segment.bytes={self._segment_bytes}",
            )
        segment = self.segments.active
        try:
            if segment.should_roll(
                size=size,
                last_offset=last_offset,
                max_timestamp=max_timestamp,
                now_ms=now_ms,
                segment_bytes=self._segment_bytes,
                segment_ms=self._segment_ms,
            ):
                segment = self._roll(base_offset, now_ms)
            if leader_epoch != self._checkpointed_epoch:
                self._checkpoint_epoch(leader_epoch, base_offset)
            segment.append(batch, size, base_offset, last_offset, max_timestamp)
        except OSError as error:
            raise self.dir_state.fail(f"writing {self.dir}", error) from error
        self.log_end_offset = self.producers.map_end_offset = last_offset + 1

    @property
    def flush_due(self) -> bool:
        """More than flush.messages records wait to be synced."""
        return self.log_end_offset - self.flusher.recovery_point >= self._flush_messages

    def assign_epoch(self, leader_epoch: int, start_offset: int) -> None:
        """A new leader epoch begins at `start_offset`, the end of the log.

        Kept in memory until the epoch has a batch: a start drops epochs without one, and whoever
        leads then has a later epoch. So a node that comes to lead ten thousand partitions writes
        no file for those that nobody writes to.
        """
        self.leader_epochs.assign(leader_epoch, start_offset)

    def _checkpoint_epoch(self, leader_epoch: int, start_offset: int) -> None:
        self.leader_epochs.assign(leader_epoch, start_offset)
        self._checkpointed_epoch = leader_epoch
        self._note_unwritten_epochs()

    def _note_unwritten_epochs(self) -> None:
        # Written with the next flush, before the recovery point passes the epoch's batches:
        # above it they are found in the batches again after a crash.
        self.flusher.note_unwritten(LEADER_EPOCH_CHECKPOINT, self._encoded_epochs)

    def _encoded_epochs(self) -> bytes:
        return encode_epochs(self.leader_epochs.entries())

    def write_epochs(self) -> None:
        """Write the epochs now, when some were forgotten; the next flush makes that durable."""
        path = f"{self.dir}/{LEADER_EPOCH_CHECKPOINT}"
        try:
            self.context.disk.write_atomic(path, self._encoded_epochs(), sync=False)
        except OSError as error:
            raise self.dir_state.fail(f"writing {path}", error) from error
        self._checkpointed_epoch = self.leader_epochs.latest_epoch
        self.flusher.note_new_file(LEADER_EPOCH_CHECKPOINT)

    # Reading ------------------------------------------------------------------------

    def read(
        self, offset: int, max_bytes: int, *, upper_offset: int, min_one_batch: bool
    ) -> ReadResult:
        """Batches from the one that holds `offset` on, all below `upper_offset`."""
        if self.dir_state.failure is not None:
            raise self.dir_state.failure.again()
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic}-{self.partition}: offset {offset} is not in "
                f"{self.log_start_offset}..{self.log_end_offset}",
            )
        if offset >= upper_offset:
            return reader.EMPTY
        try:
            return reader.read(
                self.segments,
                offset,
                max_bytes,
                upper_offset=upper_offset,
                log_end_offset=self.log_end_offset,
                min_one_batch=min_one_batch,
            )
        except OSError as error:
            raise self.dir_state.fail(f"reading {self.dir}", error) from error

    def aborted_in(
        self, from_offset: int, data: ReadResult, upper_offset: int
    ) -> list[AbortedTransaction]:
        """Aborted transactions that a reader of `data`, which is not empty, must know."""
        return self.aborted_transactions(
            from_offset, reader.end_of(self.segments, data, upper_offset)
        )

    def aborted_transactions(self, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
        """Aborted transactions with data in [from_offset, to_offset), by first offset."""
        found: list[AbortedTransaction] = []
        try:
            start = max(self.segments.index_for(from_offset), 0)
            for index in range(start, len(self.segments)):
                if self.segments[index].txn_index.collect(from_offset, to_offset, found):
                    break
        except OSError as error:
            raise self.dir_state.fail(f"reading {self.dir}", error) from error
        found.sort(key=lambda entry: entry.first_offset)
        return found

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record with at least this timestamp, if there is one."""
        try:
            return reader.offset_for_timestamp(self.segments, timestamp, self.log_start_offset)
        except OSError as error:
            raise self.dir_state.fail(f"reading {self.dir}", error) from error

    def offset_of_max_timestamp(self) -> TimestampOffset | None:
        try:
            return reader.offset_of_max_timestamp(self.segments)
        except OSError as error:
            raise self.dir_state.fail(f"reading {self.dir}", error) from error

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(greatest epoch <= `epoch`, its end offset), (-1, -1) when it is not known."""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    # Watermarks ---------------------------------------------------------------------

    def set_high_watermark(self, offset: int) -> int:
        """Move the high watermark, kept between log start and log end; where it is now."""
        if offset < self.log_start_offset:
            offset = self.log_start_offset
        elif offset > self.log_end_offset:
            offset = self.log_end_offset
        self.high_watermark = offset
        self.producers.on_high_watermark(offset)
        return offset

    def advance_log_start_offset(self, offset: int) -> bool:
        """Forget records below `offset` (DeleteRecords, the leader's log start).

        False when the log starts there or later already. Segments go at the next retention.
        """
        if offset > self.high_watermark:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"log start {offset} would be above the high watermark {self.high_watermark}",
            )
        if offset <= self.log_start_offset:
            return False
        self.set_log_start(offset)
        return True

    def set_log_start(self, offset: int) -> None:
        self.log_start_offset = offset
        if self.high_watermark < offset:
            self.high_watermark = offset
        if self.leader_epochs.truncate_from_start(offset):
            self.write_epochs()
        self.producers.on_log_start(offset)

    # Segments -----------------------------------------------------------------------

    def roll(self, now_ms: WallMs) -> None:
        """Close the active segment and go on in a new one."""
        try:
            self._roll(self.log_end_offset, now_ms)
        except OSError as error:
            raise self.dir_state.fail(f"rolling {self.dir}", error) from error

    def _roll(self, base_offset: int, now_ms: WallMs) -> Segment:
        return surgery.roll(self, base_offset, now_ms)

    def delete_old_segments(self, now_ms: WallMs) -> int:
        """Apply retention; how many segments went."""
        return surgery.guarded(self, "retention in", surgery.delete_old_segments, now_ms)

    def truncate_to(self, offset: int, *, now_ms: WallMs) -> bool:
        """Drop everything at or above `offset`; False when there was nothing there."""
        return surgery.guarded(self, "truncating", surgery.truncate_to, offset, now_ms)

    def truncate_fully_and_start_at(
        self, offset: int, *, now_ms: WallMs, log_start_offset: int | None = None
    ) -> None:
        """Drop everything and continue at `offset`."""
        surgery.guarded(
            self,
            "truncating",
            surgery.truncate_fully_and_start_at,
            offset,
            log_start_offset,
            now_ms,
        )

    def replace_segments(self, new: list[Segment], old: list[Segment]) -> None:
        """Put cleaned segments in the place of those they were made of, crash-safely."""
        surgery.guarded(self, "replacing segments in", surgery.replace_segments, new, old)

    # Durability ---------------------------------------------------------------------

    def flush(self, up_to: int | None = None, *, now_ms: WallMs = WALL_ZERO) -> None:
        """Make everything below `up_to` durable, in place: it blocks for an fsync."""
        self.flusher.flush_now(self.log_end_offset if up_to is None else up_to, now_ms)

    def request_flush(self, *, now_ms: WallMs) -> None:
        """Make everything appended so far durable in the background."""
        self.flusher.request(self.log_end_offset, now_ms)

    async def flush_async(self, up_to: int | None = None, *, now_ms: WallMs = WALL_ZERO) -> None:
        """Make everything below `up_to` durable; flushes of one log share fsyncs."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def waiter(error: BaseException | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        target = self.log_end_offset if up_to is None else up_to
        self.flusher.request(target, now_ms, waiter)
        await future

    # The directory ------------------------------------------------------------------

    def set_topic_id(self, topic_id: uuid.UUID) -> None:
        """Write `partition.metadata` for a log that has none."""
        if self.topic_id is not None:
            invariant(
                self.topic_id == topic_id, f"{self.dir}: topic id {topic_id}, not {self.topic_id}"
            )
            return
        try:
            self.context.disk.write_atomic(
                f"{self.dir}/{PARTITION_METADATA}", encode_partition_metadata(topic_id), sync=False
            )
        except OSError as error:
            raise self.dir_state.fail(f"writing {self.dir}", error) from error
        self.topic_id = topic_id
        self.flusher.note_new_file(PARTITION_METADATA)

    def rename_dir(self, directory: str, *, sync: bool = False) -> None:
        """Rename the partition's directory, durably with `sync`; readers are not disturbed."""
        surgery.guarded(self, "renaming", surgery.rename_dir, directory, sync)

    @property
    def needs_sync(self) -> bool:
        """Whether anything of the log is not known to be durable."""
        return self.flusher.needs_sync(self.log_end_offset)

    def close(self, *, clean: bool = True, sync: bool = True) -> None:
        """Let go of all files; `clean` leaves them as a clean stop should, except that without
        `sync` the caller has to make them durable."""
        self.flusher.close()
        if not clean or self.offline:
            for segment in self.segments:
                segment.release()
            return
        surgery.guarded(self, "closing", surgery.close, sync)


@lru_cache(maxsize=1024)
def _rules_for(config: LogConfig) -> ValidationRules:
    # Thousands of partitions share a few configurations.
    return ValidationRules.from_log_config(config)
