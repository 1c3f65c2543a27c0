"""What `moldau topics --describe` shows of topics: Kafka's lines, a table, or JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from moldau.cli.support.tables import Table, on_terminal, print_json
from moldau.client.admin import (
    Admin,
    ConfigEntry,
    ConfigResource,
    PartitionReassignment,
    TopicDescription,
    TopicPartitionInfo,
)
from moldau.client.errors import ClusterAuthorizationFailedError, UnsupportedVersionError
from moldau.client.topics import Node, TopicPartition
from moldau.wire.uuids import ZERO_UUID, uuid_to_text

__all__ = ["Filters", "PartitionView", "describe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which partitions or topics are shown; none set shows all."""

    under_replicated: bool = False
    unavailable: bool = False
    under_min_isr: bool = False
    at_min_isr: bool = False
    with_overrides: bool = False

    @property
    def of_partitions(self) -> bool:
        """Whether only some partitions are shown, without their topics."""
        return self.under_replicated or self.unavailable or self.under_min_isr or self.at_min_isr

    def show(self, partition: PartitionView) -> bool:
        return (
            not self.of_partitions
            or (self.under_replicated and partition.is_under_replicated)
            or (self.unavailable and partition.is_unavailable)
            or (self.under_min_isr and partition.is_under_min_isr)
            or (self.at_min_isr and partition.is_at_min_isr)
        )


@dataclass(frozen=True, slots=True)
class PartitionView:
    """A partition with what the filters depend on."""

    topic: str
    info: TopicPartitionInfo
    min_isr: int
    live_brokers: frozenset[int]
    reassignment: PartitionReassignment | None = None

    @property
    def replication_factor(self) -> int:
        """Without the replicas that a reassignment is still adding."""
        moving = self.reassignment
        if moving is not None:
            changing = {*moving.adding_replicas, *moving.removing_replicas}
            # The reassignment may have ended between the two requests.
            if changing.intersection(node.id for node in self.info.replicas):
                return len(moving.replicas) - len(moving.adding_replicas)
        return len(self.info.replicas)

    @property
    def is_under_replicated(self) -> bool:
        return self.replication_factor > len(self.info.isr)

    @property
    def is_unavailable(self) -> bool:
        return self.info.leader is None or self.info.leader.id not in self.live_brokers

    @property
    def is_under_min_isr(self) -> bool:
        return self.info.leader is None or len(self.info.isr) < self.min_isr

    @property
    def is_at_min_isr(self) -> bool:
        return len(self.info.isr) == self.min_isr

    def line(self) -> str:
        info = self.info
        parts = [
            f"\tTopic: {self.topic}",
            f"Partition: {info.partition}",
            f"Leader: {'none' if info.leader is None else info.leader.id}",
            f"Replicas: {_ids(info.replicas)}",
            f"Isr: {_ids(info.isr)}",
        ]
        if self.reassignment is not None:
            parts.append(f"Adding Replicas: {_joined(self.reassignment.adding_replicas)}")
            parts.append(f"Removing Replicas: {_joined(self.reassignment.removing_replicas)}")
        parts.append(f"Elr: {_ids_or_none(info.elr)}")
        parts.append(f"LastKnownElr: {_ids_or_none(info.last_known_elr)}")
        return "\t".join(parts)

    def to_json(self) -> dict[str, object]:
        info = self.info
        shown: dict[str, object] = {
            "partition": info.partition,
            "leader": None if info.leader is None else info.leader.id,
            "leaderEpoch": info.leader_epoch,
            "replicas": [node.id for node in info.replicas],
            "isr": [node.id for node in info.isr],
            "elr": None if info.elr is None else [node.id for node in info.elr],
            "lastKnownElr": (
                None if info.last_known_elr is None else [node.id for node in info.last_known_elr]
            ),
        }
        if self.reassignment is not None:
            shown["addingReplicas"] = list(self.reassignment.adding_replicas)
            shown["removingReplicas"] = list(self.reassignment.removing_replicas)
        return shown


@dataclass(frozen=True, slots=True)
class _TopicView:
    description: TopicDescription
    configs: Mapping[str, ConfigEntry]
    partitions: Sequence[PartitionView]

    @property
    def overrides(self) -> dict[str, str | None]:
        return {
            name: self.configs[name].value
            for name in sorted(self.configs)
            if not self.configs[name].is_default
        }

    def facts(self) -> Iterator[str]:
        described = self.description
        yield f"Topic: {described.name}"
        if described.topic_id != ZERO_UUID:
            yield f"TopicId: {uuid_to_text(described.topic_id)}"
        yield f"PartitionCount: {len(described.partitions)}"
        yield f"ReplicationFactor: {self.partitions[0].replication_factor}"
        # An empty value is Java's null.
        texts = (f"{name}={'null' if v is None else v}" for name, v in self.overrides.items())
        yield f"Configs: {','.join(texts)}"

    def to_json(self, partitions: Iterable[PartitionView]) -> dict[str, object]:
        return {
            "topic": self.description.name,
            "topicId": uuid_to_text(self.description.topic_id),
            "partitionCount": len(self.description.partitions),
            "replicationFactor": self.partitions[0].replication_factor,
            "internal": self.description.is_internal,
            "configs": self.overrides,
            "partitions": [each.to_json() for each in partitions],
        }


