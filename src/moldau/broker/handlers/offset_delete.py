"""OffsetDelete (key 47), v0: delete offsets of partitions that no member of the group uses."""

from __future__ import annotations

from moldau.broker.coordinator.group.coordinator import GroupCoordinator
from moldau.broker.coordinator.machine.topics import Topics
from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import OffsetDeleteRequest, OffsetDeleteResponse

_Topic = OffsetDeleteRequest.OffsetDeleteRequestTopic


class OffsetDeleteHandler:
    def __init__(self, coordinator: GroupCoordinator, topics: Topics) -> None:
        self._coordinator = coordinator
        self._topics = topics

    async def handle(
        self, context: RequestContext, request: OffsetDeleteRequest
    ) -> OffsetDeleteResponse:
        known: list[_Topic] = []
        for topic in request.topics:
            partitions = [
                partition
                for partition in topic.partitions
                if self._topics.has_partition(topic.name, partition.partition_index)
            ]
            if partitions:
                known.append(_Topic(name=topic.name, partitions=partitions))
        # Asked even with nothing left: the group's own errors come first.
        response = await self._coordinator.delete_offsets(
            OffsetDeleteRequest(group_id=request.group_id, topics=known)
        )
        if response.error_code != ErrorCode.NONE:
            return response
        errors = {
            (topic.name, partition.partition_index): partition.error_code
            for topic in response.topics
            for partition in topic.partitions
        }
        return OffsetDeleteResponse(
            topics=[
                OffsetDeleteResponse.OffsetDeleteResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetDeleteResponse.OffsetDeleteResponsePartition(
                            partition_index=partition.partition_index,
                            error_code=errors.get(
                                (topic.name, partition.partition_index),
                                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                            ),
                        )
                        for partition in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )
