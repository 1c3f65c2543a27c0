"""MirrorCheckpointConnector: the offsets of another cluster's groups."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from moldau.connect.api import (
    ConfigDef,
    ConfigValue,
    ConnectError,
    RetriableError,
    SourceConnector,
    SourceRecord,
    SourceTask,
)
from moldau.connect.connectors.mirror.settings import CHECKPOINT, Backstage, flow_of
from moldau.data.builders import BYTES
from moldau.mirror.flow import create_internal_topics
from moldau.mirror.groups import GroupSync
from moldau.mirror.machine.records import Checkpoint
from moldau.mirror.metrics import MirrorMetrics

_GROUPS: Final = "task.assigned.groups"
_FAULTS: Final = (
    ("emit.checkpoints.enabled",
     "MirrorCheckpointConnector can't run with emit.checkpoints.enabled set to false"),
    ("emit.offset-syncs.enabled", "MirrorCheckpointConnector can't run without offset syncs"),
)  # fmt: skip


class MirrorCheckpointConnector(SourceConnector):
    DESCRIPTION = "Offsets of another cluster's groups, as MirrorMaker 2 writes them"

    def __init__(self) -> None:
        super().__init__()
        self._props: dict[str, str] = {}
        self._groups: list[str] = []
        self._backstage: Backstage | None = None

    @classmethod
    def config(cls) -> ConfigDef:
        return CHECKPOINT

    def validate(self, props: Mapping[str, str]) -> list[ConfigValue]:
        values = super().validate(props)
        if props.get("enabled", "true") != "false":
            for name, message in _FAULTS:
                if props.get(name) == "false":
                    next(each for each in values if each.name == name).errors.append(message)
        return values

    def start(self, props: Mapping[str, str]) -> None:
        self._props = dict(props)
        settings = flow_of(props)
        if not settings["enabled"]:
            return
        stage = self._backstage = Backstage(settings, "groups")
        stage.call(
            lambda: create_internal_topics(settings, stage.plugins, stage.source, stage.target)
        )

        async def find() -> list[str]:
            listed = await stage.source.list_consumer_groups(check=False)
            takes = stage.plugins.groups.should_replicate_group
            return sorted({each.group_id for each in listed if takes(each.group_id)})

        async def refresh() -> None:
            found = await find()
            if found != self._groups:
                self._groups = found
                self.context.request_task_reconfiguration()

        self._groups = stage.call(find)
        stage.repeat("refresh.groups", refresh)

    def task_class(self) -> type[SourceTask]:
        return MirrorCheckpointTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        count = min(max_tasks, len(self._groups))
        if flow_of(self._props).interval_s("emit.checkpoints") is None:
            return []
        return [
            {**self._props, _GROUPS: ",".join(self._groups[number::count])}
            for number in range(count)
        ]

    def stop(self) -> None:
        if self._backstage is not None:
            self._backstage.close()


class MirrorCheckpointTask(SourceTask):
    def __init__(self) -> None:
        super().__init__()
        self._stopped = threading.Event()
        self._sync_due_s = 0.0

    def start(self, props: Mapping[str, str]) -> None:
        settings = self._settings = flow_of(props)
        stage = self._stage = Backstage(settings, "checkpoints")
        self._groups = props[_GROUPS].split(",")
        self._interval_s = settings.interval_s("emit.checkpoints") or 1.0
        self._sync_s = settings.interval_s("sync.group.offsets")

        async def make() -> GroupSync:
            return GroupSync(settings, stage.plugins, stage.source, stage.target, MirrorMetrics())

        self._sync = stage.call(make)

    def poll(self) -> Sequence[SourceRecord] | None:
        if self._stopped.wait(self._interval_s):
            return None
        try:
            due = self._stage.call(lambda: self._sync.due(self._groups))
            if self._sync_s is not None and time.monotonic() >= self._sync_due_s:
                self._sync_due_s = time.monotonic() + self._sync_s
                self._stage.call(self._sync.sync)
        except ConnectError as error:
            raise RetriableError(str(error)) from error
        now_ms = time.time_ns() // 1_000_000
        return [self._record(each, now_ms) for each in due] or None

    def _record(self, checkpoint: Checkpoint, now_ms: int) -> SourceRecord:
        self._sync.written(checkpoint, 0.0)
        place: dict[str, Any] = {
            "group": checkpoint.group_id,
            "partition": checkpoint.partition.partition,
            "topic": checkpoint.partition.topic,
        }
        return SourceRecord(
            place,
            {"offset": 0},
            self._sync.topic,
            0,
            key=checkpoint.key(),
            key_schema=BYTES,
            value=checkpoint.value(),
            value_schema=BYTES,
            timestamp=now_ms,
        )

    def stop(self) -> None:
        if not self._stopped.is_set():
            self._stopped.set()
            self._stage.call(self._sync.close)
            self._stage.close()
