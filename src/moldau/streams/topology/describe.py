"""The text of `Topology.describe()`, as Kafka Streams prints it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from moldau.streams.machine.definitions import (
    ProcessorDefinition,
    SinkDefinition,
    SourceDefinition,
)
from moldau.streams.topology.assembly import Assembly


class _Entry:
    """A place in a tree."""

    __slots__ = ("is_black", "left", "name", "parent", "right")

    def __init__(self, name: str, parent: _Entry | None) -> None:
        self.name = name
        self.parent = parent
        self.left: _Entry | None = None
        self.right: _Entry | None = None
        self.is_black = parent is None


class _Tree:
    """A sorted set whose order is that of the moment at which each name was added.

    The order of names that are there changes meanwhile, so which of them a new one is compared with
    decides its place: the tree is kept balanced exactly as Java's TreeSet is.
    """

    def __init__(self, order: Callable[[str], tuple[int, str]]) -> None:
        self._order = order
        self._root: _Entry | None = None

    def add(self, name: str) -> None:
        parent, node, is_left = None, self._root, False
        while node is not None:
            if node.name == name:
                return
            is_left = self._order(name) < self._order(node.name)
            parent, node = node, node.left if is_left else node.right
        made = _Entry(name, parent)
        if parent is None:
            self._root = made
        elif is_left:
            parent.left = made
        else:
            parent.right = made
        self._balance(made)

    def _balance(self, node: _Entry) -> None:
        while (parent := node.parent) is not None and not parent.is_black:
            above = parent.parent
            if above is None:
                break
            is_left = parent is above.left
            uncle = above.right if is_left else above.left
            if uncle is not None and not uncle.is_black:
                parent.is_black = uncle.is_black = True
                above.is_black = False
                node = above
                continue
            if node is (parent.right if is_left else parent.left):
                self._rotate(parent, to_left=is_left)
                node, parent = parent, node
            parent.is_black, above.is_black = True, False
            self._rotate(above, to_left=not is_left)
        if self._root is not None:
            self._root.is_black = True

    def _rotate(self, node: _Entry, *, to_left: bool) -> None:
        """Put the child of the other side into the place of a node, which becomes its child."""
        child = node.right if to_left else node.left
        if child is None:
            return
        moved = child.left if to_left else child.right
        if moved is not None:
            moved.parent = node
        child.parent = node.parent
        if node.parent is None:
            self._root = child
        elif node is node.parent.left:
            node.parent.left = child
        else:
            node.parent.right = child
        if to_left:
            node.right, child.left = moved, node
        else:
            node.left, child.right = moved, node
        node.parent = child

    def text(self) -> str:
        # One node whose name is empty is shown as nothing, and not as none.
        return "none" if self._root is None else ", ".join(self._names(self._root))

    def _names(self, node: _Entry | None) -> Iterator[str]:
        if node is not None:
            yield from self._names(node.left)
            yield node.name
            yield from self._names(node.right)


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
        for name in _hash_order(names, grown=True):
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


def _hash_order(names: list[str], *, grown: bool = False) -> list[str]:
    """The order in which a Java HashSet of these strings is printed.

    One that has grown with what was put into it may be smaller than one that was made for all.
    """
    size = 16
    while size < len(names) / 0.75 + (0 if grown else 1):
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
