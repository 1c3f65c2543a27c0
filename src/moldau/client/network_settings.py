"""The settings that concern every client alike, by the keys they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moldau.client.config import parse_addresses
from moldau.client.errors import ConfigError
from moldau.config.addresses import HostPort

__all__ = ["NetworkSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSettings:
    """Kafka's keys that concern every client alike."""

    bootstrap: tuple[HostPort, ...]
    #: The addresses are controllers', as of `bootstrap.controllers`.
    controllers: bool = False
    client_id: str = ""
    client_dns_lookup: str = "use_all_dns_ips"
    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    socket_connection_setup_timeout_ms: int = 10_000
    socket_connection_setup_timeout_max_ms: int = 30_000
    connections_max_idle_ms: int = 540_000
    metadata_max_age_ms: int = 300_000
    metadata_recovery_strategy: str = "rebootstrap"
    metadata_recovery_rebootstrap_trigger_ms: int = 300_000
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    calls_in_flight_max: int = 16

    @classmethod
    def of(cls, values: Mapping[str, Any], **changes: Any) -> NetworkSettings:
        """From parsed settings (`config.parse_settings`)."""
        protocol = values["security.protocol"].upper()
        if protocol != "PLAINTEXT":
            raise ConfigError.invalid(
                "security.protocol", protocol, "only PLAINTEXT is supported in this release"
            )
        controllers = bool(values.get("bootstrap.controllers"))
        key = "bootstrap.controllers" if controllers else "bootstrap.servers"
        if controllers and values.get("bootstrap.servers"):
            raise ConfigError(
                "Set either bootstrap.servers or bootstrap.controllers, not both", key=key
            )
        fields: dict[str, Any] = {
            name: values[name.replace("_", ".")]
            for name in cls.__slots__
            if name.replace("_", ".") in values
        }
        fields["bootstrap"] = parse_addresses(key, values[key])
        fields["controllers"] = controllers
        fields["metadata_recovery_strategy"] = fields["metadata_recovery_strategy"].lower()
        return cls(**{**fields, **changes})
