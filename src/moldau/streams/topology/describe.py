"""The text of `Topology.describe()`, as Kafka Streams prints it."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.streams.machine.definitions import (
    ProcessorDefinition,
    SinkDefinition,
    SourceDefinition,
)
from moldau.streams.topology.assembly import Assembly


class _Group:
    """A sub-topology's nodes, ordered by how much follows them, then by name."""

    def __init__(self, assembly: Assembly, names: list[str]) -> None:
        self._assembly = assembly
        self._children: dict[str, list[str]] = {name: [] for name in names}
        self._sizes = dict.fromkeys(names, 1)
        for name in names:
            for parent in assembly.nodes[name].parents:
                self._children[parent].append(name)
        # Kafka adds a node's size to all nodes before it, once per path.
        for name in names:
            self._add_size(name, assembly.nodes[name].parents)
        self.names = sorted(names, key=self._order)

    def _add_size(self, name: str, parents: Iterable[str]) -> None:
        for parent in parents:
            self._sizes[parent] += 1
            self._add_size(name, self._assembly.nodes[parent].parents)

    def _order(self, name: str) -> tuple[int, str]:
        return -self._sizes[name], name

    def _joined(self, names: Iterable[str]) -> str:
        return ", ".join(names) or "none"

    def children(self, name: str) -> str:
        return self._joined(sorted(self._children[name], key=str))

    def parents(self, name: str) -> str:
        return self._joined(self._assembly.nodes[name].parents)

    def text(self, name: str) -> str:
        node = self._assembly.nodes[name]
        after, before = f"\n      --> {self.children(name)}", f"\n      <-- {self.parents(name)}"
        if isinstance(node, SourceDefinition):
            topics = f"[{', '.join(_hash_order(node.topics))}]"
            if node.pattern is not None:
                topics = node.pattern.pattern
            return f"Source: {name} (topics: {topics}){after}"
        if isinstance(node, ProcessorDefinition):
            stores = ", ".join(_hash_order(node.stores))
            return f"Processor: {name} (stores: [{stores}]){after}{before}"
        return f"Sink: {name} ({_sink_topic(node)}){before}"


def _hash_order(names: list[str]) -> list[str]:
    """The order in which a Java HashSet of these strings is printed."""
    size = 16
    while size < len(names) / 0.75 + 1:
        size *= 2

    def bucket(name: str) -> int:
        units = name.encode("utf-16-be")
        code = 0
        for at in range(0, len(units), 2):
            code = (31 * code + (units[at] << 8 | units[at + 1])) & 0xFFFF_FFFF
        return (code ^ code >> 16) & (size - 1)

    return sorted(names, key=bucket)


def _sink_topic(node: SinkDefinition) -> str:
    if isinstance(node.topic, str):
        return f"topic: {node.topic}"
    return f"extractor class: {getattr(node.topic, '__qualname__', type(node.topic).__name__)}"


def describe(assembly: Assembly) -> str:
    """Sub-topologies in the order of their numbers."""
    parts = []
    for number, names in enumerate(assembly.groups()):
        group = _Group(assembly, names)
        nodes = "".join(f"    {group.text(name)}\n" for name in group.names)
        if assembly.is_global(names):
            parts.append(
                f"Sub-topology: {number} for global store (will not generate tasks)\n{nodes}"
            )
        else:
            parts.append(f"Sub-topology: {number}\n{nodes}\n")
    return "Topologies:\n   " + "  ".join(parts)
