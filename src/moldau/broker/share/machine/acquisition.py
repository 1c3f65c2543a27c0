"""Which records a fetch acquires, and how many.

Records in flight that became available again come first, then new ones. In the batch-optimized
mode limits are soft: a batch of the log is not split, so that members rarely share one. In the
record-limit mode (KIP-1206) they are exact.

Records that failed often are delivered in smaller and smaller parts, and for their last delivery
one by one: if one of them makes members crash, the others of its batch are not archived with it.

Invariants: only available records are acquired (`Run.acquire`), each acquisition counts as one
delivery, and what is acquired is in ascending order without overlaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from moldau.broker.share.machine.record_states import AVAILABLE
from moldau.broker.share.machine.window import InFlightBatch, Run, Window
from moldau.times import ElapsedMs

_THROTTLE_FROM_MIN = 2


class ShareSettings(NamedTuple):
    """The part of the group's configuration that concerns records in flight."""

    delivery_count_limit: int = 5
    partition_max_record_locks: int = 2000
    record_lock_duration_ms: int = 30_000
    renew_acknowledge_enable: bool = True


class Span(NamedTuple):
    """A batch of the log, and where it is in what was read."""

    base_offset: int
    last_offset: int
    position: int = 0
    size: int = 0


class AcquiredRecords(NamedTuple):
    first_offset: int
    last_offset: int
    delivery_count: int


class Wanted(NamedTuple):
    """What a member requests of one partition."""

    member_id: str
    max_records: int
    batch_size: int
    record_limit: bool = False


