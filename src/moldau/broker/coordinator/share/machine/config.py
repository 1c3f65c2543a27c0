"""The share coordinator's own section of the broker configuration."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol

from moldau.config import ConfigError


class _Settings(Protocol):
    def __getitem__(self, key: str, /) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareCoordinatorConfig:
    """Fields named after Kafka's keys; defaults are Kafka's."""

    share_coordinator_snapshot_update_records_per_snapshot: int = 500
    share_coordinator_cold_partition_snapshot_interval_ms: int = 300_000
    share_coordinator_state_topic_prune_interval_ms: int = 300_000
    share_coordinator_write_timeout_ms: int = 5_000
    share_coordinator_load_buffer_size: int = 5_242_880

    def __post_init__(self) -> None:
        for name in _KAFKA_KEYS:
            value = getattr(self, name)
            least = 0 if name.endswith("per_snapshot") else 1
            if value < least:
                raise ConfigError(f"{name.replace('_', '.')} = {value} must be at least {least}")

    @classmethod
    def from_broker_config(cls, config: _Settings) -> ShareCoordinatorConfig:
        """Take the section out of the broker's parsed configuration."""
        return cls(**{name: config[name.replace("_", ".")] for name in _KAFKA_KEYS})


_KAFKA_KEYS = tuple(field.name for field in fields(ShareCoordinatorConfig))
