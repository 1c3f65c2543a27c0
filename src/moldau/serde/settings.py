"""The settings of serializers and of the registry's client, with Confluent's names and defaults."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

from moldau.client.config.registry_keys import REGISTRY_TABLE
from moldau.client.errors import ConfigError
from moldau.config.definition import ConfigDef
from moldau.config.errors import ConfigError as AnyConfigError
from moldau.config.table import parse_table
from moldau.config.values import Password
from moldau.security.tls import client_context
from moldau.serde.framing import FramingError, id_in_header
from moldau.serde.subjects import (
    AssociatedNameStrategy,
    AssociationsOfTopics,
    ReferenceNameStrategy,
    SubjectNameStrategy,
    resolve_reference_strategy,
    resolve_strategy,
)

__all__ = ["SerdeSettings", "parse_settings", "tls_context"]

_REFERENCES: Final = "reference.subject.name.strategy"
_SSL_PREFIX: Final = "schema.registry."


@dataclass(frozen=True, slots=True)
class SerdeSettings:
    """What one serializer or deserializer goes by."""

    is_key: bool
    auto_register: bool
    normalize: bool
    use_latest: bool
    schema_id: int | None
    latest_strict: bool
    strategy: SubjectNameStrategy
    reference_strategy: ReferenceNameStrategy
    id_in_header: bool
    validate_json: bool
    dead_letter_topic: str | None
    #: When rules within the schema run: DISABLED, BEFORE_DOMAIN_RULES or AFTER_DOMAIN_RULES.
    validation_rules: str = "DISABLED"
    validation_fails_fast: bool = False
    #: The client's settings as they were given, for rules that send records themselves.
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, values: Mapping[str, Any], *, is_key: bool, config: Mapping[str, Any] | None = None
    ) -> SerdeSettings:
        side = "key" if is_key else "value"
        use_latest = values["use.latest.version"]
        schema_id = values["use.schema.id"]
        key = f"{side}.subject.name.strategy"
        strategy = values[key] if values[key] is not None else values["subject.name.strategy"]
        return cls(
            is_key=is_key,
            # Either of them says which schema is meant, so there is nothing to register.
            auto_register=values["auto.register.schemas"] and not use_latest and schema_id < 0,
            normalize=values["normalize.schemas"],
            use_latest=use_latest,
            schema_id=None if schema_id < 0 else schema_id,
            latest_strict=values["latest.compatibility.strict"],
            strategy=resolve_strategy(
                key,
                strategy,
                cluster_id=values["subject.name.strategy.kafka.cluster.id"],
                fallback=values["subject.name.strategy.fallback.type"],
            ),
            reference_strategy=resolve_reference_strategy(_REFERENCES, values[_REFERENCES]),
            id_in_header=_id_in_header(
                f"{side}.schema.id.serializer", values[f"{side}.schema.id.serializer"]
            ),
            validate_json=values["json.fail.invalid.schema"],
            dead_letter_topic=values["rule.actions.dlq.param.topic"],
            validation_rules=values["validation.rules.execution"].upper(),
            validation_fails_fast=values["validation.rules.fail.fast"],
            config=config or {},
        )

    def bound_to(self, registry: AssociationsOfTopics) -> SerdeSettings:
        """With a strategy that can ask a registry, if it has to."""
        if isinstance(self.strategy, AssociatedNameStrategy):
            return replace(self, strategy=replace(self.strategy, registry=registry))
        return self


@cache
def _definition() -> ConfigDef:
    return ConfigDef(parse_table(REGISTRY_TABLE))


def parse_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Every key with its value; keys of others are passed over. Functions stay what they are."""
    definition = _definition()
    given = {name: value for name, value in config.items() if name in definition}
    functions = {name: value for name, value in given.items() if callable(value)}
    texts = {
        name: _text(value)
        for name, value in given.items()
        if name not in functions and value is not None
    }
    try:
        return {**definition.parse(texts), **functions}
    except AnyConfigError as error:
        raise ConfigError.of(error) from None


def tls_context(values: Mapping[str, Any]) -> ssl.SSLContext:
    """For https: the trusted certificates and the own key; the system's trust without any."""
    own = {
        name.removeprefix(_SSL_PREFIX): value
        for name, value in values.items()
        if name.startswith(f"{_SSL_PREFIX}ssl.")
    }
    try:
        return client_context(own)
    except AnyConfigError as error:
        raise ConfigError.of(error) from None


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Password):
        return value.value
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)


def _id_in_header(key: str, serializer: str | None) -> bool:
    try:
        return id_in_header(serializer)
    except FramingError as error:
        raise ConfigError.invalid(key, serializer, str(error)) from None
