"""Tables for one share partition: who gets which records, and what becomes of them."""

from __future__ import annotations

import pytest

from moldau.broker.coordinator.share.machine.values import ShareState, StateBatch
from moldau.broker.share.machine.acquisition import AcquiredRecords, ShareSettings, Span, Wanted
from moldau.broker.share.machine.partition import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    AckBatch,
    SharePartition,
)
from moldau.broker.share.machine.record_states import RecordState
from moldau.wire.errors import ApiError, ErrorCode

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = 0, 1, 2, 4
SETTINGS = ShareSettings(5, 2000, 30_000, True)
LOG = [Span(0, 9), Span(10, 14), Span(15, 15), Span(16, 29), Span(30, 39)]


class Group:
    """A share partition whose writes succeed unless a test says otherwise."""

    def __init__(
        self,
        start: int = 0,
        *batches: StateBatch,
        log: list[Span] | None = None,
        settings: ShareSettings = SETTINGS,
    ) -> None:
        self.log = LOG if log is None else log
        self.settings = settings
        self.now = 0
        self.partition = SharePartition(ShareState(1, start, batches))

    def fetch(
        self,
        member: str = "m",
        max_records: int = 500,
        batch_size: int = 500,
        record_limit: bool = False,
        count: int = 10,
        aborted: tuple[int, ...] = (),
    ) -> list[AcquiredRecords]:
        if not self.partition.can_acquire(self.settings):
            return []
        offset = self.partition.next_fetch_offset()
        spans = [span for span in self.log if span.last_offset >= offset][:count]
        return self.partition.acquire(
            Wanted(member, max_records, batch_size, record_limit),
            offset,
            spans,
            self.settings,
            self.now,
            [self.log[index] for index in aborted],
        )

    def ack(
        self, first: int, last: int, *types: int, member: str = "m", written: bool = True
    ) -> list[StateBatch]:
        change = self.partition.acknowledge(
            member, [AckBatch(first, last, types)], self.settings, self.now
        )
        self.partition.complete(change, self.now, written=written)
        return change.batches

    def refused(self, first: int, last: int, *types: int, member: str = "m") -> ErrorCode:
        before = self.states
        with pytest.raises(ApiError) as caught:
            self.ack(first, last, *types, member=member)
        assert self.states == before, "a refusal changes nothing"
        return caught.value.code

    def expire(self) -> list[StateBatch]:
        assert self.partition.deadline_ms is not None
        self.now = self.partition.deadline_ms
        return self.partition.expire(self.settings, self.now)

    def deliver_and_expire(self, times: int) -> None:
        for _ in range(times):
            self.fetch()
            self.expire()

    @property
    def states(self) -> list[tuple[int, int, RecordState, int]]:
        found: list[tuple[int, int, RecordState, int]] = []
        for run in self.partition.window.runs():
            if (
                found
                and found[-1][1] + 1 == run.first
                and found[-1][2:]
                == (
                    run.state,
                    run.delivery_count,
                )
            ):
                found[-1] = (found[-1][0], run.last, run.state, run.delivery_count)
            else:
                found.append((run.first, run.last, run.state, run.delivery_count))
        return found

    @property
    def start(self) -> int:
        return self.partition.start_offset


# Acquiring.


@pytest.mark.parametrize(
    ("options", "acquired"),
    [
        pytest.param({}, [(0, 39, 1)], id="all that was read"),
        pytest.param({"max_records": 3}, [(0, 9, 1)], id="a batch of the log is not torn"),
        pytest.param({"max_records": 11}, [(0, 14, 1)], id="so the limit is soft"),
        pytest.param(
            {"max_records": 3, "record_limit": True}, [(0, 2, 1)], id="unless it shall be exact"
        ),
        pytest.param(
            {"batch_size": 5}, [(0, 9, 1), (10, 14, 1), (15, 29, 1), (30, 39, 1)], id="batch size"
        ),
        pytest.param(
            {"batch_size": 5, "record_limit": True}, [(0, 39, 1)], id="one batch if exact"
        ),
        pytest.param({"max_records": 0}, [], id="nothing wanted"),
    ],
)
def test_new_records(options: dict[str, int], acquired: list[AcquiredRecords]) -> None:
    assert Group().fetch(**options) == acquired


def test_the_rest_of_a_batch_comes_next_if_the_limit_is_exact() -> None:
    group = Group()
    assert group.fetch("a", 3, record_limit=True) == [(0, 2, 1)]
    assert group.fetch("b", 4, record_limit=True) == [(3, 6, 1)]
    assert group.fetch("c", 5, record_limit=True) == [(7, 9, 1), (10, 11, 1)]
    assert group.fetch("d", 5, record_limit=False)[0] == (12, 14, 1)


