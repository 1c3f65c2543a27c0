"""What a failed write, a doubtful commit and a crash leave behind."""

from __future__ import annotations

import pytest

from moldau.broker.coordinator.transaction.machine.events import SendMarkers
from moldau.broker.coordinator.transaction.machine.metadata import TransactionMetadata
from moldau.broker.coordinator.transaction.machine.values import NO_PRODUCER
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import TransactionLogKey, TransactionLogValue
from moldau.wire.record_values import decode_coordinator_record, decode_versioned
from support.transaction_stage import FIRST_ID, START_MS, TransactionStage

P = FIRST_ID
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
UNAVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE


def ongoing(level: int = 2) -> TransactionStage:
    stage = TransactionStage(level)
    assert stage.init() == (P, 0)
    assert stage.add((P, 0), 0, 1) == NO_PRODUCER
    return stage


# Records.


def test_records_are_kafkas() -> None:
    stage = ongoing()
    stage.now_ms += 5
    stage.end((P, 0))
    values = []
    for key, value in stage.written:
        assert key == b"\x00\x00\x00\x01t"
        assert value is not None
        assert value[:2] == b"\x00\x01"
        values.append(decode_versioned(TransactionLogValue, value))
    empty, begun, prepared = values
    assert empty.transaction_partitions is None
    assert (empty.producer_id, empty.previous_producer_id, empty.producer_epoch) == (P, P, 0)
    assert (empty.transaction_status, empty.client_transaction_version) == (0, 0)
    assert empty.transaction_start_timestamp_ms == -1
    assert begun.transaction_partitions is not None
    assert [(each.topic, each.partition_ids) for each in begun.transaction_partitions] == [
        ("topic", [0, 1])
    ]
    assert (begun.transaction_status, begun.client_transaction_version) == (1, 2)
    assert (prepared.transaction_status, prepared.producer_epoch) == (2, 1)
    assert prepared.next_producer_epoch == -1
    assert prepared.transaction_last_update_timestamp_ms == START_MS + 5
    assert prepared.transaction_timeout_ms == 60_000


def test_level_0_writes_what_old_brokers_read() -> None:
    stage = ongoing(0)
    stage.end((P, 0))
    stage.finish()
    for _, value in stage.written:
        assert value is not None
        assert value[:2] == b"\x00\x00"
    assert stage.shard.transactions == stage.reloaded().transactions


@pytest.mark.parametrize(("status", "state"), [(6, "Empty"), (7, "Ongoing"), (4, "CompleteCommit")])
def test_states_that_pass_are_read_as_what_they_mean(status: int, state: str) -> None:
    stage = TransactionStage()
    value = TransactionLogValue(producer_id=7, transaction_status=status)
    stage.shard.replay(0, -1, TransactionLogKey(transactional_id="t"), value)
    assert stage.state() == state


def test_a_feature_level_may_change_under_way() -> None:
    stage = ongoing(2)
    stage.transaction_version = 0
    assert stage.end((P, 0), version=0) == NO_PRODUCER
    stage.finish()
    assert stage.metadata().producer == (P, 0)
    assert stage.shard.transactions == stage.reloaded().transactions
    stage.transaction_version = 2
    assert stage.add((P, 0)) == NO_PRODUCER
    assert stage.end((P, 0)) == (P, 1)
    stage.finish()
    assert stage.shard.transactions == stage.reloaded().transactions


# Writes that fail.


@pytest.mark.parametrize("level", [1, 2])
def test_a_refused_append_changes_nothing(level: int) -> None:
    stage = ongoing(level)
    before = stage.metadata()
    stage.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert stage.add((P, 0), 9) == UNAVAILABLE
    assert stage.end((P, 0)) == UNAVAILABLE
    assert stage.init() == UNAVAILABLE
    assert stage.init("new") == UNAVAILABLE
    assert stage.metadata() is before
    assert "new" not in stage.shard.transactions
    assert not stage.actions
    stage.append_error = ErrorCode.NONE
    assert stage.end((P, 0)) == (NO_PRODUCER if level == 1 else (P, 1))
    stage.finish()
    assert stage.init(expected=stage.metadata().producer) == (P, 1 if level == 1 else 2)


@pytest.mark.parametrize("level", [1, 2])
def test_a_doubtful_decision_stands_and_is_told_when_certain(level: int) -> None:
    stage = ongoing(level)
    stage.holding = True
    reply = stage.start_end((P, 0), True)
    stage.give_up()
    assert reply.outcome is UNAVAILABLE
    # It is in the log and may be committed any moment, so no other can be taken.
    assert stage.end((P, 0), False) == CONCURRENT
    assert stage.init() == CONCURRENT
    stage.advance(500)
    assert not stage.actions, "not committed yet"
    stage.give_up()
    stage.advance(500)
    stage.commit()
    (action,) = stage.actions
    assert isinstance(action, SendMarkers)
    stage.holding = False
    stage.finish()
    assert stage.state() == "CompleteCommit"
    assert stage.end((P, 0), True) == (NO_PRODUCER if level == 1 else (P, 1))


def test_a_doubtful_decision_survives_a_crash_or_does_not_but_is_never_two() -> None:
    for kept in (2, 3):
        stage = ongoing()
        stage.holding = True
        stage.start_end((P, 0), True)
        stage.give_up()
        stage.holding = False
        stage.crash(kept)
        if kept == 2:
            assert stage.state() == "Ongoing"
            assert not stage.actions
            assert stage.end((P, 0), False) == (P, 1)
        else:
            assert stage.state() == "PrepareCommit"
            (action,) = stage.actions
            assert isinstance(action, SendMarkers)
            stage.finish()
            assert stage.end((P, 0), True) == (P, 1)
            assert stage.end((P, 0), False) is ErrorCode.INVALID_TXN_STATE


