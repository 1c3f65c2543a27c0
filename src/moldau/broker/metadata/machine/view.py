"""What decisions read of the controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from moldau.broker.config.broker_keys import BROKER_KEYS
from moldau.broker.metadata.machine.config_rules import ConfigRules
from moldau.broker.metadata.machine.elections import ElectionRules
from moldau.broker.metadata.machine.heartbeats import BrokerHeartbeats
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import Broker, Topic
from moldau.broker.metadata.machine.partition_index import PartitionIndex
from moldau.broker.metadata.machine.placement import RandomSource
from moldau.config.section import Section
from moldau.times import ElapsedMs


class ControllerConfig(Section, keys=BROKER_KEYS):
    """The part of the node's configuration that the controller reads.

    `quorum_node_ids` are the voters: all of them must support a feature level. Only a cluster needs
    no-op records, so `metadata_max_idle_interval_ms` is 0, never, by default.
    """

    node_id: int
    cluster_id: str
    num_partitions: int
    default_replication_factor: int
    delete_topic_enable: bool
    min_insync_replicas: int
    unclean_leader_election_enable: bool
    broker_session_timeout_ms: int
    auto_leader_rebalance_enable: bool
    leader_imbalance_check_interval_seconds: int
    unclean_leader_election_interval_ms: int
    metadata_max_idle_interval_ms: int = 0
    quorum_node_ids: tuple[int, ...] = ()


class ControllerView(Protocol):
    """The state and the rules that a decision reads. It changes `heartbeats` at most."""

    @property
    def config(self) -> ControllerConfig: ...
    @property
    def rules(self) -> ConfigRules: ...
    @property
    def random(self) -> RandomSource: ...
    @property
    def image(self) -> MetadataImage: ...
    @property
    def index(self) -> PartitionIndex: ...
    @property
    def heartbeats(self) -> BrokerHeartbeats | None: ...
    @property
    def next_offset(self) -> int: ...
    @property
    def kraft_version(self) -> int: ...
    @property
    def check_kraft_upgrade(self) -> Callable[[int], None]: ...
    @property
    def elr_enabled(self) -> bool: ...
    def election_rules(self, topic: Topic) -> ElectionRules: ...
    def colliding_topic(self, name: str) -> str | None:
        """An existing topic that differs from `name` only in '.' and '_'."""
        ...

    def is_silent(self, broker: Broker, now_ms: ElapsedMs) -> bool:
        """Whether a registered broker has no connection to this controller."""
        ...

    def has_session(self, broker: Broker, now_ms: ElapsedMs) -> bool:
        """Whether a registered broker still sends heartbeats."""
        ...

    def registration_offset(self, broker_id: int) -> int:
        """A broker that has read the metadata up to this offset has seen its registration."""
        ...