def test_two_members_never_hold_the_same_record() -> None:
    group = Group()
    assert group.fetch("a", 10) == [(0, 9, 1)]
    assert group.fetch("b", 10) == [(10, 29, 1)]
    assert group.refused(0, 9, ACCEPT, member="b") is ErrorCode.INVALID_RECORD_STATE


def test_released_records_come_before_new_ones() -> None:
    group = Group()
    group.fetch("a", 10)
    group.fetch("a", 1)
    group.ack(2, 3, RELEASE, member="a")
    assert group.fetch("b") == [(2, 3, 2), (15, 39, 1)]


def test_a_start_within_a_batch_of_the_log_is_kept() -> None:
    assert Group(4).fetch(max_records=10) == [(4, 14, 1)]


def test_the_limit_on_locks_holds_back_new_records_only() -> None:
    group = Group(settings=SETTINGS._replace(partition_max_record_locks=12))
    assert group.fetch(max_records=500, count=1) == [(0, 9, 1)]
    assert group.fetch(max_records=500) == [(10, 14, 1)]
    assert group.fetch() == []
    group.ack(5, 6, RELEASE)
    assert group.fetch() == [(5, 6, 2)]
    group.ack(0, 4, ACCEPT)
    assert group.start == 5
    assert group.fetch() == [(15, 29, 1)]


@pytest.mark.parametrize(
    ("limit", "parts"),
    [
        pytest.param(2, [(0, 9), (0, 9)], id="no throttling"),
        pytest.param(5, [(0, 9), (0, 9), (0, 9), (0, 4), (0, 0)], id="half, then one by one"),
        pytest.param(6, [(0, 9), (0, 9), (0, 9), (0, 4), (0, 1), (0, 0)], id="half, quarter, one"),
    ],
)
def test_records_that_fail_again_and_again_come_in_smaller_parts(
    limit: int, parts: list[tuple[int, int]]
) -> None:
    group = Group(log=[Span(0, 9)], settings=SETTINGS._replace(delivery_count_limit=limit))
    for count, (first, last) in enumerate(parts, 1):
        assert group.fetch() == [(first, last, count)]
        group.expire()
    # Only the record that was delivered as often as allowed is given up.
    assert group.start == (10 if limit == 2 else 1)


def test_nothing_else_comes_with_records_that_fail_again_and_again() -> None:
    group = Group(log=[Span(0, 3), Span(4, 7)])
    for _ in range(3):
        assert group.fetch(count=1)[0][:2] == (0, 3)
        group.expire()
    assert group.fetch() == [(0, 1, 4)]
    assert group.fetch() == [(2, 3, 4)]
    assert group.fetch() == [(4, 7, 1)]


# Acknowledging.


@pytest.mark.parametrize(
    ("kind", "state", "start"),
    [
        pytest.param(ACCEPT, ACKNOWLEDGED, 5, id="accept"),
        pytest.param(REJECT, ARCHIVED, 5, id="reject"),
        pytest.param(GAP, ARCHIVED, 5, id="gap"),
        pytest.param(RELEASE, AVAILABLE, 0, id="release"),
    ],
)
def test_each_kind_of_acknowledgement(kind: int, state: int, start: int) -> None:
    group = Group(log=[Span(0, 9)])
    group.fetch()
    assert group.ack(0, 4, kind) == [(0, 4, state, 1)]
    assert group.start == start
    assert group.states[-1] == (5, 9, ACQUIRED, 1)


def test_each_record_may_have_its_own_kind() -> None:
    group = Group(log=[Span(0, 5)])
    group.fetch()
    assert group.ack(0, 5, ACCEPT, ACCEPT, RELEASE, REJECT, GAP, ACCEPT) == [
        (0, 1, ACKNOWLEDGED, 1),
        (2, 2, AVAILABLE, 1),
        (3, 4, ARCHIVED, 1),
        (5, 5, ACKNOWLEDGED, 1),
    ]
    assert group.start == 2
    assert group.fetch() == [(2, 2, 2)]
    group.ack(2, 2, ACCEPT)
    assert (group.start, group.states) == (6, [])


def test_the_start_waits_for_the_slowest() -> None:
    group = Group(log=[Span(0, 2)])
    group.fetch()
    group.ack(1, 2, ACCEPT)
    assert (group.start, group.partition.delivery_complete_count) == (0, 2)
    group.ack(0, 0, ACCEPT)
    assert (group.start, group.partition.delivery_complete_count) == (3, 0)


def test_a_renewed_lock_lasts_longer() -> None:
    group = Group(log=[Span(0, 9)])
    group.fetch()
    group.now = 20_000
    assert group.ack(5, 9, RENEW) == []
    assert group.expire() == [(0, 4, AVAILABLE, 1)]
    assert group.now == 30_000
    assert group.expire() == [(5, 9, AVAILABLE, 1)]
    assert group.now == 50_000


