"""MirrorHeartbeatConnector: a record per second that shows that a mirror runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

from moldau.connect.api import ConfigDef, SourceConnector, SourceRecord, SourceTask
from moldau.connect.connectors.mirror.settings import HEARTBEAT, Backstage, flow_of
from moldau.data.builders import BYTES
from moldau.mirror.machine.records import Heartbeat
from moldau.mirror.plugins import Plugins
from moldau.mirror.topic_store import ensure_compacted


class MirrorHeartbeatConnector(SourceConnector):
    DESCRIPTION = "Heartbeats between clusters, as MirrorMaker 2 sends them"

    def __init__(self) -> None:
        super().__init__()
        self._props: dict[str, str] = {}

    @classmethod
    def config(cls) -> ConfigDef:
        return HEARTBEAT

    def start(self, props: Mapping[str, str]) -> None:
        self._props = dict(props)
        settings = flow_of(props)
        stage = Backstage(settings, "heartbeats")
        try:
            topic = stage.plugins.policy.heartbeats_topic()
            factor = settings["heartbeats.topic.replication.factor"]
            stage.call(lambda: ensure_compacted(stage.target, topic, replication_factor=factor))
        finally:
            stage.close()

    def task_class(self) -> type[SourceTask]:
        return MirrorHeartbeatTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        is_sent = flow_of(self._props).interval_s("emit.heartbeats") is not None
        return [dict(self._props)] if is_sent else []


class MirrorHeartbeatTask(SourceTask):
    def start(self, props: Mapping[str, str]) -> None:
        settings = flow_of(props)
        self._name = settings.name
        self._topic = Plugins(settings).policy.heartbeats_topic()
        self._interval_s = settings.interval_s("emit.heartbeats") or 1.0
        self._stopped = threading.Event()

    def poll(self) -> Sequence[SourceRecord] | None:
        if self._stopped.wait(self._interval_s):
            return None
        now_ms = time.time_ns() // 1_000_000
        beat = Heartbeat(self._name.source, self._name.target, now_ms)
        return [
            SourceRecord(
                {"sourceClusterAlias": beat.source, "targetClusterAlias": beat.target},
                {"offset": 0},
                self._topic,
                0,
                key=beat.key(),
                key_schema=BYTES,
                value=beat.value(),
                value_schema=BYTES,
                timestamp=now_ms,
            )
        ]

    def stop(self) -> None:
        self._stopped.set()
