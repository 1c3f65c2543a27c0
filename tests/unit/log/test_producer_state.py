"""Idempotence and transactions as tables: which batch is new, repeated or refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.broker.log.machine.producer_state import (
    ONGOING,
    SEQUENCE_MAX,
    CorruptSnapshot,
    ProducerEntry,
    ProducerStates,
    Verification,
    add_to_sequence,
    decode_snapshot,
    encode_snapshot,
)
from moldau.wire.errors import ApiError, ErrorCode

PID = 7


def states_with(*sequences: tuple[int, int], epoch: int = 3) -> ProducerStates:
    """A partition that got these (first, last) sequences of one producer, in order."""
    producers = ProducerStates()
    offset = 0
    for first, last in sequences:
        count = add_to_sequence(last, -first) + 1
        producers.record_batch(
            PID,
            epoch,
            last,
            first_offset=offset,
            last_offset=offset + count - 1,
            timestamp=1000,
            transactional=False,
        )
        offset += count
    return producers


SIX = [(0, 0), (1, 1), (2, 3), (4, 4), (5, 5), (6, 6)]


@pytest.mark.parametrize(
    ("epoch", "first", "last", "offset"),
    [
        pytest.param(3, 6, 6, 6, id="last"),
        pytest.param(3, 2, 3, 2, id="within five"),
        pytest.param(3, 1, 1, 1, id="fifth from the end"),
        pytest.param(3, 0, 0, None, id="sixth from the end"),
        pytest.param(3, 2, 2, None, id="other last sequence"),
        pytest.param(3, 3, 3, None, id="other first sequence"),
        pytest.param(2, 6, 6, None, id="older epoch"),
        pytest.param(4, 6, 6, None, id="newer epoch"),
    ],
)
def test_the_last_five_batches_are_recognised(
    epoch: int, first: int, last: int, offset: int | None
) -> None:
    found = states_with(*SIX).find_duplicate(PID, epoch, first, last)
    assert (None if found is None else found.first_offset) == offset


@pytest.mark.parametrize(
    ("known", "epoch", "sequence", "error"),
    [
        pytest.param([], 0, 0, None, id="unknown producer at 0"),
        pytest.param([], 0, 55, None, id="unknown producer anywhere"),
        pytest.param([(0, 4)], 3, 5, None, id="next"),
        pytest.param([(0, 4)], 3, 6, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, id="gap"),
        pytest.param([(0, 4)], 3, 4, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, id="overlap"),
        pytest.param(SIX, 3, 0, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, id="duplicate too old"),
        pytest.param([(0, SEQUENCE_MAX)], 3, 0, None, id="wraps to 0"),
        pytest.param(
            [(0, SEQUENCE_MAX)], 3, 1, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, id="wraps to 0 only"
        ),
        pytest.param([(0, 4)], 4, 0, None, id="new epoch at 0"),
        pytest.param(
            [(0, 4)], 4, 5, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, id="new epoch elsewhere"
        ),
        pytest.param([(0, 4)], 2, 5, ErrorCode.INVALID_PRODUCER_EPOCH, id="old epoch"),
        pytest.param([(0, 4)], 2, 0, ErrorCode.INVALID_PRODUCER_EPOCH, id="old epoch at 0"),
    ],
)
def test_sequences(
    known: list[tuple[int, int]], epoch: int, sequence: int, error: ErrorCode | None
) -> None:
    producers = states_with(*known)
    if error is None:
        producers.check(PID, epoch, sequence, transactional=False)
    else:
        with pytest.raises(ApiError) as caught:
            producers.check(PID, epoch, sequence, transactional=False)
        assert caught.value.code == error


def test_coordinators_have_no_sequences_but_epochs() -> None:
    producers = states_with((0, 4))
    producers.check(PID, 3, 99, transactional=False, check_sequence=False)
    with pytest.raises(ApiError):
        producers.check(PID, 2, 99, transactional=False, check_sequence=False)


def verifying(
    producers: ProducerStates, epoch: int = 0, sequence: int = 0, *, bump: bool = True
) -> Verification:
    return producers.start_verification(PID, epoch, sequence, supports_epoch_bump=bump, now_ms=1000)


def begin(producers: ProducerStates, guard: Verification, epoch: int = 0, offset: int = 0) -> None:
    """Append a transaction's first batch, as a log would."""
    producers.check(PID, epoch, 0, transactional=True, guard=guard)
    producers.record_batch(
        PID, epoch, 0, first_offset=offset, last_offset=offset, timestamp=1000, transactional=True
    )


def end(producers: ProducerStates, epoch: int, offset: int = 9) -> None:
    completed = producers.record_marker(
        PID, epoch, coordinator_epoch=0, offset=offset, timestamp=1000, aborted=True
    )
    if completed is not None:
        producers.complete(completed)


def test_transaction_version_2_starts_unknown_producers_at_zero() -> None:
    producers = ProducerStates()
    guard = verifying(producers, sequence=5)
    with pytest.raises(ApiError) as caught:
        producers.check(PID, 0, 5, transactional=True, guard=guard)
    assert caught.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    guard = verifying(producers, sequence=0)
    producers.check(PID, 0, 0, transactional=True, guard=guard)


