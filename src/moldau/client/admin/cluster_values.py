"""What one learns about the cluster as a whole: its nodes, features and metadata quorum."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from moldau.client.admin.acl_values import AclOperation
from moldau.client.topics import Node

__all__ = [
    "ClusterDescription",
    "FeatureMetadata",
    "FeatureUpdate",
    "FinalizedVersionRange",
    "QuorumInfo",
    "QuorumNode",
    "RaftVoterEndpoint",
    "ReplicaState",
    "SupportedVersionRange",
    "UpgradeType",
]


class ClusterDescription(NamedTuple):
    """`nodes` are controllers if the client talks to controllers."""

    cluster_id: str
    controller: Node | None
    nodes: tuple[Node, ...]
    #: None unless asked for.
    authorized_operations: frozenset[AclOperation] | None = None


class SupportedVersionRange(NamedTuple):
    min_version: int
    max_version: int


class FinalizedVersionRange(NamedTuple):
    min_version_level: int
    max_version_level: int


class FeatureMetadata(NamedTuple):
    finalized_features: Mapping[str, FinalizedVersionRange]
    #: None while nothing is finalized.
    finalized_features_epoch: int | None
    supported_features: Mapping[str, SupportedVersionRange]


class UpgradeType(IntEnum):
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """The level to finalize; 0, with a downgrade, takes the feature away."""

    max_version_level: int
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


class RaftVoterEndpoint(NamedTuple):
    """Where a controller listens: the listener's name, host and port."""

    listener: str
    host: str
    port: int


class ReplicaState(NamedTuple):
    """A voter or observer; times are milliseconds, None where the leader does not know."""

    replica_id: int
    replica_directory_id: UUID
    log_end_offset: int
    last_fetch_timestamp: int | None
    last_caught_up_timestamp: int | None


class QuorumNode(NamedTuple):
    node_id: int
    endpoints: tuple[RaftVoterEndpoint, ...]


class QuorumInfo(NamedTuple):
    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[ReplicaState, ...]
    observers: tuple[ReplicaState, ...]
    nodes: Mapping[int, QuorumNode]
