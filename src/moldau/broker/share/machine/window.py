"""The records of a share partition that are in flight: from its start offset (SPSO) to its end.

They are stored as batches, in the sizes in which they were first acquired, and a batch as runs of
neighbouring records with the same state. A batch that is acquired and acknowledged as a whole stays
one run; only records that are treated differently are split off, so the cost depends on the number
of decisions and not on the number of records.

Invariants, checked where they could break: batches are in order and do not overlap; the runs of a
batch are contiguous; the start offset never goes back and never passes the end offset; between
`0` and `count` records are complete. `Run` checks its own: an acquired run has a holder, a deadline
and at least one delivery; an available or finished one has no holder and no deadline; states move
only as `record_states.TRANSITIONS` allows.

Further invariants, which would cost a walk over all runs and are checked by tests: the first batch
begins at `start_offset` and the last one ends before `end_offset`; the first run is not finished
(the start would have moved past it); `complete_count` is the number of records in the window that
are acknowledged or archived, including those whose state is still being written.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from operator import attrgetter
from typing import Final

from moldau.broker.coordinator.share.machine.values import StateBatch
from moldau.broker.share.machine.record_states import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    REVERTIBLE,
    TERMINAL,
    RecordState,
    check_move,
)
from moldau.invariant import InvariantError

NOBODY: Final = ""


class StateChange:
    """Runs whose new state counts once it is written; until then no other change may include
    them."""

    __slots__ = ("batches", "delivery_count_limit", "runs")

    def __init__(self, delivery_count_limit: int) -> None:
        self.delivery_count_limit = delivery_count_limit
        self.runs: list[Run] = []
        self.batches: list[StateBatch] = []

    def __bool__(self) -> bool:
        return bool(self.batches)


class Run:
    """Neighbouring records with one state. While `change` is set, `state` is not yet written and
    `member_id` and `deadline_ms` are those of the acquisition it may fall back to."""

    __slots__ = ("change", "deadline_ms", "delivery_count", "first", "last", "member_id", "state")

    def __init__(
        self,
        first: int,
        last: int,
        state: RecordState,
        delivery_count: int,
        member_id: str = NOBODY,
        deadline_ms: int | None = None,
        change: StateChange | None = None,
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        self.deadline_ms = deadline_ms
        self.change = change

    def __repr__(self) -> str:
        pending = "..." if self.change is not None else ""
        return (
            f"{self.first}-{self.last}:{self.state.name}{pending}"
            f" x{self.delivery_count} {self.member_id}"
        )

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    @property
    def is_free(self) -> bool:
        return self.state is AVAILABLE and self.change is None

    @property
    def is_finished(self) -> bool:
        return self.change is None and self.state in TERMINAL

    # Moves. The state and what goes with it change together, and only here.

    def acquire(self, member_id: str, deadline_ms: int) -> None:
        """Lock the records for a member: one more delivery."""
        if not self.is_free or not member_id:
            raise InvariantError(f"{self!r} cannot be acquired by {member_id!r}")
        self.state = ACQUIRED
        self.delivery_count += 1
        self.member_id = member_id
        self.deadline_ms = deadline_ms

    def begin(self, state: RecordState, change: StateChange) -> None:
        """Take the state that the holder decided on; it counts once `change` is written."""
        self._check_held()
        check_move(self.state, state)
        self.state = state
        self.change = change

    def written(self) -> None:
        """The pending state counts."""
        if self.change is None:
            raise InvariantError(f"{self!r} has no pending state")
        self.change = None
        self._unlock()

    def revert(self) -> None:
        """The pending state could not be written: the records are acquired as before."""
        if self.change is None or self.state not in REVERTIBLE:
            raise InvariantError(f"{self!r} has no pending state to revert")
        self.change = None
        self.state = ACQUIRED
        self._check_held()

    def free(self, delivery_count_limit: int) -> None:
        """End the lock without an acknowledgement."""
        self._check_held()
        self.state = ARCHIVED if self.delivery_count >= delivery_count_limit else AVAILABLE
        self._unlock()

    def archive(self) -> None:
        """Deliver the records no more; a pending state is void."""
        check_move(self.state, ARCHIVED)
        self.state = ARCHIVED
        self.change = None
        self._unlock()

    def _unlock(self) -> None:
        self.member_id = NOBODY
        self.deadline_ms = None

    def _check_held(self) -> None:
        if (
            self.state is not ACQUIRED
            or self.change is not None
            or self.delivery_count < 1
            or not self.member_id
            or self.deadline_ms is None
        ):
            raise InvariantError(f"{self!r} has no holder")

    def cut(self, offset: int) -> Run:
        """Keep the records before `offset`; the rest, which has the same state."""
        if not self.first < offset <= self.last:
            raise InvariantError(f"{self!r} cannot be cut at {offset}")
        rest = Run(
            offset,
            self.last,
            self.state,
            self.delivery_count,
            self.member_id,
            self.deadline_ms,
            self.change,
        )
        if self.change is not None:
            self.change.runs.append(rest)
        self.last = offset - 1
        return rest


_FIRST = attrgetter("first")


class InFlightBatch:
    """Records acquired together for the first time; `size` is how many they were.

    A gap is what a stored state does not mention: how it was acquired is unknown.
    """

    __slots__ = ("is_gap", "runs", "size")

    def __init__(self, runs: list[Run], *, is_gap: bool = False) -> None:
        self.runs = runs
        self.is_gap = is_gap
        self.size = runs[-1].last - runs[0].first + 1

    @property
    def first(self) -> int:
        return self.runs[0].first

    @property
    def last(self) -> int:
        return self.runs[-1].last

    def index_of(self, offset: int) -> int:
        """The index of the run that holds `offset`, or of the first one if it is before them."""
        if len(self.runs) == 1:
            return 0
        return max(0, bisect_right(self.runs, offset, key=_FIRST) - 1)

    def runs_in(self, first: int, last: int) -> list[Run]:
        """The runs that have records between two offsets."""
        runs = self.runs
        if len(runs) == 1:
            return runs if runs[0].first <= last and runs[0].last >= first else []
        found = runs[self.index_of(first) : self.index_of(last) + 1]
        return [run for run in found if run.last >= first and run.first <= last]

    def carve(self, first: int, last: int) -> list[Run]:
        """Runs that hold exactly the batch's records between two offsets, cut off if need be."""
        runs = self.runs
        index = self.index_of(first)
        if runs[index].first < first <= runs[index].last:
            runs.insert(index + 1, runs[index].cut(first))
        end = self.index_of(last)
        if runs[end].first <= last < runs[end].last:
            runs.insert(end + 1, runs[end].cut(last + 1))
        return self.runs_in(first, last)

    def join_finished(self, run: Run) -> None:
        """Join a finished run with its finished neighbours: records that are acknowledged one by
        one would otherwise leave a run each."""
        runs = self.runs
        index = self.index_of(run.first)
        begin = end = index
        while begin > 0 and runs[begin - 1].is_finished and runs[begin - 1].state is run.state:
            begin -= 1
        while (
            end + 1 < len(runs) and runs[end + 1].is_finished and runs[end + 1].state is run.state
        ):
            end += 1
        if begin != end:
            runs[begin].last = runs[end].last
            del runs[begin + 1 : end + 1]


