"""What the metadata log, its quorum and its controller take from the node's configuration."""

from __future__ import annotations

from collections.abc import Collection

from moldau.broker.config import BrokerConfig
from moldau.broker.metadata.machine.model import Endpoint
from moldau.broker.metadata.machine.view import ControllerConfig
from moldau.broker.raft.log import RaftLogConfig
from moldau.broker.raft.machine.rpcs import Peer
from moldau.broker.raft.machine.settings import QuorumSettings
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
    return QuorumSettings.of(
        config,
        listener_name=controller_listener(config),
        can_become_voter=bool(own),
        bootstrap=tuple(
            Peer(id=FIRST_BOOTSTRAP_ID - index, host=host, port=port)
            for index, (host, port) in enumerate(servers)
            if (host, port) not in addresses
        ),
    )


def raft_log_config(config: BrokerConfig) -> RaftLogConfig:
    segment_bytes = config["internal.metadata.log.segment.bytes"]
    derived = {} if segment_bytes is None else {"log_segment_bytes": segment_bytes}
    return RaftLogConfig.of(config, **derived)


def controller_config(
    config: BrokerConfig, *, cluster_id: str, voter_ids: Collection[int]
) -> ControllerConfig:
    return ControllerConfig.of(
        config,
        cluster_id=cluster_id,
        # No-op records show how far behind a follower is; a single voter has none, and its disk
        # may sleep.
        metadata_max_idle_interval_ms=config["metadata.max.idle.interval.ms"]
        if len(voter_ids) > 1
        else 0,
        quorum_node_ids=tuple(voter_ids),
    )
