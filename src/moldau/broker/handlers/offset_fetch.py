"""OffsetFetch (key 9), v1-10: the committed offsets of groups.

v2 null topics for all, and an error of the whole request; v7 require stable;
v8 many groups, each with its own error; v10 topic ids instead of names.
"""

from __future__ import annotations

from moldau.broker.coordinator.group.coordinator import GroupCoordinator
from moldau.broker.coordinator.group.machine.offsets import INVALID_OFFSET
from moldau.broker.coordinator.machine.topics import Topics
from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import OffsetFetchRequest, OffsetFetchResponse

_TOP_LEVEL_ERROR_FROM = 2
_MANY_GROUPS_FROM = 8
_TOPIC_IDS_FROM = 10

_Group = OffsetFetchRequest.OffsetFetchRequestGroup
_Topic = OffsetFetchRequest.OffsetFetchRequestTopics
_GroupResult = OffsetFetchResponse.OffsetFetchResponseGroup
_TopicResult = OffsetFetchResponse.OffsetFetchResponseTopics
_PartitionResult = OffsetFetchResponse.OffsetFetchResponsePartitions


class OffsetFetchHandler:
    def __init__(self, coordinator: GroupCoordinator, topics: Topics) -> None:
        self._coordinator = coordinator
        self._topics = topics

    async def handle(
        self, context: RequestContext, request: OffsetFetchRequest
    ) -> OffsetFetchResponse:
        version = context.api_version
        if version >= _MANY_GROUPS_FROM:
            return OffsetFetchResponse(
                groups=[
                    await self._fetch(group, version, request.require_stable)
                    for group in request.groups
                ]
            )
        group = _single_group(request)
        result = await self._fetch(group, version, request.require_stable)
        return _single_response(group, result, version)

    async def _fetch(self, group: _Group, version: int, require_stable: bool) -> _GroupResult:
        if version < _TOPIC_IDS_FROM:
            return await self._coordinator.fetch_offsets(group, require_stable)
        if group.topics is None:
            result = await self._coordinator.fetch_offsets(group, require_stable)
            result.topics = [topic for topic in result.topics if self._identify(topic)]
            return result
        unknown: list[_TopicResult] = []
        known: list[_Topic] = []
        for topic in group.topics:
            topic.name = self._topics.name_of(topic.topic_id) or ""
            if topic.name:
                known.append(topic)
            else:
                unknown.append(_failed_topic(topic, ErrorCode.UNKNOWN_TOPIC_ID))
        result = await self._coordinator.fetch_offsets(
            _Group(
                group_id=group.group_id,
                member_id=group.member_id,
                member_epoch=group.member_epoch,
                topics=known,
            ),
            require_stable,
        )
        if result.error_code == ErrorCode.NONE:
            result.topics += unknown
        return result

    def _identify(self, topic: _TopicResult) -> bool:
        topic_id = self._topics.id_of(topic.name)
        if topic_id is None:
            # The topic is gone: a client that uses topic ids cannot get its offsets.
            return False
        topic.topic_id = topic_id
        return True


def _single_group(request: OffsetFetchRequest) -> _Group:
    topics = None
    if request.topics is not None:
        topics = [
            _Topic(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return _Group(group_id=request.group_id, topics=topics)


def _single_response(group: _Group, result: _GroupResult, version: int) -> OffsetFetchResponse:
    """The response in versions with a single group, which have no group level."""
    topics = result.topics
    error = result.error_code
    if error != ErrorCode.NONE and version < _TOP_LEVEL_ERROR_FROM:
        topics = [_failed_topic(topic, ErrorCode(error)) for topic in group.topics or ()]
        error = ErrorCode.NONE
    return OffsetFetchResponse(
        error_code=error,
        topics=[
            OffsetFetchResponse.OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponse.OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in topics
        ],
    )


def _failed_topic(topic: _Topic, error: ErrorCode) -> _TopicResult:
    return _TopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            _PartitionResult(
                partition_index=partition,
                committed_offset=INVALID_OFFSET,
                metadata="",
                error_code=error,
            )
            for partition in topic.partition_indexes
        ],
    )
