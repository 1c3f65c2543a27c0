"""The text of `Topology.describe()`, as Kafka Streams prints it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from moldau.streams.machine.definitions import (
    ProcessorDefinition,
    SinkDefinition,
    SourceDefinition,
)
from moldau.streams.topology.assembly import Assembly


class _Tree:
    """A sorted set whose order is that of the moment at which each name was added."""

    def __init__(self, order: Callable[[str], tuple[int, str]]) -> None:
        self._order = order
        self._root: list[Any] | None = None

    def add(self, name: str) -> None:
        if self._root is None:
            self._root = [name, None, None]
            return
        node = self._root
        while name != node[0]:
            side = 1 if self._order(name) < self._order(node[0]) else 2
            if node[side] is None:
                node[side] = [name, None, None]
            node = node[side]

    def text(self) -> str:
        return ", ".join(self._names(self._root)) or "none"

    def _names(self, node: list[Any] | None) -> Iterator[str]:
        if node is not None:
            yield from self._names(node[1])
            yield node[0]
            yield from self._names(node[2])


class _Group:
    """A sub-topology's nodes, ordered by how much follows them, then by name.

    Kafka Streams links nodes one by one while their sizes grow, in the order of a hash map, and
    sorts parents and children by the sizes of that moment. So does this.
    """

    def __init__(self, assembly: Assembly, names: list[str]) -> None:
        self._assembly = assembly
        self._sizes = dict.fromkeys(names, 1)
        self._children = {name: _Tree(self._order) for name in names}
        self._parents = {name: _Tree(self._order) for name in names}
        linked: dict[str, list[str]] = {name: [] for name in names}
        for name in _hash_order(names):
            for parent in assembly.nodes[name].parents:
                self._parents[name].add(parent)
                linked[name].append(parent)
                self._children[parent].add(name)
                self._grow(parent, self._sizes[name], linked)
        self.names = sorted(names, key=self._order)

    def _grow(self, name: str, by: int, linked: dict[str, list[str]]) -> None:
        self._sizes[name] += by
        for parent in linked[name]:
            self._grow(parent, by, linked)

    def _order(self, name: str) -> tuple[int, str]:
        return -self._sizes[name], name

    def text(self, name: str) -> str:
        node = self._assembly.nodes[name]
        after = f"\n      --> {self._children[name].text()}"
        before = f"\n      <-- {self._parents[name].text()}"
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
