"""Requests of share groups as handlers see them: one coroutine each.

The group's own state is decided in its shard; the offsets of share partitions are reached through
the `Persister`. Invariant: the group's record has a share partition as initialized only after the
share coordinator has created its state, and no longer has it before that state is removed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar
from uuid import UUID

from moldau.broker.coordinator.group.machine.group import ClientInfo
from moldau.broker.coordinator.group.machine.shard import GroupShard
from moldau.broker.coordinator.group.machine.share import admin
from moldau.broker.coordinator.group.machine.share.events import InitializeShareState
from moldau.broker.coordinator.group.machine.share.group import ShareGroup
from moldau.broker.coordinator.group.machine.share.groups import ShareGroups, check_heartbeat
from moldau.broker.coordinator.group.machine.share.states import TopicPartitions, Topics
from moldau.broker.coordinator.machine.decision import Decision, Outbox
from moldau.broker.coordinator.machine.topics import ClusterTopics
from moldau.broker.coordinator.runtime import CoordinatorRuntime
from moldau.broker.coordinator.share.interface import Persister
from moldau.broker.coordinator.share.machine.values import (
    UNINITIALIZED_DELIVERY_COMPLETE_COUNT,
    UNINITIALIZED_START_OFFSET,
    SharePartitionKey,
    ShareStateSummary,
)
from moldau.broker.network.context import RequestContext
from moldau.times import WallMs
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from moldau.wire.messages import DescribeShareGroupOffsetsRequest as OffsetsRequest
from moldau.wire.messages import DescribeShareGroupOffsetsResponse as OffsetsResponse

logger = logging.getLogger(__name__)

R = TypeVar("R")
Group = OffsetsResponse.DescribeShareGroupOffsetsResponseGroup
Topic = OffsetsResponse.DescribeShareGroupOffsetsResponseTopic
Partition = OffsetsResponse.DescribeShareGroupOffsetsResponsePartition
Failures = dict[tuple[UUID, int], ApiError]

_NO_LAG = -1


class ShareGroupService:
    def __init__(
        self,
        runtime: CoordinatorRuntime[GroupShard],
        persister: Persister,
        topics: ClusterTopics,
        *,
        partition_for: Callable[[str], int],
        section: Callable[[GroupShard], ShareGroups],
        latest_offset: Callable[[str, int], Awaitable[int]],
        enabled: Callable[[], bool] = lambda: True,
    ) -> None:
        """`section` gives the share groups of a shard; `latest_offset(topic, partition)` the
        partition's high watermark, or ApiError; `enabled` whether the cluster has share groups."""
        self._runtime = runtime
        self._persister = persister
        self._topics = topics
        self._partition_for = partition_for
        self._section = section
        self._latest_offset = latest_offset
        self._enabled = enabled
        self._tasks: set[asyncio.Task[None]] = set()

    # Actions of the shard, and deleted topics.

    def perform(self, action: InitializeShareState) -> None:
        """Carry out an action of the shard; it ends by itself."""
        task = asyncio.get_running_loop().create_task(
            self._initialize(action), name=f"initialise share state of {action.group_id}"
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settled(self) -> None:
        """Wait until everything begun by `perform` has ended."""
        if self._tasks:
            await asyncio.wait(list(self._tasks))

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def on_topics_deleted(self, topic_ids: set[UUID]) -> None:
        for index in self._runtime.partitions:
            try:
                await self._runtime.run(
                    index,
                    lambda shard, now_ms: _decided(
                        now_ms, lambda out: self._section(shard).forget_topics(topic_ids, out)
                    ),
                )
            except ApiError:
                # Leadership is moving or the log fails; what stays does no harm.
                continue

    # Membership.

    async def heartbeat(
        self, context: RequestContext, request: ShareGroupHeartbeatRequest
    ) -> ShareGroupHeartbeatResponse:
        client = ClientInfo(context.client_id or "", f"/{context.client_host}")
        try:
            self._check_enabled()
            check_heartbeat(request)
            return await self._run(
                request.group_id, lambda groups, out: groups.heartbeat(request, client, out)
            )
        except ApiError as error:
            return ShareGroupHeartbeatResponse(error_code=error.code, error_message=error.message)

    async def describe(self, group_id: str) -> ShareGroupDescribeResponse.DescribedGroup:
        described = ShareGroupDescribeResponse.DescribedGroup(group_id=group_id)
        try:
            self._check_enabled()
            _check_group_id(group_id)
            return await self._runtime.read_committed(
                self._partition_for(group_id), self._view(group_id)
            )
        except ApiError as error:
            described.error_code = error.code
            described.error_message = error.message
            return described

    def _view(
        self, group_id: str
    ) -> Callable[[GroupShard], ShareGroupDescribeResponse.DescribedGroup]:
        def view(shard: GroupShard) -> ShareGroupDescribeResponse.DescribedGroup:
            _check_kind(shard, group_id)
            return self._section(shard).describe(group_id)

        return view

    # Offsets.

    async def describe_offsets(
        self, request: OffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    ) -> Group:
        """Of the topics named, or with None of everything the group has initialised."""
        group_id = request.group_id
        try:
            self._check_enabled()
            if request.topics is None:
                wanted = await self._runtime.read_committed(
                    self._partition_for(group_id),
                    lambda shard: _initialized(self._section(shard), group_id),
                )
            else:
                wanted = [(topic.topic_name, topic.partitions) for topic in request.topics]
            topics = await asyncio.gather(
                *[self._describe_topic(group_id, name, partitions) for name, partitions in wanted]
            )
        except ApiError as error:
            return Group(group_id=group_id, error_code=error.code, error_message=error.message)
        return Group(group_id=group_id, topics=topics)

    async def _describe_topic(self, group_id: str, name: str, partitions: list[int]) -> Topic:
        facts = self._topics.topic(name)
        if facts is None:
            return Topic(topic_name=name, partitions=[_nothing_known(each) for each in partitions])
        described = await asyncio.gather(
            *[
                self._describe_partition(name, SharePartitionKey(group_id, facts.id, index))
                if 0 <= index < facts.partition_count
                else _immediately(_nothing_known(index))
                for index in partitions
            ]
        )
        return Topic(topic_name=name, topic_id=facts.id, partitions=described)

    async def _describe_partition(self, name: str, key: SharePartitionKey) -> Partition:
        try:
            summary = await self._persister.read_summary(key)
        except ApiError as error:
            # As with committed offsets, nothing to be found is not an error.
            logger.warning("reading the offsets of share partition %s failed: %s", key, error)
            return _nothing_known(key.partition)
        try:
            lag = await self._lag(name, key.partition, summary)
        except ApiError as error:
            return Partition(
                partition_index=key.partition, error_code=error.code, error_message=error.message
            )
        return Partition(
            partition_index=key.partition,
            start_offset=summary.start_offset,
            leader_epoch=summary.leader_epoch,
            lag=lag,
        )

    async def _lag(self, name: str, partition: int, summary: ShareStateSummary) -> int:
        if (
            summary.start_offset == UNINITIALIZED_START_OFFSET
            or summary.delivery_complete_count == UNINITIALIZED_DELIVERY_COMPLETE_COUNT
        ):
            return _NO_LAG
        latest_offset = await self._latest_offset(name, partition)
        return latest_offset - summary.start_offset - summary.delivery_complete_count

    async def alter_offsets(
        self, request: AlterShareGroupOffsetsRequest
    ) -> AlterShareGroupOffsetsResponse:
        group_id = request.group_id
        try:
            self._check_enabled()
            _check_group_id(group_id)
            alteration = await self._run(
                group_id,
                lambda groups, out: admin.begin_alteration(groups, self._topics, request, out),
            )
            failures = await self._initialize_all(
                group_id, alteration.state_epoch, alteration.start_offsets
            )
            await self._settle(group_id, alteration.topics, failures)
        except ApiError as error:
            return AlterShareGroupOffsetsResponse(
                error_code=error.code, error_message=error.message
            )
        for topic in alteration.response:
            for partition in topic.partitions:
                failure = failures.get((topic.topic_id, partition.partition_index))
                if failure is not None:
                    partition.error_code = failure.code
                    partition.error_message = failure.message
        return AlterShareGroupOffsetsResponse(responses=alteration.response)

    async def delete_offsets(
        self, request: DeleteShareGroupOffsetsRequest
    ) -> DeleteShareGroupOffsetsResponse:
        group_id = request.group_id
        names = list(dict.fromkeys(topic.topic_name for topic in request.topics))
        try:
            self._check_enabled()
            _check_group_id(group_id)
            deletion = await self._run(
                group_id,
                lambda groups, out: admin.begin_offset_deletion(
                    groups, self._topics, group_id, names, out
                ),
            )
            failures = await self._delete_all(group_id, deletion.topics)
            failed = {topic_id: error for (topic_id, _), error in failures.items()}
            done = deletion.topics.keys() - failed.keys()
            await self._run(
                group_id,
                lambda groups, out: admin.end_offset_deletion(groups, group_id, done, out),
            )
        except ApiError as error:
            return DeleteShareGroupOffsetsResponse(
                error_code=error.code, error_message=error.message
            )
        return DeleteShareGroupOffsetsResponse(
            responses=deletion.refused
            + [_deleted(topic_id, topic, failed) for topic_id, topic in deletion.topics.items()]
        )

    async def delete_state_of_groups(self, group_ids: list[str]) -> dict[str, ErrorCode]:
        """First step of DeleteGroups: for those ids that name share groups, have the share
        coordinator forget them. Ids with an error are not to be deleted now."""
        results = await asyncio.gather(*[self._delete_state(each) for each in group_ids])
        return {
            group_id: error
            for group_id, error in zip(group_ids, results, strict=True)
            if error is not ErrorCode.NONE
        }

    async def _delete_state(self, group_id: str) -> ErrorCode:
        def begin(groups: ShareGroups, out: Outbox) -> Topics:
            if group_id not in groups.groups:
                return {}
            return admin.begin_group_deletion(groups, self._topics, group_id, out)

        try:
            doomed = await self._run(group_id, begin, any_kind=True)
        except ApiError as error:
            return error.code
        failures = await self._delete_all(group_id, doomed)
        return next((error.code for error in failures.values()), ErrorCode.NONE)

    # Parts of them.

    def _check_enabled(self) -> None:
        if not self._enabled():
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION,
                "The cluster has no share groups: raise its feature share.version to 1.",
            )

    async def _initialize(self, action: InitializeShareState) -> None:
        start_offsets = {
            topic_id: dict.fromkeys(topic.partitions, UNINITIALIZED_START_OFFSET)
            for topic_id, topic in action.topics.items()
        }
        failures = await self._initialize_all(action.group_id, action.state_epoch, start_offsets)
        try:
            await self._settle(action.group_id, action.topics, failures)
        except ApiError as error:
            # The group's next coordinator, or this one after a while, asks again.
            logger.warning(
                "it is not recorded that share group %s is initialised: %s", action.group_id, error
            )

    async def _initialize_all(
        self,
        group_id: str,
        state_epoch: int,
        start_offsets: Mapping[UUID, Mapping[int, int]],
    ) -> Failures:
        return await _failures(
            {
                (topic_id, partition): self._persister.initialize_state(
                    SharePartitionKey(group_id, topic_id, partition),
                    state_epoch=state_epoch,
                    start_offset=start_offset,
                )
                for topic_id, offsets in start_offsets.items()
                for partition, start_offset in offsets.items()
            }
        )

    async def _settle(self, group_id: str, topics: Topics, failures: Failures) -> None:
        for (topic_id, partition), error in failures.items():
            logger.warning(
                "share group %s: partition %d of topic %s is not initialised: %s",
                group_id,
                partition,
                topic_id,
                error,
            )
        failed = _only(topics, lambda topic_id, partition: (topic_id, partition) in failures)
        done = _only(topics, lambda topic_id, partition: (topic_id, partition) not in failures)
        if topics:
            await self._run(
                group_id,
                lambda groups, out: groups.settle_initialization(group_id, done, failed, out),
                any_kind=True,
            )

    async def _delete_all(self, group_id: str, topics: Topics) -> Failures:
        return await _failures(
            {
                (topic_id, partition): self._persister.delete_state(
                    SharePartitionKey(group_id, topic_id, partition)
                )
                for topic_id, topic in topics.items()
                for partition in topic.partitions
            }
        )

    async def _run(
        self,
        group_id: str,
        decide: Callable[[ShareGroups, Outbox], R],
        *,
        any_kind: bool = False,
    ) -> R:
        def run(shard: GroupShard, now_ms: WallMs) -> Decision[R]:
            if not any_kind:
                _check_kind(shard, group_id)
            return _decided(now_ms, lambda out: decide(self._section(shard), out))

        return await self._runtime.run(self._partition_for(group_id), run)


