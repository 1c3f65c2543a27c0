"""DescribeTopicPartitions (key 75), v0: topics page by page, with eligible leader replicas.

Topics are in name order. A page ends at the requested number of partitions; the cursor then names
the first partition of the next page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from moldau.broker.handlers.support.authorized_operations import TOPIC_OPERATIONS
from moldau.broker.handlers.support.offline_replicas import offline_replicas
from moldau.broker.machine.topics import INTERNAL_TOPICS, topic_name_problem
from moldau.broker.metadata.machine import model
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse

Topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
Partition = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition
Cursor = DescribeTopicPartitionsResponse.Cursor


class DescribeTopicPartitionsHandler:
    def __init__(self, image: Callable[[], MetadataImage], *, partitions_max: int) -> None:
        self._image = image
        self._partitions_max = partitions_max

    def handle(
        self, context: RequestContext, request: DescribeTopicPartitionsRequest
    ) -> DescribeTopicPartitionsResponse:
        image = self._image()
        start_topic, start_partition = "", 0
        if request.cursor is not None:
            start_topic = request.cursor.topic_name
            start_partition = request.cursor.partition_index
            if start_partition < 0:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    f"cursor partition {start_partition} is negative: the first one is 0",
                )
        asked = {topic.name for topic in request.topics}
        if asked and request.cursor is not None and start_topic not in asked:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"the cursor's topic {start_topic} is not among the topics of the request",
            )
        names = sorted(name for name in asked or image.topics_by_name if name >= start_topic)
        room = max(1, min(request.response_partition_limit, self._partitions_max))
        response = DescribeTopicPartitionsResponse()
        for position, name in enumerate(names):
            topic = image.topics_by_name.get(name)
            if topic is None:
                response.topics.append(_missing(name))
                continue
            first = start_partition if name == start_topic else 0
            page = _page(topic, first, room, image)
            response.topics.append(page)
            room -= len(page.partitions)
            behind = first + len(page.partitions)
            if behind < len(topic.partitions):
                response.next_cursor = Cursor(topic_name=name, partition_index=behind)
                break
            if room == 0 and position + 1 < len(names):
                response.next_cursor = Cursor(topic_name=names[position + 1], partition_index=0)
                break
        return response


def _missing(name: str) -> Topic:
    invalid = topic_name_problem(name) is not None
    code = ErrorCode.INVALID_TOPIC_EXCEPTION if invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return Topic(
        error_code=code,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _page(topic: model.Topic, first: int, room: int, image: MetadataImage) -> Topic:
    indexes: Iterable[int] = sorted(topic.partitions)[first : first + room]
    return Topic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[_partition(index, topic.partitions[index], image) for index in indexes],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _partition(index: int, partition: model.Partition, image: MetadataImage) -> Partition:
    no_leader = partition.leader < 0
    return Partition(
        error_code=ErrorCode.LEADER_NOT_AVAILABLE if no_leader else ErrorCode.NONE,
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=offline_replicas(partition, image),
    )