def test_a_group_may_forbid_renewing() -> None:
    group = Group(settings=SETTINGS._replace(renew_acknowledge_enable=False))
    group.fetch()
    assert group.refused(0, 9, RENEW) is ErrorCode.INVALID_RECORD_STATE


@pytest.mark.parametrize(
    ("first", "last", "types", "code"),
    [
        pytest.param(0, 4, (ACCEPT,), ErrorCode.INVALID_RECORD_STATE, id="done before"),
        pytest.param(3, 7, (ACCEPT,), ErrorCode.INVALID_RECORD_STATE, id="partly done before"),
        pytest.param(10, 14, (ACCEPT,), ErrorCode.INVALID_RECORD_STATE, id="held by another"),
        pytest.param(15, 20, (ACCEPT,), ErrorCode.INVALID_REQUEST, id="never fetched"),
        pytest.param(5, 15, (ACCEPT,), ErrorCode.INVALID_REQUEST, id="partly never fetched"),
        pytest.param(5, 5, (9,), ErrorCode.INVALID_REQUEST, id="unknown type"),
    ],
)
def test_refused_acknowledgements(
    first: int, last: int, types: tuple[int, ...], code: ErrorCode
) -> None:
    group = Group()
    group.fetch(count=1)
    group.fetch("other", count=1)
    group.ack(1, 4, ACCEPT)
    assert group.refused(first, last, *types) is code


def test_nothing_in_flight_nothing_to_acknowledge() -> None:
    assert Group().refused(0, 3, ACCEPT) is ErrorCode.INVALID_RECORD_STATE


def test_what_the_start_has_passed_may_be_acknowledged_in_vain() -> None:
    group = Group()
    group.fetch(count=1)
    group.ack(0, 4, ACCEPT)
    assert group.ack(0, 4, REJECT) == []
    assert group.ack(3, 6, REJECT) == [(5, 6, ARCHIVED, 1)]


def test_all_acknowledgements_of_a_call_count_or_none() -> None:
    group = Group(log=[Span(0, 9)])
    group.fetch()
    before = group.states
    batches = [AckBatch(0, 3, [ACCEPT]), AckBatch(5, 20, [ACCEPT])]
    with pytest.raises(ApiError):
        group.partition.acknowledge("m", batches, SETTINGS, 0)
    assert group.states == before


# Writes.


def test_a_change_counts_when_it_is_written() -> None:
    group = Group(log=[Span(0, 9)])
    group.fetch()
    change = group.partition.acknowledge("m", [AckBatch(0, 9, [ACCEPT])], SETTINGS, 0)
    assert group.start == 0
    assert group.partition.delivery_complete_count == 10
    assert group.refused(0, 9, ACCEPT) is ErrorCode.INVALID_RECORD_STATE
    assert group.partition.complete(change, 1, written=True)
    assert group.start == 10


@pytest.mark.parametrize(
    ("kind", "at_ms", "delivered", "states"),
    [
        pytest.param(ACCEPT, 29_999, 1, [(0, 9, ACQUIRED, 1)], id="held as before"),
        pytest.param(ACCEPT, 30_000, 1, [(0, 9, AVAILABLE, 1)], id="the lock ended meanwhile"),
        pytest.param(RELEASE, 30_000, 2, [], id="and it was the last delivery"),
    ],
)
def test_a_failed_write_is_taken_back(
    kind: int, at_ms: int, delivered: int, states: list[tuple[int, int, int, int]]
) -> None:
    limit = 2 if delivered == 2 else 5
    group = Group(log=[Span(0, 9)], settings=SETTINGS._replace(delivery_count_limit=limit))
    group.deliver_and_expire(delivered - 1)
    group.fetch()
    change = group.partition.acknowledge("m", [AckBatch(0, 9, [kind])], group.settings, group.now)
    group.partition.complete(change, group.now + at_ms, written=False)
    assert group.states == states
    assert group.partition.delivery_complete_count == 0


def test_a_held_record_expires_after_a_failed_write() -> None:
    group = Group(log=[Span(0, 9)])
    group.fetch()
    change = group.partition.acknowledge("m", [AckBatch(0, 9, [ACCEPT])], SETTINGS, 0)
    assert group.partition.expire(SETTINGS, 10_000) == []
    group.partition.complete(change, 10_000, written=False)
    assert group.expire() == [(0, 9, AVAILABLE, 1)]


# Locks and members that end.


