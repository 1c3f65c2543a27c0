"""The leader's part of a classic rebalance: everybody's wishes in, everybody's partitions out.

Pure. The leader watches the topics of the whole group: when their partitions (or, for members in
racks, the racks of these) are no longer as they were at the assignment, it rejoins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from moldau.client.consumer.assignors.assignor import Assignor
from moldau.client.consumer.assignors.embedded import read_subscription
from moldau.client.consumer.assignors.interface import (
    Assignment,
    RebalanceProtocol,
    Subscription,
)
from moldau.client.errors import IllegalStateError, SerializationError
from moldau.client.machine.metadata import ClusterMetadata
from moldau.client.topics import TopicPartition
from moldau.wire.errors import WireError

__all__ = ["Snapshot", "check_cooperative", "read_members", "snapshot", "topics_of"]

#: Per topic how many partitions it has and, if racks matter, in which racks each is.
Snapshot = Mapping[str, tuple[frozenset[str], ...]]


class JoinedMember(NamedTuple):
    member_id: str
    group_instance_id: str | None
    metadata: bytes


def read_members(members: Iterable[JoinedMember]) -> dict[str, Subscription]:
    """In the order of the response."""
    found: dict[str, Subscription] = {}
    for each in members:
        try:
            found[each.member_id] = read_subscription(each.metadata, each.group_instance_id)
        except WireError as error:
            raise SerializationError(
                f"the subscription of member {each.member_id} cannot be read: {error}"
            ) from error
    return found


def topics_of(members: Mapping[str, Subscription]) -> frozenset[str]:
    return frozenset(topic for each in members.values() for topic in each.topics)


def snapshot(metadata: ClusterMetadata, topics: Iterable[str], *, racks: bool) -> Snapshot:
    """What an assignment depends on."""
    found = {}
    for topic in topics:
        view = metadata.topics.get(topic)
        if view is not None:
            found[topic] = tuple(
                _racks(metadata, each.replica_ids) if racks else frozenset()
                for each in view.partitions.values()
            )
    return found


def _racks(metadata: ClusterMetadata, replica_ids: Iterable[int]) -> frozenset[str]:
    nodes = (metadata.nodes.get(replica_id) for replica_id in replica_ids)
    return frozenset(node.rack for node in nodes if node is not None and node.rack)


def check_cooperative(
    assignor: Assignor,
    protocol: RebalanceProtocol,
    members: Mapping[str, Subscription],
    assigned: Mapping[str, Assignment],
) -> None:
    """A cooperative assignor must not give to one what another still has; raises
    IllegalStateError. Kafka's own looks at generations too and is trusted."""
    if protocol is not RebalanceProtocol.COOPERATIVE or assignor.built_in:
        return
    added: set[TopicPartition] = set()
    revoked: set[TopicPartition] = set()
    for member_id, assignment in assigned.items():
        owned = frozenset(members[member_id].owned_partitions)
        added.update(key for key in assignment.partitions if key not in owned)
        revoked.update(owned.difference(assignment.partitions))
    both = sorted(added & revoked)
    if both:
        raise IllegalStateError(
            f"assignor {assignor.name} gives {', '.join(map(str, both))} to new owners before the "
            "old ones have given them up",
            advice="a cooperative assignor leaves such partitions out until the next rebalance",
        )
