"""The requests of a transactional producer, and what each response means.

Pure; the other half of `transactions.TransactionManager`, which holds the state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from moldau.client.errors import (
    CommitFailedError,
    KafkaError,
    ProducerFencedError,
    error_for,
)
from moldau.client.machine.coordinators import CoordinatorType
from moldau.client.producer.machine.sequences import ProducerId
from moldau.client.producer.machine.transaction_state import (
    DONE,
    RETRY,
    RETRY_ELSEWHERE,
    Operation,
    Priority,
    State,
    TransactionRequest,
    Verdict,
)
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.wire.errors import COORDINATOR_MOVED, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)

if TYPE_CHECKING:
    from moldau.client.producer.machine.transactions import TransactionManager

__all__ = ["TransactionRequests"]

_INT32_MAX = 2**31 - 1
# The last versions that work without transactions of version 2 (KIP-890).
END_TXN_MAX_V1 = 4
TXN_OFFSET_COMMIT_MAX_V1 = 4
PRODUCE_MAX_V1 = 11
# Later ones are for brokers among themselves.
ADD_PARTITIONS_MAX = 3
# The previous transaction is about to end: this is soon over.
FIRST_ADD_BACKOFF_MS = 20

_FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
_FATAL = (
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
)

Handler = Callable[["TransactionManager", TransactionRequest, Any], Verdict]


class TransactionRequests:
    """See the module."""

    transactional_id: str | None
    transaction_timeout_ms: int
    producer_id: ProducerId
    is_v2: bool
    pending_partitions: set[TopicPartition]
    pending_offsets: dict[TopicPartition, OffsetAndMetadata]
    handlers: ClassVar[dict[type[Message], Handler]]

    @property
    def _own_coordinator(self) -> tuple[CoordinatorType, str] | None:
        if self.transactional_id is None:
            return None
        return CoordinatorType.TRANSACTION, self.transactional_id

    def is_end(self, request: TransactionRequest) -> bool:
        return type(request.message) is EndTxnRequest

    def init_request(self, known: ProducerId, *, is_bump: bool = False) -> TransactionRequest:
        return TransactionRequest(
            InitProducerIdRequest(
                transactional_id=self.transactional_id,
                transaction_timeout_ms=_INT32_MAX
                if self.transactional_id is None
                else self.transaction_timeout_ms,
                producer_id=known.producer_id,
                producer_epoch=known.epoch,
            ),
            Operation("init_transactions", State.INITIALIZING),
            priority=Priority.EPOCH_BUMP if is_bump else Priority.INIT_PRODUCER_ID,
            coordinator=self._own_coordinator,
            detail=is_bump,
        )

    def end_request(self, committed: bool) -> TransactionRequest:
        name = "commit_transaction" if committed else "abort_transaction"
        return TransactionRequest(
            EndTxnRequest(
                transactional_id=self.transactional_id or "",
                producer_id=self.producer_id.producer_id,
                producer_epoch=self.producer_id.epoch,
                committed=committed,
            ),
            Operation(name, State.COMMITTING if committed else State.ABORTING),
            priority=Priority.END,
            coordinator=self._own_coordinator,
            max_version=None if self.is_v2 else END_TXN_MAX_V1,
        )

    def add_partitions_request(self) -> TransactionRequest:
        return TransactionRequest(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id or "",
                v3_and_below_producer_id=self.producer_id.producer_id,
                v3_and_below_producer_epoch=self.producer_id.epoch,
                v3_and_below_topics=[
                    AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
                        name=topic, partitions=[key.partition for key in keys]
                    )
                    for topic, keys in _by_topic(self.pending_partitions).items()
                ],
            ),
            Operation("AddPartitionsToTxn"),
            priority=Priority.ADD,
            coordinator=self._own_coordinator,
            max_version=ADD_PARTITIONS_MAX,
        )

    def add_offsets_request(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: Any
    ) -> TransactionRequest:
        return TransactionRequest(
            AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id or "",
                producer_id=self.producer_id.producer_id,
                producer_epoch=self.producer_id.epoch,
                group_id=group.group_id,
            ),
            Operation("send_offsets_to_transaction"),
            priority=Priority.ADD,
            coordinator=self._own_coordinator,
            detail=(dict(offsets), group),
        )

    def offsets_request(
        self,
        operation: Operation,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: Any,
    ) -> TransactionRequest:
        self.pending_offsets.update(offsets)
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id or "",
            group_id=group.group_id,
            producer_id=self.producer_id.producer_id,
            producer_epoch=self.producer_id.epoch,
            generation_id=group.generation_id,
            member_id=group.member_id,
            group_instance_id=group.group_instance_id,
            topics=self._pending_topics(),
        )
        return TransactionRequest(
            request,
            operation,
            priority=Priority.ADD,
            coordinator=(CoordinatorType.GROUP, group.group_id),
            max_version=None if self.is_v2 else TXN_OFFSET_COMMIT_MAX_V1,
            detail=group,
        )

    def _pending_topics(self) -> list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic]:
        return [
            TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
                        partition_index=key.partition,
                        committed_offset=self.pending_offsets[key].offset,
                        committed_leader_epoch=_epoch(self.pending_offsets[key]),
                        committed_metadata=self.pending_offsets[key].metadata,
                    )
                    for key in keys
                ],
            )
            for topic, keys in _by_topic(self.pending_offsets).items()
        ]


def _epoch(offset: OffsetAndMetadata) -> int:
    return -1 if offset.leader_epoch is None else offset.leader_epoch


def _by_topic(keys: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    found: dict[str, list[TopicPartition]] = {}
    for key in sorted(keys):
        found.setdefault(key.topic, []).append(key)
    return found


def _fenced() -> ProducerFencedError:
    return ProducerFencedError("there is a newer producer with the same transactional.id")


def _common(
    manager: TransactionManager, request: TransactionRequest, code: int, what: str
) -> Verdict:
    """What the errors mean that all of these APIs have."""
    error = error_for(code, what)
    if code in COORDINATOR_MOVED:
        return RETRY_ELSEWHERE
    if error.retriable:
        return RETRY
    if code in _FENCED:
        return manager.fatal(request, _fenced())
    if code in _FATAL:
        return manager.fatal(request, error)
    if code == ErrorCode.UNKNOWN_PRODUCER_ID:
        return manager.abortable_if_possible(request, error)
    if code in (ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.GROUP_AUTHORIZATION_FAILED):
        return manager.abortable(request, error)
    return manager.fatal(
        request, KafkaError(f"unexpected error in the response to {what}: {error}")
    )


def _on_init(manager: TransactionManager, request: TransactionRequest, response: Any) -> Verdict:
    code = response.error_code
    if code == ErrorCode.NONE:
        manager.producer_id = ProducerId(response.producer_id, response.producer_epoch)
        manager.transition_to(State.READY)
        if request.detail:
            manager.reset_sequence_numbers()
        request.operation.succeed()
        return DONE
    if code in (
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ):
        # The right may be given later: the application may call again.
        return manager.abortable(request, error_for(code, "InitProducerId"))
    return _common(manager, request, code, "InitProducerId")


def _on_added_partitions(
    manager: TransactionManager, request: TransactionRequest, response: Any
) -> Verdict:
    codes = {
        TopicPartition(topic.name, each.partition_index): each.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    }
    refused: dict[TopicPartition, int] = {}
    unauthorized: set[str] = set()
    for key, code in codes.items():
        if code == ErrorCode.NONE:
            continue
        if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            unauthorized.add(key.topic)
            continue
        if code == ErrorCode.CONCURRENT_TRANSACTIONS and not manager.partitions:
            request.backoff_ms = FIRST_ADD_BACKOFF_MS
            return RETRY
        if code != ErrorCode.OPERATION_NOT_ATTEMPTED and _is_known(code):
            request.backoff_ms = None
            return _common(manager, request, code, "AddPartitionsToTxn")
        refused[key] = code
    manager.pending_partitions.difference_update(codes)
    if unauthorized:
        error = error_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED, ", ".join(sorted(unauthorized)))
        return manager.abortable(request, error)
    if refused:
        shown = ", ".join(f"{key}: {error_for(code)}" for key, code in refused.items())
        return manager.abortable(
            request, KafkaError(f"partitions could not be added to the transaction: {shown}")
        )
    manager.partitions.update(codes)
    manager.started = True
    request.operation.succeed()
    return DONE


def _is_known(code: int) -> bool:
    """Whether an error decides about the whole transaction and not about a partition only."""
    known = (*COORDINATOR_MOVED, *_FENCED, *_FATAL, ErrorCode.UNKNOWN_PRODUCER_ID)
    return code in (*known, ErrorCode.TRANSACTION_ABORTABLE) or error_for(code).retriable


def _on_end(manager: TransactionManager, request: TransactionRequest, response: Any) -> Verdict:
    code = response.error_code
    if code == ErrorCode.NONE:
        if response.producer_id != -1:
            manager.producer_id = ProducerId(response.producer_id, response.producer_epoch)
            manager.reset_sequence_numbers()
        manager.reset_transaction()
        request.operation.succeed()
        return DONE
    message = request.message
    if code == ErrorCode.TRANSACTION_ABORTABLE and not getattr(message, "committed", False):
        # To abort again would not end: this is over.
        cause = error_for(code, "EndTxn")
        return manager.fatal(request, KafkaError(f"failed to abort the transaction: {cause}"))
    return _common(manager, request, code, "EndTxn")


def _on_added_offsets(
    manager: TransactionManager, request: TransactionRequest, response: Any
) -> Verdict:
    if response.error_code == ErrorCode.NONE:
        offsets, group = request.detail
        # It is over when the offsets themselves are there.
        manager.enqueue(manager.offsets_request(request.operation, offsets, group))
        manager.started = True
        return DONE
    return _common(manager, request, response.error_code, "AddOffsetsToTxn")


def _on_offsets(manager: TransactionManager, request: TransactionRequest, response: Any) -> Verdict:
    codes = {
        TopicPartition(topic.name, each.partition_index): each.error_code
        for topic in response.topics
        for each in topic.partitions
    }
    verdict = DONE
    for key, code in codes.items():
        if code == ErrorCode.NONE:
            manager.pending_offsets.pop(key, None)
            continue
        if code in (*COORDINATOR_MOVED, ErrorCode.REQUEST_TIMED_OUT):
            verdict = RETRY_ELSEWHERE
            continue
        error = error_for(code, "TxnOffsetCommit")
        if error.retriable:
            verdict = verdict if verdict.retry else RETRY
            continue
        manager.pending_offsets.clear()
        return _offsets_refused(manager, request, code, error)
    if verdict.retry:
        message = request.message
        if isinstance(message, TxnOffsetCommitRequest):
            message.topics = manager._pending_topics()
        return verdict
    request.operation.succeed()
    return DONE


def _offsets_refused(
    manager: TransactionManager, request: TransactionRequest, code: int, error: KafkaError
) -> Verdict:
    if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
        return manager.abortable(
            request,
            CommitFailedError(
                f"offsets were not committed, the group has moved on: {error}",
                advice="abort the transaction",
            ),
        )
    if code == ErrorCode.FENCED_INSTANCE_ID:
        return manager.abortable(request, error)
    if code == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
        return manager.fatal(request, error)
    return _common(manager, request, code, "TxnOffsetCommit")


TransactionRequests.handlers = {
    InitProducerIdRequest: _on_init,
    AddPartitionsToTxnRequest: _on_added_partitions,
    EndTxnRequest: _on_end,
    AddOffsetsToTxnRequest: _on_added_offsets,
    TxnOffsetCommitRequest: _on_offsets,
}
