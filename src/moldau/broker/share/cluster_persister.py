"""The share coordinator of any share partition, on whichever node it is: one attempt of each call.

Decided here: which broker coordinates a share partition, the leader of its partition of
`__share_group_state`. One request of a kind and group is in flight to a broker at a time, and
contains all share partitions that have gathered. A call ends with the stored result or an
`ApiError`: NETWORK_EXCEPTION if there was no response, so that the outcome is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from moldau.broker.calls.brokers import (
    NO_LEADER,
    BrokerChannels,
    PartitionLeaders,
    known_code,
)
from moldau.broker.calls.gathering import Gathering
from moldau.broker.coordinator.share.interface import Persister
from moldau.broker.coordinator.share.machine.values import (
    NO_EPOCH,
    SharePartitionKey,
    ShareState,
    ShareStateSummary,
    StateBatch,
)
from moldau.broker.machine.topics import SHARE_STATE_TOPIC
from moldau.peers.channel import ChannelError
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    DeleteShareGroupStateRequest,
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    WriteShareGroupStateRequest,
)


class LocalShareCoordinator(Persister, Protocol):
    """The coordinator of this node, which makes one attempt."""

    def partition_for(self, key: SharePartitionKey | str) -> int: ...


class _Destination(NamedTuple):
    """A request has one group."""

    broker_id: int
    api: ApiKey
    group_id: str


class _Item(NamedTuple):
    topic_id: UUID
    partition: int
    data: Any
    """The PartitionData of the request."""


# The part of each request that names a topic.
_TOPIC_DATA: dict[ApiKey, Callable[..., Message]] = {
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: InitializeShareGroupStateRequest.InitializeStateData,
    ApiKey.READ_SHARE_GROUP_STATE: ReadShareGroupStateRequest.ReadStateData,
    ApiKey.WRITE_SHARE_GROUP_STATE: WriteShareGroupStateRequest.WriteStateData,
    ApiKey.DELETE_SHARE_GROUP_STATE: DeleteShareGroupStateRequest.DeleteStateData,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: ReadShareGroupStateSummaryRequest.ReadStateSummaryData,
}


class ClusterShareCoordinator:
    """Implements `Persister` without retries."""

    def __init__(
        self,
        local: LocalShareCoordinator,
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
        self._requests: Gathering[_Destination, _Item, Any] = Gathering(
            self._send, key=lambda item: item[:2]
        )

    # One share partition at a time.

    async def initialize_state(
        self, key: SharePartitionKey, *, state_epoch: int, start_offset: int
    ) -> None:
        broker_id = self._coordinator(key)
        if broker_id == self._node_id:
            await self._local.initialize_state(
                key, state_epoch=state_epoch, start_offset=start_offset
            )
            return
        data = InitializeShareGroupStateRequest.PartitionData(
            partition=key.partition, state_epoch=state_epoch, start_offset=start_offset
        )
        await self._ask(broker_id, ApiKey.INITIALIZE_SHARE_GROUP_STATE, key, data)

    async def read_state(self, key: SharePartitionKey, *, leader_epoch: int) -> ShareState:
        broker_id = self._coordinator(key)
        if broker_id == self._node_id:
            return await self._local.read_state(key, leader_epoch=leader_epoch)
        data = ReadShareGroupStateRequest.PartitionData(
            partition=key.partition, leader_epoch=leader_epoch
        )
        result: ReadShareGroupStateResponse.PartitionResult = await self._ask(
            broker_id, ApiKey.READ_SHARE_GROUP_STATE, key, data
        )
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
        broker_id = self._coordinator(key)
        if broker_id == self._node_id:
            await self._local.write_state(
                key,
                state_epoch=state_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=delivery_complete_count,
                batches=batches,
            )
            return
        data = WriteShareGroupStateRequest.PartitionData(
            partition=key.partition,
            state_epoch=state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=delivery_complete_count,
            state_batches=[
                WriteShareGroupStateRequest.StateBatch(**batch._asdict()) for batch in batches
            ],
        )
        await self._ask(broker_id, ApiKey.WRITE_SHARE_GROUP_STATE, key, data)

    async def delete_state(self, key: SharePartitionKey) -> None:
        broker_id = self._coordinator(key)
        if broker_id == self._node_id:
            await self._local.delete_state(key)
            return
        data = DeleteShareGroupStateRequest.PartitionData(partition=key.partition)
        await self._ask(broker_id, ApiKey.DELETE_SHARE_GROUP_STATE, key, data)

    async def read_summary(
        self, key: SharePartitionKey, *, leader_epoch: int = NO_EPOCH
    ) -> ShareStateSummary:
        broker_id = self._coordinator(key)
        if broker_id == self._node_id:
            return await self._local.read_summary(key, leader_epoch=leader_epoch)
        data = ReadShareGroupStateSummaryRequest.PartitionData(
            partition=key.partition, leader_epoch=leader_epoch
        )
        result: ReadShareGroupStateSummaryResponse.PartitionResult = await self._ask(
            broker_id, ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, key, data
        )
        return ShareStateSummary(
            result.state_epoch,
            result.leader_epoch,
            result.start_offset,
            result.delivery_complete_count,
        )

    # Requests to another broker.

    def _coordinator(self, key: SharePartitionKey) -> int:
        leader = self._leaders.leader(SHARE_STATE_TOPIC, self._local.partition_for(key))
        if leader is None:
            raise ApiError(ErrorCode.NOT_COORDINATOR, f"there is no {SHARE_STATE_TOPIC} yet")
        if leader == NO_LEADER:
            raise ApiError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{key} has no coordinator at the moment"
            )
        return leader

    async def _ask(self, broker_id: int, api: ApiKey, key: SharePartitionKey, data: Message) -> Any:
        """The PartitionResult of the response; raises its error."""
        destination = _Destination(broker_id, api, key.group_id)
        try:
            result = await self._requests.call(
                destination, _Item(key.topic_id, key.partition, data)
            )
        except ChannelError as error:
            raise ApiError(ErrorCode.NETWORK_EXCEPTION, str(error)) from error
        if result is None:
            raise ApiError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"{API_BY_KEY[api].name} to broker {broker_id}: no result for {key}",
            )
        if result.error_code:
            raise ApiError(known_code(result.error_code), result.error_message or "")
        return result

    async def _send(self, destination: _Destination, items: Sequence[_Item]) -> list[Any]:
        topics: dict[UUID, list[Any]] = {}
        for item in items:
            topics.setdefault(item.topic_id, []).append(item.data)
        topic_data = _TOPIC_DATA[destination.api]
        # All five requests have these fields.
        make: Callable[..., Message] = API_BY_KEY[destination.api].request
        response: Any = await self._channels.call(
            destination.broker_id,
            destination.api,
            make(
                group_id=destination.group_id,
                topics=[
                    topic_data(topic_id=topic_id, partitions=partitions)
                    for topic_id, partitions in topics.items()
                ],
            ),
            timeout_ms=self._timeout_ms(),
        )
        results = {
            (result.topic_id, partition.partition): partition
            for result in response.results
            for partition in result.partitions
        }
        return [results.get((item.topic_id, item.partition)) for item in items]

    def close(self) -> None:
        self._requests.close()
