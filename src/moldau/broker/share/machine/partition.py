"""One partition as one share group consumes it: which member holds which records, and the outcome.

Decided here: acquisition, acknowledgement, expiry of locks, and the group's start offset. The
machine has no clock and waits for nothing; a change that must be stored before it counts is
returned as a `StateChange`, and the shell reports the outcome with `complete`.

Invariants: a record has at most one holder; a record that its holder did not acknowledge is not
made available again once it was delivered as often as the delivery count limit allows; the start
offset never passes a record that is not acknowledged or archived; acknowledgements of one call take
effect together or not at all. The states are in record_states.py, the records in window.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from moldau.broker.coordinator.share.machine.values import ShareState, StateBatch
from moldau.broker.share.machine.acquisition import (
    AcquiredRecords,
    Acquisition,
    ShareSettings,
    Span,
    Wanted,
    without,
)
from moldau.broker.share.machine.record_states import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    TERMINAL,
    RecordState,
)
from moldau.broker.share.machine.window import Run, StateChange, Window
from moldau.times import ElapsedMs
from moldau.wire.errors import ApiError, ErrorCode

GAP: Final = 0
ACCEPT: Final = 1
RELEASE: Final = 2
REJECT: Final = 3
RENEW: Final = 4

_STATE_OF: Final = {GAP: ARCHIVED, ACCEPT: ACKNOWLEDGED, RELEASE: AVAILABLE, REJECT: ARCHIVED}


class AckBatch(NamedTuple):
    """Acknowledgements of neighbouring records: one type for all, or one for each."""

    first_offset: int
    last_offset: int
    types: Sequence[int]


class SharePartition:
    """See the module. Every call takes the group's current settings."""

    __slots__ = ("state_epoch", "window")

    def __init__(self, state: ShareState) -> None:
        """`state` is as stored, its start offset known."""
        self.state_epoch = state.state_epoch
        self.window = Window(state.start_offset)
        self.window.load(state.batches)

    @property
    def start_offset(self) -> int:
        return self.window.start_offset

    @property
    def deadline_ms(self) -> int | None:
        """When to call `expire`; None while no record is locked."""
        return self.window.deadline_ms

    @property
    def delivery_complete_count(self) -> int:
        return self.window.complete_count

    # Acquiring.

    def next_fetch_offset(self) -> int:
        return self.window.next_fetch_offset()

    def can_acquire(self, settings: ShareSettings) -> bool:
        window = self.window
        return (
            window.count < settings.partition_max_record_locks
            or window.next_fetch_offset() < window.end_offset
        )

    def reach(self, base_offset: int, max_records: int) -> int:
        """How far a fetch has to read that reads batches from `base_offset` on: `acquire` never
        goes beyond the batch with this offset, or the last of `max_records` from the base if that
        is further."""
        return self.window.reach(base_offset, max_records)

    def acquire(
        self,
        wanted: Wanted,
        fetch_offset: int,
        spans: Sequence[Span],
        settings: ShareSettings,
        now_ms: ElapsedMs,
        aborted: Sequence[Span] = (),
    ) -> list[AcquiredRecords]:
        """Acquire records for a member from what was read at `fetch_offset`.

        `aborted` are those of the batches read that an aborted transaction wrote: they are
        archived.
        """
        if not spans:
            return []
        acquisition = Acquisition(self.window, wanted, spans, settings, now_ms)
        acquisition.run(fetch_offset)
        acquired = acquisition.acquired
        if aborted and acquired:
            for span in aborted:
                self.window.archive(span.base_offset, span.last_offset, ACQUIRED)
            self.window.advance()
            acquired = without(acquired, aborted)
        return acquired

    # Acknowledging.

    def acknowledge(
        self,
        member_id: str,
        batches: Iterable[AckBatch],
        settings: ShareSettings,
        now_ms: ElapsedMs,
    ) -> StateChange:
        """Begin the state change that a member requests for its records; an empty change is
        already complete.

        Raises INVALID_RECORD_STATE for a record the member does not hold, INVALID_REQUEST for one
        that was never in flight; then nothing has changed.
        """
        change = StateChange(settings.delivery_count_limit)
        renewed: list[Run] = []
        try:
            for batch in batches:
                # Records before the start are finished or deleted, whatever the member requests.
                if batch.last_offset >= self.window.start_offset:
                    self._check_in_flight(batch)
                    for first, last, kind in _parts(batch):
                        _check_type(kind, settings)
                        for run in self._held(member_id, first, last):
                            if kind == RENEW:
                                renewed.append(run)
                            else:
                                self._begin(run, _STATE_OF[kind], change)
        except ApiError:
            self.complete(change, now_ms, written=False)
            raise
        for run in renewed:
            run.deadline_ms = now_ms + settings.record_lock_duration_ms
            # The configured duration may have become shorter in the meantime.
            self.window.note_deadline(run.deadline_ms)
        return change

    def _check_in_flight(self, batch: AckBatch) -> None:
        first = max(batch.first_offset, self.window.start_offset)
        found = self.window.overlapping(first, batch.last_offset)
        if not self.window.batches:
            raise ApiError(ErrorCode.INVALID_RECORD_STATE, "no record is in flight")
        if not found or found[-1].last < batch.last_offset:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"offsets {batch.first_offset} to {batch.last_offset} are past the acquired"
                " records: acknowledge only what was fetched",
            )

    def _held(self, member_id: str, first: int, last: int) -> list[Run]:
        """Runs of exactly these records, INVALID_RECORD_STATE unless the member holds them all."""
        first = max(first, self.window.start_offset)
        held: list[Run] = []
        for batch in self.window.overlapping(first, last):
            for run in batch.runs_in(first, last):
                if run.state is not ACQUIRED or run.member_id != member_id:
                    raise ApiError(
                        ErrorCode.INVALID_RECORD_STATE,
                        f"record {max(first, run.first)} is not held by this member: it was"
                        " acknowledged before, or its lock has ended",
                    )
            held += batch.carve(first, last)
        return held

    def release(self, member_id: str, settings: ShareSettings) -> StateChange:
        """Begin to release all records that a member still holds."""
        change = StateChange(settings.delivery_count_limit)
        for run in self.window.runs():
            if run.state is ACQUIRED and run.member_id == member_id:
                self._begin(run, AVAILABLE, change)
        return change

    def _begin(self, run: Run, state: RecordState, change: StateChange) -> None:
        if state is AVAILABLE and run.delivery_count >= change.delivery_count_limit:
            state = ARCHIVED
        run.begin(state, change)
        self.window.count_change(run, was_terminal=False)
        change.runs.append(run)
        _note(change.batches, run)

    def complete(self, change: StateChange, now_ms: ElapsedMs, *, written: bool) -> bool:
        """A change was written, or could not be and is reverted; whether records became available
        or the start moved, so that waiting fetches should look again."""
        window = self.window
        any_available = False
        for run in change.runs:
            if run.change is not change:
                continue  # It was archived in the meantime.
            if written:
                run.written()
            else:
                self._revert(run, change, now_ms)
            if run.state is AVAILABLE:
                window.note_free()
                any_available = True
        if written:
            self._join(change)
        return window.advance() or any_available

    def _revert(self, run: Run, change: StateChange, now_ms: ElapsedMs) -> None:
        was_terminal = run.state in TERMINAL
        run.revert()
        if run.deadline_ms is not None and run.deadline_ms > now_ms:
            self.window.note_deadline(run.deadline_ms)
        else:
            # The lock has expired while the outcome was unknown.
            run.free(change.delivery_count_limit)
        self.window.count_change(run, was_terminal)

    def _join(self, change: StateChange) -> None:
        for run in change.runs:
            if run.is_finished:
                for batch in self.window.overlapping(run.first, run.first):
                    if len(batch.runs) > 1:
                        batch.join_finished(run)

    # Time.

    def expire(self, settings: ShareSettings, now_ms: ElapsedMs) -> list[StateBatch]:
        """Release the records whose locks have expired; the state to store.

        Unlike acknowledgements this counts immediately: no response depends on it, and if it
        cannot be stored, a later leader only counts fewer deliveries.
        """
        window = self.window
        expired: list[StateBatch] = []
        next_ms: int | None = None
        for run in window.runs():
            if run.state is not ACQUIRED or run.deadline_ms is None:
                continue
            if run.deadline_ms > now_ms:
                next_ms = run.deadline_ms if next_ms is None else min(next_ms, run.deadline_ms)
                continue
            run.free(settings.delivery_count_limit)
            window.count_change(run, was_terminal=False)
            _note(expired, run)
        window.deadline_ms = next_ms
        if expired:
            window.note_free()
            window.advance()
        return expired

    def move_log_start(self, log_start_offset: int) -> None:
        """The log now begins later: drop the records before it, acknowledged or not."""
        self.window.drop_below(log_start_offset)


