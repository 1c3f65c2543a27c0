"""Typed views of the broker's keys, one per component.

Every field is a Kafka key with dots turned into underscores; `section_of` fills a section from the
parsed values, so a key is declared once in broker_keys.py and read here by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, dataclass_transform

from moldau.broker.config.rules import Voter
from moldau.config.addresses import HostPort

__all__ = [
    "GroupCoordinatorConfig",
    "LogManagerConfig",
    "MetadataConfig",
    "NetworkConfig",
    "QuorumConfig",
    "ReplicationConfig",
    "Section",
    "ShareConfig",
    "TopicDefaults",
    "TransactionConfig",
    "section_of",
]

S = TypeVar("S", bound="Section")


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Section:
    """Base of all sections: frozen, compared by value, filled by keyword.

    Type checkers see dataclasses. Real ones would compile four methods per class at every start,
    which alone costs more than reading the whole configuration.
    """

    def __init__(self, **fields: Any) -> None:
        wrong = fields.keys() ^ type(self).__annotations__.keys()
        if wrong:
            raise TypeError(f"{type(self).__name__}: missing or unknown fields {sorted(wrong)}")
        self.__dict__.update(fields)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be changed")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({fields})"

    def replace(self: S, **changes: Any) -> S:
        """A copy with some fields changed."""
        return type(self)(**{**self.__dict__, **changes})


def section_of(section: type[S], values: Mapping[str, Any], **derived: Any) -> S:
    """An instance of `section`; `derived` gives the fields that are no plain key."""
    fields: dict[str, Any] = {
        name: values[name.replace("_", ".")]
        for name in section.__annotations__
        if name not in derived
    }
    return section(**fields, **derived)


class NetworkConfig(Section):
    """Sockets, request queues and connection limits."""

    socket_send_buffer_bytes: int
    socket_receive_buffer_bytes: int
    socket_request_max_bytes: int
    socket_listen_backlog_size: int
    queued_max_requests: int
    queued_max_request_bytes: int
    max_connections: int
    max_connections_per_ip: int
    max_connections_per_ip_overrides: Mapping[str, int]
    max_connection_creation_rate: int
    connections_max_idle_ms: int
    connections_max_reauth_ms: int
    connection_failed_authentication_delay_ms: int
    sasl_server_max_receive_size: int
    num_network_threads: int
    num_io_threads: int
    request_timeout_ms: int
    unstable_api_versions_enable: bool


class LogManagerConfig(Section):
    """What the log manager does for all logs; what differs per topic is in LogConfig."""

    log_dirs: tuple[str, ...]
    cordoned_log_dirs: tuple[str, ...]
    log_dir_failure_timeout_ms: int
    log_initial_task_delay_ms: int
    log_retention_check_interval_ms: int
    log_flush_scheduler_interval_ms: int
    log_flush_offset_checkpoint_interval_ms: int
    log_flush_start_offset_checkpoint_interval_ms: int
    num_recovery_threads_per_data_dir: int
    num_replica_alter_log_dirs_threads: int
    producer_id_expiration_ms: int
    producer_id_expiration_check_interval_ms: int
    transaction_partition_verification_enable: bool
    log_cleaner_enable: bool
    log_cleaner_threads: int
    log_cleaner_backoff_ms: int
    log_cleaner_dedupe_buffer_size: int
    log_cleaner_io_buffer_load_factor: float
    log_cleaner_io_buffer_size: int
    log_cleaner_io_max_bytes_per_second: float
    message_max_bytes: int


class ReplicationConfig(Section):
    """Replica fetching, fetch serving and their waiting requests."""

    replica_lag_time_max_ms: int
    replica_fetch_max_bytes: int
    replica_fetch_min_bytes: int
    replica_fetch_wait_max_ms: int
    replica_fetch_backoff_ms: int
    replica_fetch_response_max_bytes: int
    replica_socket_timeout_ms: int
    replica_socket_receive_buffer_bytes: int
    replica_high_watermark_checkpoint_interval_ms: int
    replica_selector_class: str | None
    num_replica_fetchers: int
    fetch_max_bytes: int
    fetch_purgatory_purge_interval_requests: int
    producer_purgatory_purge_interval_requests: int
    delete_records_purgatory_purge_interval_requests: int
    max_incremental_fetch_session_cache_slots: int
    request_timeout_ms: int


class TopicDefaults(Section):
    """Creation and deletion of topics."""

    auto_create_topics_enable: bool
    delete_topic_enable: bool
    num_partitions: int
    default_replication_factor: int
    min_insync_replicas: int
    unclean_leader_election_enable: bool
    max_request_partition_size_limit: int


class GroupCoordinatorConfig(Section):
    """Classic, consumer and streams groups and the offsets topic."""

    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    offsets_topic_segment_bytes: int
    offsets_topic_compression_codec: int
    offsets_load_buffer_size: int
    offsets_retention_minutes: int
    offsets_retention_check_interval_ms: int
    offsets_commit_timeout_ms: int
    offset_metadata_max_bytes: int
    group_min_session_timeout_ms: int
    group_max_session_timeout_ms: int
    group_initial_rebalance_delay_ms: int
    group_max_size: int
    group_coordinator_threads: int
    group_coordinator_background_threads: int
    group_coordinator_append_linger_ms: int
    group_coordinator_cached_buffer_max_bytes: int
    group_coordinator_rebalance_protocols: tuple[str, ...]
    group_consumer_session_timeout_ms: int
    group_consumer_min_session_timeout_ms: int
    group_consumer_max_session_timeout_ms: int
    group_consumer_heartbeat_interval_ms: int
    group_consumer_min_heartbeat_interval_ms: int
    group_consumer_max_heartbeat_interval_ms: int
    group_consumer_assignment_interval_ms: int
    group_consumer_min_assignment_interval_ms: int
    group_consumer_max_assignment_interval_ms: int
    group_consumer_max_size: int
    group_consumer_assignors: tuple[str, ...]
    group_consumer_migration_policy: str
    group_consumer_regex_refresh_interval_ms: int
    group_streams_session_timeout_ms: int
    group_streams_min_session_timeout_ms: int
    group_streams_max_session_timeout_ms: int
    group_streams_heartbeat_interval_ms: int
    group_streams_min_heartbeat_interval_ms: int
    group_streams_max_heartbeat_interval_ms: int
    group_streams_assignment_interval_ms: int
    group_streams_min_assignment_interval_ms: int
    group_streams_max_assignment_interval_ms: int
    group_streams_max_size: int
    group_streams_num_standby_replicas: int
    group_streams_max_standby_replicas: int
    group_streams_initial_rebalance_delay_ms: int


class ShareConfig(Section):
    """Share groups and the share coordinator."""

    group_share_session_timeout_ms: int
    group_share_min_session_timeout_ms: int
    group_share_max_session_timeout_ms: int
    group_share_heartbeat_interval_ms: int
    group_share_min_heartbeat_interval_ms: int
    group_share_max_heartbeat_interval_ms: int
    group_share_assignment_interval_ms: int
    group_share_min_assignment_interval_ms: int
    group_share_max_assignment_interval_ms: int
    group_share_assignors: tuple[str, ...]
    group_share_max_size: int
    group_share_max_share_sessions: int
    group_share_delivery_count_limit: int
    group_share_min_delivery_count_limit: int
    group_share_max_delivery_count_limit: int
    group_share_partition_max_record_locks: int
    group_share_min_partition_max_record_locks: int
    group_share_max_partition_max_record_locks: int
    group_share_record_lock_duration_ms: int
    group_share_min_record_lock_duration_ms: int
    group_share_max_record_lock_duration_ms: int
    group_share_initialize_retry_interval_ms: int
    share_coordinator_threads: int
    share_coordinator_append_linger_ms: int
    share_coordinator_cached_buffer_max_bytes: int
    share_coordinator_load_buffer_size: int
    share_coordinator_snapshot_update_records_per_snapshot: int
    share_coordinator_cold_partition_snapshot_interval_ms: int
    share_coordinator_state_topic_num_partitions: int
    share_coordinator_state_topic_replication_factor: int
    share_coordinator_state_topic_min_isr: int
    share_coordinator_state_topic_segment_bytes: int
    share_coordinator_state_topic_compression_codec: int
    share_coordinator_state_topic_prune_interval_ms: int
    share_coordinator_write_timeout_ms: int
    share_fetch_purgatory_purge_interval_requests: int


class TransactionConfig(Section):
    """The transaction coordinator and its topic."""

    transaction_max_timeout_ms: int
    transactional_id_expiration_ms: int
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int
    transaction_remove_expired_transaction_cleanup_interval_ms: int
    transaction_partition_verification_enable: bool
    transaction_two_phase_commit_enable: bool
    transaction_state_log_load_buffer_size: int
    transaction_state_log_min_isr: int
    transaction_state_log_num_partitions: int
    transaction_state_log_replication_factor: int
    transaction_state_log_segment_bytes: int
    add_partitions_to_txn_retry_backoff_ms: int
    add_partitions_to_txn_retry_backoff_max_ms: int


class QuorumConfig(Section):
    """The metadata quorum."""

    controller_quorum_voters: tuple[Voter, ...]
    controller_quorum_bootstrap_servers: tuple[HostPort, ...]
    controller_listener_names: tuple[str, ...]
    controller_quorum_auto_join_enable: bool
    controller_quorum_append_linger_ms: int
    controller_quorum_election_backoff_max_ms: int
    controller_quorum_election_timeout_ms: int
    controller_quorum_fetch_timeout_ms: int
    controller_quorum_fetch_max_bytes: int
    controller_quorum_fetch_snapshot_max_bytes: int
    controller_quorum_request_timeout_ms: int
    controller_quorum_retry_backoff_ms: int
    controller_socket_timeout_ms: int


class MetadataConfig(Section):
    """The metadata log, its snapshots, broker registration and the controller's own timers."""

    metadata_log_dir: str
    metadata_log_segment_bytes: int
    metadata_log_segment_ms: int
    metadata_log_max_record_bytes_between_snapshots: int
    metadata_log_max_snapshot_interval_ms: int
    metadata_max_idle_interval_ms: int
    metadata_max_retention_bytes: int
    metadata_max_retention_ms: int
    internal_metadata_log_segment_bytes: int | None
    internal_metadata_max_batch_size_in_bytes: int
    internal_metadata_delete_delay_millis: int
    broker_heartbeat_interval_ms: int
    broker_session_timeout_ms: int
    initial_broker_registration_timeout_ms: int
    auto_leader_rebalance_enable: bool
    leader_imbalance_check_interval_seconds: int
    unclean_leader_election_interval_ms: int
    unstable_feature_versions_enable: bool