class Acquisition:
    """One fetch of one partition; used once."""

    __slots__ = ("_deadline_ms", "_left", "_settings", "_spans", "_wanted", "_window", "acquired")

    def __init__(
        self,
        window: Window,
        wanted: Wanted,
        spans: Sequence[Span],
        settings: ShareSettings,
        now_ms: ElapsedMs,
    ) -> None:
        self._window = window
        self._wanted = wanted
        self._spans = spans
        self._settings = settings
        self._deadline_ms = now_ms + settings.record_lock_duration_ms
        self._left = 0
        self.acquired: list[AcquiredRecords] = []

    def run(self, fetch_offset: int) -> None:
        """Acquire from what was read at `fetch_offset`."""
        window = self._window
        base, last = self._spans[0].base_offset, self._spans[-1].last_offset
        if last < window.start_offset or self._wanted.max_records <= 0:
            return
        last = self._limit(fetch_offset, last)
        if self._left <= 0:
            return
        if fetch_offset < base and window.archive(fetch_offset, base - 1, AVAILABLE):
            # The log no longer has these records.
            window.advance()
        for batch in window.overlapping(base, last):
            if self._left <= 0 or not self._take_from(batch, base, last):
                break
        else:
            first = max(base, window.end_offset)
            if self._left > 0 and first <= last:
                self._take_new(first, last)
        if self.acquired:
            window.note_deadline(self._deadline_ms)

    def _limit(self, fetch_offset: int, last: int) -> int:
        """Decide how many records to acquire; the last offset that may be among them."""
        window = self._window
        room = self._settings.partition_max_record_locks - window.count
        self._left = min(self._wanted.max_records, room)
        if self._left <= 0 and fetch_offset < window.end_offset:
            # No room for new records, but those already in flight need none.
            self._left = min(self._wanted.max_records, window.end_offset - fetch_offset)
            return min(last, window.end_offset - 1)
        return last

    # Records in flight.

    def _take_from(self, batch: InFlightBatch, base: int, last: int) -> bool:
        """Acquire what is available in one batch; False if the fetch must end with it."""
        run = batch.runs[0]
        if len(batch.runs) == 1 and not run.is_free:
            return True
        throttled = self._is_throttled(batch, base, last)
        if throttled and self.acquired:
            return False
        if (
            len(batch.runs) == 1
            and not throttled
            and base <= run.first
            and run.last <= last
            and (run.count <= self._left or not (self._wanted.record_limit or batch.is_gap))
        ):
            self._take(run)
            self.acquired.append(AcquiredRecords(run.first, run.last, run.delivery_count))
            self._left -= run.count
            return True
        before = len(self.acquired)
        self._take_part(batch, base, last)
        return not throttled or len(self.acquired) == before

    def _is_throttled(self, batch: InFlightBatch, first: int, last: int) -> bool:
        throttle_from = _throttle_from(self._settings.delivery_count_limit)
        return any(
            run.delivery_count >= throttle_from and run.is_free
            for run in batch.runs_in(first, last)
        )

    def _take_part(self, batch: InFlightBatch, first: int, last: int) -> None:
        limit = self._settings.delivery_count_limit
        throttle_from = _throttle_from(limit)
        parts: list[AcquiredRecords] = []
        taken = 0
        cap: int | None = None
        for run in [run for run in batch.runs_in(first, last) if run.is_free]:
            delivery_count = run.delivery_count
            is_last_delivery = limit > 2 and delivery_count >= limit - 1
            if is_last_delivery and taken:
                break
            if delivery_count >= throttle_from and cap is None:
                cap = max(1, batch.size >> (delivery_count - throttle_from + 1))
            begin = max(run.first, first)
            available = min(run.last, last) - begin + 1
            count = min(available, self._allowed(batch, begin, available, taken))
            if is_last_delivery:
                count = 1
            ends = is_last_delivery or count < available
            if cap is not None and taken < cap <= taken + count:
                count = cap - taken
                ends = True
            if count <= 0:
                break
            part = batch.carve(begin, begin + count - 1)[0]
            self._take(part)
            _append(parts, AcquiredRecords(part.first, part.last, part.delivery_count))
            taken += count
            if ends or (self._wanted.record_limit and taken >= self._left):
                break
        self.acquired += parts
        self._left -= taken

    def _allowed(self, batch: InFlightBatch, begin: int, available: int, taken: int) -> int:
        left = self._left - taken
        if self._wanted.record_limit:
            return left
        if batch.is_gap:
            # It may be large, and is treated as new records are.
            return self._whole_batches(begin + left - 1) - begin + 1 if left > 0 else 0
        return available

    def _take(self, run: Run) -> None:
        run.acquire(self._wanted.member_id, self._deadline_ms)

    # New records.

    def _take_new(self, first: int, last: int) -> None:
        wanted, left = self._wanted, self._left
        if last - first >= left:
            last = min(last, self._whole_batches(first + left - 1))
        if wanted.record_limit and last - first >= left:
            # The rest of the log's batch is in flight too, so that the next fetch begins with it.
            acquired_last = first + left - 1
            self._window.add(
                InFlightBatch(
                    [
                        self._new_run(first, acquired_last),
                        Run(acquired_last + 1, last, AVAILABLE, 0),
                    ]
                )
            )
            self._window.note_free()
            self._acquired_new(first, acquired_last)
            return
        if not wanted.record_limit and last - first >= wanted.batch_size:
            for span in self._spans:
                base = span.base_offset
                if base > last:
                    break
                if base > first and base - first >= wanted.batch_size:
                    self._add(first, base - 1)
                    first = base
        self._add(first, last)

    def _add(self, first: int, last: int) -> None:
        self._window.add(InFlightBatch([self._new_run(first, last)]))
        self._acquired_new(first, last)

    def _acquired_new(self, first: int, last: int) -> None:
        self.acquired.append(AcquiredRecords(first, last, 1))
        self._left -= last - first + 1

    def _new_run(self, first: int, last: int) -> Run:
        run = Run(first, last, AVAILABLE, 0)
        self._take(run)
        return run

    def _whole_batches(self, offset: int) -> int:
        """The end of the log's batch that holds `offset`."""
        for span in self._spans:
            if span.base_offset <= offset <= span.last_offset:
                return span.last_offset
        return offset


def _throttle_from(delivery_count_limit: int) -> int:
    """The delivery count from which records are delivered in smaller parts: half the limit."""
    return max(_THROTTLE_FROM_MIN, -(-delivery_count_limit // 2))


def _append(parts: list[AcquiredRecords], part: AcquiredRecords) -> None:
    if parts:
        former = parts[-1]
        if (
            former.last_offset + 1 == part.first_offset
            and former.delivery_count == part.delivery_count
        ):
            parts[-1] = AcquiredRecords(former.first_offset, part.last_offset, part.delivery_count)
            return
    parts.append(part)


def without(acquired: list[AcquiredRecords], spans: Sequence[Span]) -> list[AcquiredRecords]:
    """Acquired records less those of some batches of the log."""
    for span in spans:
        left: list[AcquiredRecords] = []
        for each in acquired:
            if each.last_offset < span.base_offset or each.first_offset > span.last_offset:
                left.append(each)
                continue
            if each.first_offset < span.base_offset:
                left.append(each._replace(last_offset=span.base_offset - 1))
            if each.last_offset > span.last_offset:
                left.append(each._replace(first_offset=span.last_offset + 1))
        acquired = left
    return acquired