def _decided(now_ms: WallMs, decide: Callable[[Outbox], R]) -> Decision[R]:
    out = Outbox(now_ms)
    response = decide(out)
    # Also a response without records may show what earlier ones wrote.
    return out.decision(response)


def _check_kind(shard: GroupShard, group_id: str) -> None:
    group = shard.group(group_id)
    if group is not None and not isinstance(group, ShareGroup):
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")


def _check_group_id(group_id: str) -> None:
    if not group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")


def _initialized(groups: ShareGroups, group_id: str) -> list[tuple[str, list[int]]]:
    group = groups.groups.get(group_id)
    if group is None or group.states is None:
        return []
    return [(topic.name, sorted(topic.partitions)) for topic in group.states.initialized.values()]


def _nothing_known(partition: int) -> Partition:
    return Partition(partition_index=partition, start_offset=UNINITIALIZED_START_OFFSET)


async def _immediately(value: R) -> R:
    return value


async def _failures(calls: Mapping[tuple[UUID, int], Awaitable[None]]) -> Failures:
    async def attempt(call: Awaitable[None]) -> ApiError | None:
        try:
            await call
        except ApiError as error:
            return error
        return None

    errors = await asyncio.gather(*[attempt(call) for call in calls.values()])
    return {key: error for key, error in zip(calls, errors, strict=True) if error is not None}


def _only(topics: Topics, wanted: Callable[[UUID, int], bool]) -> dict[UUID, TopicPartitions]:
    found = {
        topic_id: TopicPartitions(
            topic.name, frozenset(each for each in topic.partitions if wanted(topic_id, each))
        )
        for topic_id, topic in topics.items()
    }
    return {topic_id: topic for topic_id, topic in found.items() if topic.partitions}


def _deleted(
    topic_id: UUID, topic: TopicPartitions, failed: Mapping[UUID, ApiError]
) -> admin.DeleteTopic:
    result = admin.DeleteTopic(topic_name=topic.name, topic_id=topic_id)
    error = failed.get(topic_id)
    if error is not None:
        result.error_code = error.code
        result.error_message = error.message
    return result
