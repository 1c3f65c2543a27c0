"""Connectors that only hand their configuration on to their tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from moldau.connect.api import ConfigDef, SinkConnector, SourceConnector


class PlainSink(SinkConnector):
    """All tasks have the connector's own configuration; the group shares out partitions."""

    SETTINGS: ClassVar[ConfigDef]

    def __init__(self) -> None:
        super().__init__()
        self._props: dict[str, str] = {}

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.SETTINGS

    def start(self, props: Mapping[str, str]) -> None:
        self.SETTINGS.parse(props)
        self._props = dict(props)

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self._props) for _ in range(max_tasks)]


class SingleSource(SourceConnector):
    """One task, because what it reads has an order, or one listener."""

    SETTINGS: ClassVar[ConfigDef]

    def __init__(self) -> None:
        super().__init__()
        self._props: dict[str, str] = {}

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.SETTINGS

    def start(self, props: Mapping[str, str]) -> None:
        self.SETTINGS.parse(props)
        self._props = dict(props)

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self._props)]
