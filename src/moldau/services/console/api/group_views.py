"""One group as JSON, by its kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moldau.client.admin import StreamsGroupTaskIds
from moldau.client.errors import KafkaError
from moldau.client.topics import TopicPartition
from moldau.services.console.backend import Call

__all__ = ["describe_group"]


async def describe_group(call: Call, group: str, kind: str) -> dict[str, Any]:
    """State, coordinator, epochs and members."""
    if kind == "share":
        return await _share(call, group)
    if kind == "streams":
        return await _streams(call, group)
    try:
        return await _consumer(call, group)
    except KafkaError:
        # A classic group with a protocol of its own, such as Connect's workers.
        if kind != "classic":
            raise
        return await _classic(call, group)


def _places(places: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    return [{"topic": each.topic, "partition": each.partition} for each in sorted(places)]


async def _consumer(call: Call, group: str) -> dict[str, Any]:
    found = (await call.admin.describe_consumer_groups([group]))[group]
    return {
        "state": found.group_state.value,
        "coordinator": found.coordinator.id,
        "assignor": found.partition_assignor,
        "epoch": found.group_epoch,
        "assignment_epoch": found.target_assignment_epoch,
        "members": [
            {
                "id": each.consumer_id,
                "instance": each.group_instance_id,
                "client": each.client_id,
                "host": each.host,
                "rack": each.rack_id,
                "epoch": each.member_epoch,
                "assignment": _places(each.assignment.topic_partitions),
            }
            for each in found.members
        ],
    }


async def _classic(call: Call, group: str) -> dict[str, Any]:
    found = (await call.admin.describe_classic_groups([group]))[group]
    return {
        "state": found.state.value,
        "coordinator": found.coordinator.id,
        "assignor": found.protocol_data,
        "epoch": None,
        "assignment_epoch": None,
        "members": [
            {
                "id": each.consumer_id,
                "instance": each.group_instance_id,
                "client": each.client_id,
                "host": each.host,
                "rack": None,
                "epoch": None,
                "assignment": [],
            }
            for each in found.members
        ],
    }


async def _share(call: Call, group: str) -> dict[str, Any]:
    found = (await call.admin.describe_share_groups([group]))[group]
    return {
        "state": found.group_state.value,
        "coordinator": found.coordinator.id,
        "assignor": "share",
        "epoch": found.group_epoch,
        "assignment_epoch": found.target_assignment_epoch,
        "members": [
            {
                "id": each.consumer_id,
                "instance": None,
                "client": each.client_id,
                "host": each.host,
                "rack": each.rack_id,
                "epoch": each.member_epoch,
                "assignment": _places(each.assignment.topic_partitions),
            }
            for each in found.members
        ],
    }


async def _streams(call: Call, group: str) -> dict[str, Any]:
    found = (await call.admin.describe_streams_groups([group]))[group]
    sources = {each.subtopology_id: each for each in found.subtopologies}

    def tasks(kind: str, given: tuple[StreamsGroupTaskIds, ...]) -> list[dict[str, Any]]:
        return [
            {"topic": f"{kind} task {each.subtopology_id}", "partition": partition}
            for each in given
            for partition in each.partitions
        ]

    return {
        "state": found.group_state.value,
        "coordinator": found.coordinator.id,
        "assignor": f"topology epoch {found.topology_epoch}",
        "epoch": found.group_epoch,
        "assignment_epoch": found.target_assignment_epoch,
        "subtopologies": [
            {
                "id": name,
                "sources": list(each.source_topics),
                "repartition_sources": sorted(each.repartition_source_topics),
                "repartition_sinks": list(each.repartition_sink_topics),
                "changelogs": sorted(each.state_changelog_topics),
            }
            for name, each in sorted(sources.items())
        ],
        "members": [
            {
                "id": each.member_id,
                "instance": each.instance_id,
                "client": each.client_id,
                "host": each.client_host,
                "rack": each.rack_id,
                "epoch": each.member_epoch,
                "assignment": tasks("active", each.assignment.active_tasks)
                + tasks("standby", each.assignment.standby_tasks)
                + tasks("warm-up", each.assignment.warmup_tasks),
            }
            for each in found.members
        ],
    }
