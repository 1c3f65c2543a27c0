"""What a partition's log consists of: the state that appending, reading and surgery share.

Invariants: log_start_offset <= high_watermark <= log_end_offset; an epoch is written to its file
before the recovery point passes the epoch's first batch.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from moldau.broker.log.context import LogContext, LogDirState
from moldau.broker.log.flusher import Flusher
from moldau.broker.log.machine.checkpoints import encode_epochs
from moldau.broker.log.machine.inventory import LogFacts
from moldau.broker.log.machine.leader_epochs import LeaderEpochs
from moldau.broker.log.machine.names import LEADER_EPOCH_CHECKPOINT
from moldau.broker.log.machine.producer_state import ProducerStates
from moldau.broker.log.machine.validation import ValidationRules
from moldau.broker.log.producer_snapshots import ProducerSnapshots
from moldau.broker.log.segments import Segments
from moldau.times import WallMs

if TYPE_CHECKING:
    from moldau.broker.config import LogConfig

NEVER_CUT = 2**63 - 1


class LogState:
    __slots__ = (
        "checkpointed_epoch",
        "config",
        "context",
        "dir",
        "dir_state",
        "flush_messages",
        "flusher",
        "has_retired_files",
        "high_watermark",
        "is_future",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "lowest_cut",
        "opened_from",
        "partition",
        "producers",
        "rules",
        "segment_bytes",
        "segment_ms",
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
        self.checkpointed_epoch = leader_epochs.latest_epoch
        self.producers = producers
        self.snapshots = snapshots
        self.is_future = is_future
        # Where the log was cut since the cleaner last looked: what it had read from there
        # on may have been replaced since.
        self.lowest_cut = NEVER_CUT
        # The inventory's facts, if the log was opened from them: still true if nothing changes.
        self.opened_from: LogFacts | None = None
        # Whether files of former segments may still be in the directory, until they are removed.
        self.has_retired_files = False
        self.flusher = Flusher(
            context, dir_state, directory, segments, recovery_point, now_ms, new_files
        )
        for name in unsynced_files:
            self.flusher.note_new_file(name)
        if unwritten_epochs:
            self._note_unwritten_epochs()
        # Replaying the batches has found transactions that were decided long ago.
        producers.on_high_watermark(self.high_watermark)
        self._take_config(config)

    def __repr__(self) -> str:
        return f"Log({self.dir}, {self.log_start_offset}..{self.log_end_offset})"

    @property
    def recovery_point(self) -> int:
        return self.flusher.recovery_point

    @property
    def recovery_checkpoint(self) -> int:
        """The recovery point for the checkpoint file."""
        return self.flusher.checkpoint

    @property
    def first_offset(self) -> int:
        """Where the first segment begins, which may be before the start of the log."""
        return self.segments.first.base_offset

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

    @property
    def flush_due(self) -> bool:
        """At least flush.messages records wait to be synced."""
        return self.log_end_offset - self.flusher.recovery_point >= self.flush_messages

    @property
    def needs_sync(self) -> bool:
        """Whether anything of the log is not known to be durable."""
        return self.flusher.needs_sync(self.log_end_offset)

    def update_config(self, config: LogConfig) -> None:
        self._take_config(config)
        for segment in self.segments:
            segment.index_interval_bytes = config.index_interval_bytes
        self.segments.active.resize_indexes(config.segment_index_bytes)

    def _take_config(self, config: LogConfig) -> None:
        self.config = config
        self.rules = _rules_for(config)
        self.segment_bytes = config.segment_bytes
        # Only closed segments are compacted, so max.compaction.lag.ms bounds their age too.
        self.segment_ms = (
            min(config.segment_ms, config.max_compaction_lag_ms)
            if config.compact
            else config.segment_ms
        )
        self.flush_messages = config.flush_messages

    # Epochs -------------------------------------------------------------------------

    def assign_epoch(self, leader_epoch: int, start_offset: int) -> None:
        """A new leader epoch begins at `start_offset`, the end of the log.

        It stays in memory until the epoch has a batch: a start drops epochs without one, and the
        next leader has a later epoch. So a node that becomes the leader of ten thousand partitions
        writes no file for those that get no records.
        """
        self.leader_epochs.assign(leader_epoch, start_offset)

    def checkpoint_epoch(self, leader_epoch: int, start_offset: int) -> None:
        """The batch at `start_offset` is the first of its epoch."""
        self.leader_epochs.assign(leader_epoch, start_offset)
        self.checkpointed_epoch = leader_epoch
        self._note_unwritten_epochs()

    def _note_unwritten_epochs(self) -> None:
        # Written with the next flush, before the recovery point passes the epoch's batches:
        # above it they are found in the batches again after a crash.
        self.flusher.note_unwritten(LEADER_EPOCH_CHECKPOINT, self._encoded_epochs)

    def _encoded_epochs(self) -> bytes:
        return encode_epochs(self.leader_epochs.entries())

    def write_epochs(self) -> None:
        """Write the epochs now, when some were removed; the next flush makes that durable."""
        path = f"{self.dir}/{LEADER_EPOCH_CHECKPOINT}"
        try:
            self.context.disk.write_atomic(path, self._encoded_epochs(), sync=False)
        except OSError as error:
            raise self.dir_state.fail(f"writing {path}", error) from error
        self.checkpointed_epoch = self.leader_epochs.latest_epoch
        self.flusher.note_new_file(LEADER_EPOCH_CHECKPOINT)

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

    def set_log_start(self, offset: int) -> None:
        self.log_start_offset = offset
        if self.high_watermark < offset:
            self.high_watermark = offset
        if self.leader_epochs.truncate_from_start(offset):
            self.write_epochs()
        self.producers.on_log_start(offset)


@lru_cache(maxsize=1024)
def _rules_for(config: LogConfig) -> ValidationRules:
    # Thousands of partitions share a few configurations.
    return ValidationRules.from_log_config(config)
