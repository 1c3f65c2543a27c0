"""Reads the text that Kafka Streams and ksqlDB print of a topology, and lays it out as a graph.

    Topologies:
       Sub-topology: 0
        Source: KSTREAM-SOURCE-0000000000 (topics: [orders])
          --> KSTREAM-FILTER-0000000001
        Processor: KSTREAM-FILTER-0000000001 (stores: [])
          --> KSTREAM-SINK-0000000002
          <-- KSTREAM-SOURCE-0000000000
        Sink: KSTREAM-SINK-0000000002 (topic: BIG)

Lines that are something else are left out: a text of another version still gives a picture.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from moldau.services.console.machine.graph import Edge, Node, picture

__all__ = ["parse_topology"]

_NODE: Final = re.compile(r"\s*(Source|Processor|Sink):\s+(\S+)\s*(?:\((.*)\))?")
_ARROW: Final = re.compile(r"\s*-->\s*(.*)")
_LIST: Final = re.compile(r"(topics|stores):\s*\[([^\]]*)\]")
_TOPIC: Final = re.compile(r"topic:\s*(\S+)")


def parse_topology(
    text: str, measured: Mapping[str, Mapping[str, float]] | None = None
) -> dict[str, Any]:
    """`measured` has `rate` and `records` by the name of a node, as instances report them."""
    measured = measured or {}
    nodes: list[Node] = []
    edges: list[Edge] = []
    for line in text.splitlines():
        if (found := _NODE.match(line)) is not None:
            kind, name, details = found[1].lower(), found[2], found[3] or ""
            found_rate = measured.get(name)
            rate = None if found_rate is None else float(found_rate["rate"])
            records = None if found_rate is None else int(found_rate["records"])
            nodes.append(
                Node(name, kind, _short(name), _note(kind, details), rate=rate, records=records)
            )
        elif nodes and (arrow := _ARROW.match(line)) is not None:
            targets = (each.strip() for each in arrow[1].split(","))
            edges += [Edge(nodes[-1].id, each) for each in targets if each and each != "none"]
    return picture(nodes, [*edges, *_through_topics(nodes)])


def _through_topics(nodes: list[Node]) -> list[Edge]:
    """From the sink of a repartition topic to its source in the next sub-topology."""
    sinks = {node.note.removeprefix("to "): node.id for node in nodes if node.kind == "sink"}
    return [
        Edge(sinks[topic], node.id)
        for node in nodes
        if node.kind == "source"
        for topic in node.note.removeprefix("from ").split(", ")
        if topic in sinks
    ]


def _note(kind: str, details: str) -> str:
    if kind == "sink":
        topic = _TOPIC.search(details)
        return f"to {topic[1]}" if topic else ""
    found = _LIST.search(details)
    listed = found[2].strip() if found else ""
    if not listed:
        return ""
    return f"from {listed}" if kind == "source" else f"store {listed}"


def _short(name: str) -> str:
    """Without the zeros of a generated name: KSTREAM-FILTER-1."""
    return re.sub(r"-0+(\d+)$", r"-\1", name)
