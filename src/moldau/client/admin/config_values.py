"""What one says of configurations and learns about them."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from moldau.client.admin.enums import NumberedEnum

__all__ = [
    "AlterConfigOp",
    "AlterConfigOpType",
    "ConfigEntry",
    "ConfigEntryType",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigSynonym",
]


class ConfigResourceType(NumberedEnum):
    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(NumberedEnum):
    """Where a value comes from."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class ConfigEntryType(NumberedEnum):
    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class AlterConfigOpType(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigResource(NamedTuple):
    """A topic, broker, group, ... by type and name; the name "" of brokers is their default."""

    type: ConfigResourceType
    name: str

    @property
    def is_default(self) -> bool:
        return not self.name

    @classmethod
    def topic(cls, name: str) -> ConfigResource:
        return cls(ConfigResourceType.TOPIC, name)

    @classmethod
    def broker(cls, broker_id: int | None = None) -> ConfigResource:
        """A broker, or the default of all of them."""
        return cls(ConfigResourceType.BROKER, "" if broker_id is None else str(broker_id))

    @classmethod
    def broker_logger(cls, broker_id: int) -> ConfigResource:
        return cls(ConfigResourceType.BROKER_LOGGER, str(broker_id))

    @classmethod
    def client_metrics(cls, name: str) -> ConfigResource:
        return cls(ConfigResourceType.CLIENT_METRICS, name)

    @classmethod
    def group(cls, group_id: str) -> ConfigResource:
        return cls(ConfigResourceType.GROUP, group_id)


class ConfigSynonym(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """A key with its value; the value of a sensitive one is None."""

    name: str
    value: str | None
    source: ConfigSource = ConfigSource.UNKNOWN
    is_sensitive: bool = False
    is_read_only: bool = False
    synonyms: tuple[ConfigSynonym, ...] = ()
    type: ConfigEntryType = ConfigEntryType.UNKNOWN
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT_CONFIG


class AlterConfigOp(NamedTuple):
    name: str
    value: str | None
    op_type: AlterConfigOpType = AlterConfigOpType.SET

    @classmethod
    def set(cls, name: str, value: str) -> AlterConfigOp:
        return cls(name, value, AlterConfigOpType.SET)

    @classmethod
    def delete(cls, name: str) -> AlterConfigOp:
        """Back to the default."""
        return cls(name, None, AlterConfigOpType.DELETE)

    @classmethod
    def append(cls, name: str, value: str) -> AlterConfigOp:
        """Add to a list, unless it is in it."""
        return cls(name, value, AlterConfigOpType.APPEND)

    @classmethod
    def subtract(cls, name: str, value: str) -> AlterConfigOp:
        """Take out of a list."""
        return cls(name, value, AlterConfigOpType.SUBTRACT)