def test_a_failed_completion_is_repeated() -> None:
    stage = ongoing()
    stage.end((P, 0))
    (action,) = stage.actions
    assert isinstance(action, SendMarkers)
    stage.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert stage.complete(action.prepared).outcome is UNAVAILABLE
    assert stage.shard.is_current(action.prepared)
    stage.append_error = ErrorCode.NONE
    stage.complete(action.prepared)
    assert stage.state() == "CompleteCommit"
    assert not stage.shard.is_current(action.prepared)


def test_a_late_completion_does_not_end_the_next_transaction() -> None:
    """With version 1 both have the same producer id and epoch, and perhaps the same time."""
    stage = ongoing(1)
    stage.end((P, 0))
    (old,) = stage.actions
    assert isinstance(old, SendMarkers)
    stage.finish()
    stage.add((P, 0), 0, 1)
    stage.end((P, 0))
    assert stage.metadata() == old.prepared, "nothing but the object tells them apart"
    before = len(stage.written)
    stage.complete(old.prepared)
    assert len(stage.written) == before
    assert stage.state() == "PrepareCommit"


def test_a_completion_under_way_is_not_doubled() -> None:
    stage = ongoing()
    stage.end((P, 0))
    prepared = stage.metadata()
    stage.holding = True
    stage.complete(prepared)
    before = len(stage.written)
    stage.complete(prepared)
    assert len(stage.written) == before
    assert stage.add((P, 1)) == CONCURRENT, "not before the completion is committed"


def test_a_completion_in_doubt_is_not_confirmed() -> None:
    stage = ongoing()
    stage.end((P, 0))
    stage.holding = True
    stage.complete(stage.metadata())
    stage.give_up()
    again = stage.start_end((P, 0))
    assert not again
    stage.commit()
    assert again.outcome == (P, 1)


def test_what_is_not_committed_is_not_confirmed() -> None:
    stage = ongoing()
    stage.holding = True
    stage.start_add((P, 0), 9)
    stage.give_up()
    again = stage.start_add((P, 0), 9)
    assert not again, "in memory, but a crash could take it back"
    assert stage.verify((P, 0), 9) is None
    stage.commit()
    assert again.outcome == NO_PRODUCER
    assert stage.verify((P, 0), 9) == {("topic", 9): ErrorCode.NONE}


# Loading.


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("level", [1, 2])
def test_a_reloaded_decision_is_carried_on(level: int, committed: bool) -> None:
    stage = ongoing(level)
    stage.end((P, 0), committed)
    before = stage.metadata()
    stage.crash()
    (action,) = stage.actions
    assert isinstance(action, SendMarkers)
    assert action.prepared == before
    stage.finish()
    assert stage.state() == ("CompleteCommit" if committed else "CompleteAbort")


def test_markers_of_a_reloaded_decision_wait_for_its_commit() -> None:
    stage = ongoing()
    stage.holding = True
    stage.start_end((P, 0))
    stage.crash()
    assert not stage.actions
    stage.give_up()
    assert not stage.actions
    stage.advance(500)
    stage.commit()
    assert len(stage.actions) == 1


def test_timers_start_again_after_loading() -> None:
    stage = ongoing()
    stage.crash()
    stage.advance(70_000)
    stage.finish()
    assert stage.state() == "CompleteAbort"


def test_a_record_tells_all_that_counts() -> None:
    stage = ongoing()
    metadata = stage.metadata()
    key, value = stage.written[-1]
    _, message = decode_coordinator_record("transaction", key, value)
    assert isinstance(message, TransactionLogValue)
    assert TransactionMetadata.from_value("t", message) == metadata


# Partitions that know more than what a power failure has left of the log.


def after_power_failure(stage: TransactionStage, seen_epoch: int) -> None:
    stage.seen_epochs = {P: seen_epoch}
    stage.crash()


def test_an_epoch_that_a_partition_has_seen_is_given_to_nobody_again() -> None:
    stage = TransactionStage()
    assert stage.init() == (P, 0)
    after_power_failure(stage, 5)
    assert stage.init() == (P, 6)
    assert stage.shard.transactions == stage.reloaded().transactions


def test_the_last_epoch_seen_leads_to_a_new_producer_id() -> None:
    stage = TransactionStage()
    stage.init()
    after_power_failure(stage, 32_767)
    assert stage.init() == (P + 1, 0)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_what_was_open_at_an_older_epoch_is_aborted_at_a_newer_one(level: int) -> None:
    stage = ongoing(level)
    after_power_failure(stage, 5)
    (action,) = stage.finish()
    assert (action.prepared.producer_epoch, action.prepared.state_name) == (6, "PrepareAbort")
    assert {index for _, index in action.prepared.partitions} == {0, 1}
    assert stage.state() == "CompleteAbort"
    assert stage.end((P, 0)) != NO_PRODUCER, "its producer is out"
    assert stage.init() == (P, 7)


@pytest.mark.parametrize("level", [0, 2])
def test_a_decision_stands_and_its_id_goes_on_at_a_newer_epoch(level: int) -> None:
    stage = ongoing(level)
    stage.end((P, 0))
    epoch = stage.metadata().producer_epoch
    after_power_failure(stage, 5)
    (action,) = stage.finish()
    assert (action.prepared.producer_epoch, action.prepared.state_name) == (epoch, "PrepareCommit")
    assert stage.state() == "CompleteCommit"
    assert stage.init() == (P, 6)
    assert stage.shard.transactions == stage.reloaded().transactions


def test_epochs_that_are_known_change_nothing() -> None:
    stage = ongoing()
    written = len(stage.written)
    after_power_failure(stage, 0)
    assert len(stage.written) == written
    assert stage.state() == "Ongoing"
