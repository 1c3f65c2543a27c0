"""A connector or a pipeline as a picture: the topics it reads, itself, and the topics it writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from moldau.services.console.machine.graph import Edge, Node, picture

__all__ = ["flow_picture"]


def flow_picture(
    flow: Node,
    reads: Iterable[str],
    writes: Iterable[str],
    rate_of: Callable[[str], float | None],
) -> dict[str, Any]:
    """With the records per second of each topic. A topic that is read and written is two boxes: the
    picture goes from left to right."""

    def topic(name: str, side: str) -> Node:
        return Node(f"{side}:{name}", "topic", name, "topic", f"/topics/{name}", rate_of(name))

    sources = [topic(name, "in") for name in dict.fromkeys(reads)]
    sinks = [topic(name, "out") for name in dict.fromkeys(writes)]
    edges = [Edge(each.id, flow.id) for each in sources]
    edges += [Edge(flow.id, each.id) for each in sinks]
    return picture([*sources, flow, *sinks], edges)
