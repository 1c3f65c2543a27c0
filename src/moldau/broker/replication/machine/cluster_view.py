"""What the newest metadata image says about partitions' leaders and about brokers."""

from __future__ import annotations

from uuid import UUID

from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import Partition, Topic
from moldau.broker.replication.machine.leader import NO_BROKER_EPOCH, PartitionLeader
from moldau.broker.replication.machine.names import CurrentLeader, NodeEndpoint, TopicKey


class ClusterView:
    """The image as replication on this node reads it; implements `leader.Brokers`."""

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self.image = MetadataImage()

    # Partitions.

    def topic(self, key: TopicKey) -> Topic | None:
        """By name or 16-byte topic id."""
        if isinstance(key, bytes):
            return self.image.topics_by_id.get(UUID(bytes=key))
        return self.image.topics_by_name.get(key)

    def partition(self, topic_id: UUID, index: int) -> Partition | None:
        topic = self.image.topics_by_id.get(topic_id)
        return None if topic is None else topic.partitions.get(index)

    def current_leader(self, key: TopicKey, index: int, listener_name: str) -> CurrentLeader | None:
        """The leader, its epoch, and its endpoint; None for an unknown partition."""
        topic = self.topic(key)
        state = None if topic is None else topic.partitions.get(index)
        if state is None:
            return None
        node = self.endpoint(state.leader, listener_name)
        if node is not None and self.image.brokers[state.leader].fenced:
            node = None
        return state.leader, state.leader_epoch, node

    def preferred_read_replica(
        self, leader: PartitionLeader | None, fetch_offset: int, rack: str, listener_name: str
    ) -> int | None:
        """A follower in the consumer's rack that it should read from (KIP-392).

        None if the leader is in that rack itself, or no follower there has the offset. Of several
        it is the one with the most records, as RackAwareReplicaSelector chooses.
        """
        own = self.image.brokers.get(self._node_id)
        if leader is None or not rack or (own is not None and own.rack == rack):
            return None
        closest: tuple[int, int] | None = None
        for replica_id in leader.readable_replicas(fetch_offset):
            broker = self.image.brokers.get(replica_id)
            follower = leader.follower(replica_id)
            if (
                broker is not None
                and follower is not None
                and broker.rack == rack
                and not broker.fenced
                and broker.endpoint(listener_name) is not None
                and (closest is None or follower.end_offset > closest[0])
            ):
                closest = follower.end_offset, replica_id
        return None if closest is None else closest[1]

    # Brokers.

    def endpoint(self, broker_id: int, listener_name: str) -> NodeEndpoint | None:
        broker = self.image.brokers.get(broker_id)
        endpoint = None if broker is None else broker.endpoint(listener_name)
        if broker is None or endpoint is None:
            return None
        return NodeEndpoint(broker.id, endpoint.host, endpoint.port, broker.rack)

    def alive_epoch(self, broker_id: int) -> int | None:
        broker = self.image.brokers.get(broker_id)
        return None if broker is None or broker.fenced else broker.epoch

    def is_shutting_down(self, broker_id: int) -> bool:
        broker = self.image.brokers.get(broker_id)
        return broker is not None and broker.in_controlled_shutdown

    def own_epoch(self) -> int:
        broker = self.image.brokers.get(self._node_id)
        return NO_BROKER_EPOCH if broker is None else broker.epoch
