"""The transaction coordinator's own section of the broker configuration."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol

from moldau.config import ConfigError


class _Settings(Protocol):
    def __getitem__(self, key: str, /) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionConfig:
    """Fields named after Kafka's keys; defaults are Kafka's."""

    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
    transaction_state_log_load_buffer_size: int = 5_242_880
    transaction_two_phase_commit_enable: bool = False
    request_timeout_ms: int = 30_000

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            # Kafka takes any request timeout; the write of a record then waits for none.
            if not isinstance(value, bool) and value < 1 and each.name != "request_timeout_ms":
                raise ConfigError(f"{each.name.replace('_', '.')} = {value} must be at least 1")

    @classmethod
    def from_broker_config(cls, config: _Settings) -> TransactionConfig:
        """Take the section out of the broker's parsed configuration."""
        return cls(**{each.name: config[each.name.replace("_", ".")] for each in fields(cls)})
