"""A broker's configuration: static keys, dynamic layers, per-topic settings.

Start with `BrokerConfig.from_properties`; everything else reads from it.
"""

from __future__ import annotations

from moldau.broker.config.broker_config import BrokerConfig
from moldau.broker.config.listeners import Listener, resolve_listeners
from moldau.broker.config.log_config import LogConfig
from moldau.broker.config.rules import HostPort, Voter
from moldau.broker.config.sections import (
    GroupCoordinatorConfig,
    LogManagerConfig,
    MetadataConfig,
    NetworkConfig,
    QuorumConfig,
    ReplicationConfig,
    ShareConfig,
    TopicDefaults,
    TransactionConfig,
)

__all__ = [
    "BrokerConfig",
    "GroupCoordinatorConfig",
    "HostPort",
    "Listener",
    "LogConfig",
    "LogManagerConfig",
    "MetadataConfig",
    "NetworkConfig",
    "QuorumConfig",
    "ReplicationConfig",
    "ShareConfig",
    "TopicDefaults",
    "TransactionConfig",
    "Voter",
    "resolve_listeners",
]
