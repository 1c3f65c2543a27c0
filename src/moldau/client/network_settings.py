"""The settings that concern every client alike, by the keys they come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.client.config import PRODUCER_KEYS, parse_addresses
from moldau.client.errors import ConfigError
from moldau.config.addresses import HostPort
from moldau.config.section import Section, Values

__all__ = ["NetworkSettings"]

_SECURITY_KEYS = tuple(name for name in PRODUCER_KEYS if name.startswith(("ssl.", "sasl.")))


class NetworkSettings(Section, keys=PRODUCER_KEYS):
    """Kafka's keys that concern every client alike.

    Where clients have different defaults, a field that is left out has the producer's.
    """

    bootstrap: tuple[HostPort, ...]
    #: The addresses are controllers', as of `bootstrap.controllers`.
    controllers: bool = False
    client_id: str
    client_dns_lookup: str
    request_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    reconnect_backoff_ms: int
    reconnect_backoff_max_ms: int
    socket_connection_setup_timeout_ms: int
    socket_connection_setup_timeout_max_ms: int
    connections_max_idle_ms: int
    metadata_max_age_ms: int
    metadata_recovery_strategy: str
    metadata_recovery_rebootstrap_trigger_ms: int
    send_buffer_bytes: int
    receive_buffer_bytes: int
    calls_in_flight_max: int = 16
    security_protocol: str = "PLAINTEXT"
    #: The values of all ssl. and sasl. keys.
    security: Mapping[str, Any] = {}

    @classmethod
    def of(cls, values: Values, **changes: Any) -> NetworkSettings:
        """From parsed settings (`config.parse_settings`)."""
        protocol = values["security.protocol"].upper()
        if values["ssl.engine.factory.class"] is not None:
            raise ConfigError.invalid(
                "ssl.engine.factory.class",
                values["ssl.engine.factory.class"],
                "Java plug-ins cannot be loaded: remove the key",
            )
        controllers = bool(values.get("bootstrap.controllers"))
        key = "bootstrap.controllers" if controllers else "bootstrap.servers"
        if controllers and values.get("bootstrap.servers"):
            raise ConfigError(
                "Set either bootstrap.servers or bootstrap.controllers, not both", key=key
            )
        derived: dict[str, Any] = {
            "bootstrap": parse_addresses(key, values[key]),
            "controllers": controllers,
            "metadata_recovery_strategy": values["metadata.recovery.strategy"].lower(),
            "security_protocol": protocol,
            "security": {name: values[name] for name in _SECURITY_KEYS},
        }
        return super().of(values, **{**derived, **changes})
