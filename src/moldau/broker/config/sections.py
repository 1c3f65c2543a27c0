"""Typed views of the broker's keys, one per component.

Only what is read as a field stands here; components with settings of their own declare their
section beside their code (such as `coordinator/group/config.py`), and what is read in one place is
read by its key: `config["telemetry.max.bytes"]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from moldau.broker.config.broker_keys import BROKER_KEYS
from moldau.broker.config.rules import Voter
from moldau.config.addresses import HostPort
from moldau.config.section import Section

__all__ = [
    "LogManagerConfig",
    "MetadataConfig",
    "NetworkConfig",
    "QuorumConfig",
    "TopicRequestsConfig",
]


class NetworkConfig(Section, keys=BROKER_KEYS):
    """Sockets and connection limits."""

    socket_send_buffer_bytes: int
    socket_receive_buffer_bytes: int
    socket_request_max_bytes: int
    socket_listen_backlog_size: int
    max_connections: int
    max_connections_per_ip: int
    max_connections_per_ip_overrides: Mapping[str, int]
    connections_max_idle_ms: int
    max_connection_creation_rate: int
    queued_max_request_bytes: int
    quota_window_num: int
    quota_window_size_seconds: int
    listener_max_connections: Mapping[str, int] = MappingProxyType({})
    listener_max_connection_creation_rate: Mapping[str, int] = MappingProxyType({})
    protected_listener: str | None = None


class LogManagerConfig(Section, keys=BROKER_KEYS):
    """What the log manager does for all logs; what differs per topic is in LogConfig."""

    cordoned_log_dirs: tuple[str, ...]
    log_dir_failure_timeout_ms: int
    producer_id_expiration_ms: int
    log_cleaner_enable: bool
    log_cleaner_threads: int
    log_cleaner_backoff_ms: int
    log_cleaner_dedupe_buffer_size: int
    log_cleaner_io_buffer_load_factor: float
    log_cleaner_io_buffer_size: int
    log_cleaner_io_max_bytes_per_second: float


class TopicRequestsConfig(Section, keys=BROKER_KEYS):
    """What requests about topics may do."""

    auto_create_topics_enable: bool
    max_request_partition_size_limit: int


class QuorumConfig(Section, keys=BROKER_KEYS):
    """Where the metadata quorum is found."""

    controller_quorum_voters: tuple[Voter, ...]
    controller_quorum_bootstrap_servers: tuple[HostPort, ...]
    controller_socket_timeout_ms: int


class MetadataConfig(Section, keys=BROKER_KEYS):
    """Snapshots and batches of the metadata log, and the registration of brokers."""

    metadata_log_max_record_bytes_between_snapshots: int
    metadata_log_max_snapshot_interval_ms: int
    internal_metadata_max_batch_size_in_bytes: int
    broker_heartbeat_interval_ms: int
    broker_session_timeout_ms: int
    initial_broker_registration_timeout_ms: int
