"""The group coordinator as handlers see it: one coroutine per request.

Finds the shard of a group, runs the decision there, and turns errors into the response that Kafka
sends in that case. The broker passes it the partitions of `__consumer_offsets` that it leads.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.group.machine.events import Join
from moldau.broker.coordinator.group.machine.group import ClientInfo
from moldau.broker.coordinator.group.machine.settings import GroupSettings
from moldau.broker.coordinator.group.machine.shard import GroupShard
from moldau.broker.coordinator.group.machine.transactional_commits import refused
from moldau.broker.coordinator.machine.decision import (
    Action,
    Decision,
    ProducerStamp,
    TransactionEnding,
)
from moldau.broker.coordinator.machine.hashing import partition_for
from moldau.broker.coordinator.machine.log import CoordinatorLog
from moldau.broker.coordinator.machine.topics import ClusterTopics
from moldau.broker.coordinator.runtime import CoordinatorRuntime
from moldau.broker.network.context import RequestContext
from moldau.clock import Clock, LoopClock
from moldau.times import WallMs
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DeleteGroupsResponse,
    DescribeGroupsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    SyncGroupRequest,
    SyncGroupResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from moldau.wire.uuids import uuid_to_text


class GroupCoordinator:
    def __init__(
        self,
        config: GroupConfig,
        *,
        topics: ClusterTopics,
        settings: GroupSettings,
        partition_count: Callable[[], int],
        report_bug: Callable[[Exception], None],
        perform: Callable[[Action], None],
        clock: Clock | None = None,
        new_uuid: Callable[[], uuid.UUID] = uuid.uuid4,
    ) -> None:
        """`partition_count` is how many partitions the offsets topic has, or will have;
        `perform` begins what groups want done: `InitializeShareState`, `CreateInternalTopics`."""
        self._config = config
        self._partition_count = partition_count
        self._new_uuid = new_uuid
        #: How many offsets clients have committed here.
        self.commit_count = 0
        self._runtime: CoordinatorRuntime[GroupShard] = CoordinatorRuntime(
            family="group",
            make_shard=lambda: GroupShard(config, topics, settings),
            clock=clock or LoopClock(),
            write_timeout_ms=config.offsets_commit_timeout_ms,
            load_buffer_size=config.offsets_load_buffer_size,
            report_bug=report_bug,
            perform=lambda partition, action: perform(action),
        )

    @property
    def runtime(self) -> CoordinatorRuntime[GroupShard]:
        """For services that decide in the shards as well."""
        return self._runtime

    def partition_for(self, group_id: str) -> int:
        return partition_for(group_id, self._partition_count())

    # Leadership.

    def on_elected(self, partition: int, leader_epoch: int, log: CoordinatorLog) -> None:
        """This broker leads the partition of the offsets topic from this epoch on."""
        self._runtime.load(partition, leader_epoch, log)

    def on_resigned(self, partition: int, leader_epoch: int | None = None) -> None:
        """Another broker leads it, or it is gone."""
        self._runtime.unload(partition, leader_epoch)

    async def on_topics_deleted(self, topics: Mapping[str, uuid.UUID]) -> None:
        """Forget the offsets of topics that were deleted, given by name with the id they had."""
        for index in self._runtime.partitions:
            try:
                await self._runtime.run(
                    index, lambda shard, now_ms: shard.delete_offsets_of(topics, now_ms)
                )
            except ApiError:
                # Leadership is moving or the log fails; retention removes them in the end.
                continue

    async def loaded(self) -> None:
        """Wait until every partition led here has been loaded."""
        await self._runtime.loaded()

    def close(self) -> None:
        self._runtime.close()

    # Membership.

    async def join_group(
        self, context: RequestContext, request: JoinGroupRequest
    ) -> JoinGroupResponse:
        try:
            _check_group_id(request.group_id)
            if not (
                self._config.group_min_session_timeout_ms
                <= request.session_timeout_ms
                <= self._config.group_max_session_timeout_ms
            ):
                raise ApiError(
                    ErrorCode.INVALID_SESSION_TIMEOUT,
                    f"session timeout {request.session_timeout_ms} is out of range",
                )
            response = await self._runtime.run_with_ticket(
                self.partition_for(request.group_id),
                lambda shard, ticket, now_ms: shard.join_group(
                    Join(
                        request=request,
                        version=context.api_version,
                        ticket=ticket,
                        client_id=context.client_id or "",
                        client_host=f"/{context.client_host}",
                        fresh_id=str(self._new_uuid()),
                    ),
                    now_ms,
                ),
            )
            return cast(JoinGroupResponse, response)
        except ApiError as error:
            return JoinGroupResponse(error_code=error.code, member_id=request.member_id)

    async def sync_group(self, request: SyncGroupRequest) -> SyncGroupResponse:
        try:
            _check_group_id(request.group_id)
            response = await self._runtime.run_with_ticket(
                self.partition_for(request.group_id),
                lambda shard, ticket, now_ms: shard.sync_group(request, ticket, now_ms),
            )
            return cast(SyncGroupResponse, response)
        except ApiError as error:
            return SyncGroupResponse(error_code=error.code)

    async def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse:
        try:
            _check_group_id(request.group_id)
            return await self._runtime.run(
                self.partition_for(request.group_id),
                lambda shard, now_ms: shard.heartbeat(request, now_ms),
            )
        except ApiError as error:
            # No session can expire while the group is being loaded.
            loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            return HeartbeatResponse(error_code=ErrorCode.NONE if loading else error.code)

    async def leave_group(self, request: LeaveGroupRequest) -> LeaveGroupResponse:
        try:
            _check_group_id(request.group_id)
            return await self._runtime.run(
                self.partition_for(request.group_id),
                lambda shard, now_ms: shard.leave_group(request, now_ms),
            )
        except ApiError as error:
            if error.code is not ErrorCode.UNKNOWN_MEMBER_ID:
                return LeaveGroupResponse(error_code=error.code)
            return LeaveGroupResponse(
                members=[
                    LeaveGroupResponse.MemberResponse(
                        member_id=member.member_id,
                        group_instance_id=member.group_instance_id,
                        error_code=error.code,
                    )
                    for member in request.members
                ]
            )

    # Offsets. The topics of these requests are known to exist: handlers see to that.

    async def commit_offsets(
        self, context: RequestContext, request: OffsetCommitRequest
    ) -> OffsetCommitResponse:
        try:
            response = await self._runtime.run(
                self.partition_for(request.group_id),
                lambda shard, now_ms: shard.commit_offsets(request, context.api_version, now_ms),
            )
            self.commit_count += sum(
                not each.error_code for topic in response.topics for each in topic.partitions
            )
            return response
        except ApiError as error:
            return OffsetCommitResponse(
                topics=[
                    OffsetCommitResponse.OffsetCommitResponseTopic(
                        name=topic.name,
                        topic_id=topic.topic_id,
                        partitions=[
                            OffsetCommitResponse.OffsetCommitResponsePartition(
                                partition_index=partition.partition_index, error_code=error.code
                            )
                            for partition in topic.partitions
                        ],
                    )
                    for topic in request.topics
                ]
            )

    async def commit_transactional_offsets(
        self,
        context: RequestContext,
        request: TxnOffsetCommitRequest,
        topic_ids: Mapping[str, uuid.UUID],
        producer: ProducerStamp,
    ) -> TxnOffsetCommitResponse:
        try:
            return await self._runtime.run(
                self.partition_for(request.group_id),
                lambda shard, now_ms: shard.commit_transactional_offsets(
                    request, topic_ids, producer, context.api_version, now_ms
                ),
            )
        except ApiError as error:
            return refused(request, error.code)

    async def complete_transaction(self, partition: int, ending: TransactionEnding) -> None:
        """Offsets that the transaction holds in this partition count now, or never."""
        await self._runtime.complete_transaction(partition, ending)

    async def fetch_offsets(
        self, request: OffsetFetchRequest.OffsetFetchRequestGroup, require_stable: bool
    ) -> OffsetFetchResponse.OffsetFetchResponseGroup:
        try:
            return await self._runtime.run(
                self.partition_for(request.group_id),
                lambda shard, now_ms: shard.fetch_offsets(request, require_stable),
            )
        except ApiError as error:
            # Clients do not expect COORDINATOR_NOT_AVAILABLE here; this makes them retry.
            unavailable = error.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
            return OffsetFetchResponse.OffsetFetchResponseGroup(
                group_id=request.group_id,
                error_code=ErrorCode.NOT_COORDINATOR if unavailable else error.code,
            )

    async def delete_offsets(self, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
        try:
            _check_group_id(request.group_id)
            return await self._runtime.run(
                self.partition_for(request.group_id),
                lambda shard, now_ms: shard.delete_offsets(request, now_ms),
            )
        except ApiError as error:
            return OffsetDeleteResponse(error_code=error.code)

    # Members of the newer protocols.

    async def consumer_group_heartbeat(
        self,
        context: RequestContext,
        request: ConsumerGroupHeartbeatRequest,
        may_describe: Callable[[str], bool] | None = None,
    ) -> ConsumerGroupHeartbeatResponse:
        """`may_describe` says which topics a regular expression may match, None all."""
        client = _client(context)
        if may_describe is not None:
            client = client._replace(may_describe=may_describe)
        # Only the first version lets the broker name a member; heartbeats are many.
        fresh_id = "" if request.member_id else uuid_to_text(self._new_uuid())
        try:
            return await self._runtime.run(
                self.partition_for(request.group_id),
                lambda shard, now_ms: shard.consumer_group_heartbeat(
                    request, context.api_version, client, fresh_id, now_ms
                ),
            )
        except ApiError as error:
            return ConsumerGroupHeartbeatResponse(
                error_code=error.code, error_message=error.message
            )

    async def streams_group_heartbeat(
        self,
        context: RequestContext,
        request: StreamsGroupHeartbeatRequest,
        denied_creations: Callable[[Sequence[str]], Sequence[str]] | None = None,
    ) -> StreamsGroupHeartbeatResponse:
        """`denied_creations` says which topics may not be created for the client, None that all
        may. Raises ApiError."""
        client = _client(context)
        if denied_creations is not None:
            client = client._replace(denied_creations=denied_creations)
        return await self._runtime.run(
            self.partition_for(request.group_id),
            lambda shard, now_ms: shard.streams_group_heartbeat(request, client, now_ms),
        )

    def report_internal_topics(
        self, group_id: str, errors: Mapping[str, str], now_ms: WallMs
    ) -> None:
        """Store by topic why it was not created, for the members of the streams group."""
        try:
            self._runtime.read(
                self.partition_for(group_id),
                lambda shard: shard.streams.on_internal_topics(group_id, errors, now_ms),
            )
        except ApiError:
            # The group has moved: its new coordinator tries by itself.
            return

    async def describe_consumer_group(
        self, group_id: str
    ) -> ConsumerGroupDescribeResponse.DescribedGroup:
        try:
            return await self._runtime.read_committed(
                self.partition_for(group_id),
                lambda shard: shard.describe_consumer_group(group_id),
            )
        except ApiError as error:
            return ConsumerGroupDescribeResponse.DescribedGroup(
                group_id=group_id, error_code=error.code, error_message=error.message
            )

    async def describe_streams_group(
        self, group_id: str
    ) -> StreamsGroupDescribeResponse.DescribedGroup:
        """Raises ApiError."""
        return await self._runtime.read_committed(
            self.partition_for(group_id),
            lambda shard: shard.describe_streams_group(group_id),
        )

    # Views and deletion of whole groups.

    async def list_groups(self, request: ListGroupsRequest) -> ListGroupsResponse:
        try:
            groups = await self._runtime.read_all(lambda shard: shard.list_groups(request))
        except ApiError as error:
            return ListGroupsResponse(error_code=error.code)
        return ListGroupsResponse(groups=groups)

    async def describe_group(
        self, group_id: str, version: int
    ) -> DescribeGroupsResponse.DescribedGroup:
        try:
            return await self._runtime.read_committed(
                self.partition_for(group_id),
                lambda shard: shard.describe_group(group_id, version),
            )
        except ApiError as error:
            return DescribeGroupsResponse.DescribedGroup(group_id=group_id, error_code=error.code)

    async def delete_groups(
        self, group_ids: list[str]
    ) -> list[DeleteGroupsResponse.DeletableGroupResult]:
        by_partition: dict[int, list[str]] = {}
        for group_id in dict.fromkeys(group_ids):
            by_partition.setdefault(self.partition_for(group_id), []).append(group_id)
        results: list[DeleteGroupsResponse.DeletableGroupResult] = []
        for partition, ids in by_partition.items():
            try:
                deleted = await self._runtime.run(partition, _deletion(ids))
                results += deleted
            except ApiError as error:
                results += [
                    DeleteGroupsResponse.DeletableGroupResult(
                        group_id=group_id, error_code=error.code
                    )
                    for group_id in ids
                ]
        return results


def _deletion(
    group_ids: list[str],
) -> Callable[[GroupShard, WallMs], Decision[list[DeleteGroupsResponse.DeletableGroupResult]]]:
    return lambda shard, now_ms: shard.delete_groups(group_ids, now_ms)


def _client(context: RequestContext) -> ClientInfo:
    return ClientInfo(context.client_id or "", f"/{context.client_host}")


def _check_group_id(group_id: str) -> None:
    if not group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
