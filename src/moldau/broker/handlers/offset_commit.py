"""OffsetCommit (key 8), v2-10: store the offsets of a group.

v2-4 a retention set by the client; v7 static members; v9 member epochs and
GROUP_ID_NOT_FOUND; v10 topic ids instead of names.
"""

from __future__ import annotations

from moldau.broker.coordinator.group.coordinator import GroupCoordinator
from moldau.broker.coordinator.machine.topics import Topics
from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import OffsetCommitRequest, OffsetCommitResponse
from moldau.wire.uuids import ZERO_UUID

_TOPIC_IDS_FROM = 10

_Topic = OffsetCommitRequest.OffsetCommitRequestTopic
_TopicResult = OffsetCommitResponse.OffsetCommitResponseTopic
_PartitionResult = OffsetCommitResponse.OffsetCommitResponsePartition


class OffsetCommitHandler:
    def __init__(self, coordinator: GroupCoordinator, topics: Topics) -> None:
        self._coordinator = coordinator
        self._topics = topics

    async def handle(
        self, context: RequestContext, request: OffsetCommitRequest
    ) -> OffsetCommitResponse:
        by_id = context.api_version >= _TOPIC_IDS_FROM
        whole = bool(request.topics)
        for topic in request.topics:
            if by_id:
                topic.name = self._topics.name_of(topic.topic_id) or ""
            else:
                # The id is stored for clients of every version: it tells this topic from a
                # later one of the same name.
                topic.topic_id = self._topics.id_of(topic.name) or ZERO_UUID
            whole = whole and self._has_all_of(topic)
        if whole:
            return await self._coordinator.commit_offsets(context, request)
        return await self._commit_what_exists(context, request)

    def _has_all_of(self, topic: _Topic) -> bool:
        """Whether there is something to commit, and all of it for partitions that exist."""
        has_partition = self._topics.has_partition
        for partition in topic.partitions:
            if not has_partition(topic.name, partition.partition_index):
                return False
        return bool(topic.partitions)

    async def _commit_what_exists(
        self, context: RequestContext, request: OffsetCommitRequest
    ) -> OffsetCommitResponse:
        # Nothing is stored for a topic or partition that does not exist: its offsets
        # would outlive it and be found by a later topic of that name.
        known: list[_Topic] = []
        for topic in request.topics:
            partitions = [
                partition
                for partition in topic.partitions
                if self._topics.has_partition(topic.name, partition.partition_index)
            ]
            if partitions:
                known.append(
                    _Topic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)
                )
        errors: dict[tuple[str, int], int] = {}
        if known:
            stored = await self._coordinator.commit_offsets(context, _with_topics(request, known))
            errors = {
                (topic.name, partition.partition_index): partition.error_code
                for topic in stored.topics
                for partition in topic.partitions
            }
        return OffsetCommitResponse(
            topics=[self._result(context, topic, errors) for topic in request.topics]
        )

    def _result(
        self, context: RequestContext, topic: _Topic, errors: dict[tuple[str, int], int]
    ) -> _TopicResult:
        unknown = (
            ErrorCode.UNKNOWN_TOPIC_ID
            if context.api_version >= _TOPIC_IDS_FROM and not topic.name
            else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        return _TopicResult(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                _PartitionResult(
                    partition_index=partition.partition_index,
                    error_code=errors.get((topic.name, partition.partition_index), unknown),
                )
                for partition in topic.partitions
            ],
        )


def _with_topics(request: OffsetCommitRequest, topics: list[_Topic]) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        retention_time_ms=request.retention_time_ms,
        topics=topics,
    )
