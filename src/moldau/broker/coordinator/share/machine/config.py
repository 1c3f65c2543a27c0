"""The share coordinator's own section of the broker configuration."""

from __future__ import annotations

from moldau.broker.config.broker_keys import BROKER_KEYS
from moldau.config.section import Section


class ShareCoordinatorConfig(Section, keys=BROKER_KEYS):
    """Snapshots, writes and loading of share state."""

    share_coordinator_snapshot_update_records_per_snapshot: int
    share_coordinator_cold_partition_snapshot_interval_ms: int
    share_coordinator_state_topic_prune_interval_ms: int
    share_coordinator_write_timeout_ms: int
    share_coordinator_load_buffer_size: int
