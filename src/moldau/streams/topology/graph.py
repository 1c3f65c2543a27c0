"""The logical graph of a program, and how it is optimised and written to an assembly."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moldau.streams.errors import TopologyError
from moldau.streams.machine.stateless import Filter, PassThrough
from moldau.streams.serdes import Serde
from moldau.streams.topology.assembly import Assembly, check_name

Writer = Callable[[Assembly, list[str]], None]

REUSE_KTABLE_SOURCE_TOPICS = "reuse.ktable.source.topics"
MERGE_REPARTITION_TOPICS = "merge.repartition.topics"
SINGLE_STORE_SELF_JOIN = "single.store.self.join"
_ALL = frozenset({REUSE_KTABLE_SOURCE_TOPICS, MERGE_REPARTITION_TOPICS, SINGLE_STORE_SELF_JOIN})


def _optimizations(setting: str) -> frozenset[str]:
    """What `topology.optimization` turns on: none, all, or a list of names."""
    if setting in ("none", "all"):
        return _ALL if setting == "all" else frozenset()
    names = frozenset(name.strip() for name in setting.split(","))
    if not names <= _ALL:
        raise ValueError(
            f"topology.optimization is 'none', 'all' or a list of {', '.join(sorted(_ALL))}, "
            f"not {setting!r}"
        )
    return names


@dataclass(slots=True, kw_only=True)
class Repartition:
    """A repartition topic, with the names of the nodes before and after it."""

    topic: str
    sink: str
    source: str
    filter: str
    key_serde: Serde[Any] | None
    value_serde: Serde[Any] | None
    optimizable: bool
    #: Null keys are dropped, unless a left or outer join that follows wants them.
    drops_null_keys: bool = True


class GraphNode:
    """An operator. `write` adds its nodes to an assembly, after those of its parents."""

    def __init__(self, name: str, write: Writer) -> None:
        self.name = name
        self.write = write
        self.parents: dict[GraphNode, None] = {}
        self.children: dict[GraphNode, None] = {}
        self.priority = 0
        self.is_written = False
        self.is_key_changing = False
        self.is_value_changing = False
        self.is_merge = False
        #: Topics or pattern of a stream's source: equal ones become one node.
        self.source_of: tuple[str, ...] | None = None
        self.is_pattern = False
        self.repartition: Repartition | None = None
        #: How long after their end the windows of this operator stay open.
        self.window_grace_ms: int | None = None
        #: Whether the table has versions; None inherits it from the parents.
        self.output_versioned: bool | None = None
        #: Called with the name of each parent that is versioned.
        self.on_versioned_parent: Callable[[str], None] | None = None
        self.is_suppress = False
        #: A left or outer join of a stream, which has results for null keys.
        self.wants_null_keys = False
        self.reuse_source_topic: Callable[[], None] | None = None
        #: A join's windowed nodes, and how it becomes a join through one store.
        self.windowed_names: tuple[str, str] | None = None
        self.make_self_join: Callable[[], None] | None = None

    def add_child(self, child: GraphNode) -> None:
        self.children[child] = None
        child.parents[self] = None

    def remove_child(self, child: GraphNode) -> None:
        self.children.pop(child, None)
        child.parents.pop(self, None)

    def leads_to_null_keys(self) -> bool:
        """Whether an operator that follows wants null keys."""
        return any(child.wants_null_keys or child.leads_to_null_keys() for child in self.children)

    def find_up(self, test: Callable[[GraphNode], bool]) -> GraphNode | None:
        """This node, or the nearest before it, for which `test` holds."""
        if test(self):
            return self
        found = None
        for parent in self.parents:
            if test(parent):
                return parent
            found = parent.find_up(test)
        return found


def _nothing(assembly: Assembly, parents: list[str]) -> None:
    pass


class GraphBuilder:
    """Numbers names, collects operators, and writes them in the order of their declaration."""

    def __init__(self) -> None:
        self.assembly = Assembly()
        self.root = GraphNode("root", _nothing)
        self._index = 0
        self._priority = 0
        self._nodes: list[GraphNode] = []
        #: Key-changing operators with the repartitions that follow them.
        self._repartitions: dict[GraphNode, dict[GraphNode, None]] = {}

    # Names.

    def new_name(self, prefix: str) -> str:
        name = f"{prefix}{self._index:010d}"
        self._index += 1
        return name

    def new_store_name(self, prefix: str) -> str:
        return self.new_name(f"{prefix}STATE-STORE-")

    def name_or_new(self, name: str | None, prefix: str) -> str:
        """The given name, or a new one. A given name takes a number too, as in Kafka Streams."""
        new = self.new_name(prefix)
        return new if name is None else check_name(name)

    def suffixed_or_new(self, name: str | None, suffix: str, prefix: str) -> str:
        new = self.new_name(prefix)
        return new if name is None else check_name(check_name(name) + suffix)

    # The graph.

    def add(self, node: GraphNode, *parents: GraphNode) -> GraphNode:
        for parent in parents or (self.root,):
            parent.add_child(node)
            self._note(node)
        return node

    def _note(self, node: GraphNode) -> None:
        node.priority = self._priority
        self._priority += 1
        if node not in self._nodes:
            self._nodes.append(node)
        if node.is_key_changing:
            self._repartitions.setdefault(node, {})
        elif node.repartition is not None and node.repartition.optimizable:
            changing = node.find_up(lambda each: each.is_key_changing or each.is_value_changing)
            if changing is not None and changing.is_key_changing:
                self._repartitions.setdefault(changing, {})[node] = None

    def build(self, optimization: str) -> Assembly:
        self._merge_sources()
        chosen = _optimizations(optimization)
        if REUSE_KTABLE_SOURCE_TOPICS in chosen:
            for node in self._nodes:
                if node.reuse_source_topic is not None:
                    node.reuse_source_topic()
        if MERGE_REPARTITION_TOPICS in chosen:
            self._merge_repartitions()
        if SINGLE_STORE_SELF_JOIN in chosen:
            self._rewrite_self_joins()
        self._apply_versions()
        for node in self._nodes:
            if node.repartition is not None:
                node.repartition.drops_null_keys = not node.leads_to_null_keys()
        queue = [(-1, 0, self.root)]
        count = 0
        while queue:
            _, _, node = heapq.heappop(queue)
            if not node.is_written and all(parent.is_written for parent in node.parents):
                node.write(self.assembly, [parent.name for parent in node.parents])
                node.is_written = True
            for child in node.children:
                count += 1
                if not child.is_written:
                    heapq.heappush(queue, (child.priority, count, child))
        self.assembly.check_copartition()
        return self.assembly

    def _merge_sources(self) -> None:
        """Streams of the same topics read them once."""
        main: dict[tuple[bool, str], GraphNode] = {}
        for node in list(self.root.children):
            for topic in node.source_of or ():
                first = main.setdefault((node.is_pattern, topic), node)
                if first is node:
                    continue
                if set(first.source_of or ()) != set(node.source_of or ()):
                    raise TopologyError(
                        "Two source nodes are subscribed to overlapping but not equal input topics"
                    )
                for child in list(node.children):
                    node.remove_child(child)
                    first.add_child(child)
                self.root.remove_child(node)
                break

    def _merge_repartitions(self) -> None:
        """One repartition topic after a key-changing operator serves all that follow."""
        self._move_to_merges()
        for changer, nodes in list(self._repartitions.items()):
            if not nodes:
                continue
            single = self._single_repartition(list(nodes))
            single.priority = changer.priority
            for replaced in nodes:
                start = replaced.find_up(lambda each, c=changer: c in each.parents)  # type: ignore[misc]
                if start is None:
                    continue
                single.add_child(start)
                changer.remove_child(start)
                children, parents = list(replaced.children), list(replaced.parents)
                for child in children:
                    for parent in parents:
                        parent.add_child(child)
                for parent in parents:
                    parent.remove_child(replaced)
                for child in children:
                    replaced.remove_child(child)
            changer.add_child(single)
            self._nodes.append(single)

    def _move_to_merges(self) -> None:
        """Key changers that meet in a merge before they repartition do it after the merge."""
        for merge in [node for node in self._nodes if node.is_merge]:
            moved: dict[GraphNode, None] = {}
            for changer, nodes in list(self._repartitions.items()):
                behind = nodes and all(
                    node.find_up(lambda each: merge in each.parents) is not None  # noqa: B023
                    for node in nodes
                )
                if behind and merge.find_up(lambda each: changer in each.parents):  # noqa: B023
                    moved.update(self._repartitions.pop(changer))
            if moved:
                self._repartitions[merge] = moved

    def _single_repartition(self, nodes: list[GraphNode]) -> GraphNode:
        specs = [node.repartition for node in nodes if node.repartition is not None]
        keys = next((spec.key_serde for spec in specs if spec.key_serde is not None), None)
        values = next((spec.value_serde for spec in specs if spec.value_serde is not None), None)
        return repartition_node(self, specs[0].topic, key_serde=keys, value_serde=values)

    def _rewrite_self_joins(self) -> None:
        for node in self._nodes:
            if node.make_self_join is None or node.windowed_names is None:
                continue
            others = [parent for parent in node.parents if parent.name not in node.windowed_names]
            if len(others) != 1:
                continue
            for child in list(others[0].children):
                if child.name == node.windowed_names[1]:
                    others[0].remove_child(child)
                    child.remove_child(node)
            node.make_self_join()

    def _apply_versions(self) -> None:
        for node in self._nodes:
            for parent in node.parents:
                if node.on_versioned_parent is not None and self._is_versioned(parent):
                    node.on_versioned_parent(parent.name)
            if node.is_suppress and self._inherits_versions(node):
                raise TopologyError(
                    "suppress() is only supported for non-versioned KTables (note that version "
                    "semantics might be inherited from upstream)"
                )

    def _is_versioned(self, node: GraphNode) -> bool:
        if node.output_versioned is not None:
            return node.output_versioned
        return self._inherits_versions(node)

    def _inherits_versions(self, node: GraphNode) -> bool:
        if node is self.root:
            return False
        return all(self._is_versioned(parent) for parent in node.parents)

    def grace_of(self, node: GraphNode, chain: str = "") -> int:
        """How long after their end the windows before a node stay open."""
        if node.window_grace_ms is not None:
            return node.window_grace_ms
        chain = f"{node.name}->{chain}" if chain else node.name
        if not node.parents:
            raise TopologyError(
                f"Window close time is only defined for windowed computations. Got [{chain}]."
            )
        return max(self.grace_of(parent, chain) for parent in node.parents)


def repartition_node(
    builder: GraphBuilder,
    prefix: str,
    *,
    key_serde: Serde[Any] | None,
    value_serde: Serde[Any] | None,
    optimizable: bool = True,
    partitions: int | None = None,
    partitioner: Any = None,
) -> GraphNode:
    """A filter of null keys, a sink, a topic and a source. Takes three numbers in any case."""
    suffix = "-repartition"
    topic = prefix if prefix.endswith(suffix) else prefix + suffix
    sink, drop, source = (
        builder.new_name(kind) for kind in ("KSTREAM-SINK-", "KSTREAM-FILTER-", "KSTREAM-SOURCE-")
    )
    if not (prefix.startswith("KSTREAM") and prefix[-11:-10] == "-" and prefix[-10:].isdigit()):
        sink, drop, source = f"{topic}-sink", f"{topic}-filter", f"{topic}-source"

    spec = Repartition(
        topic=topic,
        sink=sink,
        source=source,
        filter=drop,
        key_serde=key_serde,
        value_serde=value_serde,
        optimizable=optimizable,
    )

    def write(assembly: Assembly, parents: list[str]) -> None:
        assembly.internal_topics[topic] = partitions
        supplier = _DropNullKeys if spec.drops_null_keys else PassThrough
        assembly.add_processor(drop, supplier, parents)
        assembly.add_sink(
            sink,
            topic,
            [drop],
            key_serde=key_serde,
            value_serde=value_serde,
            partitioner=partitioner,
        )
        assembly.add_source(source, [topic], key_serde=key_serde, value_serde=value_serde)

    node = GraphNode(source, write)
    node.repartition = spec
    return node


class _DropNullKeys(Filter):
    def __init__(self) -> None:
        super().__init__(lambda key, value: key is not None)
