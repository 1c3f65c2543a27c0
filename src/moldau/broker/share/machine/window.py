"""The records of a share partition that are in flight: from its start offset (SPSO) to its end.

They are kept as batches, in the sizes in which they were first acquired, and a batch as runs of
neighbouring records with the same fate. A batch that is acquired and acknowledged as a whole stays
one run; only what is treated differently is cut off, so costs follow the number of decisions and
not the number of records.

What always holds: batches are in order and do not overlap; the runs of a batch touch each other;
the first batch begins at `start_offset` and the last one ends before `end_offset`; the first run is
not finished (or it would have been left behind); `complete_count` is the number of records in the
window that are acknowledged or archived, those whose state is still being written included.

    AVAILABLE -> ACQUIRED -> ACKNOWLEDGED | ARCHIVED | AVAILABLE       AVAILABLE -> ARCHIVED
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from enum import IntEnum
from operator import attrgetter
from typing import Final

from moldau.broker.coordinator.share.machine.values import StateBatch

NOBODY: Final = ""


class RecordState(IntEnum):
    """Kafka's numbers, which are also those of the stored state."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4


AVAILABLE: Final = RecordState.AVAILABLE
ACQUIRED: Final = RecordState.ACQUIRED
ACKNOWLEDGED: Final = RecordState.ACKNOWLEDGED
ARCHIVED: Final = RecordState.ARCHIVED
TERMINAL: Final = frozenset({ACKNOWLEDGED, ARCHIVED})


class StateChange:
    """Runs whose new state counts once it is written; until then nobody else may touch them."""

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

    def cut(self, offset: int) -> Run:
        """Keep what is before `offset`; the rest, which shares everything with this."""
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

    A gap is what a stored state does not mention: nobody knows how it was acquired.
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
        """Make one of a finished run and its finished neighbours: records that are acknowledged
        one by one would otherwise leave a run each."""
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
    """See the module."""

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
        """The last offset that can be among `count` records which are acquired from `offset` on;
        batches are not torn apart."""
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
        """Add a batch behind the others."""
        first = batch.runs[0].first
        if not self.batches:
            # Whatever is between here and the former start does not exist in the log.
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
        """Keep `complete_count` true after the state of a run changed."""
        is_terminal = run.state in TERMINAL
        if is_terminal != was_terminal:
            # A run that the start has passed meanwhile is not counted any more.
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
                    run.state = ARCHIVED
                    run.member_id = NOBODY
                    run.deadline_ms = None
                    run.change = None
                    self.complete_count += run.count
                    any_archived = True
        return any_archived

    def advance(self) -> bool:
        """Leave finished records at the start behind; whether the start moved."""
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
        return self.start_offset != before

    def drop_below(self, offset: int) -> None:
        """The log now begins at `offset`: forget what was before, whatever its state."""
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
        # Right behind may be finished records, or a hole that compaction has left.
        self.advance()

    def load(self, batches: tuple[StateBatch, ...]) -> None:
        """Take over a stored state. What it does not mention within the window was acquired at
        most, so it is available as if for the first time."""
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
