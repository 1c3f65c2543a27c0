# cython: annotation_typing=False
"""The path of a record through a topology: from a source, over the nodes, to sinks.

The file is plain Python, and with `_nodes.pxd` beside it also the source of a compiled module with
the same names and results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, Protocol

from moldau.streams._records import (
    PartitionProgress,
    Produced,
    Record,
    RecordContext,
    TaskCore,
    new_record,
)
from moldau.streams._serdes import core_serde
from moldau.streams.errors import PassedOnError, StreamsError
from moldau.streams.machine.extractors import fail_on_invalid_timestamp, wall_clock_timestamp
from moldau.streams.machine.processor_metrics import ProcessorMetrics
from moldau.streams.machine.progress import Progress
from moldau.streams.machine.surroundings import Surroundings


class PunctuationType(Enum):
    """Which time drives a punctuation."""

    STREAM_TIME = "stream_time"
    WALL_CLOCK_TIME = "wall_clock_time"


class Cancellable(Protocol):
    """A punctuation that can be stopped."""

    def cancel(self) -> None:
        """It never fires again."""


class Runtime(Protocol):
    """The task, as far as its processors see it."""

    application_id: str
    task_id: str
    #: What changes with every record.
    core: TaskCore
    config: dict[str, Any]
    #: How far the task has read, and what its processors keep with the committed offsets.
    progress: Progress
    #: What several processors of a task have in common, under a key of theirs.
    shared: dict[object, Any]

    def store(self, name: str) -> Any: ...

    def is_global(self, name: str) -> bool: ...

    def failed(self, node: Node, record: Record[Any, Any], error: Exception) -> None: ...

    def schedule(
        self,
        context: ProcessorContext,
        interval_ms: int,
        kind: PunctuationType,
        callback: Callable[[int], None],
        start_ms: int | None = None,
    ) -> Cancellable: ...

    def request_commit(self) -> None: ...

    @property
    def surroundings(self) -> Surroundings: ...


class Processor:
    """One step of a topology, written by hand.

    class Shout(Processor):
        def process(self, record):
            self.context.forward(record.with_value(record.value.upper()))
    """

    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        """Called once before the first record; get stores and schedule punctuations here."""
        self.context = context

    def process(self, record: Record[Any, Any]) -> None:
        """Called for each record."""
        raise NotImplementedError

    def close(self) -> None:
        """Called once after the last record."""


class Node:
    """A processor in its place: its name, and where its records go."""

    __slots__ = ("children", "context", "count", "name", "processor", "stores")

    def __init__(self, name: str, processor: Processor, stores: Sequence[str]) -> None:
        self.name = name
        self.processor = processor
        self.children: list[Node] = []
        self.stores = frozenset(stores)
        self.context: Any = None
        #: Records that it has been given.
        self.count = 0


class ProcessorContext:
    """Lets a processor forward records, reach its stores, and schedule calls."""

    __slots__ = ("_children", "_core", "node", "runtime")

    def __init__(self, node: Node, runtime: Runtime) -> None:
        self.node = node
        self._children = node.children
        self.runtime = runtime
        self._core = runtime.core

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        """Pass a record to all children, or to the one that is named: forward(record, "sink")."""
        children = self._children
        if child is not None:
            children = [node for node in children if node.name == child]
            if not children:
                raise StreamsError(
                    f"Unknown downstream node: {child} either does not exist or is not connected "
                    f"to this processor."
                )
        core = self._core
        before = core.record_context
        if record.timestamp != before.timestamp or record.headers is not before.headers:
            core.record_context = before.at(record.timestamp, record.headers)
        position, count = 0, len(children)
        while position < count:
            node = children[position]
            try:
                # One `try` for all children, because each costs as much as a simple step.
                while True:
                    node.count += 1
                    node.processor.process(record)
                    position += 1
                    if position == count:
                        break
                    node = children[position]
            except PassedOnError:
                core.record_context = before
                raise
            except Exception as error:
                self._failed(node, record, error, before)
                position += 1
        core.record_context = before

    def _failed(
        self, node: Node, record: Record[Any, Any], error: Exception, before: RecordContext
    ) -> None:
        try:
            self.runtime.failed(node, record, error)
        except BaseException:
            self._core.record_context = before
            raise

    def state_store(self, name: str) -> Any:
        """A store that is connected to this processor, or a global one: state_store("seen")."""
        if name not in self.node.stores and not self.runtime.is_global(name):
            raise StreamsError(
                f"Processor {self.node.name} has no access to StateStore {name} as the store is "
                f"not connected to the processor. If you add stores manually via "
                f"'add_state_store' make sure to connect the added store to the processor by "
                f"providing the processor name to 'add_state_store' or connect them via "
                f"'connect_processor_and_state_stores'. DSL users need to provide the store name "
                f"to 'process' or 'process_values'."
            )
        return self.runtime.store(name)

    def schedule(
        self,
        interval_ms: int,
        kind: PunctuationType,
        callback: Callable[[int], None],
        *,
        start: int | None = None,
    ) -> Cancellable:
        """Call back every `interval_ms` of stream time or of the wall clock.

        context.schedule(1000, PunctuationType.STREAM_TIME, self.on_second)

        `start` is the time of the first call (KIP-1146); if it has passed, the next ones stay on
        its grid: every full hour with `start=0` and an interval of an hour.
        """
        if interval_ms < 1:
            raise ValueError("The minimum supported scheduling interval is 1 millisecond.")
        if start is not None and start < 0:
            raise ValueError(f"The minimum supported start time is 0: {start}")
        return self.runtime.schedule(self, interval_ms, kind, callback, start)

    @property
    def app_configs(self) -> dict[str, Any]:
        """The application's settings: context.app_configs["application.id"]."""
        return dict(self.runtime.config)

    def app_configs_with_prefix(self, prefix: str) -> dict[str, Any]:
        """Settings whose name starts with `prefix`, without it: app_configs_with_prefix("my.")."""
        found = self.runtime.config
        return {name[len(prefix) :]: found[name] for name in found if name.startswith(prefix)}

    def commit(self) -> None:
        """Ask for a commit soon."""
        self.runtime.request_commit()

    @property
    def name(self) -> str:
        """The name of this processor's node."""
        return self.node.name

    @property
    def application_id(self) -> str:
        """The application's id."""
        return self.runtime.application_id

    @property
    def task_id(self) -> str:
        """Sub-topology and partition: "0_0"."""
        return self.runtime.task_id

    @property
    def record_context(self) -> RecordContext:
        """Topic, partition and offset of the input record that is being processed."""
        return self._core.record_context

    def current_stream_time_ms(self) -> int:
        """The largest timestamp that the task has seen; -1 before the first record."""
        return self._core.stream_time_ms

    def current_system_time_ms(self) -> int:
        """The wall clock, as the host gives it."""
        return self._core.wall_clock_ms

    @property
    def key_serde(self) -> Any:
        """The application's default for keys."""
        return self.runtime.surroundings.key_serde

    @property
    def value_serde(self) -> Any:
        """The application's default for values."""
        return self.runtime.surroundings.value_serde

    @property
    def state_dir(self) -> Any:
        """The folder of the task's local state, a `Path`; `None` where there is none."""
        return self.runtime.surroundings.state_dir

    @property
    def metrics(self) -> ProcessorMetrics:
        """Metrics, also of one's own: context.metrics.add_rate_total_sensor("shop", "a", "sale").

        The tasks of a thread share a sensor that they all add.
        """
        return self.runtime.surroundings.metrics()

    def drop(self) -> None:
        """Count a record that is dropped."""
        self._core.dropped += 1


