"""Keeps global stores: every instance reads the whole of their topics.

Invariant: nothing is processed before the stores have what the topics had at the start.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from moldau.client import Consumer
from moldau.client.errors import WakeupError
from moldau.client.metrics import Metrics
from moldau.client.topics import TopicPartition
from moldau.streams.errors import StreamsError
from moldau.streams.hosts.own_metrics import OwnMetrics
from moldau.streams.hosts.settings import StreamsSettings
from moldau.streams.machine import progress
from moldau.streams.machine.definitions import SourceDefinition
from moldau.streams.machine.error_handlers import Handlers, fail_on_error
from moldau.streams.machine.surroundings import Surroundings
from moldau.streams.machine.task import Task, TaskSettings
from moldau.streams.topology.assembly import Assembly

_POLL_S = 0.1

_log = logging.getLogger(__name__)


class GlobalStores:
    """The global stores of an application, and the thread that follows their topics."""

    def __init__(
        self,
        assembly: Assembly,
        settings: StreamsSettings,
        name: str,
        metrics: Metrics,
        on_error: Callable[[BaseException], None],
    ) -> None:
        self._settings = settings
        self._name = name
        self._on_error = on_error
        self._thread_name = f"{name}-GlobalStreamThread"
        self._own = OwnMetrics(metrics, self._thread_name, is_debug=settings.is_debug)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._consumer: Consumer[Any, Any] | None = None
        names = [name for group in assembly.groups() if assembly.is_global(group) for name in group]
        nodes = [assembly.nodes[name] for name in names]
        self._topics = sorted(
            {topic for node in nodes if isinstance(node, SourceDefinition) for topic in node.topics}
        )
        self._task: Task | None = None
        if nodes:
            self._task = Task(
                nodes,
                assembly.global_stores,
                TaskSettings(
                    application_id=settings.application_id,
                    task_id="-1_-1",
                    config={**settings.values, **settings.given},
                    handlers=_handlers(settings),
                    persistent_stores=settings.values["default.dsl.store"] != "in_memory",
                    surroundings=Surroundings(
                        key_serde=assembly.default_key_serde,
                        value_serde=assembly.default_value_serde,
                        metrics=lambda: self._own,
                    ),
                ),
                collect=_refuse,
            )

    @property
    def stores(self) -> dict[str, Any]:
        return {} if self._task is None else self._task.stores

    def start(self) -> None:
        """Fill the stores, then follow their topics in a thread."""
        if self._task is None:
            return
        self._task.initialize()
        self._consumer = consumer = Consumer(
            self._settings.consumer(
                "global", client_id=f"{self._name}-global-consumer", auto_offset_reset="earliest"
            )
        )
        keys = [
            TopicPartition(each.topic, each.partition)
            for topic in self._topics
            for each in consumer.partitions_for(topic)
        ]
        if not keys:
            raise StreamsError(f"global topics do not exist: {', '.join(self._topics)}")
        consumer.assign(keys)
        consumer.seek_to_beginning(keys)
        missing = {key: end for key, end in consumer.end_offsets(keys).items() if end > 0}
        while missing and not self._stopping.is_set():
            self._read(_POLL_S)
            missing = {key: end for key, end in missing.items() if consumer.position(key) < end}
        self._thread = threading.Thread(target=self._follow, name=self._thread_name, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        try:
            while not self._stopping.is_set():
                self._read(_POLL_S)
        except Exception as error:
            _log.exception("%s: the global stores can no longer be followed", self._name)
            self._on_error(error)

    def _read(self, timeout: float) -> None:
        if self._consumer is None or self._task is None:
            return
        try:
            records = self._consumer.poll(timeout)
        except WakeupError:
            return
        for key, found in records.items():
            self._task.process_records(key.topic, key.partition, found)

    def position(self, partition: TopicPartition) -> int:
        """The next offset of a partition."""
        if self._task is None:
            return 0
        return self._task.progress.positions.get(progress.TopicPartition(*partition), 0)

    def close(self) -> None:
        self._stopping.set()
        if self._consumer is not None:
            self._consumer.wakeup()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        if self._consumer is not None:
            self._consumer.close()
        if self._task is not None:
            self._task.close()
        self._own.close()


def _handlers(settings: StreamsSettings) -> Handlers:
    """The application's, but a global store writes no dead letters; errors of its processor are
    handled only where that is asked for (KIP-1270)."""
    handlers = settings.handlers._replace(dead_letter_topic=None)
    if settings.values["processing.exception.handler.global.enabled"]:
        return handlers
    return handlers._replace(processing=fail_on_error)


def _refuse(record: Any) -> None:
    raise StreamsError(f"a global store writes to no topic, not to {record.topic}")
