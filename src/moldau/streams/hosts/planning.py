"""Reads an assembly as a `Plan`: its sub-topologies with the names of topics on the cluster."""

from __future__ import annotations

import re
from typing import Final

from moldau.streams.errors import TopologyError
from moldau.streams.machine.definitions import ProcessorDefinition, SinkDefinition, SourceDefinition
from moldau.streams.machine.subtopologies import ChangelogTopic, Plan, SubTopology
from moldau.streams.topology.assembly import Assembly

#: What a name looks like that was made from the number of its operator.
_NUMBERED: Final = re.compile(r"(KSTREAM|KTABLE|STATE-STORE)(-[A-Z]+)*-\d{10}")


def check_names(assembly: Assembly) -> None:
    """Raise TopologyError if a store or an internal topic has no name of its own (KIP-1111).

    Such a name changes with the program: the state that belongs to it is then not found.
    """
    stores = [name for name in assembly.stores if _NUMBERED.search(name)]
    logged = [
        f"{name}-changelog"
        for name in stores
        if assembly.stores[name].logging and name not in assembly.source_changelogs
    ]
    topics = [name for name in assembly.internal_topics if _NUMBERED.search(name)]
    found = {"changelog topic": logged, "state store": stores, "repartition topic": topics}
    said = [
        f"Following {what}(s) has not been named: {', '.join(names)}"
        for what, names in found.items()
        if names
    ]
    if said:
        raise TopologyError("\n".join(said))


def topic_name(assembly: Assembly, application_id: str, topic: str) -> str:
    """The name of a topic on the cluster: internal ones begin with the application's id."""
    return f"{application_id}-{topic}" if topic in assembly.internal_topics else topic


def changelog_name(assembly: Assembly, application_id: str, store: str) -> str:
    """The changelog topic of a store."""
    source = assembly.source_changelogs.get(store)
    if source is not None:
        return topic_name(assembly, application_id, source)
    return f"{application_id}-{store}-changelog"


def plan_of(assembly: Assembly, application_id: str) -> Plan:
    """The plan of a topology."""

    def name(topic: str) -> str:
        return topic_name(assembly, application_id, topic)

    subtopologies = []
    global_topics: set[str] = set()
    for number, nodes in enumerate(assembly.groups()):
        sources = [
            node for each in nodes if isinstance(node := assembly.nodes[each], SourceDefinition)
        ]
        if assembly.is_global(nodes):
            global_topics.update(topic for source in sources for topic in source.topics)
            continue
        topics = {topic for source in sources for topic in source.topics}
        internal = {topic for topic in topics if topic in assembly.internal_topics}
        subtopologies.append(
            SubTopology(
                number=number,
                nodes=tuple(nodes),
                topics=frozenset(topics - internal),
                patterns=tuple(each.pattern for each in sources if each.pattern is not None),
                repartition_topics=frozenset(map(name, internal)),
                sinks=frozenset(_sinks(assembly, nodes, application_id)),
                stores=frozenset(_stores(assembly, nodes)),
                changelogs=_changelogs(assembly, nodes, application_id),
            )
        )
    return Plan(
        application_id=application_id,
        subtopologies=subtopologies,
        repartition_counts={
            name(topic): count for topic, count in assembly.internal_topics.items()
        },
        copartitioned=[
            frozenset(name(topic) for source in group for topic in _topics(assembly, source))
            for group in assembly.copartitioned
        ],
        global_topics=frozenset(global_topics),
    )


def _sinks(assembly: Assembly, nodes: list[str], application_id: str) -> set[str]:
    found = set()
    for each in nodes:
        node = assembly.nodes[each]
        if isinstance(node, SinkDefinition) and isinstance(node.topic, str):
            found.add(topic_name(assembly, application_id, node.topic))
    return found


def _topics(assembly: Assembly, source: str) -> list[str]:
    node = assembly.nodes.get(source)
    return node.topics if isinstance(node, SourceDefinition) else []


def _stores(assembly: Assembly, nodes: list[str]) -> list[str]:
    """The stores of a sub-topology; global ones are not its own."""
    return [
        store
        for each in nodes
        if isinstance(node := assembly.nodes[each], ProcessorDefinition)
        for store in node.stores
        if store in assembly.stores
    ]


def _changelogs(
    assembly: Assembly, nodes: list[str], application_id: str
) -> dict[str, ChangelogTopic]:
    found: dict[str, ChangelogTopic] = {}
    for store in _stores(assembly, nodes):
        builder = assembly.stores[store]
        is_source = store in assembly.source_changelogs
        if builder.logging or is_source:
            found[store] = ChangelogTopic(
                changelog_name(assembly, application_id, store),
                builder.retention_ms,
                builder.history_ms,
                is_source=is_source,
                config=builder.changelog_config,
            )
    return found
