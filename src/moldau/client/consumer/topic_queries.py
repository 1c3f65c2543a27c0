"""What topics there are, asked for by the application."""

from __future__ import annotations

from moldau.client.cluster import ClusterClient
from moldau.client.deadline import Deadline
from moldau.client.errors.topics import topic_error
from moldau.client.machine.metadata import EMPTY, ClusterMetadata
from moldau.client.topics import PartitionInfo, TopicPartition
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import MetadataRequest, MetadataResponse

__all__ = ["list_topics", "partitions_for"]


async def partitions_for(
    cluster: ClusterClient, topic: str, deadline: Deadline
) -> list[PartitionInfo]:
    """The partitions of a topic; none if there is no such topic."""
    known = cluster.metadata.topics.get(topic)
    picture = cluster.metadata
    if known is None or not known.partitions:
        picture = await cluster.retrying(
            lambda: _ask(cluster, [topic]), deadline=deadline, what=f"Metadata of {topic}"
        )
    return _partitions(picture, topic)


async def list_topics(cluster: ClusterClient, deadline: Deadline) -> dict[str, list[PartitionInfo]]:
    """All topics that the principal may see, with their partitions."""
    picture = await cluster.retrying(
        lambda: _ask(cluster, None), deadline=deadline, what="The list of topics"
    )
    return {name: _partitions(picture, name) for name in picture.topics}


def _partitions(picture: ClusterMetadata, topic: str) -> list[PartitionInfo]:
    view = picture.topics.get(topic)
    if view is None:
        return []
    found = (picture.info(TopicPartition(topic, index)) for index in view.partitions)
    return [info for info in found if info is not None]


async def _ask(cluster: ClusterClient, topics: list[str] | None) -> ClusterMetadata:
    request = MetadataRequest(
        topics=None
        if topics is None
        else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics],
        allow_auto_topic_creation=topics is not None and cluster.allow_auto_topic_creation,
    )
    response: MetadataResponse = await cluster.call_any(request)
    for each in response.topics:
        if each.error_code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            raise topic_error(each.error_code, each.name or "")
    return EMPTY.updated(response, complete=True)
