"""A share partition against the obvious model: one entry per record.

Members fetch, acknowledge, renew, vanish; locks end, writes fail, leaders change. After every step
both agree on every record, and what a user relies on holds.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from moldau.broker.coordinator.share.machine.values import ShareState, StateBatch
from moldau.broker.share.machine.acquisition import ShareSettings, Span, Wanted
from moldau.broker.share.machine.partition import ACCEPT, GAP, REJECT, RELEASE, RENEW, AckBatch
from moldau.broker.share.machine.partition import SharePartition as Machine
from moldau.broker.share.machine.record_states import RecordState
from moldau.broker.share.machine.window import StateChange
from moldau.wire.errors import ApiError
from support.examples import examples

MEMBERS = ("anna", "boris", "clara")
LOCK_MS = 1000
LOG_END = 60

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = (
    RecordState.AVAILABLE,
    RecordState.ACQUIRED,
    RecordState.ACKNOWLEDGED,
    RecordState.ARCHIVED,
)
FINISHED = (ACKNOWLEDGED, ARCHIVED)
OUTCOME = {GAP: ARCHIVED, ACCEPT: ACKNOWLEDGED, RELEASE: AVAILABLE, REJECT: ARCHIVED}


@dataclass
class Record:
    state: RecordState = AVAILABLE
    count: int = 0
    member: str = ""
    deadline: int = 0
    pending: int | None = None
    """The number of the write that decides of the state."""


class Store:
    """What a persister keeps: for each record the entry with most deliveries and decisions."""

    def __init__(self) -> None:
        self.start = 0
        self.records: dict[int, tuple[int, int]] = {}

    def write(self, start: int, batches: list[StateBatch]) -> None:
        self.start = max(self.start, start)
        for batch in batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                entry = (batch.delivery_count, batch.delivery_state)
                self.records[offset] = max(self.records.get(offset, entry), entry)
        self.records = {k: v for k, v in self.records.items() if k >= self.start}

    def read(self) -> ShareState:
        batches = [
            StateBatch(offset, offset, state, count)
            for offset, (count, state) in sorted(self.records.items())
        ]
        return ShareState(0, self.start, tuple(batches))


class SharePartitionModel(RuleBasedStateMachine):
    @initialize(limit=st.integers(2, 6), locks=st.integers(3, 40), data=st.data())
    def begin(self, limit: int, locks: int, data: Any) -> None:
        self.settings = ShareSettings(limit, locks, LOCK_MS, True)
        self.now = 0
        self.store = Store()
        self.machine = Machine(ShareState(0, 0))
        self.records: dict[int, Record] = {}
        self.log_start = 0
        self.changes: dict[int, StateChange] = {}
        self.spans: list[Span] = []
        offset = 0
        while offset < LOG_END:
            last = offset + data.draw(st.integers(0, 7), label="batch")
            if data.draw(st.integers(0, 5), label="kept"):
                self.spans.append(Span(offset, last))
            offset = last + 1
        self.spans.append(Span(offset, offset + 3))
        self.aborted = data.draw(st.lists(st.sampled_from(self.spans), max_size=3), label="aborted")
        self.start_seen = 0
        self.number = 0

    # What happens.

    @rule(
        member=st.sampled_from(MEMBERS),
        max_records=st.integers(1, 20),
        batch_size=st.integers(1, 10),
        record_limit=st.booleans(),
        read_count=st.integers(1, 4),
    )
    def fetch(
        self,
        member: str,
        max_records: int,
        batch_size: int,
        record_limit: bool,
        read_count: int,
    ) -> None:
        machine = self.machine
        if not machine.can_acquire(self.settings):
            return
        offset = machine.next_fetch_offset()
        if offset < self.log_start:
            machine.move_log_start(self.log_start)
            self._forget_below(self.log_start)
            offset = machine.next_fetch_offset()
        spans = [span for span in self.spans if span.last_offset >= offset][:read_count]
        if not spans:
            return
        gone = [span for span in spans if span in self.aborted]
        twin = deepcopy(machine)
        base = spans[0].base_offset
        reach = max(machine.reach(base, max_records), base + max_records - 1)
        near = spans[: 1 + sum(span.last_offset < reach for span in spans)]
        before = {offset: record.state for offset, record in self.records.items()}
        acquired = machine.acquire(
            Wanted(member, max_records, batch_size, record_limit),
            offset,
            near,
            self.settings,
            self.now,
            [span for span in gone if span in near],
        )
        assert acquired == twin.acquire(
            Wanted(member, max_records, batch_size, record_limit),
            offset,
            spans,
            self.settings,
            self.now,
            gone,
        ), "what is out of reach makes no difference"
        offsets = [
            each for part in acquired for each in range(part.first_offset, part.last_offset + 1)
        ]
        assert len(offsets) == len(set(offsets))
        if record_limit:
            assert len(offsets) <= max_records
        for part in acquired:
            for each in range(part.first_offset, part.last_offset + 1):
                record = self.records.setdefault(each, Record())
                assert record.pending is None
                assert before.get(each, AVAILABLE) is AVAILABLE, "held by somebody else"
                assert part.delivery_count == record.count + 1 <= self.settings.delivery_count_limit
                assert not any(s.base_offset <= each <= s.last_offset for s in gone)
                record.state, record.count, record.member = ACQUIRED, record.count + 1, member
                record.deadline = self.now + LOCK_MS
        self._learn(spans, gone, offset)

    def _learn(self, spans: list[Span], gone: list[Span], fetch_offset: int) -> None:
        """Take over what only the machine decides: how far it looked, and what it archived
        because the log has it no longer or nobody may see it."""
        window = self.machine.window
        hidden = {o for s in gone for o in range(s.base_offset, s.last_offset + 1)}
        missing = set(range(fetch_offset, spans[0].base_offset))
        for run in window.runs():
            for offset in range(run.first, run.last + 1):
                record = self.records.setdefault(offset, Record())
                if record.state is not run.state:
                    assert run.state is ARCHIVED
                    assert offset in hidden or offset in missing
                    record.state, record.pending = ARCHIVED, None
        for offset in hidden | missing:
            if offset < window.start_offset:
                record = self.records.setdefault(offset, Record())
                assert record.state is not ACQUIRED or offset in hidden
                record.state, record.pending = ARCHIVED, None

    @rule(
        member=st.sampled_from(MEMBERS),
        data=st.data(),
        kinds=st.lists(st.sampled_from((GAP, ACCEPT, RELEASE, REJECT, RENEW)), min_size=1),
        write=st.sampled_from(("now", "fails", "later")),
    )
    def acknowledge(self, member: str, data: Any, kinds: list[int], write: str) -> None:
        held = [o for o, r in self.records.items() if self._holds(member, r, o)]
        if held and data.draw(st.integers(0, 4), label="own"):
            first = data.draw(st.sampled_from(sorted(held)), label="first")
            last = first
            while last + 1 in held and data.draw(st.booleans(), label="more"):
                last += 1
        else:
            first = data.draw(st.integers(0, LOG_END), label="first")
            last = first + data.draw(st.integers(0, 5), label="count")
        types = kinds[:1] if len(kinds) == 1 else (kinds * 70)[: last - first + 1]
        batch = AckBatch(first, last, types)
        start = self.machine.start_offset
        mine = range(max(first, start), last + 1)
        allowed = all(
            self._holds(member, self.records[o], o) for o in mine if o in self.records
        ) and (last < start or last in self.records)
        try:
            change = self.machine.acknowledge(member, [batch], self.settings, self.now)
        except ApiError:
            assert not allowed
            self._overdue()
            return
        assert allowed or not any(o in self.records for o in mine)
        self.number += 1
        number = self.number
        for offset in mine:
            kind = types[0] if len(types) == 1 else types[offset - first]
            record = self.records.get(offset)
            if record is None:
                continue
            if kind == RENEW:
                record.deadline = self.now + LOCK_MS
            else:
                self._decide(record, OUTCOME[kind], number)
        self._store(number, change, write)

    @rule(member=st.sampled_from(MEMBERS), write=st.sampled_from(("now", "fails", "later")))
    def leave(self, member: str, write: str) -> None:
        change = self.machine.release(member, self.settings)
        self.number += 1
        number = self.number
        for offset, record in self.records.items():
            if self._holds(member, record, offset):
                self._decide(record, AVAILABLE, number)
        self._store(number, change, write)

    @precondition(lambda self: self.changes)
    @rule(data=st.data(), written=st.booleans())
    def write_ends(self, data: Any, written: bool) -> None:
        number = data.draw(st.sampled_from(sorted(self.changes)))
        self._complete(number, written)

    @rule(ms=st.integers(1, 1500))
    def time_passes(self, ms: int) -> None:
        self.now += ms
        deadline = self.machine.deadline_ms
        held = [r.deadline for r in self.records.values() if r.state is ACQUIRED]
        assert deadline is None or not held or deadline <= min(held)
        assert deadline is not None or not held
        if deadline is not None and deadline <= self.now:
            batches = self.machine.expire(self.settings, self.now)
            self._overdue()
            self.store.write(self.machine.start_offset, batches)

    @rule(ahead=st.sampled_from((0, 0, 0, 0, 1, 7)))
    def log_start_moves(self, ahead: int) -> None:
        self.log_start = min(self.log_start + ahead, LOG_END)

    @rule()
    def leader_changes(self) -> None:
        """Everything but what was written is forgotten."""
        self.changes.clear()
        self.machine = Machine(self.store.read())
        window = self.machine.window
        in_flight = {o for run in window.runs() for o in range(run.first, run.last + 1)}
        # Whatever is skipped was finished before, and known to be so.
        self.records = {o: r for o, r in self.records.items() if o < window.start_offset}
        for offset in self.records:
            if offset >= self.store.start:
                count, state = self.store.records[offset]
                self.records[offset] = Record(RecordState(state), count)
        for offset in in_flight:
            count, state = self.store.records.get(offset, (0, AVAILABLE))
            self.records[offset] = Record(RecordState(state), count)
        # A start that was never written is come to again.
        self.start_seen = window.start_offset

    # The model.

    def _holds(self, member: str, record: Record, offset: int) -> bool:
        return (
            record.state is ACQUIRED
            and record.pending is None
            and record.member == member
            and offset >= self.machine.start_offset
        )

    def _decide(self, record: Record, state: RecordState, number: int) -> None:
        if state is AVAILABLE and record.count >= self.settings.delivery_count_limit:
            state = ARCHIVED
        record.state, record.pending = state, number

    def _store(self, number: int, change: StateChange, write: str) -> None:
        self.changes[number] = change
        if write != "later":
            self._complete(number, write == "now")

    def _complete(self, number: int, written: bool) -> None:
        change = self.changes.pop(number)
        if written:
            self.store.write(self.machine.start_offset, change.batches)
        self.machine.complete(change, self.now, written=written)
        for record in self.records.values():
            if record.pending != number:
                continue
            record.pending = None
            if not written:
                record.state = ACQUIRED
            else:
                record.member = ""
        if not written:
            self._overdue(number)

    def _overdue(self, number: int | None = None) -> None:
        for record in self.records.values():
            if record.state is ACQUIRED and record.pending is None and record.deadline <= self.now:
                over = record.count >= self.settings.delivery_count_limit
                record.state, record.member = ARCHIVED if over else AVAILABLE, ""

    def _forget_below(self, offset: int) -> None:
        for each, record in self.records.items():
            if each < offset:
                record.state, record.pending, record.member = ARCHIVED, None, ""

    # What always holds.

    @invariant()
    def both_agree(self) -> None:
        if not hasattr(self, "machine"):
            return
        window = self.machine.window
        seen = set()
        complete = 0
        for run in window.runs():
            for offset in range(run.first, run.last + 1):
                seen.add(offset)
                record = self.records[offset]
                complete += run.state in FINISHED
                assert run.state is record.state, offset
                # How often a finished record was delivered is of no interest any more.
                assert run.is_finished or run.delivery_count == record.count, offset
                assert (run.change is None) == (record.pending is None)
                if run.state is ACQUIRED:
                    assert (run.member_id, run.deadline_ms) == (record.member, record.deadline)
        for offset, record in self.records.items():
            if offset not in seen:
                # Nothing is lost: what is not in flight was finished, and finally.
                assert offset < window.start_offset, (offset, record)
                assert record.state in FINISHED, (offset, record)
                assert record.pending is None, (offset, record)
        assert window.complete_count == complete
        assert self.machine.start_offset >= self.start_seen
        self.start_seen = self.machine.start_offset

    @invariant()
    def the_window_is_in_order(self) -> None:
        if not hasattr(self, "machine"):
            return
        window = self.machine.window
        expected = window.start_offset
        for batch in window.batches:
            assert batch.first >= expected
            runs = batch.runs
            assert all(a.last + 1 == b.first for a, b in pairwise(runs))
            expected = batch.last + 1
        assert expected <= window.end_offset
        if window.batches:
            assert window.batches[0].first == window.start_offset
            assert not window.batches[0].runs[0].is_finished
        else:
            assert window.start_offset == window.end_offset


SharePartitionModel.TestCase.settings = settings(
    max_examples=examples(60),
    stateful_step_count=40,
    phases=(Phase.generate,),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestSharePartitionModel = SharePartitionModel.TestCase
