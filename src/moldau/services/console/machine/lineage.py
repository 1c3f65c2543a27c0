"""Which producers, topics, pipelines, connectors, queries and groups feed which.

Decided here: what a fact of a service becomes in the graph. A group that a connector, a query or an
application uses is that thing, not a second node; so are producers whose transactional id begins
with the application's id. Producers without a name are one node for each topic, and none for a
topic whose writer is known, which they most likely are. Topics that nothing reads or writes are
left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from moldau.services.console.machine.graph import Edge, Node, picture

__all__ = ["Flow", "Known", "lineage"]

NODES_MAX: Final = 400
#: Kinds of flows in the order in which an id is looked for among them.
_OWNERS: Final = ("connector", "query", "pipeline", "streams", "group")


@dataclass(frozen=True, slots=True)
class Flow:
    """Something that reads topics, writes topics, or both."""

    kind: str
    name: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    note: str = ""
    link: str = ""
    #: The groups it uses, and what its transactional ids begin with.
    ids: tuple[str, ...] = ()


@dataclass(slots=True)
class Known:
    """What the platform knows."""

    #: Topics that the user may see, with their records per second.
    topics: Mapping[str, float | None]
    flows: list[Flow] = field(default_factory=list)
    #: Topics by group.
    groups: Mapping[str, Iterable[str]] = field(default_factory=dict)
    group_notes: Mapping[str, str] = field(default_factory=dict)
    #: Topics by transactional id.
    producers: Mapping[str, Iterable[str]] = field(default_factory=dict)
    #: How many producers without a name each topic has.
    nameless: Mapping[str, int] = field(default_factory=dict)


def lineage(known: Known, *, around: str = "") -> dict[str, Any]:
    """The picture; `around` keeps what is connected with one topic or flow."""
    nodes: dict[str, Node] = {}
    edges: set[Edge] = set()
    for flow in _all_flows(known):
        reads = [topic for topic in flow.reads if topic in known.topics]
        writes = [topic for topic in flow.writes if topic in known.topics]
        if not reads and not writes:
            continue
        own = f"{flow.kind}:{flow.name}"
        nodes[own] = Node(own, flow.kind, flow.name, flow.note or flow.kind, flow.link)
        for topic in (*reads, *writes):
            nodes.setdefault(f"topic:{topic}", _topic(topic, known.topics[topic]))
        edges |= {Edge(f"topic:{topic}", own) for topic in reads}
        edges |= {Edge(own, f"topic:{topic}") for topic in writes}
    if around:
        kept = _connected(around, edges)
        nodes = {name: node for name, node in nodes.items() if name in kept}
    shown = dict(list(nodes.items())[:NODES_MAX])
    # A cluster may have ten thousands of lines; only those between shown boxes are drawn.
    drawn = [edge for edge in edges if edge.source in shown and edge.target in shown]
    found = picture(list(shown.values()), drawn)
    return {**found, "left_out": len(nodes) - len(shown)}


def _all_flows(known: Known) -> list[Flow]:
    """With groups and producers that no other flow accounts for."""
    flows = {(flow.kind, flow.name): flow for flow in known.flows}
    owned = _Owners(known.flows)
    for group in sorted(known.groups):
        topics = tuple(sorted(known.groups[group]))
        owner = owned.of(group)
        if owner is None:
            note = known.group_notes.get(group, "group")
            flow = Flow("group", group, topics, (), note, f"/groups/{group}", (group,))
            flows["group", group] = flow
            owned.add(flow)
        else:
            flows[owner] = _with(flows[owner], reads=topics)
    for producer in sorted(known.producers):
        topics = tuple(sorted(known.producers[producer]))
        owner = owned.of(producer)
        if owner is None:
            flows["producer", producer] = Flow("producer", producer, (), topics)
        else:
            flows[owner] = _with(flows[owner], writes=topics)
    written = {topic for flow in flows.values() for topic in flow.writes}
    for topic, count in sorted(known.nameless.items()):
        if topic not in written:
            name = "1 producer" if count == 1 else f"{count} producers"
            flows["producer", topic] = Flow("producer", f"{name} of {topic}", (), (topic,))
    return list(flows.values())


class _Owners:
    """Finds the flow that a group or a transactional id belongs to."""

    def __init__(self, flows: Iterable[Flow]) -> None:
        self._by_id: dict[str, tuple[str, str]] = {}
        for flow in sorted(flows, key=lambda flow: _OWNERS.index(flow.kind)):
            self.add(flow)

    def add(self, flow: Flow) -> None:
        for one in flow.ids:
            self._by_id.setdefault(one, (flow.kind, flow.name))

    def of(self, name: str) -> tuple[str, str] | None:
        """By the longest id that it is, or that it continues with a dash."""
        parts = name
        while parts:
            if parts in self._by_id:
                return self._by_id[parts]
            parts = parts.rpartition("-")[0]
        return None


def _with(flow: Flow, *, reads: tuple[str, ...] = (), writes: tuple[str, ...] = ()) -> Flow:
    return Flow(
        flow.kind,
        flow.name,
        tuple(dict.fromkeys((*flow.reads, *reads))),
        tuple(dict.fromkeys((*flow.writes, *writes))),
        flow.note,
        flow.link,
        flow.ids,
    )


def _topic(name: str, rate: float | None) -> Node:
    note = "topic" if rate is None else f"{rate:,.1f} records/s"
    return Node(f"topic:{name}", "topic", name, note, f"/topics/{name}")


def _connected(start: str, edges: Iterable[Edge]) -> set[str]:
    """All that feeds it, and all that it feeds."""
    forward: dict[str, set[str]] = {}
    backward: dict[str, set[str]] = {}
    for edge in edges:
        forward.setdefault(edge.source, set()).add(edge.target)
        backward.setdefault(edge.target, set()).add(edge.source)
    return _reached(start, forward) | _reached(start, backward)


def _reached(start: str, following: Mapping[str, set[str]]) -> set[str]:
    found = {start}
    waiting = [start]
    while waiting:
        for name in following.get(waiting.pop(), ()):
            if name not in found:
                found.add(name)
                waiting.append(name)
    return found
