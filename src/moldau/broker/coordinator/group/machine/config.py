"""The group coordinator's own section of the broker configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from moldau.config import ConfigError


class _Settings(Protocol):
    def __getitem__(self, key: str, /) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """Fields named after Kafka's keys; defaults are Kafka's."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2_147_483_647
    group_consumer_assignors: Sequence[str] = ("uniform", "range")
    group_consumer_max_size: int = 2_147_483_647
    group_consumer_migration_policy: str = "bidirectional"
    group_consumer_regex_refresh_interval_ms: int = 600_000
    group_streams_max_size: int = 2_147_483_647
    group_share_assignors: Sequence[str] = ("simple",)
    group_share_initialize_retry_interval_ms: int = 30_000
    group_share_max_size: int = 200
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    offsets_commit_timeout_ms: int = 5_000
    offsets_load_buffer_size: int = 5_242_880
    new_member_join_timeout_ms: int = 300_000
    """Not a Kafka key: how long a new member may wait in JoinGroup before it must ask again."""

    def __post_init__(self) -> None:
        if self.group_min_session_timeout_ms > self.group_max_session_timeout_ms:
            raise ConfigError(
                f"group.min.session.timeout.ms = {self.group_min_session_timeout_ms} must not "
                f"exceed group.max.session.timeout.ms = {self.group_max_session_timeout_ms}"
            )
        for name in _AT_LEAST_ONE:
            if getattr(self, name) < 1:
                raise ConfigError(
                    f"{name.replace('_', '.')} = {getattr(self, name)} must be at least 1"
                )

    @property
    def offsets_retention_ms(self) -> int:
        return self.offsets_retention_minutes * 60_000

    @classmethod
    def from_broker_config(cls, config: _Settings) -> GroupConfig:
        """Take the section out of the broker's parsed configuration."""
        return cls(**{name: config[name.replace("_", ".")] for name in _KAFKA_KEYS})


_KAFKA_KEYS = (
    "group_min_session_timeout_ms",
    "group_max_session_timeout_ms",
    "group_initial_rebalance_delay_ms",
    "group_max_size",
    "group_consumer_assignors",
    "group_consumer_max_size",
    "group_consumer_migration_policy",
    "group_consumer_regex_refresh_interval_ms",
    "group_streams_max_size",
    "group_share_assignors",
    "group_share_initialize_retry_interval_ms",
    "group_share_max_size",
    "offset_metadata_max_bytes",
    "offsets_retention_minutes",
    "offsets_retention_check_interval_ms",
    "offsets_commit_timeout_ms",
    "offsets_load_buffer_size",
)
_AT_LEAST_ONE = (
    "group_max_size",
    "offsets_retention_minutes",
    "offsets_retention_check_interval_ms",
    "offsets_commit_timeout_ms",
    "offsets_load_buffer_size",
)
