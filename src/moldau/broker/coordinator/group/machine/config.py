"""The group coordinator's own section of the broker configuration."""

from __future__ import annotations

from collections.abc import Sequence

from moldau.broker.config.broker_keys import BROKER_KEYS
from moldau.config.section import Section


class GroupConfig(Section, keys=BROKER_KEYS):
    """Classic, consumer, share and streams groups; what single groups may set is in settings.py."""

    group_min_session_timeout_ms: int
    group_max_session_timeout_ms: int
    group_initial_rebalance_delay_ms: int
    group_max_size: int
    group_consumer_assignors: Sequence[str]
    group_consumer_max_size: int
    group_consumer_migration_policy: str
    group_consumer_regex_refresh_interval_ms: int
    group_streams_max_size: int
    group_share_assignors: Sequence[str]
    group_share_initialize_retry_interval_ms: int
    group_share_max_size: int
    offset_metadata_max_bytes: int
    offsets_retention_minutes: int
    offsets_retention_check_interval_ms: int
    offsets_commit_timeout_ms: int
    offsets_load_buffer_size: int
    new_member_join_timeout_ms: int = 300_000
    """Not a Kafka key: how long a new member may wait in JoinGroup before it must retry."""

    @property
    def offsets_retention_ms(self) -> int:
        return self.offsets_retention_minutes * 60_000
