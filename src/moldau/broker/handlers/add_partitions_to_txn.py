"""AddPartitionsToTxn (key 24), v0-5: partitions that a transaction will write to.

Up to v3 a client adds partitions to its own transaction. From v4 on brokers ask, for many
transactions at once: to add partitions on behalf of clients of transaction version 2, or only
whether they are in the transaction. One partition that does not exist fails its whole
transaction; the transactions of one request do not affect each other.
"""

from __future__ import annotations

import asyncio

from moldau.broker.coordinator.machine.topics import Topics
from moldau.broker.coordinator.transaction.coordinator import TransactionCoordinator
from moldau.broker.coordinator.transaction.machine.values import TV_0, TV_2, TopicPartition
from moldau.broker.handlers.support.transaction_errors import for_client
from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

_BATCHED_FROM = 4
_PRODUCER_FENCED_FROM = 2

_Transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
_Result = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
_TopicResult = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
_PartitionResult = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult


class AddPartitionsToTxnHandler:
    def __init__(self, coordinator: TransactionCoordinator, topics: Topics) -> None:
        self._coordinator = coordinator
        self._topics = topics

    async def handle(
        self, context: RequestContext, request: AddPartitionsToTxnRequest
    ) -> AddPartitionsToTxnResponse:
        if context.api_version < _BATCHED_FROM:
            result = await self._add(
                context,
                _Transaction(
                    transactional_id=request.v3_and_below_transactional_id,
                    producer_id=request.v3_and_below_producer_id,
                    producer_epoch=request.v3_and_below_producer_epoch,
                    topics=request.v3_and_below_topics,
                ),
            )
            return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=result.topic_results)
        # A transactional id is the key of its entry: of two with the same, the last counts.
        transactions = {each.transactional_id: each for each in request.transactions}
        results = await asyncio.gather(
            *(self._add(context, each) for each in transactions.values())
        )
        return AddPartitionsToTxnResponse(results_by_transaction=list(results))

    async def _add(self, context: RequestContext, transaction: _Transaction) -> _Result:
        partitions = [
            (topic.name, partition)
            for topic in transaction.topics
            for partition in topic.partitions
        ]
        missing = {each for each in partitions if not self._topics.has_partition(*each)}
        if missing:
            errors = {
                each: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if each in missing
                else ErrorCode.OPERATION_NOT_ATTEMPTED
                for each in partitions
            }
        else:
            errors = await self._coordinator.add_partitions(
                transaction.transactional_id,
                transaction.producer_id,
                transaction.producer_epoch,
                partitions,
                verify_only=transaction.verify_only,
                client_transaction_version=(TV_2 if context.api_version >= _BATCHED_FROM else TV_0),
            )
        return _Result(
            transactional_id=transaction.transactional_id,
            topic_results=_by_topic(
                {
                    place: for_client(error, context, _PRODUCER_FENCED_FROM)
                    for place, error in errors.items()
                }
            ),
        )


def _by_topic(errors: dict[TopicPartition, ErrorCode]) -> list[_TopicResult]:
    topics: dict[str, list[_PartitionResult]] = {}
    for (name, partition), error in errors.items():
        topics.setdefault(name, []).append(
            _PartitionResult(partition_index=partition, partition_error_code=error)
        )
    return [
        _TopicResult(name=name, results_by_partition=results) for name, results in topics.items()
    ]
