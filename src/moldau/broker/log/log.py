"""One partition's log: what producers append, followers copy and consumers read.

Invariants: log_start_offset <= high_watermark <= log_end_offset; offsets below log_end_offset are
in whole, checked batches on disk (though durable only below the recovery point); a batch is in the
file before any state refers to it. Everything here runs on the loop's thread and only makes system
calls that the page cache answers; fsync and unlinking go to the background. An I/O error takes the
log directory offline, and every later call raises LogDirFailure.
"""

from __future__ import annotations

import asyncio
import uuid

from moldau.broker.log import copying, reader, surgery
from moldau.broker.log.appending import append_marker, check_producer, write
from moldau.broker.log.context import AppendInfo, AppendOrigin
from moldau.broker.log.machine.checkpoints import encode_partition_metadata
from moldau.broker.log.machine.names import PARTITION_METADATA
from moldau.broker.log.machine.producer_state import Verification
from moldau.broker.log.machine.validation import validate_batch
from moldau.broker.log.reader import ReadResult, TimestampOffset
from moldau.broker.log.segment import Segment
from moldau.broker.log.state import LogState
from moldau.broker.log.transaction_index import AbortedTransaction
from moldau.invariant import invariant
from moldau.times import WALL_ZERO, WallMs
from moldau.wire.constants import Buffer
from moldau.wire.errors import ApiError, ErrorCode

__all__ = ["AppendInfo", "AppendOrigin", "Log", "ReadResult"]

EPOCH_MAX = 2**31 - 1


class Log(LogState):
    """What the parts of the broker call; each operation is in the module that it delegates to."""

    __slots__ = ()

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
            self.rules,
            offset=self.log_end_offset,
            now_ms=now_ms,
            leader_epoch=leader_epoch,
            produce_version=produce_version,
            from_client=origin is AppendOrigin.CLIENT,
        )
        producer_id = valid.producer_id
        if producer_id >= 0:
            if valid.is_control:
                return append_marker(self, valid.buffer, now_ms, transaction_version)
            duplicate = check_producer(self, valid, origin, guard)
            if duplicate is not None:
                return duplicate
        write(
            self,
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

    # Segments -----------------------------------------------------------------------

    def roll(self, now_ms: WallMs) -> None:
        """Close the active segment and go on in a new one."""
        try:
            surgery.roll(self, self.log_end_offset, now_ms)
        except OSError as error:
            raise self.dir_state.fail(f"rolling {self.dir}", error) from error

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
        surgery.restart_at(self, offset, log_start_offset, now_ms)

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

    def settle(self) -> None:
        """Write what `close` would write, ahead of it; nothing is synced, and appends go on."""
        surgery.guarded(self, "settling", surgery.settle)

    def close(self, *, clean: bool = True, sync: bool = True) -> None:
        """Let go of all files; `clean` leaves them as a clean stop should, except that without
        `sync` the caller has to make them durable."""
        self.flusher.close()
        if not clean or self.offline:
            for segment in self.segments:
                segment.release()
            return
        surgery.guarded(self, "closing", surgery.close, sync)
