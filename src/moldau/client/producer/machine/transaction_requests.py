"""The requests of a transactional producer. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moldau.client.machine.coordinators import CoordinatorType
from moldau.client.producer.machine.sequences import ProducerId
from moldau.client.producer.machine.transaction_state import (
    Operation,
    Priority,
    State,
    TransactionRequest,
)
from moldau.client.producer.machine.transaction_status import TransactionStatus
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.wire.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)

__all__ = ["RequestMaker"]

_INT32_MAX = 2**31 - 1
# The last versions that work without transactions of version 2 (KIP-890).
END_TXN_MAX_V1 = 4
TXN_OFFSET_COMMIT_MAX_V1 = 4
PRODUCE_MAX_V1 = 11
# Later ones are for brokers among themselves.
ADD_PARTITIONS_MAX = 3


class RequestMaker:
    """See the module."""

    def __init__(self, status: TransactionStatus, transaction_timeout_ms: int) -> None:
        self._status = status
        self._timeout_ms = transaction_timeout_ms

    @property
    def _own_coordinator(self) -> tuple[CoordinatorType, str] | None:
        if self._status.transactional_id is None:
            return None
        return CoordinatorType.TRANSACTION, self._status.transactional_id

    def init(self, known: ProducerId, *, is_bump: bool = False) -> TransactionRequest:
        return TransactionRequest(
            InitProducerIdRequest(
                transactional_id=self._status.transactional_id,
                transaction_timeout_ms=_INT32_MAX
                if self._status.transactional_id is None
                else self._timeout_ms,
                producer_id=known.producer_id,
                producer_epoch=known.epoch,
            ),
            Operation("init_transactions", State.INITIALIZING),
            priority=Priority.EPOCH_BUMP if is_bump else Priority.INIT_PRODUCER_ID,
            coordinator=self._own_coordinator,
            detail=is_bump,
        )

    def end(self, committed: bool) -> TransactionRequest:
        name = "commit_transaction" if committed else "abort_transaction"
        return TransactionRequest(
            EndTxnRequest(
                transactional_id=self._status.transactional_id or "",
                producer_id=self._status.producer_id.producer_id,
                producer_epoch=self._status.producer_id.epoch,
                committed=committed,
            ),
            Operation(name, State.COMMITTING if committed else State.ABORTING),
            priority=Priority.END,
            coordinator=self._own_coordinator,
            max_version=None if self._status.is_v2 else END_TXN_MAX_V1,
        )

    def add_partitions(self) -> TransactionRequest:
        return TransactionRequest(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self._status.transactional_id or "",
                v3_and_below_producer_id=self._status.producer_id.producer_id,
                v3_and_below_producer_epoch=self._status.producer_id.epoch,
                v3_and_below_topics=[
                    AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
                        name=topic, partitions=[key.partition for key in keys]
                    )
                    for topic, keys in _by_topic(self._status.pending_partitions).items()
                ],
            ),
            Operation("AddPartitionsToTxn"),
            priority=Priority.ADD,
            coordinator=self._own_coordinator,
            max_version=ADD_PARTITIONS_MAX,
        )

    def add_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: Any
    ) -> TransactionRequest:
        return TransactionRequest(
            AddOffsetsToTxnRequest(
                transactional_id=self._status.transactional_id or "",
                producer_id=self._status.producer_id.producer_id,
                producer_epoch=self._status.producer_id.epoch,
                group_id=group.group_id,
            ),
            Operation("send_offsets_to_transaction"),
            priority=Priority.ADD,
            coordinator=self._own_coordinator,
            detail=(dict(offsets), group),
        )

    def offsets(
        self,
        operation: Operation,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: Any,
    ) -> TransactionRequest:
        self._status.pending_offsets.update(offsets)
        request = TxnOffsetCommitRequest(
            transactional_id=self._status.transactional_id or "",
            group_id=group.group_id,
            producer_id=self._status.producer_id.producer_id,
            producer_epoch=self._status.producer_id.epoch,
            generation_id=group.generation_id,
            member_id=group.member_id,
            group_instance_id=group.group_instance_id,
            topics=self.pending_topics(),
        )
        return TransactionRequest(
            request,
            operation,
            priority=Priority.ADD,
            coordinator=(CoordinatorType.GROUP, group.group_id),
            max_version=None if self._status.is_v2 else TXN_OFFSET_COMMIT_MAX_V1,
            detail=group,
        )

    def pending_topics(self) -> list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic]:
        return [
            TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
                        partition_index=key.partition,
                        committed_offset=self._status.pending_offsets[key].offset,
                        committed_leader_epoch=_epoch(self._status.pending_offsets[key]),
                        committed_metadata=self._status.pending_offsets[key].metadata,
                    )
                    for key in keys
                ],
            )
            for topic, keys in _by_topic(self._status.pending_offsets).items()
        ]


def _epoch(offset: OffsetAndMetadata) -> int:
    return -1 if offset.leader_epoch is None else offset.leader_epoch


def _by_topic(keys: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    found: dict[str, list[TopicPartition]] = {}
    for key in sorted(keys):
        found.setdefault(key.topic, []).append(key)
    return found
