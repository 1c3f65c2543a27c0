"""Producers and transactions: look at them, abort what hangs, fence producers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from moldau.client.admin.base import AdminBase, Listings, by_topic, several
from moldau.client.admin.driver import Answer, Call
from moldau.client.admin.routes import AnyRoute, BrokerRoute, CoordinatorRoute, LeaderRoute, Route
from moldau.client.admin.transaction_values import (
    AbortTransactionSpec,
    PartitionProducerState,
    ProducerIdAndEpoch,
    ProducerState,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from moldau.client.errors import InvalidRequestError, KafkaError
from moldau.client.machine.coordinators import CoordinatorType
from moldau.client.results import Results
from moldau.client.topics import TopicPartition
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

__all__ = ["TransactionOperations"]

_LOADING = frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})
_CONCURRENT = frozenset({ErrorCode.CONCURRENT_TRANSACTIONS})


class TransactionOperations(AdminBase):
    """Producers and transactions."""

    async def describe_producers(
        self,
        partitions: Collection[TopicPartition],
        *,
        broker_id: int | None = None,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[TopicPartition, PartitionProducerState]:
        """The producers that partitions remember, as their leaders or one broker know them.

        >>> found = await admin.describe_producers([TopicPartition("orders", 0)])
        >>> print(found[TopicPartition("orders", 0)].active_producers)
        """

        async def ask(
            call: Call, keys: Sequence[TopicPartition]
        ) -> Answer[TopicPartition, PartitionProducerState]:
            request = DescribeProducersRequest
            response: DescribeProducersResponse = await call(
                request(
                    topics=[
                        request.TopicRequest(name=topic, partition_indexes=indexes)
                        for topic, indexes in by_topic(keys).items()
                    ]
                )
            )
            answer: Answer[TopicPartition, PartitionProducerState] = Answer()
            for topic in response.topics:
                for each in topic.partitions:
                    key = TopicPartition(topic.name, each.partition_index)
                    if each.error_code != ErrorCode.NONE:
                        answer.fail(key, each.error_code, each.error_message or str(key))
                    else:
                        states = tuple(map(_producer_state, each.active_producers))
                        answer.put(key, PartitionProducerState(states))
            return answer

        route: Route[TopicPartition] = LeaderRoute()
        if broker_id is not None:
            route = BrokerRoute(lambda _: broker_id)
        return await self._run(
            "DescribeProducers", partitions, route, ask, timeout=timeout, check=check
        )

    async def describe_transactions(
        self,
        transactional_ids: Iterable[str],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, TransactionDescription]:
        """What the coordinators know of transactional ids.

        >>> print((await admin.describe_transactions(["billing-1"]))["billing-1"].state)
        """

        async def ask(call: Call, keys: Sequence[str]) -> Answer[str, TransactionDescription]:
            response: DescribeTransactionsResponse = await call(
                DescribeTransactionsRequest(transactional_ids=list(keys))
            )
            answer: Answer[str, TransactionDescription] = Answer()
            coordinator_id = -1 if call.node is None else call.node.id
            for found in response.transaction_states:
                key = found.transactional_id
                if found.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                    answer.fail(key, found.error_code, f"nobody knows the transactional id {key}")
                elif found.error_code != ErrorCode.NONE:
                    answer.fail(key, found.error_code, f"transactional id {key}")
                else:
                    answer.put(key, _transaction(found, coordinator_id))
            return answer

        return await self._run(
            "DescribeTransactions",
            transactional_ids,
            CoordinatorRoute(CoordinatorType.TRANSACTION),
            ask,
            timeout=timeout,
            check=check,
        )

    async def list_transactions(
        self,
        *,
        filtered_states: Collection[TransactionState] = (),
        filtered_producer_ids: Collection[int] = (),
        filtered_duration: int = -1,
        filtered_transactional_id_pattern: str | None = None,
        timeout: float | None = None,
        check: bool = True,
    ) -> Listings[TransactionListing]:
        """The transactions that all brokers coordinate, or those that fit the filters.

        The duration is in milliseconds: open for longer than that. The pattern is a regular
        expression of RE2. With `check=False` brokers that do not answer are in `errors`.

        >>> print(await admin.list_transactions(filtered_duration=60_000))
        """
        deadline = self._driver.deadline(timeout)
        anywhere: AnyRoute[None] = AnyRoute()
        brokers = await self._driver.run_one(
            "ListTransactions", anywhere, self._broker_ids, deadline=deadline
        )

        async def ask(call: Call, keys: Sequence[int]) -> Answer[int, list[TransactionListing]]:
            response: ListTransactionsResponse = await call(
                ListTransactionsRequest(
                    state_filters=[str(each) for each in filtered_states],
                    producer_id_filters=list(filtered_producer_ids),
                    duration_filter=filtered_duration,
                    transactional_id_pattern=filtered_transactional_id_pattern or None,
                )
            )
            answer: Answer[int, list[TransactionListing]] = Answer()
            if response.error_code != ErrorCode.NONE:
                answer.fail_all(keys, response.error_code, f"of broker {keys[0]}")
                return answer
            found = [
                TransactionListing(
                    each.transactional_id,
                    each.producer_id,
                    TransactionState.parse(each.transaction_state),
                    keys[0],
                )
                for each in response.transaction_states
            ]
            answer.put(keys[0], found)
            return answer

        each_broker: BrokerRoute[int] = BrokerRoute(lambda broker_id: broker_id)
        results = await self._driver.run(
            "ListTransactions", brokers, each_broker, ask, deadline=deadline, retried=_LOADING
        )
        if check:
            results.check()
        found = [each for listed in results.values_by_key.values() for each in listed]
        return Listings(sorted(found, key=lambda each: each.transactional_id), results.errors)

    async def abort_transaction(
        self, spec: AbortTransactionSpec, *, timeout: float | None = None
    ) -> None:
        """Abort a transaction in one partition that its coordinator has forgotten.

        >>> spec = AbortTransactionSpec(TopicPartition("orders", 0), 4000, 1, 0)
        >>> await admin.abort_transaction(spec)
        """

        async def ask(call: Call, keys: Sequence[TopicPartition]) -> Answer[TopicPartition, None]:
            request = WriteTxnMarkersRequest
            topic, partition = spec.topic_partition
            marker = request.WritableTxnMarker(
                producer_id=spec.producer_id,
                producer_epoch=spec.producer_epoch,
                transaction_result=False,
                topics=[request.WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
                coordinator_epoch=spec.coordinator_epoch,
            )
            response: WriteTxnMarkersResponse = await call(request(markers=[marker]))
            answer: Answer[TopicPartition, None] = Answer()
            for found in response.markers:
                for each_topic in found.topics:
                    for each in each_topic.partitions:
                        key = TopicPartition(each_topic.name, each.partition_index)
                        answer.settle(key, each.error_code, str(spec), None)
            return answer

        await self._run(
            "AbortTransaction",
            [spec.topic_partition],
            LeaderRoute(),
            ask,
            timeout=timeout,
            check=True,
        )

    async def fence_producers(
        self,
        transactional_ids: Iterable[str],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, ProducerIdAndEpoch]:
        """Shut out the producers that use transactional ids; their open transactions abort.

        >>> await admin.fence_producers(["billing-1"])
        """
        deadline = self._driver.deadline(timeout)

        async def ask(call: Call, keys: Sequence[str]) -> Answer[str, ProducerIdAndEpoch]:
            answer: Answer[str, ProducerIdAndEpoch] = Answer()
            for key in keys:
                response: InitProducerIdResponse = await call(
                    InitProducerIdRequest(
                        transactional_id=key, transaction_timeout_ms=call.timeout_ms
                    )
                )
                if response.error_code == ErrorCode.NONE:
                    fenced = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
                    answer.put(key, fenced)
                else:
                    answer.fail(key, response.error_code, f"transactional id {key}")
            return answer

        ids = several(transactional_ids)
        refused: dict[str, KafkaError] = {
            key: InvalidRequestError("a transactional id cannot be empty") for key in ids if not key
        }
        results = await self._driver.run(
            "FenceProducers",
            ids,
            CoordinatorRoute(CoordinatorType.TRANSACTION),
            ask,
            deadline=deadline,
            retried=_CONCURRENT,
            refused=refused,
        )
        return results.check() if check else results

    async def force_terminate_transaction(
        self, transactional_id: str, *, timeout: float | None = None
    ) -> None:
        """Abort the open transaction of a transactional id, and shut out its producer.

        >>> await admin.force_terminate_transaction("billing-1")
        """
        await self.fence_producers([transactional_id], timeout=timeout)


def _producer_state(found: DescribeProducersResponse.ProducerState) -> ProducerState:
    epoch, start = found.coordinator_epoch, found.current_txn_start_offset
    return ProducerState(
        found.producer_id,
        found.producer_epoch,
        found.last_sequence,
        found.last_timestamp,
        None if epoch < 0 else epoch,
        None if start < 0 else start,
    )


def _transaction(
    found: DescribeTransactionsResponse.TransactionState, coordinator_id: int
) -> TransactionDescription:
    started = found.transaction_start_time_ms
    return TransactionDescription(
        coordinator_id,
        TransactionState.parse(found.transaction_state),
        found.producer_id,
        found.producer_epoch,
        found.transaction_timeout_ms,
        None if started < 0 else started,
        frozenset(
            TopicPartition(topic.topic, partition)
            for topic in found.topics
            for partition in topic.partitions
        ),
    )
