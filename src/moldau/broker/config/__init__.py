"""A broker's configuration: static keys, dynamic layers, per-topic settings.

Start with `BrokerConfig.from_properties`; everything else reads from it.
"""

from __future__ import annotations

from moldau.broker.config.alterations import (
    ConfigResourceType,
    ConfigRules,
    validate_client_metrics_config,
    validate_group_config,
    validate_logger_changes,
    validate_topic_config,
)
from moldau.broker.config.broker_config import BrokerConfig
from moldau.broker.config.describe import (
    ConfigEntry,
    ConfigSource,
    ConfigSynonym,
    describe_broker,
    describe_broker_defaults,
    describe_client_metrics,
    describe_group,
    describe_loggers,
    describe_topic,
    documentation,
)
from moldau.broker.config.layers import ConfigLayers, DynamicBrokerConfig
from moldau.broker.config.listeners import Listener, resolve_listeners
from moldau.broker.config.log_config import LogConfig
from moldau.broker.config.rules import Voter
from moldau.broker.config.sections import (
    LogManagerConfig,
    MetadataConfig,
    NetworkConfig,
    QuorumConfig,
    TopicRequestsConfig,
)
from moldau.config.addresses import HostPort

__all__ = [
    "BrokerConfig",
    "ConfigEntry",
    "ConfigLayers",
    "ConfigResourceType",
    "ConfigRules",
    "ConfigSource",
    "ConfigSynonym",
    "DynamicBrokerConfig",
    "HostPort",
    "Listener",
    "LogConfig",
    "LogManagerConfig",
    "MetadataConfig",
    "NetworkConfig",
    "QuorumConfig",
    "TopicRequestsConfig",
    "Voter",
    "describe_broker",
    "describe_broker_defaults",
    "describe_client_metrics",
    "describe_group",
    "describe_loggers",
    "describe_topic",
    "documentation",
    "resolve_listeners",
    "validate_client_metrics_config",
    "validate_group_config",
    "validate_logger_changes",
    "validate_topic_config",
]