class SinkNode(Processor):
    """Writes records to a topic, or to the topic that is chosen for each."""

    __slots__ = (
        "_chooser",
        "_collect",
        "_keys",
        "_names",
        "_partitioner",
        "_runtime",
        "_topic",
        "_values",
    )

    def __init__(
        self,
        topic: Any,
        serdes: tuple[Any, Any],
        partitioner: Any,
        runtime: Any,
        collect: Callable[[Produced], None],
        names: Callable[[str], str],
    ) -> None:
        self._chooser = None if isinstance(topic, str) else topic
        self._topic = names(topic) if isinstance(topic, str) else ""
        self._keys = core_serde(serdes[0])
        self._values = core_serde(serdes[1])
        self._partitioner = partitioner
        self._runtime = runtime
        self._collect = collect
        self._names = names

    def process(self, record: Record[Any, Any]) -> None:
        topic = self._topic
        if self._chooser is not None:
            where = self._runtime.core.record_context
            chosen = self._chooser(record.key, record.value, where)
            if chosen is None:
                raise ValueError("Topic cannot be null.")
            topic = self._names(chosen)
        try:
            key = self._keys.serialize(topic, record.key)
            value = self._values.serialize(topic, record.value)
        except Exception as error:
            if self._runtime.not_written(topic, record, error):
                raise
            return
        partition = None
        if self._partitioner is not None:
            count = self._runtime.partition_count(topic)
            partition = self._partitioner(topic, record.key, record.value, count)
        self._collect(Produced(topic, key, value, record.timestamp, record.headers, partition))


