"""TxnOffsetCommit (key 28), v0-5: offsets that a transaction commits with its records.

v3 group members and generations; v4 TRANSACTION_ABORTABLE; v5 the group's partition of the
offsets topic is added to the transaction here, where older clients send AddOffsetsToTxn first.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Protocol

from moldau.broker.coordinator.group.machine.transactional_commits import refused
from moldau.broker.coordinator.machine.decision import ProducerStamp
from moldau.broker.coordinator.machine.topics import Topics
from moldau.broker.coordinator.shell import client_error
from moldau.broker.machine.topics import GROUP_OFFSETS_TOPIC
from moldau.broker.network.context import RequestContext
from moldau.broker.replication.partition import Partition
from moldau.broker.transactions.verification import (
    Claim,
    TransactionVerifier,
    Verified,
    txn_offset_commit_operation,
)
from moldau.wire.constants import NO_SEQUENCE
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse

_LOADING_SINCE = 2

_Topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
_TopicResult = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
_PartitionResult = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition


class TransactionalOffsets(Protocol):
    """The group coordinator."""

    def partition_for(self, group_id: str) -> int: ...

    async def commit_transactional_offsets(
        self,
        context: RequestContext,
        request: TxnOffsetCommitRequest,
        topic_ids: Mapping[str, uuid.UUID],
        producer: ProducerStamp,
    ) -> TxnOffsetCommitResponse: ...


class OffsetsReplicas(Protocol):
    def find(self, key: str, index: int) -> Partition | None: ...

    def absence(self, key: str, index: int) -> ErrorCode: ...


class TxnOffsetCommitHandler:
    def __init__(
        self,
        coordinator: TransactionalOffsets,
        topics: Topics,
        replicas: OffsetsReplicas,
        verifier: TransactionVerifier,
    ) -> None:
        self._coordinator = coordinator
        self._topics = topics
        self._replicas = replicas
        self._verifier = verifier

    async def handle(
        self, context: RequestContext, request: TxnOffsetCommitRequest
    ) -> TxnOffsetCommitResponse:
        wanted = request.topics
        topic_ids: dict[str, uuid.UUID] = {}
        request.topics = []
        for topic in wanted:
            topic_id = self._topics.id_of(topic.name)
            partitions = [
                partition
                for partition in topic.partitions
                if self._topics.has_partition(topic.name, partition.partition_index)
            ]
            if partitions and topic_id is not None:
                topic_ids[topic.name] = topic_id
                request.topics.append(_Topic(name=topic.name, partitions=partitions))
        errors: dict[tuple[str, int], int] = {}
        if request.topics:
            stored = await self._commit(context, request, topic_ids)
            errors = {
                (topic.name, partition.partition_index): partition.error_code
                for topic in stored.topics
                for partition in topic.partitions
            }
        return TxnOffsetCommitResponse(
            topics=[_result(topic, errors, context.api_version) for topic in wanted]
        )

    async def _commit(
        self,
        context: RequestContext,
        request: TxnOffsetCommitRequest,
        topic_ids: Mapping[str, uuid.UUID],
    ) -> TxnOffsetCommitResponse:
        if not request.group_id:
            return refused(request, ErrorCode.INVALID_GROUP_ID)
        try:
            guard = await self._verify(context, request)
        except ApiError as error:
            # With this error a client tries again, at the same coordinator.
            unreached = error.code is ErrorCode.NETWORK_EXCEPTION
            code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if unreached else client_error(error.code)
            return refused(request, code)
        return await self._coordinator.commit_transactional_offsets(
            context,
            request,
            topic_ids,
            ProducerStamp(request.producer_id, request.producer_epoch, guard),
        )

    async def _verify(self, context: RequestContext, request: TxnOffsetCommitRequest) -> object:
        """The guard with which the group's partition takes the offsets; raises ApiError."""
        index = self._coordinator.partition_for(request.group_id)
        partition = self._replicas.find(GROUP_OFFSETS_TOPIC, index)
        if partition is None:
            raise ApiError(
                self._replicas.absence(GROUP_OFFSETS_TOPIC, index),
                f"{GROUP_OFFSETS_TOPIC}-{index} is not served by this node",
            )
        claim = Claim(partition, request.producer_id, request.producer_epoch, NO_SEQUENCE)
        started = self._verifier.start(
            request.transactional_id,
            [claim],
            txn_offset_commit_operation(context.api_version),
            retry=False,
        )
        verified = started if isinstance(started, Verified) else await started
        if error := verified.errors.get(claim.name):
            raise ApiError(error, "the group is not known to be part of the transaction")
        return verified.guard(claim.name)


def _result(topic: _Topic, errors: Mapping[tuple[str, int], int], version: int) -> _TopicResult:
    result = _TopicResult(name=topic.name)
    for partition in topic.partitions:
        index = partition.partition_index
        error = errors.get((topic.name, index), int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        if version < _LOADING_SINCE and error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # Producers before 2.0 fail on it.
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        result.partitions.append(_PartitionResult(partition_index=index, error_code=error))
    return result
