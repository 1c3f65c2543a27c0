"""Transformations, predicates and converters: what a record passes between connector and Kafka."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeVar

from moldau.connect.api.config_def import ConfigDef
from moldau.connect.api.records import ConnectRecord
from moldau.data.schema import Schema, SchemaAndValue

R = TypeVar("R", bound=ConnectRecord)

__all__ = ["Converter", "HeaderConverter", "Predicate", "Transformation"]


class Transformation(ABC):
    """A single message transform. Made without arguments, then configured."""

    @classmethod
    def config(cls) -> ConfigDef:
        return ConfigDef()

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Take the settings (texts, without their prefix); ConfigError if one is wrong."""

    @abstractmethod
    def apply(self, record: R) -> R | None:
        """The record to go on with, or None to drop it."""

    def close(self) -> None:
        """Release what `configure` took."""


class Predicate(ABC):
    """Decides whether a transformation applies to a record."""

    @classmethod
    def config(cls) -> ConfigDef:
        return ConfigDef()

    def configure(self, configs: Mapping[str, Any]) -> None: ...

    @abstractmethod
    def test(self, record: ConnectRecord) -> bool: ...

    def close(self) -> None: ...


class Converter(ABC):
    """Between typed values and the bytes of a topic."""

    @classmethod
    def config(cls) -> ConfigDef:
        return ConfigDef()

    def configure(self, configs: Mapping[str, Any], *, is_key: bool) -> None: ...

    @abstractmethod
    def from_connect_data(
        self,
        topic: str,
        schema: Schema | None,
        value: Any,
        headers: list[tuple[str, bytes | None]] | None = None,
    ) -> bytes | None:
        """The bytes of a value. A converter may append to `headers`."""

    @abstractmethod
    def to_connect_data(
        self,
        topic: str,
        data: bytes | None,
        headers: list[tuple[str, bytes | None]] | None = None,
    ) -> SchemaAndValue: ...

    def close(self) -> None: ...


class HeaderConverter(ABC):
    """Between typed values and the bytes of headers."""

    @classmethod
    def config(cls) -> ConfigDef:
        return ConfigDef()

    def configure(self, configs: Mapping[str, Any]) -> None: ...

    @abstractmethod
    def from_connect_header(
        self, topic: str, key: str, schema: Schema | None, value: Any
    ) -> bytes | None: ...

    @abstractmethod
    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue: ...

    def close(self) -> None: ...
