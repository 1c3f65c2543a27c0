"""The transaction coordinator of any transactional id, on whichever node it is.

Before a partition takes a transaction's first batch its leader asks the coordinator (see
`verification.py`). Decided here: which broker that is, and what an answer that does not come means.
One request is under way to a broker at a time, and holds all questions that have gathered.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol

from moldau.broker.calls.brokers import (
    NO_LEADER,
    BrokerChannels,
    PartitionLeaders,
    known_code,
)
from moldau.broker.calls.gathering import Gathering
from moldau.broker.coordinator.transaction.interface import TransactionPartitions
from moldau.broker.coordinator.transaction.machine.values import TV_2, TopicPartition
from moldau.broker.machine.topics import TRANSACTION_STATE_TOPIC
from moldau.invariant import of_type
from moldau.peers.channel import ChannelError
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

logger = logging.getLogger(__name__)

_Transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
_Topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
Errors = dict[TopicPartition, ErrorCode]


class LocalTransactions(TransactionPartitions, Protocol):
    """The coordinator of this node."""

    def partition_for(self, transactional_id: str) -> int: ...


class _Question(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]
    verify_only: bool


class ClusterTransactionPartitions:
    """Implements `TransactionPartitions`; for clients of version 2 where it adds partitions."""

    def __init__(
        self,
        local: LocalTransactions,
        leaders: PartitionLeaders,
        channels: BrokerChannels,
        *,
        node_id: int,
        timeout_ms: Callable[[], int],
    ) -> None:
        """`timeout_ms` is for one request: request.timeout.ms."""
        self._local = local
        self._leaders = leaders
        self._channels = channels
        self._node_id = node_id
        self._timeout_ms = timeout_ms
        self._requests: Gathering[int, _Question, Errors] = Gathering(
            self._send, key=lambda question: question.transactional_id
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
        coordinator = self._leaders.leader(
            TRANSACTION_STATE_TOPIC, self._local.partition_for(transactional_id)
        )
        if coordinator == self._node_id:
            return await self._local.add_partitions(
                transactional_id,
                producer_id,
                producer_epoch,
                partitions,
                verify_only=verify_only,
                client_transaction_version=client_transaction_version,
            )
        if coordinator is None or coordinator == NO_LEADER:
            return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        question = _Question(
            transactional_id, producer_id, producer_epoch, tuple(partitions), verify_only
        )
        try:
            return await self._requests.call(coordinator, question)
        except ChannelError as error:
            logger.info("asking the coordinator of %s: %s", transactional_id, error)
            return dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)

    async def _send(self, coordinator: int, questions: Sequence[_Question]) -> list[Errors]:
        answer = await self._channels.call(
            coordinator,
            ApiKey.ADD_PARTITIONS_TO_TXN,
            AddPartitionsToTxnRequest(transactions=[_encoded(each) for each in questions]),
            timeout_ms=self._timeout_ms(),
        )
        response = of_type(answer, AddPartitionsToTxnResponse)
        if response.error_code:
            code = known_code(response.error_code)
            if code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                # It is this broker that was refused, of which the client must not hear.
                logger.error("broker %d takes no questions from this one: %s", coordinator, code)
                code = ErrorCode.INVALID_TXN_STATE
            return [dict.fromkeys(each.partitions, code) for each in questions]
        told = {
            result.transactional_id: {
                (topic.name, partition.partition_index): known_code(partition.partition_error_code)
                for topic in result.topic_results
                for partition in topic.results_by_partition
            }
            for result in response.results_by_transaction
        }
        return [
            {
                name: told.get(each.transactional_id, {}).get(name, ErrorCode.UNKNOWN_SERVER_ERROR)
                for name in each.partitions
            }
            for each in questions
        ]

    def close(self) -> None:
        self._requests.close()


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
