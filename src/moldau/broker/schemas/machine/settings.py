"""The broker's keys for its registry, as those of the registry's client."""

from __future__ import annotations

from typing import Any, Final, Protocol

from moldau.config.values import Password

__all__ = ["Config", "registry_settings"]

_PREFIX: Final = "confluent."
_NAMES: Final = (
    "confluent.schema.registry.url",
    "confluent.basic.auth.credentials.source",
    "confluent.basic.auth.user.info",
    "confluent.bearer.auth.credentials.source",
    "confluent.bearer.auth.token",
)
_SSL_NAMES: Final = (
    "confluent.ssl.cipher.suites",
    "confluent.ssl.enabled.protocols",
    "confluent.ssl.endpoint.identification.algorithm",
    "confluent.ssl.key.password",
    "confluent.ssl.keystore.certificate.chain",
    "confluent.ssl.keystore.key",
    "confluent.ssl.keystore.location",
    "confluent.ssl.keystore.password",
    "confluent.ssl.keystore.type",
    "confluent.ssl.protocol",
    "confluent.ssl.truststore.certificates",
    "confluent.ssl.truststore.location",
    "confluent.ssl.truststore.password",
    "confluent.ssl.truststore.type",
)


class Config(Protocol):
    def __getitem__(self, key: str) -> Any: ...


def registry_settings(config: Config) -> dict[str, str]:
    """Without what is not set."""
    names = {each: each.removeprefix(_PREFIX) for each in _NAMES}
    names |= {each: f"schema.registry.{each.removeprefix(_PREFIX)}" for each in _SSL_NAMES}
    found = {name: config[own] for own, name in names.items()}
    return {name: _text(value) for name, value in found.items() if value is not None}


def _text(value: Any) -> str:
    if isinstance(value, Password):
        return value.value
    return ",".join(value) if isinstance(value, list | tuple) else str(value)
