"""Makes the tasks of a stream thread from the topology."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from moldau.client.producer import DeliveryCallback
from moldau.client.topics import TopicPartition
from moldau.streams.hosts.hosted_task import HostedTask
from moldau.streams.hosts.metering import TaskMeter
from moldau.streams.hosts.partitioning import default_partition
from moldau.streams.hosts.planning import changelog_name, topic_name
from moldau.streams.hosts.settings import StreamsSettings
from moldau.streams.hosts.writing import Writer
from moldau.streams.machine.definitions import Definition, SinkDefinition, SourceDefinition
from moldau.streams.machine.processor_metrics import ProcessorMetrics
from moldau.streams.machine.subtopologies import Plan, TaskId
from moldau.streams.machine.surroundings import Surroundings
from moldau.streams.machine.task import Task, TaskSettings
from moldau.streams.records import Produced, TaskCore
from moldau.streams.stores._cache import RecordCache
from moldau.streams.stores.base import TaskState
from moldau.streams.topology.assembly import Assembly


class TaskStates(Protocol):
    """Where the tasks of an instance keep their local state; a `StateDirectory` is one."""

    def open_task(self, task_id: TaskId) -> TaskState | None: ...

    def delete_task(self, task_id: TaskId) -> None: ...

    def folder_of(self, task_id: TaskId) -> Path | None: ...


class TaskFactory:
    """Of one stream thread: its tasks write to the thread's writer."""

    def __init__(
        self,
        assembly: Assembly,
        plan: Plan,
        settings: StreamsSettings,
        writer: Writer,
        global_stores: Mapping[str, Any],
        directory: TaskStates,
        cache: RecordCache | None,
        metrics: Callable[[], ProcessorMetrics],
    ) -> None:
        self._assembly = assembly
        self._plan = plan
        self._settings = settings
        self._writer = writer
        self._global_stores = global_stores
        self._directory = directory
        self._cache = cache
        self._metrics = metrics
        self._persistent_default = settings.values["default.dsl.store"] != "in_memory"
        self._names = _Names(assembly, settings.application_id)
        self._subtopologies = {each.number: each for each in plan.subtopologies}

    def make(self, task_id: TaskId, partitions: frozenset[TopicPartition]) -> HostedTask:
        """A task whose stores are empty; without partitions a standby task."""
        subtopology = self._subtopologies[task_id.subtopology]
        meter = TaskMeter(is_debug=self._settings.is_debug, topic_name=self._names.__getitem__)
        assembly, application_id = self._assembly, self._settings.application_id
        settings = TaskSettings(
            application_id=application_id,
            task_id=str(task_id),
            config={**self._settings.values, **self._settings.given},
            handlers=self._settings.handlers,
            topic_name=self._names.__getitem__,
            changelog_topic=lambda store: changelog_name(assembly, application_id, store),
            partition_count=self._writer.partition_count,
            source_changelogs={
                store: topic_name(assembly, application_id, topic)
                for store, topic in assembly.source_changelogs.items()
            },
            state=self._directory.open_task(task_id) if subtopology.is_stateful else None,
            cache=self._cache,
            processor_wrapper=self._settings.processor_wrapper,
            meter=meter,
            persistent_stores=self._persistent_default,
            surroundings=Surroundings(
                key_serde=assembly.default_key_serde,
                value_serde=assembly.default_value_serde,
                state_dir=self._directory.folder_of(task_id),
                metrics=self._metrics,
            ),
            partition_of=default_partition,
        )
        changelogs = {each.topic for each in subtopology.changelogs.values() if not each.is_source}
        definitions = [self._definition(name) for name in subtopology.nodes]
        core: list[TaskCore] = []
        task = Task(
            definitions,
            assembly.stores,
            settings,
            self._writer.collector(
                frozenset(changelogs), meter.produced, self._watch(core, task_id)
            ),
            self._global_stores,
        )
        core.append(task.core)
        return self._hosted(task_id, partitions, task, definitions, meter)

    def _watch(
        self, core: list[TaskCore], task_id: TaskId
    ) -> Callable[[Produced], DeliveryCallback] | None:
        """Asks the application's handler about records that cannot be sent, if there is one."""
        deliveries = self._writer.deliveries
        if not deliveries.asks:
            return None
        return lambda record: deliveries.watch(core[0], task_id, record)

    def wipe(self, task_id: TaskId) -> None:
        """Delete the local state of a task that is closed."""
        self._directory.delete_task(task_id)

    def _definition(self, name: str) -> Definition:
        """A node; a source without an extractor of its own gets the application's."""
        node = self._assembly.nodes[name]
        extractor = self._settings.timestamp_extractor
        if extractor is None or not isinstance(node, SourceDefinition):
            return node
        is_internal = any(topic in self._assembly.internal_topics for topic in node.topics)
        if node.timestamp_extractor is not None or is_internal:
            return node
        return node._replace(timestamp_extractor=extractor)

    def promoted(self, standby: HostedTask, partitions: frozenset[TopicPartition]) -> HostedTask:
        """A standby task as an active one, with its stores as they are."""
        task = self._hosted(
            standby.id, partitions, standby.task, standby.definitions, standby.meter
        )
        task.logs = standby.logs
        return task

    def _hosted(
        self,
        task_id: TaskId,
        partitions: frozenset[TopicPartition],
        task: Task,
        definitions: Sequence[Definition],
        meter: TaskMeter,
    ) -> HostedTask:
        return HostedTask(
            task_id,
            partitions,
            task,
            idle_ms=self._settings.max_task_idle_ms,
            buffered_max=self._settings.buffered_records_per_partition,
            definitions=definitions,
            meter=meter,
        )

    def offset_reset(self, topic: str) -> str | None:
        """The policy of the source that reads a topic, if it has one of its own."""
        for node in self._assembly.nodes.values():
            if isinstance(node, SourceDefinition) and (
                topic in node.topics
                or (node.pattern is not None and node.pattern.fullmatch(topic) is not None)
            ):
                return node.offset_reset
        # Repartition topics are read from their beginning, whatever the application's policy is.
        return "earliest"


class _Names(dict[str, str]):
    """The names of topics on the cluster, each worked out once: sinks ask for every record."""

    def __init__(self, assembly: Assembly, application_id: str) -> None:
        super().__init__(
            (topic, topic_name(assembly, application_id, topic))
            for topic in (*assembly.internal_topics, *_sink_topics(assembly))
        )
        self._assembly = assembly
        self._application_id = application_id

    def __missing__(self, topic: str) -> str:
        # Names that a topic chooser makes up are not kept: there may be any number of them.
        return topic_name(self._assembly, self._application_id, topic)


def _sink_topics(assembly: Assembly) -> list[str]:
    return [
        node.topic
        for node in assembly.nodes.values()
        if isinstance(node, SinkDefinition) and isinstance(node.topic, str)
    ]
