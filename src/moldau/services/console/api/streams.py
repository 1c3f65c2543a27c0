"""Streams applications: members, tasks, lag and the topology as a picture with live rates."""

from __future__ import annotations

from typing import Any

from moldau.client.admin import StreamsGroupDescription
from moldau.http.machine.routes import Route
from moldau.http.request import Request
from moldau.services.console.api.routing import CLUSTER, api
from moldau.services.console.backend import Backend, Call
from moldau.services.console.machine.errors import missing
from moldau.services.console.machine.graph import Edge, Node, picture

__all__ = ["StreamsHandlers", "streams_groups"]


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
            found = await streams_groups(call)
            lags = call.watcher.snapshot.lags
            return {
                "data": [
                    {
                        "name": name,
                        "state": str(each.group_state.value),
                        "members": len(each.members),
                        "subtopologies": len(each.subtopologies),
                        "tasks": sum(_tasks(each).values()),
                        "lag": sum(one.records for one in lags.get(name, ())),
                    }
                    for name, each in sorted(found.items())
                ]
            }

    async def show(self, request: Request) -> dict[str, Any]:
        name = request.path["application"]
        with self._backend.call(request) as call:
            found = (await streams_groups(call)).get(name)
            if found is None:
                raise missing("streams application", name)
            return {
                "name": name,
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
                "inputs": [
                    {"topic": one.place[0], "partition": one.place[1], "lag": one.records}
                    for one in call.watcher.snapshot.lags.get(name, ())
                ],
                "topology": _picture(call, found),
            }


async def streams_groups(call: Call) -> dict[str, StreamsGroupDescription]:
    """The applications that use the streams protocol, which know their topology."""
    names = [each.group_id for each in await call.admin.list_streams_groups()]
    if not names:
        return {}
    found = await call.admin.describe_streams_groups(names, check=False)
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
