"""What the metadata log, its quorum and its controller take from the node's configuration."""

from __future__ import annotations

from collections.abc import Collection

from moldau.broker.config import BrokerConfig
from moldau.broker.metadata.machine.model import Endpoint
from moldau.broker.metadata.machine.view import ControllerConfig
from moldau.broker.raft.log import RaftLogConfig
from moldau.broker.raft.machine.core import QuorumSettings
from moldau.broker.raft.machine.rpcs import Peer
from moldau.broker.raft.machine.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet

# A bootstrap server's node is not known; it is named by the place in its list, as in Kafka.
FIRST_BOOTSTRAP_ID = -2


def controller_listener(config: BrokerConfig) -> str:
    """The listener on which the nodes of the quorum find each other."""
    return (config.controller_listener_names or ("",))[0]


def static_voters(config: BrokerConfig) -> VoterSet:
    """Those of controller.quorum.voters; none in a dynamic quorum."""
    name = controller_listener(config)
    return VoterSet.of(
        Voter(
            key=ReplicaKey(item.node_id),
            endpoints=(VoterEndpoint(name=name, host=item.host, port=item.port),),
        )
        for item in config.quorum.controller_quorum_voters
    )


def voter_endpoints(endpoints: Collection[Endpoint]) -> tuple[VoterEndpoint, ...]:
    return tuple(VoterEndpoint(name=end.name, host=end.host, port=end.port) for end in endpoints)


def quorum_settings(config: BrokerConfig, own: Collection[Endpoint]) -> QuorumSettings:
    """`own` is where this node listens as a controller; it need not ask itself.

    controller.quorum.append.linger.ms has no say: what is appended while an fsync is under way
    shares the next one, so nothing has to wait in order to be many.
    """
    quorum = config.quorum
    servers = [(each.host, each.port) for each in quorum.controller_quorum_bootstrap_servers]
    if not servers:
        servers = [(each.host, each.port) for each in quorum.controller_quorum_voters]
    addresses = {(end.host, end.port) for end in own}
    return QuorumSettings(
        listener_name=controller_listener(config),
        election_timeout_ms=quorum.controller_quorum_election_timeout_ms,
        fetch_timeout_ms=quorum.controller_quorum_fetch_timeout_ms,
        election_backoff_max_ms=quorum.controller_quorum_election_backoff_max_ms,
        request_timeout_ms=quorum.controller_quorum_request_timeout_ms,
        retry_backoff_ms=quorum.controller_quorum_retry_backoff_ms,
        fetch_max_bytes=quorum.controller_quorum_fetch_max_bytes,
        fetch_snapshot_max_bytes=quorum.controller_quorum_fetch_snapshot_max_bytes,
        auto_join_enable=quorum.controller_quorum_auto_join_enable,
        can_become_voter=bool(own),
        bootstrap=tuple(
            Peer(id=FIRST_BOOTSTRAP_ID - index, host=host, port=port)
            for index, (host, port) in enumerate(servers)
            if (host, port) not in addresses
        ),
    )


def raft_log_config(config: BrokerConfig) -> RaftLogConfig:
    metadata = config.metadata
    return RaftLogConfig(
        log_segment_bytes=metadata.internal_metadata_log_segment_bytes
        or metadata.metadata_log_segment_bytes,
        log_segment_ms=metadata.metadata_log_segment_ms,
        max_retention_bytes=metadata.metadata_max_retention_bytes,
        max_retention_ms=metadata.metadata_max_retention_ms,
    )


def controller_config(
    config: BrokerConfig, *, cluster_id: str, voter_ids: Collection[int]
) -> ControllerConfig:
    topics, metadata = config.topics, config.metadata
    return ControllerConfig(
        node_id=config.node_id,
        cluster_id=cluster_id,
        num_partitions=topics.num_partitions,
        default_replication_factor=topics.default_replication_factor,
        delete_topic_enable=topics.delete_topic_enable,
        min_insync_replicas=topics.min_insync_replicas,
        unclean_leader_election_enable=topics.unclean_leader_election_enable,
        broker_session_timeout_ms=metadata.broker_session_timeout_ms,
        auto_leader_rebalance_enable=metadata.auto_leader_rebalance_enable,
        leader_imbalance_check_interval_ms=metadata.leader_imbalance_check_interval_seconds * 1000,
        unclean_leader_election_interval_ms=metadata.unclean_leader_election_interval_ms,
        # No-op records show how far behind a follower is; a single voter has none, and its disk
        # may sleep.
        metadata_max_idle_interval_ms=metadata.metadata_max_idle_interval_ms
        if len(voter_ids) > 1
        else 0,
        quorum_node_ids=tuple(voter_ids),
    )
