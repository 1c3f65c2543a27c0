"""Where the state of each partition can be queried: interactive queries of an application."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.broker.coordinator.group.machine.streams.internal_topics import ConfiguredTopology
from moldau.broker.coordinator.group.machine.streams.members import StreamsMember
from moldau.broker.coordinator.group.machine.streams.tasks import TaskMap
from moldau.broker.coordinator.machine.topics import ClusterTopics
from moldau.wire.messages import StreamsGroupHeartbeatResponse

_Response = StreamsGroupHeartbeatResponse


def partitions_by_endpoint(
    members: Iterable[StreamsMember], configured: ConfiguredTopology, topics: ClusterTopics
) -> list[StreamsGroupHeartbeatResponse.EndpointToPartitions]:
    return [
        _Response.EndpointToPartitions(
            user_endpoint=_Response.Endpoint(
                host=member.user_endpoint.host, port=member.user_endpoint.port
            ),
            active_partitions=_partitions(member.assigned.active_tasks, configured, topics),
            standby_partitions=_partitions(member.assigned.standby, configured, topics),
        )
        for member in members
        if member.user_endpoint is not None
    ]


def _partitions(
    tasks: TaskMap, configured: ConfiguredTopology, topics: ClusterTopics
) -> list[StreamsGroupHeartbeatResponse.TopicPartition]:
    """Partitions of all input topics; unknown while counts are undecided."""
    found = []
    for subtopology_id, partitions in sorted(tasks.items()):
        subtopology = (configured.subtopologies or {}).get(subtopology_id)
        if subtopology is None:
            continue
        for topic in sorted(set(subtopology.subtopology.input_topics)):
            facts = topics.topic(topic)
            if facts is not None:
                # A topic may have fewer partitions than the subtopology has tasks.
                held = sorted(each for each in partitions if each < facts.partition_count)
                found.append(_Response.TopicPartition(topic=topic, partitions=held))
    return found
