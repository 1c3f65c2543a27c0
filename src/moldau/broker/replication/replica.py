"""The local replica of a partition that is led elsewhere, as its fetcher sees it.

Invariants: fetches that wait at this follower are woken by every change of what is committed here,
after it can be read. The high watermark goes back only when the log is truncated.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.broker.replication.partition import Partition
from moldau.times import WallMs
from moldau.wire.constants import Buffer


class FollowerReplica:
    """Appends and truncates as the fetcher decides."""

    __slots__ = ("_now_ms", "partition")

    def __init__(self, partition: Partition, now_ms: Callable[[], WallMs]) -> None:
        """`now_ms` is wall time: it goes into files."""
        self.partition = partition
        self._now_ms = now_ms

    @property
    def log_start_offset(self) -> int:
        return self.partition.log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self.partition.log.log_end_offset

    @property
    def high_watermark(self) -> int:
        return self.partition.log.high_watermark

    @property
    def latest_epoch(self) -> int:
        return self.partition.log.latest_epoch

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        return self.partition.log.end_offset_for_epoch(epoch)

    def append_fetched(self, records: Buffer, *, leader_epoch: int) -> int:
        log, now_ms = self.partition.log, self._now_ms()
        # There are later epochs if the leader's log was truncated and written again after the
        # request (KAFKA-18723).
        info = log.append_as_follower(records, now_ms=now_ms, epoch_max=leader_epoch)
        if info.flush_due:
            # Not in the background: the next fetch means that this replica has the records.
            log.flush(now_ms=now_ms)
        return info.size

    def truncate_fetched(self, offset: int) -> None:
        self.partition.log.truncate_to(offset, now_ms=self._now_ms())

    def restart_at(self, offset: int) -> None:
        self.partition.log.truncate_fully_and_start_at(offset, now_ms=self._now_ms())
        self.partition.waiters.notify_changed()

    def take_watermarks(self, *, high_watermark: int, log_start_offset: int) -> None:
        log = self.partition.log
        high_watermark = min(high_watermark, log.log_end_offset)
        changed = high_watermark > log.high_watermark
        if changed:
            log.set_high_watermark(high_watermark)
        # The leader deletes only what is committed, but this replica may not know yet that it is.
        if min(log_start_offset, log.high_watermark) > log.log_start_offset:
            log.advance_log_start_offset(min(log_start_offset, log.high_watermark))
            changed = True
        if changed and self.partition.waiters.changes:
            self.partition.waiters.notify_changed()