def test_records_are_given_up_after_their_last_delivery() -> None:
    group = Group(log=[Span(0, 9)], settings=SETTINGS._replace(delivery_count_limit=2))
    group.fetch()
    assert group.expire() == [(0, 9, AVAILABLE, 1)]
    group.fetch()
    assert group.expire() == [(0, 9, ARCHIVED, 2)]
    assert group.start == 10


def test_releasing_the_last_delivery_gives_the_record_up() -> None:
    group = Group(log=[Span(0, 9)], settings=SETTINGS._replace(delivery_count_limit=2))
    group.deliver_and_expire(1)
    group.fetch()
    assert group.ack(0, 9, RELEASE) == [(0, 9, ARCHIVED, 2)]


def test_a_member_that_leaves_gives_back_what_it_holds() -> None:
    group = Group()
    group.fetch("a", count=1)
    group.fetch("b", count=1)
    change = group.partition.release("a", SETTINGS)
    assert change.batches == [(0, 9, AVAILABLE, 1)]
    group.partition.complete(change, 0, written=True)
    assert group.fetch("c", count=1) == [(0, 9, 2)]
    assert not group.partition.release("a", SETTINGS)


# The log.


def test_a_moved_log_start_takes_records_with_it() -> None:
    group = Group()
    group.fetch(count=3)
    group.ack(5, 6, ACCEPT)
    group.partition.move_log_start(4)
    assert (group.start, group.partition.delivery_complete_count) == (4, 2)
    group.partition.move_log_start(5)
    assert (group.start, group.partition.delivery_complete_count) == (7, 0)
    assert group.ack(0, 9, ACCEPT) == [(7, 9, ACKNOWLEDGED, 1)]
    group.partition.move_log_start(35)
    assert (group.start, group.states) == (35, [])
    assert group.fetch() == [(35, 39, 1)]
    group.partition.move_log_start(3)
    assert group.start == 35


def test_offsets_that_compaction_has_left_out_are_skipped() -> None:
    group = Group(log=[Span(5, 9), Span(20, 24)])
    assert group.fetch(count=1) == [(5, 9, 1)]
    assert group.start == 5
    assert group.fetch() == [(20, 24, 1)]
    group.ack(5, 9, ACCEPT)
    assert group.start == 20


def test_available_records_that_are_compacted_away_are_given_up() -> None:
    group = Group()
    group.fetch(count=2)
    group.ack(0, 14, RELEASE)
    group.log = LOG[1:]
    assert group.fetch(count=1) == [(10, 14, 2)]
    assert group.start == 10


def test_aborted_records_are_given_to_nobody() -> None:
    group = Group()
    assert group.fetch(aborted=(1, 3)) == [(0, 9, 1), (15, 15, 1), (30, 39, 1)]
    group.ack(0, 9, ACCEPT)
    assert group.start == 15


def test_nothing_but_aborted_records_is_progress() -> None:
    group = Group(settings=SETTINGS._replace(partition_max_record_locks=10))
    assert group.fetch(count=1, aborted=(0,)) == []
    assert group.start == 10
    assert group.fetch(count=1) == [(10, 14, 1)]


# Loading.


def test_what_the_stored_state_does_not_mention_is_available() -> None:
    group = Group(
        2,
        StateBatch(2, 3, ACKNOWLEDGED, 1),
        StateBatch(7, 8, ARCHIVED, 5),
        StateBatch(9, 9, AVAILABLE, 2),
    )
    assert group.states == [(4, 6, AVAILABLE, 0), (7, 8, ARCHIVED, 5), (9, 9, AVAILABLE, 2)]
    assert (group.start, group.partition.delivery_complete_count) == (4, 2)
    assert group.fetch(count=1) == [(4, 6, 1), (9, 9, 3)]


def test_a_gap_in_the_stored_state_obeys_the_limits() -> None:
    group = Group(0, StateBatch(38, 39, ACKNOWLEDGED, 1))
    assert group.fetch(max_records=3) == [(0, 9, 1)]
    assert group.fetch(max_records=3, record_limit=True) == [(10, 12, 1)]


def test_a_stored_state_below_the_start_is_cut_off() -> None:
    group = Group(5, StateBatch(0, 6, AVAILABLE, 1), StateBatch(2, 4, ACKNOWLEDGED, 1))
    assert group.states == [(5, 6, AVAILABLE, 1)]


def test_an_acknowledged_batch_leaves_one_run_however_it_was_acknowledged() -> None:
    group = Group(log=[Span(0, 99)])
    group.fetch()
    for offset in range(1, 100, 2):
        group.ack(offset, offset, ACCEPT)
    for offset in range(2, 100, 2):
        group.ack(offset, offset, ACCEPT)
    assert len(list(group.partition.window.runs())) == 2
    group.ack(0, 0, ACCEPT)
    assert group.start == 100
