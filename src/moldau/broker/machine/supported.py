"""What Kafka's configuration may ask for and this version cannot do: refused, never ignored.

A broker that silently left out an authorizer or TLS would be worse than one that does not start.
"""

from __future__ import annotations

from moldau.broker.config import BrokerConfig
from moldau.config.errors import ConfigError


def check_supported(config: BrokerConfig) -> None:
    """ConfigError that names the key and what to do instead."""
    for listener in config.listeners:
        if listener.security_protocol != "PLAINTEXT":
            _refuse(
                "listeners",
                str(listener),
                f"{listener.security_protocol} is not available yet: use PLAINTEXT and keep the "
                "listener on a trusted network",
            )
    authorizer = config["authorizer.class.name"]
    if authorizer:
        _refuse(
            "authorizer.class.name",
            authorizer,
            "access control is not available yet: remove the key to let everybody in",
        )


def _refuse(key: str, value: str, advice: str) -> None:
    raise ConfigError(
        f"Invalid value {value} for configuration {key}: {advice}", key=key, value=value
    )
