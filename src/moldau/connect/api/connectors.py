"""Connectors: how a job is split into tasks, and what its settings are.

A worker calls a connector's methods one at a time, in a thread of its own: they may block. A
connector is made without arguments; the worker sets `context` before `start`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from moldau.client.topics import TopicPartition
from moldau.connect.api.config_def import ConfigDef, ConfigValue
from moldau.connect.api.errors import ConnectError
from moldau.connect.api.metrics import PluginMetrics
from moldau.connect.api.records import SourcePartition
from moldau.connect.api.tasks import BulkSinkTask, SinkTask, SourceTask
from moldau.invariant import invariant

__all__ = [
    "BulkSinkConnector",
    "BulkTable",
    "Connector",
    "ConnectorContext",
    "ConnectorTransactionBoundaries",
    "ExactlyOnceSupport",
    "OffsetReader",
    "SinkConnector",
    "SourceConnector",
    "SourceConnectorContext",
]


class ExactlyOnceSupport(Enum):
    SUPPORTED = "SUPPORTED"
    UNSUPPORTED = "UNSUPPORTED"


class ConnectorTransactionBoundaries(Enum):
    SUPPORTED = "SUPPORTED"
    UNSUPPORTED = "UNSUPPORTED"


class OffsetReader(Protocol):
    """The committed source offsets of a connector."""

    def offset(self, partition: Mapping[str, Any]) -> dict[str, Any] | None: ...

    def offsets(self, partitions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | None]: ...


class ConnectorContext(Protocol):
    def request_task_reconfiguration(self) -> None:
        """Have `task_configs` called again, because the source has changed."""

    def raise_error(self, error: Exception) -> None:
        """Fail the connector, from any thread."""

    @property
    def plugin_metrics(self) -> PluginMetrics:
        """The connector's own metrics."""


class SourceConnectorContext(ConnectorContext, Protocol):
    @property
    def offset_storage_reader(self) -> OffsetReader: ...


class Connector(ABC):
    """What source and sink connectors share. Write one of the two subclasses."""

    #: Shown as the plug-in's version.
    VERSION = "1.0"
    #: Java class names that choose this connector, besides its own name.
    ALIASES: tuple[str, ...] = ()
    #: Whether a setting that nothing reads is an error; otherwise it is named in the log.
    STRICT = False
    #: Prefixes of settings that the connector hands on to something else, whatever they are called.
    PASSED_ON: tuple[str, ...] = ()
    #: A sentence for `moldau connect plugins`.
    DESCRIPTION = ""

    def __init__(self) -> None:
        self._context: Any = None

    def initialize(self, context: Any) -> None:
        self._context = context

    @property
    def context(self) -> Any:
        invariant(self._context is not None, "the connector has not been initialized")
        return self._context

    @abstractmethod
    def start(self, props: Mapping[str, str]) -> None:
        """Begin; `props` is the connector's configuration with variables replaced."""

    @abstractmethod
    def task_class(self) -> type[Any]:
        """The class of the tasks."""

    @abstractmethod
    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """One configuration per task, at most `max_tasks`."""

    def stop(self) -> None:
        """End, and release what `start` took."""

    @classmethod
    @abstractmethod
    def config(cls) -> ConfigDef:
        """The settings, without those that all connectors have."""

    def validate(self, props: Mapping[str, str]) -> list[ConfigValue]:
        """The settings with what is wrong. Override for rules over several settings: call this,
        then append to the `errors` of the values concerned."""
        return self.config().validate(props)


class SourceConnector(Connector):
    """Brings data into Kafka."""

    @property
    def context(self) -> SourceConnectorContext:
        found: SourceConnectorContext = super().context
        return found

    @abstractmethod
    def task_class(self) -> type[SourceTask]: ...

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport | None:
        """Whether records are exactly once with this configuration; None if it is not known."""
        return None

    def can_define_transaction_boundaries(
        self, props: Mapping[str, str]
    ) -> ConnectorTransactionBoundaries:
        return ConnectorTransactionBoundaries.UNSUPPORTED

    def alter_offsets(
        self,
        props: Mapping[str, str],
        offsets: Mapping[SourcePartition, Mapping[str, Any] | None],
    ) -> bool:
        """Check offsets that a user wants to set; raise ConnectError for a bad one.

        Keys are `SourcePartition`s, mappings that can be keys; None as a value resets. Returns
        whether they were checked.
        """
        return False


class SinkConnector(Connector):
    """Takes data out of Kafka."""

    @property
    def context(self) -> ConnectorContext:
        found: ConnectorContext = super().context
        return found

    @abstractmethod
    def task_class(self) -> type[SinkTask]: ...

    def alter_offsets(
        self, props: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        """As for sources; for sinks that keep offsets in the target."""
        return False


@dataclass(frozen=True, slots=True)
class BulkTable:
    """A table as the definition of a pipeline has it: its kind and options, secrets unresolved."""

    kind: str
    options: Mapping[str, Any]


class BulkSinkConnector(SinkConnector):
    """A sink whose records Spark writes in batches: a pipeline does the work, and the connector's
    one task starts it, watches it and stops it."""

    def __init__(self) -> None:
        super().__init__()
        self._props: dict[str, str] = {}

    @abstractmethod
    def table(self, props: Mapping[str, str]) -> BulkTable:
        """Where the rows go."""

    def start(self, props: Mapping[str, str]) -> None:
        self.config().parse(props)
        self._props = dict(props)

    def task_class(self) -> type[SinkTask]:
        return BulkSinkTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self._props)]

    def alter_offsets(
        self, props: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        raise ConnectError(
            "The position of this connector is the checkpoint of its pipeline. Create a connector "
            "with another name to read its topics again"
        )
