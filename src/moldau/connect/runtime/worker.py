"""Worker: starts and stops connectors and tasks in this process. It decides nothing.

Each task has a thread; a connector's own methods are called by whoever calls the worker, one call
at a time per connector. States are reported to `on_status` from any thread. A task that does not
end within `task.shutdown.graceful.timeout.ms` is abandoned: its thread may go on, but what it
reports and commits no longer counts.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from moldau.client import Consumer, Producer
from moldau.connect.api import (
    BulkSinkConnector,
    ConnectError,
    Connector,
    PluginMetrics,
    SinkConnector,
    SourceConnector,
)
from moldau.connect.chain import Chain, chain_of
from moldau.connect.connector_config import SINK, source_config
from moldau.connect.isolation import plain_name
from moldau.connect.machine.ids import State, TargetState, TaskId
from moldau.connect.plugins import Plugins, named_plugin
from moldau.connect.runtime.bulk import BulkJob, conversion_settings, table_of
from moldau.connect.runtime.clients import connector_client, worker_client
from moldau.connect.runtime.conversion import (
    Converters,
    SinkConversion,
    SourceConversion,
    converters_of,
)
from moldau.connect.runtime.exactly_once import ExactlyOnceRunner
from moldau.connect.runtime.failures import (
    DeadLetters,
    ErrorSettings,
    Failures,
    ensure_topic,
    raw_consumer_record,
)
from moldau.connect.runtime.offset_stores import OffsetStore, Reader
from moldau.connect.runtime.own_offsets import Lease, OffsetStores
from moldau.connect.runtime.raw_records import raw_of_source
from moldau.connect.runtime.sink_task import SinkRunner
from moldau.connect.runtime.source_task import SourceRunner
from moldau.connect.runtime.task import Lifecycle
from moldau.connect.runtime.topics import TopicCreator
from moldau.connect.runtime.worker_config import WorkerConfig

logger = logging.getLogger(__name__)

OnStatus = Callable[[str | TaskId, State, str | None], None]
OnTopic = Callable[[TaskId, str], None]


class Runner(Protocol):
    """What runs a task."""

    def run(self) -> None: ...

    def interrupt(self) -> None: ...


class _ConnectorContext:
    def __init__(self, name: str, reader: Reader, worker: Worker) -> None:
        self.offset_storage_reader = reader
        self.plugin_metrics = PluginMetrics()
        self._name = name
        self._worker = worker

    def request_task_reconfiguration(self) -> None:
        self._worker.on_reconfiguration(self._name)

    def raise_error(self, error: Exception) -> None:
        self._worker.on_status(self._name, State.FAILED, _trace(error))


@dataclass(slots=True)
class RunningConnector:
    connector: Connector
    config: dict[str, str]
    lock: threading.Lock
    offsets: Lease | None
    started: bool = False


@dataclass(slots=True)
class RunningTask:
    runner: Any
    life: Lifecycle
    thread: threading.Thread
    chain: Chain
    converters: Converters
    dead_letters: DeadLetters | None
    offsets: Lease | None

    def close(self) -> None:
        """After its thread's last step."""
        self.chain.close()
        self.converters.close()
        if self.dead_letters is not None:
            self.dead_letters.close()
        if self.offsets is not None:
            self.offsets.close()


