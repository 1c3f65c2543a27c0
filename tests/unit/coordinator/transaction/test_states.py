"""Every state of a transactional id against every request: who gets which answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from moldau.broker.coordinator.transaction.machine.events import SendMarkers
from moldau.broker.coordinator.transaction.machine.metadata import (
    EPOCH_MAX,
    TWO_PHASE_COMMIT_TIMEOUT_MS,
    TransactionMetadata,
)
from moldau.broker.coordinator.transaction.machine.values import NO_PRODUCER
from moldau.wire.errors import ErrorCode
from support.transaction_stage import FIRST_ID, START_MS, TransactionStage

FENCED = ErrorCode.PRODUCER_FENCED
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
MAPPING = ErrorCode.INVALID_PRODUCER_ID_MAPPING
STATE = ErrorCode.INVALID_TXN_STATE
ABORTABLE = ErrorCode.TRANSACTION_ABORTABLE

P = FIRST_ID
EPOCH = 5
"""Of the producer in the tables below."""


def in_state(stage: TransactionStage, name: str, producer_epoch: int = EPOCH) -> TransactionStage:
    """Bring transactional id "t" into the state, with this epoch once there."""
    ends = name not in ("Empty", "Ongoing")
    bumps = ends and stage.transaction_version >= 2
    start = (P, producer_epoch - 1 if bumps else producer_epoch)
    assert stage.init() == (P, 0)
    put(stage, producer_epoch=start[1])
    if name == "Empty":
        return stage
    assert stage.add(start, 0, 1) == NO_PRODUCER
    if name == "Ongoing":
        return stage
    assert isinstance(stage.end(start, name.endswith("Commit")), tuple)
    if name.startswith("Complete"):
        stage.finish()
    assert stage.state() == name
    return stage


def put(stage: TransactionStage, **changes: Any) -> TransactionMetadata:
    """Have the log say so, as if the past had been another."""
    changed: TransactionMetadata = replace(stage.metadata(), **changes)
    record = changed.to_record(stage.transaction_version)
    stage.shard.replay(len(stage.written), -1, record.key, record.value)
    stage.written.append(record.encode())
    return changed


# Version 1.


@pytest.mark.parametrize(
    ("state", "commit", "abort"),
    [
        ("Empty", STATE, STATE),
        ("Ongoing", NO_PRODUCER, NO_PRODUCER),
        ("PrepareCommit", CONCURRENT, CONCURRENT),
        ("PrepareAbort", CONCURRENT, CONCURRENT),
        ("CompleteCommit", NO_PRODUCER, STATE),
        ("CompleteAbort", STATE, NO_PRODUCER),
    ],
)
def test_end_by_a_client_of_version_1(state: str, commit: Any, abort: Any) -> None:
    for committed, expected in ((True, commit), (False, abort)):
        stage = in_state(TransactionStage(1), state)
        before = len(stage.written)
        assert stage.end((P, EPOCH), committed) == expected
        assert len(stage.written) - before == (state == "Ongoing")
        assert stage.end((P + 1, EPOCH), committed) == MAPPING
        for other in (EPOCH - 1, EPOCH + 1, -1, EPOCH_MAX):
            assert stage.end((P, other), committed) == FENCED


@pytest.mark.parametrize("committed", [True, False])
def test_an_end_of_version_1_keeps_the_producer(committed: bool) -> None:
    stage = in_state(TransactionStage(1), "Ongoing")
    assert stage.end((P, EPOCH), committed) == NO_PRODUCER
    (action,) = stage.actions
    assert isinstance(action, SendMarkers)
    assert action.prepared.producer == (P, EPOCH)
    assert action.prepared.client_transaction_version == 0
    assert action.prepared.partitions == {("topic", 0), ("topic", 1)}
    stage.finish()
    assert stage.state() == ("CompleteCommit" if committed else "CompleteAbort")
    assert stage.metadata().producer == (P, EPOCH)
    assert not stage.metadata().partitions


# Version 2.

BUMPED = (P, EPOCH + 1)
CURRENT = (P, EPOCH)


@pytest.mark.parametrize(
    ("state", "committed", "repeated", "current"),
    [
        ("Empty", False, FENCED, BUMPED),
        ("Empty", True, FENCED, STATE),
        ("Ongoing", False, FENCED, BUMPED),
        ("Ongoing", True, FENCED, BUMPED),
        ("PrepareAbort", False, CONCURRENT, CONCURRENT),
        ("PrepareAbort", True, CONCURRENT, CONCURRENT),
        ("PrepareCommit", False, CONCURRENT, CONCURRENT),
        ("PrepareCommit", True, CONCURRENT, CONCURRENT),
        ("CompleteAbort", False, CURRENT, BUMPED),
        ("CompleteAbort", True, STATE, STATE),
        ("CompleteCommit", False, STATE, BUMPED),
        ("CompleteCommit", True, CURRENT, STATE),
    ],
)
def test_end_by_a_client_of_version_2(
    state: str, committed: bool, repeated: Any, current: Any
) -> None:
    stage = in_state(TransactionStage(2), state)
    before = len(stage.written)
    assert stage.end((P, EPOCH - 1), committed) == repeated
    assert len(stage.written) == before, "a repetition changes nothing"
    assert stage.end((P, EPOCH), committed) == current
    assert len(stage.written) - before == (current == BUMPED)


@pytest.mark.parametrize("state", ["Empty", "Ongoing", "CompleteAbort", "CompleteCommit"])
@pytest.mark.parametrize("committed", [True, False])
def test_wrong_producers_of_version_2(state: str, committed: bool) -> None:
    stage = in_state(TransactionStage(2), state)
    assert stage.end((P + 1, EPOCH), committed) == MAPPING
    for epoch in (EPOCH - 2, EPOCH + 1, -1, EPOCH_MAX - 1, EPOCH_MAX):
        assert stage.end((P, epoch), committed) == FENCED


def test_an_old_producer_id_does_not_come_back() -> None:
    stage = in_state(TransactionStage(2), "CompleteCommit", EPOCH_MAX - 1)
    assert stage.init() == (P + 1, 0)
    assert stage.init() == (P + 1, 1)
    assert stage.add((P + 1, 1)) == NO_PRODUCER
    assert stage.end((P + 1, 1)) == (P + 1, 2)
    stage.finish()
    assert stage.end((P, EPOCH_MAX - 1)) == MAPPING


@pytest.mark.parametrize("committed", [True, False])
def test_an_end_of_version_2_ends_the_epoch(committed: bool) -> None:
    stage = in_state(TransactionStage(2), "Ongoing")
    stage.now_ms += 7
    assert stage.end((P, EPOCH), committed) == BUMPED
    (action,) = stage.actions
    assert isinstance(action, SendMarkers)
    assert action.prepared.producer == BUMPED, "markers carry the new epoch"
    assert action.prepared.client_transaction_version == 2
    assert action.prepared.start_timestamp_ms == START_MS
    stage.finish()
    assert stage.metadata().producer == BUMPED
    assert stage.metadata().last_update_timestamp_ms == START_MS + 7


@pytest.mark.parametrize("state", ["Empty", "CompleteAbort", "CompleteCommit"])
def test_an_abort_of_what_has_not_begun(state: str) -> None:
    stage = in_state(TransactionStage(2), state)
    stage.now_ms += 7
    assert stage.end((P, EPOCH), False) == BUMPED
    assert stage.state() == "PrepareAbort"
    assert stage.metadata().start_timestamp_ms == START_MS + 7
    assert not stage.metadata().partitions
    stage.finish()
    assert stage.state() == "CompleteAbort"


@pytest.mark.parametrize("committed", [True, False])
def test_the_last_epoch_leads_to_a_new_producer_id(committed: bool) -> None:
    stage = in_state(TransactionStage(2), "Ongoing", EPOCH_MAX - 1)
    assert stage.end((P, EPOCH_MAX - 1), committed) == (P + 1, 0)
    prepared = stage.metadata()
    assert prepared.producer == (P, EPOCH_MAX)
    assert prepared.next_producer_id == P + 1
    # The new id may come before the markers are out, the old one again at any time.
    assert stage.add((P + 1, 0)) == CONCURRENT
    assert stage.end((P, EPOCH_MAX - 1), committed) == CONCURRENT
    stage.finish()
    assert stage.metadata().producer == (P + 1, 0)
    assert stage.metadata().previous_producer_id == P
    assert stage.metadata().next_producer_id == -1
    for _ in range(2):
        assert stage.end((P, EPOCH_MAX - 1), committed) == (P + 1, 0)
        assert stage.end((P, EPOCH_MAX - 1), not committed) == STATE
        stage.crash()
    assert stage.end((P, EPOCH_MAX), committed) == MAPPING
    assert stage.end((P, EPOCH_MAX - 2), committed) == MAPPING
    assert stage.add((P, EPOCH_MAX - 1)) == MAPPING
    assert stage.add((P + 1, 0)) == NO_PRODUCER
    assert stage.end((P, EPOCH_MAX - 1), committed) != (P + 1, 0), "another has begun"
    assert stage.end((P + 1, 0), committed) == (P + 1, 1)


def test_a_level_that_cannot_store_version_2_does_not_use_it() -> None:
    stage = in_state(TransactionStage(0), "Ongoing")
    assert stage.end((P, EPOCH), version=2) == NO_PRODUCER
    assert stage.metadata().producer == (P, EPOCH)


# Adding and verifying partitions.


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("state", ["Empty", "Ongoing", "CompleteCommit", "CompleteAbort"])
def test_add_partitions(level: int, state: str) -> None:
    stage = in_state(TransactionStage(level), state)
    stage.now_ms += 9
    assert stage.add((P + 1, EPOCH)) == MAPPING
    for other in (EPOCH - 1, EPOCH + 1, EPOCH_MAX):
        assert stage.add((P, other)) == FENCED
    assert stage.add((P, EPOCH), 7, 8) == NO_PRODUCER
    added = {("topic", 7), ("topic", 8)}
    kept = {("topic", 0), ("topic", 1)} if state == "Ongoing" else set()
    assert stage.metadata().partitions == added | kept
    assert stage.metadata().start_timestamp_ms == START_MS + (0 if kept else 9)
    assert stage.metadata().last_update_timestamp_ms == START_MS + 9
    assert stage.metadata().client_transaction_version == (2 if level == 2 else 0)
    before = len(stage.written)
    assert stage.add((P, EPOCH), 8) == NO_PRODUCER
    assert len(stage.written) == before, "what is in already needs no record"


@pytest.mark.parametrize("state", ["PrepareCommit", "PrepareAbort"])
@pytest.mark.parametrize("level", [1, 2])
def test_nothing_joins_a_transaction_that_ends(level: int, state: str) -> None:
    stage = in_state(TransactionStage(level), state)
    assert stage.add((P, EPOCH)) == CONCURRENT
    assert stage.verify((P, EPOCH)) == CONCURRENT


def test_verification() -> None:
    stage = in_state(TransactionStage(1), "Ongoing")
    before = len(stage.written)
    assert stage.verify((P, EPOCH), 0, 3) == {
        ("topic", 0): ErrorCode.NONE,
        ("topic", 3): ABORTABLE,
    }
    assert stage.verify((P + 1, EPOCH)) == MAPPING
    assert stage.verify((P, EPOCH - 1)) == FENCED
    assert stage.verify((P, EPOCH + 1)) == FENCED
    assert len(stage.written) == before
    stage.end((P, EPOCH))
    stage.finish()
    assert stage.verify((P, EPOCH)) == {("topic", 0): ABORTABLE}, "that one is over"


def test_unknown_ids() -> None:
    stage = TransactionStage()
    assert stage.add((P, 0)) == MAPPING
    assert stage.verify((P, 0)) == MAPPING
    assert stage.end((P, 0)) == MAPPING
    assert not stage.written


# InitProducerId.


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_new_transactional_id(level: int) -> None:
    stage = TransactionStage(level)
    assert stage.init(timeout_ms=1_234) == (P, 0)
    metadata = stage.metadata()
    assert (metadata.state_name, metadata.timeout_ms) == ("Empty", 1_234)
    assert metadata.start_timestamp_ms == -1
    assert stage.init("u") == (P + 1, 0)
    assert TransactionStage(level).init(expected=(77, 9)) == (P, 0), "long forgotten"


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("state", ["Empty", "CompleteCommit", "CompleteAbort"])
def test_init_fences_by_the_next_epoch(level: int, state: str) -> None:
    stage = in_state(TransactionStage(level), state)
    assert stage.init(timeout_ms=5) == (P, EPOCH + 1)
    assert stage.state() == "Empty"
    assert stage.metadata().timeout_ms == 5
    assert stage.add((P, EPOCH)) == FENCED
    assert stage.end((P, EPOCH)) == FENCED
    assert stage.init(expected=(P, EPOCH)) == FENCED, "another has begun since"


@pytest.mark.parametrize("level", [1, 2])
def test_init_aborts_what_is_ongoing(level: int) -> None:
    stage = in_state(TransactionStage(level), "Ongoing")
    assert stage.init() == CONCURRENT
    assert stage.state() == "PrepareAbort"
    assert stage.init() == CONCURRENT
    (action,) = stage.actions
    assert isinstance(action, SendMarkers)
    assert action.prepared.producer == (P, EPOCH + 1)
    assert action.prepared.client_transaction_version == (2 if level == 2 else 0)
    assert stage.add((P, EPOCH)) in (CONCURRENT, FENCED)
    stage.finish()
    assert stage.init() == (P, EPOCH + 2)
    assert stage.end((P, EPOCH)) == FENCED


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("state", ["PrepareCommit", "PrepareAbort"])
def test_init_waits_for_an_end(level: int, state: str) -> None:
    stage = in_state(TransactionStage(level), state)
    before = len(stage.written)
    assert stage.init() == CONCURRENT
    assert stage.init(expected=(P, EPOCH)) == CONCURRENT
    assert len(stage.written) == before


def test_recovery_from_an_epoch() -> None:
    stage = in_state(TransactionStage(1), "CompleteAbort")
    assert stage.init(expected=(P, EPOCH)) == (P, EPOCH + 1)
    assert stage.init(expected=(P, EPOCH)) == (P, EPOCH + 1), "the answer was lost"
    assert stage.init(expected=(P, EPOCH - 1)) == FENCED
    assert stage.init(expected=(P, EPOCH + 2)) == FENCED
    assert stage.init(expected=(P + 1, EPOCH + 1)) == FENCED
    assert stage.init(expected=(P, EPOCH + 1)) == (P, EPOCH + 2)
    stage.crash()
    assert stage.init(expected=(P, EPOCH + 1)) == FENCED, "as Kafka: the log does not tell"
    assert stage.init(expected=(P, EPOCH + 2)) == (P, EPOCH + 3)


def test_recovery_after_an_end_of_version_2() -> None:
    stage = in_state(TransactionStage(2), "CompleteCommit")
    assert stage.init(expected=(P, EPOCH - 1)) == (P, EPOCH), "the answer to EndTxn was lost"


def test_recovery_within_a_transaction_aborts_it() -> None:
    stage = in_state(TransactionStage(1), "Ongoing")
    assert stage.init(expected=(P + 1, EPOCH)) == FENCED
    assert stage.state() == "Ongoing"
    assert stage.init(expected=(P, EPOCH)) == CONCURRENT
    assert stage.state() == "PrepareAbort"
    stage.finish()
    assert stage.init(expected=(P, EPOCH)) == FENCED, "the abort was for somebody else's sake"


@pytest.mark.parametrize("epoch", [EPOCH_MAX - 1, EPOCH_MAX])
def test_exhausted_epochs_give_a_new_producer_id(epoch: int) -> None:
    stage = in_state(TransactionStage(1), "CompleteAbort", epoch - 1)
    put(stage, producer_epoch=epoch)
    assert stage.init() == (P + 1, 0)
    assert stage.init(expected=(P, epoch)) == FENCED
    assert stage.add((P, epoch)) == MAPPING
    assert stage.init() == (P + 1, 1)


def test_a_fence_forgets_the_epoch_before() -> None:
    stage = in_state(TransactionStage(1), "CompleteAbort")
    assert stage.init(expected=(P, EPOCH)) == (P, EPOCH + 1)
    assert stage.add((P, EPOCH + 1)) == NO_PRODUCER
    assert stage.init() == CONCURRENT
    stage.finish()
    assert stage.init(expected=(P, EPOCH)) == FENCED


def test_records_name_the_producer_id_before() -> None:
    stage = in_state(TransactionStage(1), "CompleteAbort", EPOCH_MAX - 1)
    stage.init()
    assert (stage.metadata().previous_producer_id, stage.metadata().producer_id) == (P, P + 1)
    stage.init()
    assert (stage.metadata().previous_producer_id, stage.metadata().producer_id) == (P + 1, P + 1)


def test_recovery_across_a_new_producer_id() -> None:
    last = EPOCH_MAX - 1
    stage = in_state(TransactionStage(1), "CompleteAbort", last)
    assert stage.init(expected=(P, last - 1)) == FENCED
    assert stage.init(expected=(P, last)) == (P + 1, 0)
    assert stage.init(expected=(P, last)) == (P + 1, 0), "the answer was lost"
    assert stage.init(expected=(P, last - 1)) == FENCED
    assert stage.init(expected=(P + 1, 0)) == (P + 1, 1)


def test_a_lost_answer_at_the_last_epoch() -> None:
    last = EPOCH_MAX - 1
    stage = in_state(TransactionStage(1), "CompleteAbort", last - 1)
    assert stage.init(expected=(P, last - 1)) == (P, last)
    assert stage.init(expected=(P, last - 1)) == (P, last)


@pytest.mark.parametrize("level", [1, 2])
def test_fencing_at_the_last_epoch(level: int) -> None:
    stage = in_state(TransactionStage(level), "Ongoing", EPOCH_MAX - 1)
    assert stage.init() == CONCURRENT
    assert stage.metadata().producer == (P, EPOCH_MAX)
    stage.finish()
    assert stage.metadata().producer == ((P, EPOCH_MAX) if level == 1 else (P + 1, 0))
    assert stage.add((P, EPOCH_MAX)) in (FENCED, MAPPING), "that epoch is nobody's"
    assert stage.end((P, EPOCH_MAX), False) in (FENCED, MAPPING)
    assert stage.init() == ((P + 1, 0) if level == 1 else (P + 1, 1))


def test_nobody_is_told_the_last_epoch() -> None:
    stage = in_state(TransactionStage(1), "Ongoing", EPOCH_MAX - 1)
    stage.init()
    stage.finish()
    stage.transaction_version = 2
    assert stage.metadata().producer == (P, EPOCH_MAX)
    assert stage.end((P, EPOCH_MAX - 1), False, version=2) == FENCED


# Timeouts.


@pytest.mark.parametrize("level", [1, 2])
def test_an_overdue_transaction_is_aborted(level: int) -> None:
    stage = in_state(TransactionStage(level), "Ongoing")
    stage.advance(60_000)
    assert not stage.finish()
    assert stage.state() == "Ongoing"
    stage.advance(10_000)
    (sent,) = stage.finish()
    assert sent.prepared.producer == (P, EPOCH + 1)
    assert stage.state() == "CompleteAbort"
    assert stage.add((P, EPOCH)) == FENCED
    assert stage.end((P, EPOCH), True) == (FENCED if level == 1 else STATE)
    # With version 2 a producer that aborts anyway learns its new epoch and goes on.
    assert stage.end((P, EPOCH), False) == (FENCED if level == 1 else BUMPED)


def test_a_new_transaction_is_not_aborted_for_an_old_one() -> None:
    stage = in_state(TransactionStage(1), "Ongoing")
    stage.advance(70_000)
    assert stage.actions
    stage.end((P, EPOCH))
    stage.complete(stage.metadata())
    assert stage.add((P, EPOCH)) == NO_PRODUCER
    assert stage.abort_timed_out() is ErrorCode.NONE
    assert stage.state() == "Ongoing"


@pytest.mark.parametrize("state", ["Empty", "PrepareCommit", "CompleteCommit", "CompleteAbort"])
def test_only_ongoing_transactions_time_out(state: str) -> None:
    stage = in_state(TransactionStage(), state)
    stage.actions.clear()
    stage.advance(1_000_000)
    assert stage.state() == state
    assert not stage.actions


def test_two_phase_commit_transactions_do_not_time_out() -> None:
    stage = TransactionStage()
    stage.init(timeout_ms=TWO_PHASE_COMMIT_TIMEOUT_MS)
    stage.add((P, 0))
    stage.now_ms += TWO_PHASE_COMMIT_TIMEOUT_MS * 2
    stage.advance(10_000)
    assert stage.state() == "Ongoing"
    assert not stage.actions


# Expiry.


@pytest.mark.parametrize("state", ["Empty", "CompleteCommit", "CompleteAbort"])
def test_idle_ids_expire(state: str) -> None:
    stage = in_state(TransactionStage(transactional_id_expiration_ms=10_000_000), state)
    stage.advance(7_200_000)
    assert stage.state() == state
    stage.advance(3_600_000)
    assert stage.written[-1][1] is None
    assert not stage.shard.transactions
    assert not stage.reloaded().transactions
    assert stage.end((P, EPOCH)) == MAPPING
    assert stage.init() == (P + 1, 0)


def test_an_id_that_is_being_written_does_not_expire() -> None:
    stage = in_state(TransactionStage(transactional_id_expiration_ms=1), "Empty")
    stage.holding = True
    reply = stage.start_init()
    stage.advance(3_600_000)
    stage.commit()
    assert reply.outcome == (P, EPOCH + 1)
    assert stage.state() == "Empty"


@pytest.mark.parametrize("state", ["Ongoing", "PrepareCommit", "PrepareAbort"])
def test_open_transactions_do_not_expire(state: str) -> None:
    stage = in_state(TransactionStage(transactional_id_expiration_ms=1), state)
    stage.advance(3_600_000)
    assert stage.state() == state


# Whose turn it is.

Request = Callable[[TransactionStage], Any]
REQUESTS: list[tuple[str, Request]] = [
    ("init", lambda stage: stage.init()),
    ("recover", lambda stage: stage.init(expected=stage.metadata().producer)),
    ("add", lambda stage: stage.add(stage.metadata().producer, 5)),
    ("commit", lambda stage: stage.end(stage.metadata().producer, True)),
    ("abort", lambda stage: stage.end(stage.metadata().producer, False)),
]


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("first", ["init", "add", "commit", "abort"])
@pytest.mark.parametrize("second", [name for name, _ in REQUESTS])
def test_one_change_at_a_time(level: int, first: str, second: str) -> None:
    requests = dict(REQUESTS)
    stage = in_state(TransactionStage(level), "Ongoing")
    stage.holding = True
    assert requests[first](stage) is None, "no answer before commit"
    before = len(stage.written)
    assert requests[second](stage) == CONCURRENT
    stage.abort_timed_out()
    stage.advance(70_000)
    assert len(stage.written) == before
    assert not stage.actions