class SourceNode:
    """Reads a topic: turns bytes into records, and starts each on its way."""

    __slots__ = (
        "_by_wall_clock",
        "_context",
        "_core",
        "_extractor",
        "_keys",
        "_partition",
        "_progress",
        "_runtime",
        "_topic",
        "_values",
    )

    def __init__(
        self,
        topic: str,
        serdes: tuple[Any, Any],
        extractor: Any,
        context: ProcessorContext,
        runtime: Any,
    ) -> None:
        self._topic = topic
        self._keys = core_serde(serdes[0])
        self._values = core_serde(serdes[1])
        self._extractor = extractor
        self._by_wall_clock = extractor is wall_clock_timestamp
        self._context = context
        self._runtime = runtime
        self._core = runtime.core
        self._partition = -1
        self._progress: PartitionProgress | None = None

    def read(
        self,
        partition: int,
        offset: int,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Any,
    ) -> None:
        """Process one input record to the end."""
        if self._progress is None or partition != self._partition:
            self._partition = partition
            self._progress = self._runtime.progress.partition(self._topic, partition)
        progress, core = self._progress, self._core
        progress.position = offset + 1
        try:
            typed_key = self._keys.deserialize(self._topic, key)
            typed_value = self._values.deserialize(self._topic, value)
        except Exception as error:
            where = RecordContext(self._topic, partition, offset, timestamp, headers)
            self._runtime.not_read(where, key, value, error)
            return
        if self._by_wall_clock:
            timestamp = core.wall_clock_ms
        elif self._extractor is not None or timestamp < 0:
            where = RecordContext(self._topic, partition, offset, timestamp, headers)
            extractor = self._extractor or fail_on_invalid_timestamp
            timestamp = extractor(where, typed_value, progress.time)
        if timestamp > progress.time:
            progress.time = timestamp
        if timestamp < 0:
            core.dropped += 1
            return
        core.record_context = RecordContext(self._topic, partition, offset, timestamp, headers)
        core.raw_key = key
        core.raw_value = value
        if timestamp > core.stream_time_ms:
            core.stream_time_ms = timestamp
        self._context.forward(new_record(typed_key, typed_value, timestamp, headers))

    def read_all(self, partition: int, records: Iterable[Any]) -> None:
        """Process records in their order: objects with offset, key, value, timestamp, headers."""
        for record in records:
            self.read(
                partition,
                record.offset,
                record.key,
                record.value,
                record.timestamp,
                record.headers,
            )
