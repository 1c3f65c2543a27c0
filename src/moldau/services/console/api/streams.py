"""Streams applications: members, tasks, lag and the topology as a picture with live rates.

Those of streams groups are known to the broker with their topology; those of consumer groups by
their assignor alone. Instances that answer at their `application.server` report their topology node
by node with the rate of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from moldau.client.admin import ConsumerGroupDescription, StreamsGroupDescription
from moldau.http.machine.routes import Route
from moldau.http.request import Request
from moldau.services.console.api.routing import CLUSTER, api
from moldau.services.console.backend import Backend, Call
from moldau.services.console.instances import (
    Reported,
    ask_instances,
    endpoint_of,
    reported_topology,
)
from moldau.services.console.machine.errors import missing
from moldau.services.console.machine.graph import Edge, Node, picture

__all__ = ["StreamsHandlers", "streams_groups"]

#: Of Moldau's and of Kafka's own Streams.
_ASSIGNORS: Final = frozenset({"moldau-streams", "stream"})
#: Applications of the SQL server have a page of their own there.
_QUERIES: Final = "_confluent-ksql-"


class StreamsHandlers:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        return [
            api("GET", f"{CLUSTER}/streams", self.list, "Streams applications", tag="streams"),
            api("GET", f"{CLUSTER}/streams/{{application}}", self.show, "One application",
                tag="streams"),
        ]  # fmt: skip

    async def list(self, request: Request) -> dict[str, Any]:
        with self._backend.call(request) as call:
            lags = call.watcher.snapshot.lags
            rows = [
                {
                    "name": name,
                    "group": "streams",
                    "state": str(each.group_state.value),
                    "members": len(each.members),
                    "subtopologies": len(each.subtopologies),
                    "tasks": sum(_tasks(each).values()),
                    "lag": sum(one.records for one in lags.get(name, ())),
                }
                for name, each in (await streams_groups(call)).items()
            ]
            rows += [
                {
                    "name": name,
                    "group": "consumer",
                    "state": str(each.group_state.value),
                    "members": len(each.members),
                    "subtopologies": None,
                    "tasks": None,
                    "lag": sum(one.records for one in lags.get(name, ())),
                }
                for name, each in (await _in_consumer_groups(call)).items()
            ]
            return {"data": sorted(rows, key=lambda row: str(row["name"]))}

    async def show(self, request: Request) -> dict[str, Any]:
        name = request.path["application"]
        with self._backend.call(request) as call:
            found = (await streams_groups(call)).get(name)
            if found is not None:
                shown = await self._of_streams_group(call, found)
            else:
                other = (await _in_consumer_groups(call, name)).get(name)
                if other is None:
                    raise missing("streams application", name)
                shown = await self._of_consumer_group(other)
            inputs = [
                {"topic": one.place[0], "partition": one.place[1], "lag": one.records}
                for one in call.watcher.snapshot.lags.get(name, ())
            ]
            return {"name": name, **shown, "inputs": inputs}

    async def _of_streams_group(self, call: Call, found: StreamsGroupDescription) -> dict[str, Any]:
        endpoints = [
            f"{each.user_endpoint.host}:{each.user_endpoint.port}"
            for each in found.members
            if each.user_endpoint is not None
        ]
        reported = await self._reported(endpoints)
        return {
            "group": "streams",
            "state": str(found.group_state.value),
            "epoch": found.group_epoch,
            "topology_epoch": found.topology_epoch,
            "members": [
                {
                    "client": each.client_id,
                    "process": each.process_id,
                    "active": _named(each.assignment.active_tasks),
                    "standby": _named(each.assignment.standby_tasks),
                    "warmup": _named(each.assignment.warmup_tasks),
                }
                for each in found.members
            ],
            "topology": reported_topology(reported) if reported.answered else _picture(call, found),
            **_answers(endpoints, reported),
        }

    async def _of_consumer_group(self, found: ConsumerGroupDescription) -> dict[str, Any]:
        endpoints = [each for each in map(endpoint_of, found.members) if each]
        reported = await self._reported(endpoints)
        return {
            "group": "consumer",
            "state": str(found.group_state.value),
            "epoch": None,
            "topology_epoch": None,
            "members": [
                {
                    "client": each.client_id,
                    "process": each.consumer_id,
                    "active": sorted(map(str, each.assignment.topic_partitions)),
                    "standby": [],
                    "warmup": [],
                }
                for each in found.members
            ],
            "topology": reported_topology(reported) if reported.answered else None,
            **_answers(endpoints, reported),
        }

    async def _reported(self, endpoints: Sequence[str]) -> Reported:
        if not self._backend.config["streams.rates"]:
            return Reported()
        return await ask_instances(endpoints)


def _answers(endpoints: Sequence[str], reported: Reported) -> dict[str, int]:
    return {"instances_named": len(set(endpoints)), "instances_answered": reported.answered}


async def streams_groups(call: Call) -> dict[str, StreamsGroupDescription]:
    """The applications that use the streams protocol, which know their topology."""
    names = [each.group_id for each in await call.admin.list_streams_groups()]
    if not names:
        return {}
    found = await call.admin.describe_streams_groups(names, check=False)
    return dict(found.values_by_key)


async def _in_consumer_groups(
    call: Call, only: str | None = None
) -> dict[str, ConsumerGroupDescription]:
    """Those that the last reading found, as far as the user may see them."""
    names = [
        name
        for name, each in call.watcher.snapshot.groups.items()
        if each.assignor in _ASSIGNORS and not name.startswith(_QUERIES) and only in (None, name)
    ]
    if not names:
        return {}
    found = await call.admin.describe_consumer_groups(names, check=False)
    return dict(found.values_by_key)


def _picture(call: Call, found: StreamsGroupDescription) -> dict[str, Any]:
    """Topics and sub-topologies; what a sub-topology writes beyond repartition topics is not part
    of what the group protocol carries."""
    facts = call.watcher.snapshot.topics
    nodes: dict[str, Node] = {}
    edges: list[Edge] = []
    tasks = _tasks(found)

    def topic(name: str, kind: str) -> str:
        rate = facts[name].rate if name in facts else None
        note = kind if rate is None else f"{rate:,.1f} records/s"
        nodes.setdefault(f"t:{name}", Node(f"t:{name}", kind, name, note, f"/topics/{name}"))
        return f"t:{name}"

    for each in found.subtopologies:
        own = f"s:{each.subtopology_id}"
        count = tasks.get(each.subtopology_id, 0)
        label = f"Sub-topology {each.subtopology_id}"
        nodes[own] = Node(own, "processor", label, f"{count} tasks")
        edges += [Edge(topic(name, "topic"), own) for name in each.source_topics]
        edges += [Edge(topic(name, "repartition"), own) for name in each.repartition_source_topics]
        edges += [Edge(own, topic(name, "repartition")) for name in each.repartition_sink_topics]
        edges += [Edge(own, topic(name, "changelog")) for name in each.state_changelog_topics]
    return picture(list(nodes.values()), edges)


def _tasks(found: StreamsGroupDescription) -> dict[str, int]:
    counts: dict[str, int] = {}
    for member in found.members:
        for task in member.assignment.active_tasks:
            counts[task.subtopology_id] = counts.get(task.subtopology_id, 0) + len(task.partitions)
    return counts


def _named(tasks: Any) -> list[str]:
    return sorted(f"{task.subtopology_id}_{one}" for task in tasks for one in task.partitions)
