"""What serializers and deserializers are made of: a schema, a registry, settings.

They can be complete when they are made, with a registry and a configuration of their own, or get
both from the client that uses them: `Producer(value_serializer=AvroSerializer(schema),
schema_registry_url=...)` calls `configure`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from moldau.client.errors import ConfigError
from moldau.serde.reading import RegistryReader
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.serde.settings import SerdeSettings, parse_settings
from moldau.serde.values import Schema
from moldau.serde.writing import RegistryWriter

__all__ = ["Configured", "RegistryDeserializer", "RegistrySerializer", "as_schema"]


class _Working(Protocol):
    def close(self) -> None: ...


W = TypeVar("W", bound=_Working)
Build = Callable[[SchemaRegistryClient, SerdeSettings], W]


class Configured(Generic[W]):
    """Builds the working half when it is first needed, since it may ask the registry."""

    def __init__(
        self,
        build: Build[W],
        *,
        registry: SchemaRegistryClient | str | None,
        is_key: bool,
        config: Mapping[str, Any] | None,
    ) -> None:
        self._build = build
        self._own_config = dict(config or {})
        self._config = self._own_config
        self._is_key = is_key
        self._owns_registry = isinstance(registry, str)
        if isinstance(registry, str):
            self._own_config["schema.registry.url"] = registry
        self._registry = None if isinstance(registry, str) else registry
        self._working: W | None = None

    def configure(self, config: Mapping[str, Any], is_key: bool) -> None:
        """The client's settings; those given here win."""
        self._config = {**config, **self._own_config}
        self._is_key = is_key
        self._working = None

    @property
    def working(self) -> W:
        if self._working is None:
            config = self._config
            settings = SerdeSettings.of(parse_settings(config), is_key=self._is_key, config=config)
            if self._registry is None:
                self._registry = SchemaRegistryClient(config=self._config)
                self._owns_registry = True
            self._working = self._build(self._registry, settings)
        return self._working

    def close(self) -> None:
        if self._working is not None:
            self._working.close()
        if self._owns_registry and self._registry is not None:
            self._registry.close()


class RegistrySerializer:
    """What clients call; how values become bytes is up to `build`."""

    def __init__(
        self,
        build: Build[RegistryWriter],
        *,
        registry: SchemaRegistryClient | str | None,
        is_key: bool,
        config: Mapping[str, Any] | None,
    ) -> None:
        self._configured = Configured(build, registry=registry, is_key=is_key, config=config)
        self.configure = self._configured.configure
        self.close = self._configured.close

    def serialize(self, topic: str, data: Any, headers: Any = None) -> bytes | None:
        """None stays None."""
        return None if data is None else self._configured.working.write(topic, data, headers)


class RegistryDeserializer:
    """What clients call; how bytes become values is up to `build`."""

    def __init__(
        self,
        build: Build[RegistryReader],
        *,
        registry: SchemaRegistryClient | str | None,
        is_key: bool,
        config: Mapping[str, Any] | None,
    ) -> None:
        self._configured = Configured(build, registry=registry, is_key=is_key, config=config)
        self.configure = self._configured.configure
        self.close = self._configured.close

    def deserialize(self, topic: str, data: bytes | None, headers: Any = None) -> Any:
        """None stays None."""
        return None if data is None else self._configured.working.read(topic, data, headers)


def as_schema(schema: str | Schema | None, schema_type: str) -> Schema | None:
    """A text stands for a schema without references."""
    if schema is None:
        return None
    found = Schema(schema, schema_type) if isinstance(schema, str) else schema
    if found.schema_type != schema_type:
        raise ConfigError(
            f"the schema is of type {found.schema_type}, this serializer takes {schema_type}"
        )
    return found