def test_transaction_version_1_lets_unknown_producers_go_on_anywhere() -> None:
    producers = ProducerStates()
    guard = verifying(producers, sequence=5, bump=False)
    producers.check(PID, 0, 5, transactional=True, guard=guard)


def test_a_transactional_batch_needs_its_guard_until_the_transaction_is_open() -> None:
    producers = ProducerStates()
    guard = verifying(producers)
    for wrong in (ONGOING, verifying(ProducerStates())):
        with pytest.raises(ApiError) as caught:
            producers.check(PID, 0, 0, transactional=True, guard=wrong)
        assert caught.value.code == ErrorCode.INVALID_TXN_STATE
    begin(producers, guard)
    assert verifying(producers, sequence=1) is ONGOING
    producers.check(PID, 0, 1, transactional=True, guard=ONGOING)
    assert not producers.verifications


def test_batches_in_flight_share_a_guard() -> None:
    producers = ProducerStates()
    first, second = verifying(producers), verifying(producers, sequence=1)
    assert first is second
    begin(producers, first)
    producers.check(PID, 0, 1, transactional=True, guard=second)


@pytest.mark.parametrize("bump", [False, True])
def test_an_answer_that_comes_after_the_marker_lets_nothing_in(bump: bool) -> None:
    producers = ProducerStates()
    guard = verifying(producers, bump=bump)
    end(producers, epoch=1 if bump else 0)
    with pytest.raises(ApiError) as caught:
        producers.check(PID, 0, 0, transactional=True, guard=guard)
    assert caught.value.code == (
        ErrorCode.INVALID_PRODUCER_EPOCH if bump else ErrorCode.INVALID_TXN_STATE
    )
    # Nor into the next transaction, which has a guard of its own.
    again = verifying(producers, epoch=1)
    assert again is not guard
    with pytest.raises(ApiError):
        producers.check(PID, 1, 0, transactional=True, guard=guard)
    begin(producers, again, epoch=1, offset=10)


def test_a_late_marker_leaves_the_next_transaction_of_version_2_alone() -> None:
    producers = ProducerStates()
    begin(producers, verifying(producers))
    # The coordinator has bumped the epoch, and the producer is faster than its marker.
    guard = verifying(producers, epoch=1)
    end(producers, epoch=1)
    begin(producers, guard, epoch=1, offset=10)


def test_a_marker_of_version_1_ends_every_verification() -> None:
    producers = ProducerStates()
    begin(producers, verifying(producers, bump=False))
    guard = verifying(producers, epoch=1, bump=False)
    end(producers, epoch=1)
    with pytest.raises(ApiError) as caught:
        producers.check(PID, 1, 0, transactional=True, guard=guard)
    assert caught.value.code == ErrorCode.INVALID_TXN_STATE


def test_a_later_batch_does_not_overtake_one_that_is_still_verified() -> None:
    producers = ProducerStates()
    guard = verifying(producers, sequence=3, bump=False)
    verifying(producers, sequence=7, bump=False)
    with pytest.raises(ApiError) as caught:
        producers.check(PID, 0, 7, transactional=True, guard=guard)
    assert caught.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    producers.check(PID, 0, 3, transactional=True, guard=guard)


def test_an_older_epoch_is_not_even_verified() -> None:
    producers = states_with((0, 4))
    with pytest.raises(ApiError) as caught:
        verifying(producers, epoch=2)
    assert caught.value.code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_verifications_nobody_answers_are_dropped_in_the_end() -> None:
    producers = ProducerStates()
    verifying(producers)
    producers.remove_expired(now_ms=1099, expiration_ms=100)
    assert producers.verifications
    producers.remove_expired(now_ms=1100, expiration_ms=100)
    assert not producers.verifications


def test_a_marker_with_a_new_epoch_resets_sequences() -> None:
    producers = states_with((0, 4))
    producers.record_marker(PID, 4, coordinator_epoch=0, offset=5, timestamp=1000, aborted=True)
    producers.check(PID, 4, 0, transactional=False)
    with pytest.raises(ApiError):
        producers.check(PID, 4, 5, transactional=False)


def open_transaction(producers: ProducerStates, pid: int, offset: int, *, epoch: int = 0) -> None:
    producers.record_batch(
        pid, epoch, 0, first_offset=offset, last_offset=offset, timestamp=1, transactional=True
    )


def end_transaction(
    producers: ProducerStates, pid: int, offset: int, *, aborted: bool = False
) -> int:
    """End it; where the log is stable from then on, as the transaction index says."""
    completed = producers.record_marker(
        pid, 0, coordinator_epoch=0, offset=offset, timestamp=1, aborted=aborted
    )
    assert completed is not None
    stable = producers.last_stable_offset_after(completed)
    producers.complete(completed)
    return stable


