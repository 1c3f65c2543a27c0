"""What the responses to a transactional producer's requests mean.

Decided here: whether a request is done, sent again, or sent to another coordinator, and what an
error does to the transaction. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.client.errors import (
    CommitFailedError,
    KafkaError,
    ProducerFencedError,
    UnsupportedVersionError,
    error_for,
)
from moldau.client.producer.machine.sequence_book import SequenceBook
from moldau.client.producer.machine.sequences import ProducerId
from moldau.client.producer.machine.transaction_requests import RequestMaker
from moldau.client.producer.machine.transaction_state import (
    DONE,
    RETRY,
    RETRY_ELSEWHERE,
    State,
    TransactionRequest,
    Verdict,
)
from moldau.client.producer.machine.transaction_status import TransactionStatus
from moldau.client.topics import TopicPartition
from moldau.wire.errors import COORDINATOR_MOVED, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)

__all__ = ["ResponseReader"]

# The previous transaction is about to end: this is soon over.
FIRST_ADD_BACKOFF_MS = 20

_FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
_FATAL = (
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
)

Handler = Callable[[TransactionRequest, Any], Verdict]


class ResponseReader:
    """See the module. `enqueue` takes a request that follows from a response."""

    def __init__(
        self,
        status: TransactionStatus,
        sequences: SequenceBook,
        make: RequestMaker,
        enqueue: Callable[[TransactionRequest], None],
    ) -> None:
        self._status = status
        self._sequences = sequences
        self._make = make
        self._enqueue = enqueue
        self._handlers: dict[type[Message], Handler] = {
            InitProducerIdRequest: self._on_init,
            AddPartitionsToTxnRequest: self._on_added_partitions,
            EndTxnRequest: self._on_end,
            AddOffsetsToTxnRequest: self._on_added_offsets,
            TxnOffsetCommitRequest: self._on_offsets,
        }

    def on_response(self, request: TransactionRequest, response: Any) -> Verdict:
        """What becomes of a request."""
        return self._handlers[type(request.message)](request, response)

    def on_failure(self, request: TransactionRequest, error: KafkaError) -> Verdict:
        """No response came, or no coordinator was found."""
        if isinstance(error, UnsupportedVersionError):
            return self._fatal(request, error)
        if error.retriable or error.code is ErrorCode.BROKER_NOT_AVAILABLE:
            return RETRY
        if error.code is ErrorCode.GROUP_AUTHORIZATION_FAILED:
            return self._abortable(request, error)
        return self._fatal(request, error)

    def _fatal(self, request: TransactionRequest, error: KafkaError) -> Verdict:
        request.operation.fail(error)
        self._status.to_fatal_error(error)
        return DONE

    def _abortable(self, request: TransactionRequest, error: KafkaError) -> Verdict:
        request.operation.fail(error)
        if self._status.pending is request.operation:
            request.operation.acknowledged = True
        self._status.to_abortable_error(error)
        return DONE

    def _abortable_if_possible(self, request: TransactionRequest, error: KafkaError) -> Verdict:
        if not self._status.recovers:
            return self._fatal(request, error)
        self._status.require_bump()
        return self._abortable(request, error)

    def _common(self, request: TransactionRequest, code: int, what: str) -> Verdict:
        """What the errors mean that all of these APIs have."""
        error = error_for(code, what)
        if code in COORDINATOR_MOVED:
            return RETRY_ELSEWHERE
        if error.retriable:
            return RETRY
        if code in _FENCED:
            return self._fatal(request, _fenced())
        if code in _FATAL:
            return self._fatal(request, error)
        if code == ErrorCode.UNKNOWN_PRODUCER_ID:
            return self._abortable_if_possible(request, error)
        if code in (ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.GROUP_AUTHORIZATION_FAILED):
            return self._abortable(request, error)
        return self._fatal(
            request, KafkaError(f"unexpected error in the response to {what}: {error}")
        )

    def _on_init(self, request: TransactionRequest, response: Any) -> Verdict:
        status = self._status
        code = response.error_code
        if code == ErrorCode.NONE:
            status.producer_id = ProducerId(response.producer_id, response.producer_epoch)
            status.transition_to(State.READY)
            if request.detail:
                self._sequences.reset()
            request.operation.succeed()
            return DONE
        if code in (
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ):
            # The right may be given later: the application may call again.
            return self._abortable(request, error_for(code, "InitProducerId"))
        return self._common(request, code, "InitProducerId")

    def _on_added_partitions(self, request: TransactionRequest, response: Any) -> Verdict:
        status = self._status
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
            if code == ErrorCode.CONCURRENT_TRANSACTIONS and not status.partitions:
                request.backoff_ms = FIRST_ADD_BACKOFF_MS
                return RETRY
            if code != ErrorCode.OPERATION_NOT_ATTEMPTED and _is_known(code):
                request.backoff_ms = None
                return self._common(request, code, "AddPartitionsToTxn")
            refused[key] = code
        status.pending_partitions.difference_update(codes)
        if unauthorized:
            error = error_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED, ", ".join(sorted(unauthorized)))
            return self._abortable(request, error)
        if refused:
            shown = ", ".join(f"{key}: {error_for(code)}" for key, code in refused.items())
            return self._abortable(
                request, KafkaError(f"partitions could not be added to the transaction: {shown}")
            )
        status.partitions.update(codes)
        status.started = True
        request.operation.succeed()
        return DONE

    def _on_end(self, request: TransactionRequest, response: Any) -> Verdict:
        status = self._status
        code = response.error_code
        if code == ErrorCode.NONE:
            if response.producer_id != -1:
                status.producer_id = ProducerId(response.producer_id, response.producer_epoch)
                self._sequences.reset()
            status.on_ended()
            request.operation.succeed()
            return DONE
        message = request.message
        if code == ErrorCode.TRANSACTION_ABORTABLE and not getattr(message, "committed", False):
            # To abort again would not end: this is over.
            cause = error_for(code, "EndTxn")
            return self._fatal(request, KafkaError(f"failed to abort the transaction: {cause}"))
        return self._common(request, code, "EndTxn")

    def _on_added_offsets(self, request: TransactionRequest, response: Any) -> Verdict:
        status = self._status
        if response.error_code == ErrorCode.NONE:
            offsets, group = request.detail
            # It is over when the offsets themselves are there.
            self._enqueue(self._make.offsets(request.operation, offsets, group))
            status.started = True
            return DONE
        return self._common(request, response.error_code, "AddOffsetsToTxn")

    def _on_offsets(self, request: TransactionRequest, response: Any) -> Verdict:
        status = self._status
        codes = {
            TopicPartition(topic.name, each.partition_index): each.error_code
            for topic in response.topics
            for each in topic.partitions
        }
        verdict = DONE
        for key, code in codes.items():
            if code == ErrorCode.NONE:
                status.pending_offsets.pop(key, None)
                continue
            if code in (*COORDINATOR_MOVED, ErrorCode.REQUEST_TIMED_OUT):
                verdict = RETRY_ELSEWHERE
                continue
            error = error_for(code, "TxnOffsetCommit")
            if error.retriable:
                verdict = verdict if verdict.retry else RETRY
                continue
            status.pending_offsets.clear()
            return self._refuse_offsets(request, code, error)
        if verdict.retry:
            message = request.message
            if isinstance(message, TxnOffsetCommitRequest):
                message.topics = self._make.pending_topics()
            return verdict
        request.operation.succeed()
        return DONE

    def _refuse_offsets(self, request: TransactionRequest, code: int, error: KafkaError) -> Verdict:
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            return self._abortable(
                request,
                CommitFailedError(
                    f"offsets were not committed, the group has moved on: {error}",
                    advice="abort the transaction",
                ),
            )
        if code == ErrorCode.FENCED_INSTANCE_ID:
            return self._abortable(request, error)
        if code == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
            return self._fatal(request, error)
        return self._common(request, code, "TxnOffsetCommit")


def _fenced() -> ProducerFencedError:
    return ProducerFencedError("there is a newer producer with the same transactional.id")


def _is_known(code: int) -> bool:
    """Whether an error decides about the whole transaction and not about a partition only."""
    known = (*COORDINATOR_MOVED, *_FENCED, *_FATAL, ErrorCode.UNKNOWN_PRODUCER_ID)
    return code in (*known, ErrorCode.TRANSACTION_ABORTABLE) or error_for(code).retriable
