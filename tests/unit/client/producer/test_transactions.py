"""What a producer's state becomes, and what is sent next, by tables of events."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from moldau.client import errors
from moldau.client.consumer.membership_interface import ConsumerGroupMetadata
from moldau.client.producer._batch import ProducerBatch
from moldau.client.producer.machine.sequences import ProducerId
from moldau.client.producer.machine.transaction_state import (
    DONE,
    RETRY,
    RETRY_ELSEWHERE,
    Operation,
    State,
    TransactionRequest,
    Verdict,
)
from moldau.client.producer.machine.transaction_status import TransactionStatus
from moldau.client.producer.machine.transactions import TransactionManager
from moldau.client.producer.transaction_calls import TransactionCalls
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from support.producer_stage import Stage

KEY = TopicPartition("t", 0)
GROUP = ConsumerGroupMetadata("g")
V1, V2 = (1, 1), (1, 2)


def next_of(manager: TransactionManager) -> TransactionRequest:
    request = manager.next_request(has_incomplete=False)
    assert request is not None
    return request


def started(features: tuple[int, int] = V2) -> TransactionManager:
    """Ready for a first transaction."""
    manager = TransactionManager("id", 60_000)
    manager.status.coordinator_bumps_epochs = True
    manager.status.update_features(*features, on_initialization=True)
    operation = manager.initialize()
    init = next_of(manager)
    assert isinstance(init.message, InitProducerIdRequest)
    manager.on_response(init, InitProducerIdResponse(producer_id=7, producer_epoch=0))
    assert operation.done
    operation.acknowledged = True
    return manager


def in_transaction(features: tuple[int, int] = V2) -> TransactionManager:
    """With a record for one partition."""
    manager = started(features)
    manager.begin()
    if manager.add_partition(KEY):
        request = next_of(manager)
        assert isinstance(request.message, AddPartitionsToTxnRequest)
        assert added(manager, request, 0) == DONE
    return manager


def added(manager: TransactionManager, request: TransactionRequest, *codes: int) -> Verdict:
    response = AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(
                name="t",
                results_by_partition=[
                    AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=code
                    )
                    for index, code in enumerate(codes)
                ],
            )
        ]
    )
    return manager.on_response(request, response)


def acknowledged(operation: Operation) -> None:
    assert operation.done
    operation.acknowledged = True


def test_version_2_needs_no_partitions_added_and_takes_the_next_epoch() -> None:
    manager = in_transaction(V2)
    assert not manager.has_requests
    operation = manager.begin_commit(V2)
    assert manager.next_request(has_incomplete=True) is None
    request = next_of(manager)
    assert isinstance(request.message, EndTxnRequest)
    assert (request.message.committed, request.max_version) == (True, None)
    manager.on_response(request, EndTxnResponse(producer_id=7, producer_epoch=1))
    assert (manager.status.state, manager.status.producer_id) == (State.READY, ProducerId(7, 1))
    acknowledged(operation)
    manager.begin()


def test_version_1_adds_partitions_once_and_keeps_the_epoch() -> None:
    manager = started(V1)
    manager.begin()
    assert manager.add_partition(KEY)
    assert not manager.add_partition(KEY)
    request = next_of(manager)
    assert not manager.add_partition(KEY)
    assert KEY not in manager.status.partitions
    added(manager, request, 0)
    assert KEY in manager.status.partitions
    assert not manager.add_partition(KEY)
    operation = manager.begin_commit(V1)
    request = next_of(manager)
    assert request.max_version == 4
    manager.on_response(request, EndTxnResponse())
    assert (manager.status.state, manager.status.producer_id) == (State.READY, ProducerId(7, 0))
    acknowledged(operation)


def test_nothing_is_sent_for_an_empty_transaction() -> None:
    for features in (V1, V2):
        manager = started(features)
        manager.begin()
        operation = manager.begin_commit(features)
        assert manager.next_request(has_incomplete=False) is None
        assert (operation.done, manager.status.state) == (True, State.READY)


def test_an_upgrade_bumps_the_epoch_before_the_first_transaction_of_version_2() -> None:
    manager = in_transaction(V1)
    operation = manager.begin_commit((2, 2))
    end = next_of(manager)
    # It ends as it began.
    assert end.max_version == 4
    manager.on_response(end, EndTxnResponse())
    assert (manager.status.state, operation.done) == (State.INITIALIZING, False)
    bump = next_of(manager)
    assert isinstance(bump.message, InitProducerIdRequest)
    assert (bump.message.producer_id, bump.message.producer_epoch) == (7, 0)
    manager.on_response(bump, InitProducerIdResponse(producer_id=7, producer_epoch=1))
    assert (manager.status.state, operation.done, manager.status.is_v2) == (State.READY, True, True)


FENCED = (State.FATAL_ERROR, errors.ProducerFencedError)
ABORT = State.ABORTABLE_ERROR
FATAL = State.FATAL_ERROR


@pytest.mark.parametrize(
    ("code", "verdict", "state", "error"),
    [
        ("NOT_COORDINATOR", RETRY_ELSEWHERE, State.COMMITTING, None),
        ("COORDINATOR_NOT_AVAILABLE", RETRY_ELSEWHERE, State.COMMITTING, None),
        ("CONCURRENT_TRANSACTIONS", RETRY, State.COMMITTING, None),
        ("COORDINATOR_LOAD_IN_PROGRESS", RETRY, State.COMMITTING, None),
        ("INVALID_PRODUCER_EPOCH", DONE, *FENCED),
        ("PRODUCER_FENCED", DONE, *FENCED),
        ("INVALID_TXN_STATE", DONE, FATAL, errors.InvalidTxnStateError),
        ("INVALID_PRODUCER_ID_MAPPING", DONE, FATAL, errors.InvalidPidMappingError),
        ("UNKNOWN_PRODUCER_ID", DONE, ABORT, errors.UnknownProducerIdError),
        ("TRANSACTION_ABORTABLE", DONE, ABORT, errors.TransactionAbortableError),
        ("UNKNOWN_SERVER_ERROR", DONE, FATAL, errors.KafkaError),
    ],
)
def test_answers_to_a_commit(
    code: str, verdict: Verdict, state: State, error: type[Exception] | None
) -> None:
    manager = in_transaction()
    operation = manager.begin_commit(V2)
    request = next_of(manager)
    response = EndTxnResponse(error_code=ErrorCode[code])
    assert manager.on_response(request, response) == verdict
    assert manager.status.state is state
    assert type(operation.error) is (error or type(None))
    assert operation.done is (error is not None)


def test_an_abort_that_may_only_be_aborted_is_over() -> None:
    manager = in_transaction()
    operation = manager.begin_abort(V2)
    request = next_of(manager)
    manager.on_response(request, EndTxnResponse(error_code=ErrorCode.TRANSACTION_ABORTABLE))
    assert manager.status.has_fatal_error
    assert operation.error is not None


@pytest.mark.parametrize(
    ("codes", "verdict", "state"),
    [
        (["NONE", "NONE"], DONE, State.IN_TRANSACTION),
        (["NONE", "CONCURRENT_TRANSACTIONS"], RETRY, State.IN_TRANSACTION),
        (["NOT_COORDINATOR", "NONE"], RETRY_ELSEWHERE, State.IN_TRANSACTION),
        (["UNKNOWN_TOPIC_OR_PARTITION", "NONE"], RETRY, State.IN_TRANSACTION),
        (["OPERATION_NOT_ATTEMPTED", "TOPIC_AUTHORIZATION_FAILED"], DONE, ABORT),
        (["OPERATION_NOT_ATTEMPTED", "INVALID_TOPIC_EXCEPTION"], DONE, ABORT),
        (["UNKNOWN_PRODUCER_ID", "NONE"], DONE, ABORT),
        (["TRANSACTION_ABORTABLE", "NONE"], DONE, ABORT),
        (["PRODUCER_FENCED", "NONE"], DONE, FATAL),
        (["INVALID_TXN_STATE", "NONE"], DONE, FATAL),
    ],
    ids=str,
)
def test_answers_to_partitions_that_are_added(
    codes: list[str], verdict: Verdict, state: State
) -> None:
    manager = started(V1)
    manager.begin()
    keys = {KEY, TopicPartition("t", 1)}
    for key in keys:
        manager.add_partition(key)
    request = next_of(manager)
    assert added(manager, request, *(ErrorCode[code] for code in codes)) == verdict
    assert manager.status.state is state
    assert manager.status.partitions == (keys if codes == ["NONE", "NONE"] else set())
    # The previous transaction is about to end: the first try again comes soon.
    soon = "CONCURRENT_TRANSACTIONS" in codes
    assert request.backoff_ms == (20 if soon else None)


@pytest.mark.parametrize(
    ("code", "verdict", "state", "error"),
    [
        ("NONE", DONE, State.IN_TRANSACTION, None),
        ("NOT_COORDINATOR", RETRY_ELSEWHERE, State.IN_TRANSACTION, None),
        ("REQUEST_TIMED_OUT", RETRY_ELSEWHERE, State.IN_TRANSACTION, None),
        ("UNSTABLE_OFFSET_COMMIT", RETRY, State.IN_TRANSACTION, None),
        ("UNKNOWN_MEMBER_ID", DONE, ABORT, errors.CommitFailedError),
        ("ILLEGAL_GENERATION", DONE, ABORT, errors.CommitFailedError),
        ("FENCED_INSTANCE_ID", DONE, ABORT, errors.FencedInstanceIdError),
        ("GROUP_AUTHORIZATION_FAILED", DONE, ABORT, errors.GroupAuthorizationFailedError),
        ("TRANSACTION_ABORTABLE", DONE, ABORT, errors.TransactionAbortableError),
        ("INVALID_PRODUCER_EPOCH", DONE, *FENCED),
    ],
)
@pytest.mark.parametrize("features", [V1, V2], ids=["version 1", "version 2"])
def test_answers_to_offsets(
    features: tuple[int, int],
    code: str,
    verdict: Verdict,
    state: State,
    error: type[Exception] | None,
) -> None:
    manager = started(features)
    manager.begin()
    operation = manager.send_offsets({KEY: OffsetAndMetadata(5)}, GROUP)
    request = next_of(manager)
    if features == V1:
        manager.on_response(request, AddOffsetsToTxnResponse())
        request = next_of(manager)
    assert isinstance(request.message, TxnOffsetCommitRequest)
    assert request.max_version == (4 if features == V1 else None)
    response = TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
                name="t",
                partitions=[
                    TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(
                        partition_index=0, error_code=ErrorCode[code]
                    )
                ],
            )
        ]
    )
    assert manager.on_response(request, response) == verdict
    assert manager.status.state is state
    assert type(operation.error) is (error or type(None))
    assert bool(manager.status.pending_offsets) is verdict.retry


@pytest.mark.parametrize(
    ("error", "verdict", "state"),
    [
        (errors.DisconnectError("gone"), RETRY, State.COMMITTING),
        (errors.UnsupportedVersionError("old"), DONE, FATAL),
        (errors.TransactionalIdAuthorizationFailedError("no"), DONE, FATAL),
        (errors.GroupAuthorizationFailedError("no"), DONE, ABORT),
    ],
    ids=lambda value: type(value).__name__,
)
def test_requests_without_an_answer(
    error: errors.KafkaError, verdict: Verdict, state: State
) -> None:
    manager = in_transaction()
    manager.begin_commit(V2)
    assert manager.on_failure(next_of(manager), error) == verdict
    assert manager.status.state is state


@pytest.mark.parametrize("features", [V1, V2], ids=["version 1", "version 2"])
def test_after_an_abortable_error_only_an_abort_is_possible(features: tuple[int, int]) -> None:
    manager = in_transaction(features)
    manager.status.to_error_state(errors.KafkaTimeoutError("too late"))
    assert isinstance(manager.status.last_error, errors.TransactionAbortableError)
    calls: list[Any] = [
        manager.check_send,
        manager.begin,
        lambda: manager.begin_commit(features),
        lambda: manager.send_offsets({KEY: OffsetAndMetadata(1)}, GROUP),
        manager.initialize,
    ]
    for call in calls:
        with pytest.raises(errors.KafkaError, match="abort the transaction"):
            call()
    operation = manager.begin_abort(features)
    end = next_of(manager)
    manager.on_response(end, EndTxnResponse(producer_id=-1 if features == V1 else 7))
    # With version 1 this client has to ask for another epoch itself.
    assert operation.done is (features == V2)
    if features == V1:
        bump = next_of(manager)
        manager.on_response(bump, InitProducerIdResponse(producer_id=7, producer_epoch=1))
    acknowledged(operation)
    manager.begin()


def test_a_call_that_timed_out_is_continued_by_the_same_call_only() -> None:
    manager = in_transaction()
    operation = manager.begin_commit(V2)
    assert manager.begin_commit(V2) is operation
    for call in (lambda: manager.begin_abort(V2), manager.begin, manager.check_send):
        with pytest.raises(errors.IllegalStateError, match="commit_transaction timed out"):
            call()
    request = next_of(manager)
    manager.on_response(request, EndTxnResponse(producer_id=7, producer_epoch=1))
    assert manager.begin_commit(V2) is operation
    acknowledged(operation)
    manager.begin()


def test_without_transactions_an_id_is_asked_for_of_any_node() -> None:
    manager = TransactionManager(None, 60_000)
    manager.bump_idempotent_epoch()
    manager.bump_idempotent_epoch()
    request = next_of(manager)
    assert request.coordinator is None
    assert manager.next_request(has_incomplete=False) is None
    manager.on_response(request, InitProducerIdResponse(producer_id=7, producer_epoch=0))
    assert manager.status.producer_id == ProducerId(7, 0)
    with pytest.raises(errors.IllegalStateError, match=r"transactional\.id"):
        manager.begin()


# Sequence numbers.


def idempotent(*topics: int) -> tuple[TransactionManager, Stage]:
    manager = TransactionManager(None, 60_000)
    manager.status.producer_id = ProducerId(7, 0)
    manager.status.state = State.READY
    stage = Stage({"t": list(topics) or [1]}, gate=manager.sequences)
    for queue in stage.accumulator.topics["t"].queues:
        queue.sequences.known_id = 7
    return manager, stage


def sent(stage: Stage, count: int, now_ms: int = 10) -> list[ProducerBatch]:
    """Batches of two records each, all in flight."""
    for _ in range(count):
        stage.batch(records=2)
    found = []
    for _ in range(count):
        found += stage.drain(now_ms).batches[1]
    return found


def numbers(*batches: ProducerBatch) -> list[tuple[int, int]]:
    return [(batch.producer_epoch, batch.base_sequence) for batch in batches]


def test_batches_are_numbered_by_their_records() -> None:
    _, stage = idempotent()
    assert numbers(*sent(stage, 3)) == [(0, 0), (0, 2), (0, 4)]


def test_the_first_batch_of_an_id_goes_alone() -> None:
    manager, stage = idempotent()
    stage.queue().sequences.known_id = -1
    first, second, third = (stage.batch(records=2) for _ in range(3))
    assert stage.drain(20).batches == {1: [first]}
    # A broker that does not know the id yet would take any number.
    assert stage.drain(20).batches == {}
    manager.sequences.on_completed(first, 0)
    assert stage.drain(20).batches == {1: [second]}
    assert stage.drain(20).batches == {1: [third]}


def test_numbers_wrap() -> None:
    manager, stage = idempotent()
    sequences = stage.queue().sequences
    sequences.producer_id = manager.status.producer_id
    sequences.next = 2**31 - 1
    assert numbers(*sent(stage, 2)) == [(0, 2**31 - 1), (0, 1)]


def test_what_is_sent_again_goes_in_order() -> None:
    _, stage = idempotent()
    first, second, third = sent(stage, 3)
    for batch in (third, second):
        stage.accumulator.reenqueue(batch, 10)
    # The first may still arrive; until it is known the others wait.
    assert stage.drain(5000).batches == {}
    stage.accumulator.reenqueue(first, 10)
    for batch in (first, second, third):
        assert stage.drain(5000).batches == {1: [batch]}
        stage.queue().sequences.remove(batch)


def test_a_late_answer_to_what_was_given_up_says_nothing_of_the_next_transaction() -> None:
    manager = in_transaction()
    stage = Stage(gate=manager.sequences)
    stage.queue().sequences.known_id = 7
    (old,) = sent(stage, 1)
    error = errors.KafkaTimeoutError("expired")
    manager.sequences.on_failed(old, error, adjust=False)
    manager.sequences.on_given_up_unknown(old)
    operation = manager.begin_abort(V2)
    manager.on_response(next_of(manager), EndTxnResponse(producer_id=7, producer_epoch=1))
    acknowledged(operation)
    manager.begin()
    manager.add_partition(KEY)
    first, second = sent(stage, 2)
    manager.sequences.on_completed(old, 5)
    refusal = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, errors.OutOfOrderSequenceError(), -1)
    assert manager.sequences.can_retry(second, *refusal), "the first is still on its way"
    manager.sequences.on_completed(first, 7)
    assert not manager.sequences.can_retry(second, *refusal)


@pytest.mark.parametrize(
    ("acked", "which", "retried", "bumped"),
    [
        pytest.param(0, 1, True, False, id="an earlier one is still on its way"),
        pytest.param(1, 1, True, True, id="the very next one: there is a gap"),
    ],
)
def test_out_of_order(acked: int, which: int, retried: bool, bumped: bool) -> None:
    manager, stage = idempotent()
    batches = sent(stage, 2)
    for batch in batches[:acked]:
        manager.sequences.on_completed(batch, 0)
    error = errors.OutOfOrderSequenceError()
    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert manager.sequences.can_retry(batches[which], code, error, -1) is retried
    manager.bump_idempotent_epoch()
    assert manager.status.producer_id.epoch == int(bumped)
    if bumped:
        assert numbers(batches[which]) == [(1, 0)]


def test_a_batch_that_was_numbered_anew_and_still_does_not_fit_takes_another_epoch() -> None:
    manager, stage = idempotent()
    (batch,) = sent(stage, 1)
    refusal = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, errors.OutOfOrderSequenceError(), -1)
    for epoch in (1, 2, 3):
        assert manager.sequences.can_retry(batch, *refusal)
        manager.bump_idempotent_epoch()
        assert numbers(batch) == [(epoch, 0)]
        # Another answer to what was sent with the old number says nothing new.
        assert manager.sequences.can_retry(batch, *refusal)
        manager.bump_idempotent_epoch()
        assert numbers(batch) == [(epoch, 0)]
        stage.accumulator.reenqueue(batch, 10)
        assert stage.drain(5000).batches == {1: [batch]}


def test_after_a_new_epoch_others_wait_for_what_is_in_flight() -> None:
    manager, stage = idempotent(1, 1)
    (old,) = sent(stage, 1)
    other = stage.batch(partition=1)
    stage.drain(20)
    manager.sequences._request_bump(other.queue)
    manager.bump_idempotent_epoch()
    assert numbers(other, old) == [(1, 0), (0, 0)]
    later = stage.batch()
    # Its partition still has a batch of the old epoch in flight.
    assert stage.drain(30).batches == {}
    manager.sequences.on_completed(old, 0)
    assert stage.drain(30).batches == {1: [later]}
    assert numbers(later) == [(1, 0)]


def test_what_was_given_up_is_resolved_by_what_follows() -> None:
    manager, stage = idempotent()
    first, second = sent(stage, 2)
    manager.sequences.on_failed(first, errors.KafkaTimeoutError("late"), adjust=False)
    manager.sequences.on_given_up_unknown(first)
    later = stage.batch()
    manager.sequences.resolve()
    assert stage.drain(20).batches == {}
    # The one after it was acknowledged, so it had arrived.
    manager.sequences.on_completed(second, 2)
    manager.sequences.resolve()
    manager.bump_idempotent_epoch()
    assert stage.drain(20).batches == {1: [later]}
    assert numbers(later) == [(0, 4)]


def test_what_was_given_up_and_stays_unknown_takes_another_epoch() -> None:
    manager, stage = idempotent()
    (first,) = sent(stage, 1)
    manager.sequences.on_failed(first, errors.KafkaTimeoutError("late"), adjust=False)
    manager.sequences.on_given_up_unknown(first)
    later = stage.batch()
    manager.sequences.resolve()
    manager.bump_idempotent_epoch()
    assert stage.drain(20).batches == {1: [later]}
    assert numbers(later) == [(1, 0)]


def test_the_last_epoch_is_followed_by_another_id() -> None:
    manager, stage = idempotent()
    manager.status.producer_id = ProducerId(7, 2**15 - 1)
    (first,) = sent(stage, 1)
    manager.sequences.on_failed(first, errors.InvalidRecordError("bad"), adjust=True)
    manager.bump_idempotent_epoch()
    assert not manager.status.producer_id.is_valid
    stage.batch()
    assert stage.drain(20).batches == {}
    request = next_of(manager)
    manager.on_response(request, InitProducerIdResponse(producer_id=8, producer_epoch=0))
    (batch,) = stage.drain(20).batches[1]
    assert (batch.producer_id, *numbers(batch)[0]) == (8, 0, 0)


def test_a_refused_batch_leaves_no_gap_in_a_transaction() -> None:
    manager = in_transaction()
    stage = Stage(gate=manager.sequences)
    stage.queue().sequences.known_id = 7
    first, second, third = sent(stage, 3)
    manager.sequences.on_failed(first, errors.RecordTooLargeError("big"), adjust=True)
    assert [batch.base_sequence for batch in (second, third)] == [0, 2]
    assert stage.queue().sequences.next == 4
    assert manager.status.has_abortable_error


@pytest.mark.parametrize(
    ("transactional", "log_start", "acked", "retried"),
    [
        pytest.param(False, -1, 5, True, id="the partition moves"),
        pytest.param(False, 0, 5, True, id="another epoch"),
        pytest.param(True, 10, 5, True, id="retention took what was known"),
        pytest.param(True, 0, 5, False, id="data was lost: the transaction fails"),
    ],
)
def test_an_unknown_producer(
    transactional: bool, log_start: int, acked: int, retried: bool
) -> None:
    if transactional:
        manager = in_transaction()
        stage = Stage(gate=manager.sequences)
    else:
        manager, stage = idempotent()
    (batch,) = sent(stage, 1)
    stage.queue().sequences.last_acked_offset = acked
    error = errors.UnknownProducerIdError()
    code = ErrorCode.UNKNOWN_PRODUCER_ID
    assert manager.sequences.can_retry(batch, code, error, log_start) is retried


def test_a_transaction_sends_only_to_partitions_that_belong_to_it() -> None:
    manager = started(V1)
    manager.begin()
    stage = Stage(gate=manager.sequences)
    batch = stage.batch()
    manager.add_partition(KEY)
    assert stage.drain(20).batches == {}
    added(manager, next_of(manager), 0)
    assert stage.drain(20).batches == {1: [batch]}


# The table of states.

NEXT = {
    State.UNINITIALIZED: {State.INITIALIZING},
    State.INITIALIZING: {State.READY, ABORT},
    State.READY: {State.UNINITIALIZED, State.IN_TRANSACTION},
    State.IN_TRANSACTION: {State.COMMITTING, State.ABORTING, ABORT},
    State.COMMITTING: {State.INITIALIZING, State.READY, ABORT},
    State.ABORTING: {State.INITIALIZING, State.READY},
    ABORT: {State.UNINITIALIZED, State.ABORTING, ABORT},
    FATAL: set(),
}


@pytest.mark.parametrize("before", State)
@pytest.mark.parametrize("after", State)
def test_states_follow_each_other_as_the_table_has_it(before: State, after: State) -> None:
    status = TransactionStatus("id")
    status.state = before
    if after is FATAL or after in NEXT[before]:
        status.transition_to(after)
        assert status.state is after
    else:
        with pytest.raises(errors.IllegalStateError, match=f"from state {before.name} to state"):
            status.transition_to(after)
        assert status.state is before


@pytest.mark.parametrize("state", [State.ABORTING, FATAL])
def test_an_error_does_not_undo_an_abort_or_the_end(state: State) -> None:
    status = TransactionStatus("id")
    status.state = state
    status.to_abortable_error(errors.KafkaError("late"))
    assert status.state is state


def test_a_cancellation_that_comes_with_the_end_of_a_call_is_not_lost() -> None:
    """Else a task that writes in a loop could not be stopped."""

    async def main() -> None:
        manager = started()
        sender, path = SimpleNamespace(wake_now=lambda: None), SimpleNamespace(closed=False)
        settings = SimpleNamespace(max_block_ms=60_000)
        calls = TransactionCalls(
            *cast(Any, (settings, None, manager, None, sender, path, None)),
        )
        operation = Operation("commit_transaction")
        call = asyncio.ensure_future(calls._finish(operation, None))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        operation.succeed()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(main())