def _check_type(kind: int, settings: ShareSettings) -> None:
    if kind == RENEW:
        if not settings.renew_acknowledge_enable:
            raise ApiError(
                ErrorCode.INVALID_RECORD_STATE,
                "Renewing acquisition locks is not enabled for the group.",
            )
    elif kind not in _STATE_OF:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"unknown acknowledge type {kind}")


def _parts(batch: AckBatch) -> Iterator[tuple[int, int, int]]:
    """(first offset, last offset, type) for each stretch of one type."""
    types = batch.types
    if len(types) == 1:
        yield batch.first_offset, batch.last_offset, types[0]
        return
    begin = 0
    for index in range(1, len(types) + 1):
        if index == len(types) or types[index] != types[begin]:
            yield batch.first_offset + begin, batch.first_offset + index - 1, types[begin]
            begin = index


def _note(batches: list[StateBatch], run: Run) -> None:
    """Add the state of a run, joined with the previous one if it continues that."""
    if batches:
        former = batches[-1]
        if (
            former.last_offset + 1 == run.first
            and former.delivery_state == run.state
            and former.delivery_count == run.delivery_count
        ):
            batches[-1] = former._replace(last_offset=run.last)
            return
    batches.append(StateBatch(run.first, run.last, int(run.state), run.delivery_count))