class Window:
    """The records in flight of one share partition; see the module."""

    __slots__ = (
        "_firsts",
        "_may_have_free",
        "batches",
        "complete_count",
        "deadline_ms",
        "end_offset",
        "start_offset",
    )

    def __init__(self, start_offset: int) -> None:
        self.start_offset = start_offset
        self.end_offset = start_offset
        """The first offset that has never been in flight (one past Kafka's SPEO)."""
        self.batches: list[InFlightBatch] = []
        self.complete_count = 0
        self.deadline_ms: int | None = None
        """No lock ends before this; None if there is no lock."""
        self._firsts: list[int] = []
        self._may_have_free = False

    @property
    def count(self) -> int:
        """Records in flight, gaps included, as Kafka counts them against the limit."""
        return self.end_offset - self.start_offset

    # Finding.

    def overlapping(self, first: int, last: int) -> list[InFlightBatch]:
        """The batches that have records between two offsets."""
        begin = bisect_right(self._firsts, first) - 1
        if begin < 0 or self.batches[begin].last < first:
            begin += 1
        return self.batches[begin : bisect_right(self._firsts, last, begin)]

    def runs(self) -> Iterator[Run]:
        for batch in self.batches:
            yield from batch.runs

    def next_fetch_offset(self) -> int:
        """The first record that can be acquired: in the window, else at its end."""
        if self._may_have_free:
            for batch in self.batches:
                for run in batch.runs:
                    if run.state is AVAILABLE and run.change is None:
                        return run.first
            self._may_have_free = False
        return self.end_offset

    def reach(self, offset: int, count: int) -> int:
        """The last offset that can be among `count` records that are acquired from `offset` on;
        batches are not split."""
        if offset < self.end_offset:
            for batch in self.overlapping(offset, self.end_offset):
                for run in batch.runs:
                    if run.state is AVAILABLE and run.change is None and run.last >= offset:
                        count -= run.last - max(run.first, offset) + 1
                if count <= 0:
                    return batch.last
        return self.end_offset + count - 1

    # Changing.

    def add(self, batch: InFlightBatch) -> None:
        """Add a batch after the others."""
        first = batch.runs[0].first
        if first < self.end_offset:
            raise InvariantError(f"a batch from {first} begins before the end {self.end_offset}")
        if not self.batches:
            # The log has no records between the previous start and here.
            self.start_offset = first
        self.batches.append(batch)
        self._firsts.append(first)
        self.end_offset = batch.runs[-1].last + 1

    def note_free(self) -> None:
        self._may_have_free = True

    def note_deadline(self, deadline_ms: int) -> None:
        if self.deadline_ms is None or deadline_ms < self.deadline_ms:
            self.deadline_ms = deadline_ms

    def count_change(self, run: Run, was_terminal: bool) -> None:
        """Update `complete_count` after the state of a run changed."""
        is_terminal = run.state in TERMINAL
        if is_terminal != was_terminal:
            # A run that the start has passed in the meantime is no longer counted.
            count = max(0, run.last - max(run.first, self.start_offset) + 1)
            self.complete_count += count if is_terminal else -count

    def archive(self, first: int, last: int, state: RecordState) -> bool:
        """Archive the records between two offsets that are in `state`; whether there were any."""
        any_archived = False
        for batch in self.overlapping(first, last):
            if not any(run.state is state for run in batch.runs_in(first, last)):
                continue
            for run in list(batch.carve(first, last)):
                if run.state is state:
                    run.archive()
                    self.complete_count += run.count
                    any_archived = True
        return any_archived

    def advance(self) -> bool:
        """Move the start past finished records; whether it moved."""
        before = self.start_offset
        dropped = 0
        for batch in self.batches:
            finished = 0
            for run in batch.runs:
                if not run.is_finished:
                    break
                finished += 1
                self.complete_count -= run.count
            if finished < len(batch.runs):
                if finished:
                    del batch.runs[:finished]
                break
            dropped += 1
        if dropped:
            del self.batches[:dropped]
            del self._firsts[:dropped]
        if self.batches:
            self.start_offset = self._firsts[0] = self.batches[0].first
        else:
            self.start_offset = self.end_offset
        self._check_bounds(before)
        return self.start_offset != before

    def _check_bounds(self, start_before: int) -> None:
        if not (
            start_before <= self.start_offset <= self.end_offset
            and 0 <= self.complete_count <= self.count
        ):
            raise InvariantError(
                f"the start moved from {start_before} to {self.start_offset}, the end is"
                f" {self.end_offset}, {self.complete_count} records are complete"
            )

    def drop_below(self, offset: int) -> None:
        """The log now begins at `offset`: drop the records before it, whatever their state."""
        if offset <= self.start_offset:
            return
        for batch in self.overlapping(self.start_offset, offset - 1):
            for run in list(batch.carve(self.start_offset, offset - 1)):
                if run.state in TERMINAL:
                    self.complete_count -= run.count
            batch.runs = [run for run in batch.runs if run.first >= offset]
        self.batches = [batch for batch in self.batches if batch.runs]
        self._firsts = [batch.first for batch in self.batches]
        self.end_offset = max(self.end_offset, offset)
        self.start_offset = offset
        # Finished records may follow, or a hole that compaction has left.
        self.advance()

    def load(self, batches: tuple[StateBatch, ...]) -> None:
        """Restore a stored state. Records in the window that it does not mention were at most
        acquired, so they are available as if for the first time."""
        for stored in sorted(batches):
            first = max(stored.first_offset, self.end_offset)
            if first > stored.last_offset:
                continue
            if first > self.end_offset:
                missing = Run(self.end_offset, first - 1, AVAILABLE, 0)
                self.add(InFlightBatch([missing], is_gap=True))
            state = _STORED_STATES.get(stored.delivery_state, AVAILABLE)
            run = Run(first, stored.last_offset, state, stored.delivery_count)
            self.add(InFlightBatch([run]))
            self.count_change(run, was_terminal=False)
        self._may_have_free = True
        self.advance()


_STORED_STATES: Final = {
    int(ACKNOWLEDGED): ACKNOWLEDGED,
    int(RecordState.ARCHIVING): ARCHIVED,
    int(ARCHIVED): ARCHIVED,
}