def test_first_unstable_offset_follows_transactions_and_the_high_watermark() -> None:
    producers = ProducerStates()
    assert producers.first_unstable_offset is None
    open_transaction(producers, 1, 10)
    open_transaction(producers, 2, 11)
    assert producers.first_unstable_offset == 10
    assert end_transaction(producers, 1, 12) == 11
    # Its marker is not committed yet, so it still counts.
    assert producers.first_unstable_offset == 10
    producers.on_high_watermark(12)
    assert producers.first_unstable_offset == 10
    producers.on_high_watermark(13)
    assert producers.first_unstable_offset == 11
    assert end_transaction(producers, 2, 14) == 15
    producers.on_high_watermark(15)
    assert producers.first_unstable_offset is None


def test_a_marker_without_data_changes_nothing() -> None:
    producers = ProducerStates()
    assert (
        producers.record_marker(1, 0, coordinator_epoch=0, offset=0, timestamp=1, aborted=True)
        is None
    )
    assert producers.first_unstable_offset is None


def test_plain_writes_into_an_open_transaction_are_refused() -> None:
    producers = ProducerStates()
    open_transaction(producers, 1, 10)
    producers.check(1, 0, 1, transactional=True)
    with pytest.raises(ApiError) as caught:
        producers.check(1, 0, 1, transactional=False)
    assert caught.value.code == ErrorCode.INVALID_TXN_STATE
    assert producers.has_open_transaction(1, 0)
    assert not producers.has_open_transaction(1, 1)


@pytest.mark.parametrize(
    ("open_", "epoch", "coordinator_epoch", "version", "error"),
    [
        pytest.param(True, 5, 3, 0, None, id="same epoch"),
        pytest.param(True, 6, 3, 0, None, id="bumped by an abort"),
        pytest.param(True, 4, 3, 0, ErrorCode.INVALID_PRODUCER_EPOCH, id="old epoch"),
        pytest.param(True, 5, 2, 0, ErrorCode.TRANSACTION_COORDINATOR_FENCED, id="old coordinator"),
        pytest.param(True, 6, 3, 2, None, id="v2 bumped"),
        pytest.param(True, 5, 3, 2, ErrorCode.INVALID_PRODUCER_EPOCH, id="v2 late"),
        pytest.param(False, 5, 3, 2, None, id="v2 repeated"),
        pytest.param(False, 4, 3, 2, ErrorCode.INVALID_PRODUCER_EPOCH, id="v2 old"),
    ],
)
def test_markers(
    open_: bool, epoch: int, coordinator_epoch: int, version: int, error: ErrorCode | None
) -> None:
    producers = ProducerStates()
    entry = ProducerEntry(1, 5, coordinator_epoch=3, txn_first_offset=10 if open_ else -1)
    producers.load([entry], 11)
    if error is None:
        producers.check_marker(1, epoch, coordinator_epoch, version)
    else:
        with pytest.raises(ApiError) as caught:
            producers.check_marker(1, epoch, coordinator_epoch, version)
        assert caught.value.code == error


def test_idle_producers_expire_unless_a_transaction_is_open() -> None:
    producers = states_with((0, 4))
    open_transaction(producers, 2, 10)
    producers.remove_expired(1099, 100)
    assert set(producers.entries) == {PID, 2}
    producers.remove_expired(1100, 100)
    assert set(producers.entries) == {2}


entries = st.builds(
    lambda pid, epoch, seq, offset, ts, transactional: (
        pid, epoch, seq, offset, ts, transactional,
    ),
    st.integers(0, 2**63 - 1), st.integers(0, 32767), st.integers(0, SEQUENCE_MAX),
    st.integers(0, 2**62), st.integers(-1, 2**62), st.booleans(),
)  # fmt: skip


@given(
    st.lists(entries, max_size=20, unique_by=(lambda fields: fields[0], lambda fields: fields[3]))
)
def test_snapshots_keep_the_last_batch_of_each_producer(fields: list[tuple[int, ...]]) -> None:
    producers = ProducerStates()
    for pid, epoch, seq, offset, ts, transactional in sorted(fields, key=lambda fields: fields[3]):
        producers.record_batch(
            pid,
            epoch,
            seq,
            first_offset=offset,
            last_offset=offset,
            timestamp=ts,
            transactional=transactional,
        )
    loaded = ProducerStates()
    loaded.load(decode_snapshot("x", encode_snapshot(producers.entries.values())), 0)
    assert loaded.first_unstable_offset == producers.first_unstable_offset
    for pid, entry in producers.entries.items():
        other = loaded.entries[pid]
        assert (other.epoch, other.batches[-1]) == (entry.epoch, entry.batches[-1])


@given(st.binary(max_size=120))
def test_damaged_snapshots_are_told_from_good_ones(data: bytes) -> None:
    good = encode_snapshot(states_with((0, 4)).entries.values())
    for candidate in (data, good[:-1], good + b"\0", bytes([good[0] ^ 1]) + good[1:]):
        with pytest.raises(CorruptSnapshot):
            decode_snapshot("x", candidate)