def describe(
    admin: Admin,
    keys: Sequence[str | UUID],
    filters: Filters,
    *,
    limit: int,
    as_json: bool,
) -> None:
    """Print topics by name or id, or what the filters leave of them."""
    views = _views(admin, keys, limit)
    if filters.with_overrides:
        views = [view for view in views if view.overrides]
    if as_json:
        _print_json(views, filters)
    elif on_terminal():
        _print_tables(views, filters)
    else:
        _print_lines(views, filters)


def _views(admin: Admin, keys: Sequence[str | UUID], limit: int) -> list[_TopicView]:
    if not keys:
        return []
    found = admin.describe_topics(keys, partition_size_limit_per_response=limit)
    described = [found[key] for key in keys]
    configs = admin.describe_configs([ConfigResource.topic(each.name) for each in described])
    live = frozenset(node.id for node in admin.describe_cluster().nodes)
    moving = _reassignments(admin, described)
    views = []
    for each in described:
        settings = configs[ConfigResource.topic(each.name)]
        required = settings.get("min.insync.replicas")
        min_isr = int(required.value or 1) if required is not None else 1
        partitions = [
            PartitionView(
                each.name,
                info,
                min_isr,
                live,
                moving.get(TopicPartition(each.name, info.partition)),
            )
            for info in each.partitions
        ]
        views.append(_TopicView(each, settings, partitions))
    return views


def _reassignments(
    admin: Admin, topics: Iterable[TopicDescription]
) -> Mapping[TopicPartition, PartitionReassignment]:
    partitions = [
        TopicPartition(topic.name, info.partition) for topic in topics for info in topic.partitions
    ]
    try:
        return admin.list_partition_reassignments(partitions)
    except (UnsupportedVersionError, ClusterAuthorizationFailedError):
        # Without the permission, or from an old broker, topics are shown without them.
        return {}


def _print_lines(views: Iterable[_TopicView], filters: Filters) -> None:
    for view in views:
        if not filters.of_partitions:
            print("\t".join(view.facts()))
        if not filters.with_overrides:
            for partition in view.partitions:
                if filters.show(partition):
                    print(partition.line())


def _print_json(views: Iterable[_TopicView], filters: Filters) -> None:
    shown = []
    for view in views:
        partitions = [each for each in view.partitions if filters.show(each)]
        if partitions or not filters.of_partitions:
            shown.append(view.to_json(partitions))
    print_json(shown)


_COLUMNS = ("Partition", "Leader", "Replicas", "Isr", "Elr", "LastKnownElr")


def _print_tables(views: Iterable[_TopicView], filters: Filters) -> None:
    if filters.of_partitions:
        table = Table("Topic", *_COLUMNS)
        for view in views:
            for each in view.partitions:
                if filters.show(each):
                    table.add(view.description.name, *_cells(each), style=_colour(each))
        if len(table):
            table.show()
        else:
            print("No such partitions.")
        return
    for view in views:
        name, *facts = view.facts()
        title = f"{name.partition(' ')[2]}   {'   '.join(facts)}"
        table = Table(*_COLUMNS, title=title)
        if filters.with_overrides:
            print(title)
            continue
        for each in view.partitions:
            table.add(*_cells(each), style=_colour(each))
        table.show()


def _cells(partition: PartitionView) -> tuple[object, ...]:
    info = partition.info
    moving = partition.reassignment
    replicas = _ids(info.replicas)
    if moving is not None:
        replicas += f" (adding {_joined(moving.adding_replicas) or 'none'}"
        replicas += f", removing {_joined(moving.removing_replicas) or 'none'})"
    return (
        info.partition,
        "none" if info.leader is None else info.leader.id,
        replicas,
        _ids(info.isr),
        _ids_or_none(info.elr),
        _ids_or_none(info.last_known_elr),
    )


def _colour(partition: PartitionView) -> str | None:
    if partition.is_unavailable or partition.is_under_min_isr:
        return "bold red"
    return "yellow" if partition.is_under_replicated else None


def _ids(nodes: Iterable[Node]) -> str:
    return _joined(node.id for node in nodes)


def _ids_or_none(nodes: Iterable[Node] | None) -> str:
    return "N/A" if nodes is None else _ids(nodes)


def _joined(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids))
