"""The share coordinator of any share partition, on whichever broker it runs: one attempt per call.

The coordinator of a share partition is the leader of its partition of `__share_group_state`. A call
ends with the stored result or an `ApiError`: NETWORK_EXCEPTION if no response arrived, in which
case it may or may not have been carried out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from uuid import UUID

from moldau.broker.calls.brokers import known_code
from moldau.broker.calls.leader_calls import BatchRequest, Brokers, LeaderCalls
from moldau.broker.coordinator.share.interface import Persister
from moldau.broker.coordinator.share.machine.values import (
    SharePartitionKey,
    ShareState,
    ShareStateSummary,
    StateBatch,
)
from moldau.broker.machine.topics import SHARE_STATE_TOPIC
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.constants import NO_EPOCH
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    DeleteShareGroupStateRequest,
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    WriteShareGroupStateRequest,
)

R = TypeVar("R")


class LocalShareCoordinator(Persister, Protocol):
    """The coordinator of this broker, which makes one attempt."""

    def partition_for(self, key: SharePartitionKey | str) -> int: ...


class ClusterShareCoordinator:
    """Implements `Persister` without retries."""

    def __init__(self, local: LocalShareCoordinator, brokers: Brokers) -> None:
        self._local = local
        self._initialize = _StateCalls(
            local,
            brokers,
            ApiKey.INITIALIZE_SHARE_GROUP_STATE,
            InitializeShareGroupStateRequest.InitializeStateData,
            _nothing,
        )
        self._read = _StateCalls(
            local,
            brokers,
            ApiKey.READ_SHARE_GROUP_STATE,
            ReadShareGroupStateRequest.ReadStateData,
            _state,
        )
        self._write = _StateCalls(
            local,
            brokers,
            ApiKey.WRITE_SHARE_GROUP_STATE,
            WriteShareGroupStateRequest.WriteStateData,
            _nothing,
        )
        self._delete = _StateCalls(
            local,
            brokers,
            ApiKey.DELETE_SHARE_GROUP_STATE,
            DeleteShareGroupStateRequest.DeleteStateData,
            _nothing,
        )
        self._summarize = _StateCalls(
            local,
            brokers,
            ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
            ReadShareGroupStateSummaryRequest.ReadStateSummaryData,
            _summary,
        )

    async def initialize_state(
        self, key: SharePartitionKey, *, state_epoch: int, start_offset: int
    ) -> None:
        await self._initialize.call(
            key,
            InitializeShareGroupStateRequest.PartitionData(
                partition=key.partition, state_epoch=state_epoch, start_offset=start_offset
            ),
            lambda: self._local.initialize_state(
                key, state_epoch=state_epoch, start_offset=start_offset
            ),
        )

    async def read_state(self, key: SharePartitionKey, *, leader_epoch: int) -> ShareState:
        return await self._read.call(
            key,
            ReadShareGroupStateRequest.PartitionData(
                partition=key.partition, leader_epoch=leader_epoch
            ),
            lambda: self._local.read_state(key, leader_epoch=leader_epoch),
        )

    async def write_state(
        self,
        key: SharePartitionKey,
        *,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        await self._write.call(
            key,
            WriteShareGroupStateRequest.PartitionData(
                partition=key.partition,
                state_epoch=state_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=delivery_complete_count,
                state_batches=[
                    WriteShareGroupStateRequest.StateBatch(**batch._asdict()) for batch in batches
                ],
            ),
            lambda: self._local.write_state(
                key,
                state_epoch=state_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=delivery_complete_count,
                batches=batches,
            ),
        )

    async def delete_state(self, key: SharePartitionKey) -> None:
        await self._delete.call(
            key,
            DeleteShareGroupStateRequest.PartitionData(partition=key.partition),
            lambda: self._local.delete_state(key),
        )

    async def read_summary(
        self, key: SharePartitionKey, *, leader_epoch: int = NO_EPOCH
    ) -> ShareStateSummary:
        return await self._summarize.call(
            key,
            ReadShareGroupStateSummaryRequest.PartitionData(
                partition=key.partition, leader_epoch=leader_epoch
            ),
            lambda: self._local.read_summary(key, leader_epoch=leader_epoch),
        )


class _Item(NamedTuple):
    key: SharePartitionKey
    data: Message
    """The PartitionData of the request."""


class _StateCalls(Generic[R]):
    """Calls of one API; the requests and responses of all five have the same structure."""

    def __init__(
        self,
        local: LocalShareCoordinator,
        brokers: Brokers,
        api: ApiKey,
        topic_data: Callable[..., Message],
        result: Callable[[Any], R],
    ) -> None:
        """`topic_data` is the part of the request with the partitions of a topic, `result` converts
        a PartitionResult of the response."""
        self._local = local
        self._api = api
        self._topic_data = topic_data
        self._result = result
        self._calls = LeaderCalls(
            brokers,
            BatchRequest(
                api=api,
                encode=self._request,
                decode=self._results,
                key=lambda item: (item.key.topic_id, item.key.partition),
                # A request has one group id.
                group=lambda item: item.key.group_id,
            ),
            no_partition=ErrorCode.NOT_COORDINATOR,
            no_leader=ErrorCode.COORDINATOR_NOT_AVAILABLE,
        )

    async def call(
        self, key: SharePartitionKey, data: Message, here: Callable[[], Awaitable[R]]
    ) -> R:
        partition = (SHARE_STATE_TOPIC, self._local.partition_for(key))
        return await self._calls.call(partition, _Item(key, data), here)

    def _request(self, items: Sequence[_Item]) -> Message:
        topics: dict[UUID, list[Message]] = {}
        for item in items:
            topics.setdefault(item.key.topic_id, []).append(item.data)
        make: Callable[..., Message] = API_BY_KEY[self._api].request
        return make(
            group_id=items[0].key.group_id,
            topics=[
                self._topic_data(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in topics.items()
            ],
        )

    def _results(self, response: Any) -> Mapping[Hashable, R | ApiError]:
        return {
            (topic.topic_id, each.partition): ApiError(
                known_code(each.error_code), each.error_message or ""
            )
            if each.error_code
            else self._result(each)
            for topic in response.results
            for each in topic.partitions
        }


# A PartitionResult has one class per API, all with the fields that are read here.


def _nothing(result: Any) -> None:
    return None


def _state(result: Any) -> ShareState:
    return ShareState(
        result.state_epoch,
        result.start_offset,
        tuple(
            StateBatch(
                batch.first_offset,
                batch.last_offset,
                batch.delivery_state,
                batch.delivery_count,
            )
            for batch in result.state_batches
        ),
    )


def _summary(result: Any) -> ShareStateSummary:
    return ShareStateSummary(
        result.state_epoch,
        result.leader_epoch,
        result.start_offset,
        result.delivery_complete_count,
    )
