"""What a client knows of the cluster: an unchanging picture, and how a response changes it.

Pure. Invariants: a picture never changes, an update makes another; the leader of a partition
is only replaced by one of the same or a newer epoch (an old response cannot bring an old leader
back, KIP-320), unless the topic was created again, which its id shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from moldau.client.topics import Node, PartitionInfo, TopicPartition
from moldau.wire.constants import NO_EPOCH
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import DescribeClusterResponse, MetadataResponse
from moldau.wire.uuids import ZERO_UUID

__all__ = ["EMPTY", "ClusterMetadata", "PartitionView", "TopicView"]

NO_NODE = Node(-1, "", -1)


class PartitionView(NamedTuple):
    """A partition as the last response about it had it."""

    leader_id: int
    leader_epoch: int
    replica_ids: tuple[int, ...]
    isr_ids: tuple[int, ...]
    offline_ids: tuple[int, ...]
    error_code: int = ErrorCode.NONE


class TopicView(NamedTuple):
    name: str
    topic_id: UUID
    is_internal: bool
    partitions: Mapping[int, PartitionView]
    authorized_operations: int = -(2**31)


class ClusterMetadata(NamedTuple):
    """One picture. `errors` are those of topics that were asked for and cannot be had."""

    cluster_id: str | None
    controller_id: int
    nodes: Mapping[int, Node]
    topics: Mapping[str, TopicView]
    errors: Mapping[str, ErrorCode]
    names_by_id: Mapping[UUID, str]
    #: Counts the pictures of this client, so that one can wait for a later one.
    version: int = 0

    @property
    def controller(self) -> Node | None:
        return self.nodes.get(self.controller_id)

    def partition(self, key: TopicPartition) -> PartitionView | None:
        topic = self.topics.get(key.topic)
        return None if topic is None else topic.partitions.get(key.partition)

    def leader(self, key: TopicPartition) -> Node | None:
        """The leader, if it is known and reachable by name."""
        view = self.partition(key)
        return None if view is None else self.nodes.get(view.leader_id)

    def partition_count(self, topic: str) -> int | None:
        view = self.topics.get(topic)
        return None if view is None else len(view.partitions)

    def topic_id(self, topic: str) -> UUID:
        view = self.topics.get(topic)
        return ZERO_UUID if view is None else view.topic_id

    def info(self, key: TopicPartition) -> PartitionInfo | None:
        view = self.partition(key)
        if view is None:
            return None
        return PartitionInfo(
            key.topic,
            key.partition,
            self.nodes.get(view.leader_id),
            view.leader_epoch,
            self._nodes(view.replica_ids),
            self._nodes(view.isr_ids),
            self._nodes(view.offline_ids),
        )

    def _nodes(self, ids: Iterable[int]) -> tuple[Node, ...]:
        return tuple(self.nodes.get(each) or Node(each, "", -1) for each in ids)

    def updated(self, response: MetadataResponse, *, complete: bool) -> ClusterMetadata:
        """The picture after a response; a complete one leaves only the topics that it has."""
        topics = {} if complete else dict(self.topics)
        errors = {} if complete else dict(self.errors)
        for each in response.topics:
            if each.name is None:
                continue
            errors.pop(each.name, None)
            if each.error_code not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
                topics.pop(each.name, None)
                errors[each.name] = _code(each.error_code)
                continue
            topics[each.name] = self._topic(each, self.topics.get(each.name))
        nodes = {
            broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack)
            for broker in response.brokers
        }
        return ClusterMetadata(
            cluster_id=response.cluster_id,
            controller_id=response.controller_id,
            nodes=MappingProxyType(nodes),
            topics=MappingProxyType(topics),
            errors=MappingProxyType(errors),
            names_by_id=MappingProxyType(
                {view.topic_id: name for name, view in topics.items() if view.topic_id != ZERO_UUID}
            ),
            version=self.version + 1,
        )

    def with_controllers(self, response: DescribeClusterResponse) -> ClusterMetadata:
        """The picture after a response about the cluster's controllers."""
        nodes = {
            each.broker_id: Node(each.broker_id, each.host, each.port, each.rack, each.is_fenced)
            for each in response.brokers
        }
        return self._replace(
            cluster_id=response.cluster_id,
            controller_id=response.controller_id,
            nodes=MappingProxyType(nodes),
            version=self.version + 1,
        )

    def _topic(
        self, found: MetadataResponse.MetadataResponseTopic, known: TopicView | None
    ) -> TopicView:
        if known is not None and known.topic_id != found.topic_id:
            known = None
        partitions = {}
        for each in found.partitions:
            view = PartitionView(
                each.leader_id,
                each.leader_epoch,
                tuple(each.replica_nodes),
                tuple(each.isr_nodes),
                tuple(each.offline_replicas),
                each.error_code,
            )
            before = None if known is None else known.partitions.get(each.partition_index)
            if before is not None and NO_EPOCH < view.leader_epoch < before.leader_epoch:
                view = before
            partitions[each.partition_index] = view
        return TopicView(
            found.name or "",
            found.topic_id,
            found.is_internal,
            MappingProxyType(dict(sorted(partitions.items()))),
            found.topic_authorized_operations,
        )

    def with_leaders(
        self, hints: Mapping[TopicPartition, tuple[int, int]], nodes: Iterable[Node]
    ) -> ClusterMetadata:
        """After the leaders and epochs that came with a Produce or Fetch error (KIP-951)."""
        topics = dict(self.topics)
        changed = False
        for key, (leader_id, leader_epoch) in hints.items():
            view = self.partition(key)
            if view is None or leader_epoch <= view.leader_epoch:
                continue
            topic = topics[key.topic]
            after = view._replace(leader_id=leader_id, leader_epoch=leader_epoch)
            partitions = MappingProxyType({**topic.partitions, key.partition: after})
            topics[key.topic] = topic._replace(partitions=partitions)
            changed = True
        if not changed:
            return self
        known = {**self.nodes, **{node.id: node for node in nodes}}
        return self._replace(
            nodes=MappingProxyType(known),
            topics=MappingProxyType(topics),
            version=self.version + 1,
        )


EMPTY = ClusterMetadata(
    cluster_id=None,
    controller_id=-1,
    nodes=MappingProxyType({}),
    topics=MappingProxyType({}),
    errors=MappingProxyType({}),
    names_by_id=MappingProxyType({}),
)


def _code(code: int) -> ErrorCode:
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
