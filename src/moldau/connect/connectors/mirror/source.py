"""MirrorSourceConnector: records of another cluster's topics.

Records pass through transforms and the worker's producer, so they are decoded; the fast way is
`moldau mirror start`. The converters must be ByteArrayConverter.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from moldau.client import Consumer, Producer, TopicPartition
from moldau.client.errors import KafkaError, UnknownTopicOrPartitionError, WakeupError
from moldau.connect.api import (
    ConfigDef,
    ConfigValue,
    ConnectError,
    ExactlyOnceSupport,
    Header,
    RetriableError,
    SourceConnector,
    SourceRecord,
    SourceTask,
)
from moldau.connect.connectors.mirror.settings import SOURCE, Backstage, flow_of
from moldau.data.builders import BYTES, OPTIONAL_BYTES
from moldau.mirror.flow import create_internal_topics
from moldau.mirror.machine.offset_map import OffsetMap
from moldau.mirror.machine.offset_syncs import SyncSchedule
from moldau.mirror.machine.records import OffsetRun
from moldau.mirror.topic_store import TopicReader
from moldau.mirror.topics import TopicSync

_PARTITIONS: Final = "task.assigned.partitions"
_READ_COMMITTED: Final = "read_committed"
_UNKNOWN_S_MAX: Final = 60.0
_LOOK_S: Final = 0.5


def _is_read_committed(props: Mapping[str, str]) -> bool:
    keys = ("source.consumer.isolation.level", "consumer.isolation.level")
    return next((props[each] for each in keys if each in props), "") == _READ_COMMITTED


class MirrorSourceConnector(SourceConnector):
    DESCRIPTION = "Topics of another cluster, as MirrorMaker 2 copies them"

    def __init__(self) -> None:
        super().__init__()
        self._props: dict[str, str] = {}
        self._partitions: list[TopicPartition] = []
        self._backstage: Backstage | None = None

    @classmethod
    def config(cls) -> ConfigDef:
        return SOURCE

    def validate(self, props: Mapping[str, str]) -> list[ConfigValue]:
        values = super().validate(props)
        if props.get("exactly.once.support") == "required" and not _is_read_committed(props):
            _fault(
                values,
                "exactly.once.support",
                "MirrorSourceConnector can only provide exactly-once guarantees when its source "
                "consumer is configured with isolation.level set to 'read_committed'",
            )
        is_set = any(each.startswith(("offset-syncs-", "offset-syncs.topic.")) for each in props)
        if props.get("emit.offset-syncs.enabled") == "false" and is_set:
            _fault(
                values,
                "emit.offset-syncs.enabled",
                "MirrorSourceConnector can't setup offset-syncs feature while "
                "emit.offset-syncs.enabled set to false",
            )
        return values

    def start(self, props: Mapping[str, str]) -> None:
        self._props = dict(props)
        settings = flow_of(props)
        if not settings["enabled"]:
            return
        stage = self._backstage = Backstage(settings, "topics")
        topics = TopicSync(settings, stage.plugins, stage.source, stage.target)
        stage.call(
            lambda: create_internal_topics(settings, stage.plugins, stage.source, stage.target)
        )
        self._partitions = stage.call(topics.refresh)

        async def refresh() -> None:
            found = await topics.refresh()
            if found != self._partitions:
                self._partitions = found
                self.context.request_task_reconfiguration()

        async def sync_configs() -> None:
            await topics.sync_configs(self._partitions)

        stage.repeat("refresh.topics", refresh)
        stage.repeat("sync.topic.configs", sync_configs)
        stage.repeat("sync.topic.acls", topics.sync_acls)

    def task_class(self) -> type[SourceTask]:
        return MirrorSourceTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        count = min(max_tasks, len(self._partitions))
        return [
            {**self._props, _PARTITIONS: ",".join(map(str, self._partitions[number::count]))}
            for number in range(count)
        ]

    def stop(self) -> None:
        if self._backstage is not None:
            self._backstage.close()

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        if _is_read_committed(props):
            return ExactlyOnceSupport.SUPPORTED
        return ExactlyOnceSupport.UNSUPPORTED

    def alter_offsets(
        self, props: Mapping[str, str], offsets: Mapping[Any, Mapping[str, Any] | None]
    ) -> bool:
        for partition, offset in offsets.items():
            if offset is None:
                continue
            for key in ("cluster", "topic", "partition"):
                if key not in partition:
                    raise ConnectError(
                        f"Source partition {dict(partition)} is missing the '{key}' key, which is "
                        "required"
                    )
            found = offset.get("offset")
            if not isinstance(found, int) or found < 0:
                raise ConnectError(
                    f"Source offset {dict(offset)} for source partition {dict(partition)} must "
                    "have an 'offset' that is a number and not negative"
                )
        return True


def _fault(values: list[ConfigValue], name: str, message: str) -> None:
    for value in values:
        if value.name == name:
            value.errors.append(message)
            return
    values.append(ConfigValue(name, errors=[message]))


class MirrorSourceTask(SourceTask):
    def __init__(self) -> None:
        super().__init__()
        self._stopped = threading.Event()
        self._consumer: Consumer[Any, Any] | None = None
        self._producer: Producer | None = None
        self._lock = threading.Lock()
        self._runs: dict[TopicPartition, OffsetRun] = {}
        self._is_transactional = False
        self._is_closed = False

    def start(self, props: Mapping[str, str]) -> None:
        settings = self._settings = flow_of(props)
        self._stage = Backstage(settings, "task")
        self._plugins = self._stage.plugins
        self._alias = settings.name.source
        self._schedule = SyncSchedule(settings["offset.lag.max"])
        self._map = OffsetMap(settings["moldau.offset.map.runs.max"])
        self._places = [_place(each) for each in props[_PARTITIONS].split(",")]
        side = settings["offset-syncs.topic.location"]
        self._syncs_topic = self._plugins.policy.offset_syncs_topic(
            settings.name.target if side == "source" else settings.name.source
        )
        self._syncs = Producer(settings.client(side, "producer"))
        if settings["moldau.offset.map.enabled"]:
            self._stage.call(self._read_map)
            self._producer = Producer(settings.client("target", "producer"))
        self._poll_s = settings["consumer.poll.timeout.ms"] / 1000

    async def _read_map(self) -> None:
        reader = TopicReader(
            self._settings.map_topic,
            self._map.replay,
            self._settings.client("target", "consumer"),
            self._stage.target,
            must_exist=True,
        )
        try:
            await self._caught_up(reader)
        finally:
            await reader.close()

    @staticmethod
    async def _caught_up(reader: TopicReader) -> None:
        """The connector has created the topic, but a broker may not know it yet."""
        deadline_s = time.monotonic() + _UNKNOWN_S_MAX
        while True:
            try:
                # What an earlier instance of this task left open is ended by now.
                await reader.catch_up(include_open=True)
                return
            except UnknownTopicOrPartitionError:
                if time.monotonic() > deadline_s:
                    raise
                await asyncio.sleep(_LOOK_S)

    def _source(self, place: TopicPartition) -> dict[str, Any]:
        return {"cluster": self._alias, "partition": place.partition, "topic": place.topic}

    def _open(self) -> Consumer[Any, Any]:
        if self._consumer is None:
            settings = self._settings.client("source", "consumer")
            consumer = Consumer({**settings, "enable.auto.commit": "false"})
            consumer.assign(self._places)
            for place in self._places:
                stored = self.context.offset_storage_reader.offset(self._source(place)) or {}
                if int(stored.get("offset", -1)) >= 0:
                    consumer.seek(place, int(stored["offset"]) + 1)
            self._consumer = consumer
        return self._consumer

    def poll(self) -> Sequence[SourceRecord] | None:
        if self._stopped.is_set():
            return None
        try:
            found = self._open().poll(self._poll_s)
        except WakeupError:
            return None
        except KafkaError as error:
            raise RetriableError(f"{self._settings.name}: {error}") from error
        return [self._converted(each) for each in found] or None

    def _converted(self, record: Any) -> SourceRecord:
        place = TopicPartition(record.topic, record.partition)
        return SourceRecord(
            self._source(place),
            {"offset": record.offset},
            self._plugins.selection.remote(record.topic),
            record.partition,
            key=record.key,
            key_schema=OPTIONAL_BYTES,
            value=record.value,
            value_schema=BYTES if record.value is not None else OPTIONAL_BYTES,
            timestamp=record.timestamp,
            headers=[Header(name, value, OPTIONAL_BYTES) for name, value in record.headers],
        )

    def pre_commit(
        self, written: Sequence[tuple[SourceRecord, Any]]
    ) -> list[tuple[str, bytes | None, bytes | None]]:
        """The map of a transaction's records, to be written with them."""
        self._is_transactional = True
        made: list[tuple[bytes, bytes | None]] = []
        with self._lock:
            for run in filter(None, (_run(*each) for each in written)):
                made += self._note(run)
            made += self._take_runs()
        if not self._settings["moldau.offset.map.enabled"]:
            return []
        return [(self._settings.map_topic, key, value) for key, value in made]

    def commit_record(self, record: SourceRecord, metadata: Any) -> None:
        run = _run(record, metadata)
        if run is None:
            return
        with self._lock:
            if not self._is_transactional:
                self._send_map(self._note(run))
            sync = self._schedule.copied(run.partition, run.upstream, run.downstream, 1)
        if sync is not None and self._settings["emit.offset-syncs.enabled"]:
            self._syncs.send(self._syncs_topic, sync.value(), sync.key(), partition=0)

    def _note(self, run: OffsetRun) -> list[tuple[bytes, bytes | None]]:
        """Runs that continue each other become one; what the map gets now."""
        before = self._runs.get(run.partition)
        self._runs[run.partition] = run
        if before is None:
            return []
        if before.upstream_end == run.upstream and before.downstream_end == run.downstream:
            self._runs[run.partition] = OffsetRun(
                run.partition, before.upstream, before.downstream, before.count + 1, run.position
            )
            return []
        return self._mapped(before)

    def _take_runs(self) -> list[tuple[bytes, bytes | None]]:
        runs, self._runs = self._runs, {}
        return [record for run in runs.values() for record in self._mapped(run)]

    def _mapped(self, run: OffsetRun) -> list[tuple[bytes, bytes | None]]:
        made = list(self._map.records_for(run))
        for key, value in made:
            self._map.replay(key, value)
        return made

    def _send_map(self, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Without exactly once: after the records."""
        if self._producer is not None:
            for key, value in records:
                self._producer.send(self._settings.map_topic, value, key)

    def commit(self) -> None:
        with self._lock:
            self._send_map(self._take_runs())
            syncs = self._schedule.committed()
        if self._settings["emit.offset-syncs.enabled"]:
            for sync in syncs:
                self._syncs.send(self._syncs_topic, sync.value(), sync.key(), partition=0)

        if self._stopped.is_set():
            self._close()

    def stop(self) -> None:
        """Makes `poll` return; what is in flight is committed after this."""
        self._stopped.set()
        consumer = self._consumer
        if consumer is not None:
            consumer.wakeup()

    def _close(self) -> None:
        """The last commit is done."""
        if self._is_closed:
            return
        self._is_closed = True
        self._syncs.close(timeout=5.0)
        if self._producer is not None:
            self._producer.close(timeout=5.0)
        if self._consumer is not None:
            self._consumer.close(timeout=5.0)
        self._stage.close()


def _run(record: SourceRecord, metadata: Any) -> OffsetRun | None:
    """Where a record is on both sides; None if it was dropped."""
    if metadata is None or metadata.offset < 0 or record.source_offset is None:
        return None
    source = record.source_partition or {}
    upstream = int(record.source_offset["offset"])
    place = TopicPartition(source["topic"], source["partition"])
    return OffsetRun(place, upstream, metadata.offset, 1, upstream + 1)


def _place(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))
