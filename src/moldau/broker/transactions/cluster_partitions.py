"""The transaction coordinator of any transactional id, on whichever broker it runs.

Before a partition accepts a transaction's first batch, its leader asks the coordinator (see
`verification.py`). The coordinator is the leader of the id's partition of `__transaction_state`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import NamedTuple, Protocol

from moldau.broker.calls.brokers import known_code
from moldau.broker.calls.leader_calls import BatchRequest, Brokers, LeaderCalls
from moldau.broker.coordinator.transaction.interface import TransactionPartitions
from moldau.broker.coordinator.transaction.machine.values import TV_2, TopicPartition
from moldau.broker.machine.topics import TRANSACTION_STATE_TOPIC
from moldau.invariant import of_type
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

logger = logging.getLogger(__name__)

_Transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
_Topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
Errors = dict[TopicPartition, ErrorCode]


class LocalTransactions(TransactionPartitions, Protocol):
    """The coordinator of this broker."""

    def partition_for(self, transactional_id: str) -> int: ...


class _Question(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]
    verify_only: bool


class ClusterTransactionPartitions:
    """Implements `TransactionPartitions`; for clients of version 2 where it adds partitions."""

    def __init__(self, local: LocalTransactions, brokers: Brokers) -> None:
        self._local = local
        self._calls = LeaderCalls(
            brokers,
            BatchRequest(
                api=ApiKey.ADD_PARTITIONS_TO_TXN,
                encode=_request,
                decode=_results,
                key=lambda question: question.transactional_id,
            ),
            no_partition=ErrorCode.COORDINATOR_NOT_AVAILABLE,
            no_leader=ErrorCode.COORDINATOR_NOT_AVAILABLE,
        )

    async def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        *,
        verify_only: bool,
        client_transaction_version: int = TV_2,
    ) -> Errors:
        question = _Question(
            transactional_id, producer_id, producer_epoch, tuple(partitions), verify_only
        )
        try:
            answer = await self._calls.call(
                (TRANSACTION_STATE_TOPIC, self._local.partition_for(transactional_id)),
                question,
                lambda: self._local.add_partitions(
                    transactional_id,
                    producer_id,
                    producer_epoch,
                    partitions,
                    verify_only=verify_only,
                    client_transaction_version=client_transaction_version,
                ),
            )
        except ApiError as error:
            logger.info("asking the coordinator of %s failed: %s", transactional_id, error)
            return dict.fromkeys(partitions, error.code)
        missing = ErrorCode.UNKNOWN_SERVER_ERROR
        return {name: answer.get(name, missing) for name in partitions}


def _request(questions: Sequence[_Question]) -> Message:
    return AddPartitionsToTxnRequest(transactions=[_encoded(each) for each in questions])


def _encoded(question: _Question) -> AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction:
    topics: dict[str, list[int]] = {}
    for name, index in question.partitions:
        topics.setdefault(name, []).append(index)
    return _Transaction(
        transactional_id=question.transactional_id,
        producer_id=question.producer_id,
        producer_epoch=question.producer_epoch,
        verify_only=question.verify_only,
        topics=[_Topic(name=name, partitions=indexes) for name, indexes in topics.items()],
    )


def _results(message: Message) -> Mapping[Hashable, Errors | ApiError]:
    response = of_type(message, AddPartitionsToTxnResponse)
    code = known_code(response.error_code)
    if code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        # The coordinator rejected this broker, not the client, which must not see the error.
        logger.error("the transaction coordinator rejects requests of this broker: %s", code.name)
        code = ErrorCode.INVALID_TXN_STATE
    if code is not ErrorCode.NONE:
        raise ApiError(code, "the coordinator rejected the request")
    return {
        result.transactional_id: {
            (topic.name, partition.partition_index): known_code(partition.partition_error_code)
            for topic in result.topic_results
            for partition in topic.results_by_partition
        }
        for result in response.results_by_transaction
    }