class Worker:
    def __init__(
        self,
        config: WorkerConfig,
        plugins: Plugins,
        offsets: OffsetStore,
        *,
        group_id: str | None,
        on_status: OnStatus,
        on_topic: OnTopic,
        on_reconfiguration: Callable[[str], None],
        bulk: Callable[[BulkJob], Runner] | None = None,
    ) -> None:
        self.config = config
        self.plugins = plugins
        self.offsets = OffsetStores(config, offsets)
        self.on_status = on_status
        self.on_reconfiguration = on_reconfiguration
        self._on_topic = on_topic
        self._group_id = group_id
        self._bulk = bulk
        self.connectors: dict[str, RunningConnector] = {}
        self.tasks: dict[TaskId, RunningTask] = {}

    # Connectors.

    def start_connector(
        self, name: str, config: Mapping[str, str | None], target: TargetState
    ) -> bool:
        """Whether it runs; a failure is reported as its state."""
        lease: Lease | None = None
        try:
            resolved = self.config.resolved(config)
            made: Connector = self.plugins.connector(*named_plugin(resolved))()
            if isinstance(made, SourceConnector):
                lease = self.offsets.lease(resolved)
            store = self.offsets.worker if lease is None else lease.store
            made.initialize(_ConnectorContext(name, Reader(store, name, wait=False), self))
            running = RunningConnector(made, resolved, threading.Lock(), lease)
            self.connectors[name] = running
            if target is TargetState.STARTED:
                with running.lock:
                    made.start(resolved)
                    running.started = True
        except Exception as error:
            logger.exception("connector %s failed to start", name)
            if lease is not None and name not in self.connectors:
                lease.close()
            self.on_status(name, State.FAILED, _trace(error))
            return False
        self.on_status(name, _STATES[target], None)
        return True

    def stop_connector(self, name: str) -> None:
        running = self.connectors.pop(name, None)
        if running is None:
            return
        _stop_quietly(name, running)
        if running.offsets is not None:
            running.offsets.close()
        self.on_status(name, State.UNASSIGNED, None)

    def task_configs(self, name: str) -> list[dict[str, str]]:
        """What the connector wants its tasks to be; raises ConnectError."""
        running = self.connectors.get(name)
        if running is None or not running.started:
            raise ConnectError(f"connector {name} does not run here")
        config = running.config
        is_sink = isinstance(running.connector, SinkConnector)
        values = (SINK if is_sink else source_config(config)).parse(config)
        with running.lock:
            found = running.connector.task_configs(values["tasks.max"])
            task_class = running.connector.task_class()
        if len(found) > values["tasks.max"] and values["tasks.max.enforce"]:
            raise ConnectError(
                f"The connector {name} has generated {len(found)} tasks, which is greater than "
                f"{values['tasks.max']}, the maximum number of tasks it is configured to create. "
                "Set tasks.max.enforce to false to accept that"
            )
        extra = {"task.class": f"{plain_name(task_class.__module__)}.{task_class.__qualname__}"}
        if is_sink:
            for key in ("topics", "topics.regex"):
                if config.get(key):
                    extra[key] = config[key]
        return [{**{k: str(v) for k, v in each.items()}, **extra} for each in found]

    def set_target(self, name: str, target: TargetState) -> None:
        """Pause or resume a connector and its tasks here."""
        running = self.connectors.get(name)
        if running is not None:
            try:
                with running.lock:
                    if target is TargetState.STARTED and not running.started:
                        running.connector.start(running.config)
                        running.started = True
                    elif target is not TargetState.STARTED and running.started:
                        running.connector.stop()
                        running.started = False
                self.on_status(name, _STATES[target], None)
            except Exception as error:
                logger.exception("connector %s failed", name)
                self.on_status(name, State.FAILED, _trace(error))
        for id, task in list(self.tasks.items()):
            if id.connector == name:
                if target is TargetState.STARTED:
                    task.life.resume()
                else:
                    task.life.pause()

    # Tasks.

    def start_task(
        self,
        id: TaskId,
        connector_config: Mapping[str, str | None],
        task_config: Mapping[str, str | None],
        target: TargetState,
    ) -> bool:
        if id in self.tasks:
            raise ConnectError(f"Task already exists in this worker: {id}")
        life = Lifecycle(
            lambda state: self.on_status(id, state, None), paused=target is TargetState.PAUSED
        )
        try:
            connector = self.config.resolved(connector_config)
            config = self.config.resolved(task_config)
            given = {key: each for key, each in connector_config.items() if each is not None}
            task = self._build(id, given, connector, config, life)
        except Exception as error:
            logger.exception("task %s failed to start", id)
            self.on_status(id, State.FAILED, _trace(error))
            return False
        self.tasks[id] = task
        task.thread.start()
        return True

    def _build(
        self,
        id: TaskId,
        given: dict[str, str],
        connector: dict[str, str],
        config: dict[str, str],
        life: Lifecycle,
    ) -> RunningTask:
        made = self.plugins.connector(*named_plugin(connector))()
        task_class = made.task_class()
        chain = chain_of(connector, self.plugins)
        converters = converters_of(self.config.settings, connector, self.plugins)
        is_sink = isinstance(made, SinkConnector)
        values = (SINK if is_sink else source_config(connector)).parse(connector)
        errors = ErrorSettings.of(values)
        dead_letters = self._dead_letters(id, connector, errors, converters, is_sink)
        failures = Failures(id, errors, dead_letters, life.stopping)
        # A task sees the connector's own name too.
        config = {"name": id.connector, **config}
        lease = None if is_sink else self.offsets.lease(connector)
        runner: Any
        if isinstance(made, BulkSinkConnector):
            conversion = SinkConversion(chain, converters)
            runner = self._bulk_runner(id, made, given, connector, life, conversion, failures)
        elif lease is None:
            runner = SinkRunner(
                id,
                task_class(),
                config,
                life=life,
                conversion=SinkConversion(chain, converters),
                failures=failures,
                consumer=lambda: Consumer(self._consumer_settings(id, connector)),
                on_topic=lambda topic: self._on_topic(id, topic),
                flush_interval_ms=self.config.values["offset.flush.interval.ms"],
                record_by_record=values["errors.put.record.by.record"],
            )
        else:
            source = SourceConversion(chain, converters)
            runner = self._source_runner(
                id, task_class, connector, config, life, source, failures, values, lease
            )
        running: RunningTask | None = None

        def run() -> None:
            self._run(id, runner, life, lambda: running)

        thread = threading.Thread(target=run, name=f"task-thread-{id}", daemon=True)
        running = RunningTask(runner, life, thread, chain, converters, dead_letters, lease)
        return running

    def _bulk_runner(
        self,
        id: TaskId,
        made: BulkSinkConnector,
        given: dict[str, str],
        connector: dict[str, str],
        life: Lifecycle,
        conversion: SinkConversion,
        failures: Failures,
    ) -> Runner:
        if self._bulk is None:
            raise ConnectError("This worker has no Spark, which bulk sinks need")
        return self._bulk(
            BulkJob(
                id=id,
                config=connector,
                table=table_of(made, given, connector),
                settings=conversion_settings(self.config.settings, self.config.providers, given),
                client=worker_client(self.config.settings, "consumer"),
                conversion=conversion,
                failures=failures,
                life=life,
                on_topic=lambda topic: self._on_topic(id, topic),
            )
        )

    def _source_runner(
        self,
        id: TaskId,
        task_class: type[Any],
        connector: dict[str, str],
        config: dict[str, str],
        life: Lifecycle,
        conversion: SourceConversion,
        failures: Failures,
        values: Mapping[str, Any],
        lease: Lease,
    ) -> Any:
        exactly_once = self.config.exactly_once
        admin = connector_client(self.config.settings, "admin", connector, defaults={})
        runner = SourceRunner(
            id,
            task_class(),
            config,
            life=life,
            conversion=conversion,
            failures=failures,
            producer=lambda: Producer(self._producer_settings(id, connector, exactly_once)),
            offsets=lease.store,
            topics=TopicCreator(
                admin, connector, enabled=self.config.values["topic.creation.enable"]
            ),
            on_topic=lambda topic: self._on_topic(id, topic),
            flush_interval_ms=self.config.values["offset.flush.interval.ms"],
            flush_timeout_ms=self.config.values["offset.flush.timeout.ms"],
        )
        if not exactly_once:
            return runner
        interval_ms = values["transaction.boundary.interval.ms"]
        return ExactlyOnceRunner(
            runner,
            offsets=lease,
            boundary=values["transaction.boundary"].lower(),
            interval_ms=self.config.values["offset.flush.interval.ms"]
            if interval_ms is None
            else interval_ms,
        )

    def _producer_settings(
        self, id: TaskId, connector: Mapping[str, str], exactly_once: bool
    ) -> dict[str, str]:
        defaults = {
            "client.id": f"connector-producer-{id}",
            "acks": "all",
            "max.block.ms": "9223372036854775807",
            "delivery.timeout.ms": "2147483647",
            "max.request.size": "1048576",
        }
        found = connector_client(self.config.settings, "producer", connector, defaults=defaults)
        if exactly_once:
            found["transactional.id"] = transactional_id(self._group_id or "", id)
        return found

    def _consumer_settings(self, id: TaskId, connector: Mapping[str, str]) -> dict[str, str]:
        defaults = {
            "client.id": f"connector-consumer-{id}",
            "group.id": f"connect-{id.connector}",
            "auto.offset.reset": "earliest",
        }
        found = connector_client(self.config.settings, "consumer", connector, defaults=defaults)
        # Offsets are committed when the target has the records.
        found["enable.auto.commit"] = "false"
        return found

    def _dead_letters(
        self,
        id: TaskId,
        connector: Mapping[str, str],
        errors: ErrorSettings,
        converters: Converters,
        is_sink: bool,
    ) -> DeadLetters | None:
        if not errors.dead_letter_topic:
            return None
        settings = self.config.settings
        ensure_topic(connector_client(settings, "admin", connector, defaults={}), errors)
        producer = connector_client(
            settings,
            "producer",
            connector,
            defaults={"client.id": f"connector-dlq-producer-{id}", "acks": "all"},
        )
        return DeadLetters(
            id, errors, Producer(producer), raw_consumer_record if is_sink else raw_of_source
        )

    def _run(
        self,
        id: TaskId,
        runner: Runner,
        life: Lifecycle,
        running: Callable[[], RunningTask | None],
    ) -> None:
        try:
            runner.run()
        except Exception as error:
            if life.stopping.is_set():
                logger.warning("task %s: %s", id, error)
            else:
                logger.error("task %s failed", id, exc_info=error)
                if not life.abandoned:
                    self.on_status(id, State.FAILED, _trace(error))
        finally:
            found = running()
            if found is not None:
                found.close()

    def stop_tasks(self, ids: Iterable[TaskId]) -> None:
        """All at once, so that they share the time they have."""
        stopped = {id: self.tasks.pop(id) for id in list(ids) if id in self.tasks}
        for task in stopped.values():
            task.life.stop()
            task.runner.interrupt()
        grace_s = self.config.values["task.shutdown.graceful.timeout.ms"] / 1000
        deadline = time.monotonic() + grace_s
        for id, task in stopped.items():
            task.thread.join(max(deadline - time.monotonic(), 0.0))
            if task.thread.is_alive():
                logger.error("task %s did not stop within %s s and is abandoned", id, grace_s)
                task.life.abandon()
            self.on_status(id, State.UNASSIGNED, None)

    def stop(self) -> None:
        self.stop_tasks(list(self.tasks))
        for name in list(self.connectors):
            self.stop_connector(name)


_STATES = {
    TargetState.STARTED: State.RUNNING,
    TargetState.PAUSED: State.PAUSED,
    TargetState.STOPPED: State.STOPPED,
}


def transactional_id(group_id: str, id: TaskId) -> str:
    return f"{group_id}-{id.connector}-{id.task}"


def _stop_quietly(name: str, running: RunningConnector) -> None:
    try:
        with running.lock:
            if running.started:
                running.connector.stop()
    except Exception:
        logger.exception("connector %s: stop failed", name)


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))
