"""What a processor is given: `ProcessorContext`; and what it is: `Processor`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Protocol

from moldau.streams.errors import ProcessingError, StreamsError
from moldau.streams.machine.progress import Progress
from moldau.streams.records import Record, RecordContext


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
    stream_time_ms: int
    wall_clock_ms: int
    record_context: RecordContext
    config: dict[str, Any]
    dropped: int
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
    ) -> Cancellable: ...

    def request_commit(self) -> None: ...


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

    __slots__ = ("children", "context", "name", "process", "processor", "stores")

    context: ProcessorContext

    def __init__(self, name: str, processor: Processor, stores: Sequence[str]) -> None:
        self.name = name
        self.processor = processor
        self.process = processor.process
        self.children: list[Node] = []
        self.stores = frozenset(stores)


class ProcessorContext:
    """Lets a processor forward records, reach its stores, and schedule calls."""

    __slots__ = ("_children", "_node", "runtime")

    def __init__(self, node: Node, runtime: Runtime) -> None:
        self._node = node
        self._children = node.children
        self.runtime = runtime

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
        for node in children:
            try:
                node.process(record)
            except ProcessingError:
                raise
            except Exception as error:
                self.runtime.failed(node, record, error)

    def state_store(self, name: str) -> Any:
        """A store that is connected to this processor, or a global one: state_store("seen")."""
        if name not in self._node.stores and not self.runtime.is_global(name):
            raise StreamsError(
                f"Processor {self._node.name} has no access to StateStore {name} as the store is "
                f"not connected to the processor. If you add stores manually via "
                f"'add_state_store' make sure to connect the added store to the processor by "
                f"providing the processor name to 'add_state_store' or connect them via "
                f"'connect_processor_and_state_stores'. DSL users need to provide the store name "
                f"to 'process' or 'process_values'."
            )
        return self.runtime.store(name)

    def schedule(
        self, interval_ms: int, kind: PunctuationType, callback: Callable[[int], None]
    ) -> Cancellable:
        """Call back every `interval_ms` of stream time or of the wall clock.

        context.schedule(1000, PunctuationType.STREAM_TIME, self.on_second)
        """
        if interval_ms < 1:
            raise ValueError("The minimum supported scheduling interval is 1 millisecond.")
        return self.runtime.schedule(self, interval_ms, kind, callback)

    def commit(self) -> None:
        """Ask for a commit soon."""
        self.runtime.request_commit()

    @property
    def name(self) -> str:
        """The name of this processor's node."""
        return self._node.name

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
        return self.runtime.record_context

    def current_stream_time_ms(self) -> int:
        """The largest timestamp that the task has seen; -1 before the first record."""
        return self.runtime.stream_time_ms

    def current_system_time_ms(self) -> int:
        """The wall clock, as the host gives it."""
        return self.runtime.wall_clock_ms


class FixedKeyContext(ProcessorContext):
    """The context of `process_values`: keys must not change, or partitions would be wrong."""

    __slots__ = ("_key",)

    def at(self, key: Any) -> None:
        """Records that are forwarded from now on must have this key."""
        self._key = key

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        if record.key is not self._key and record.key != self._key:
            raise StreamsError(
                f"process_values in {self.name} changed the key {self._key!r} to {record.key!r}: "
                f"use process"
            )
        super().forward(record, child)


class FixedKeyAdapter(Processor):
    """Runs a processor whose records keep their keys."""

    __slots__ = ("_fixed", "_inner")

    def __init__(self, inner: Processor) -> None:
        self._inner = inner

    def init(self, context: ProcessorContext) -> None:
        self._fixed = FixedKeyContext(context._node, context.runtime)
        self._fixed.at(None)
        self._inner.init(self._fixed)

    def process(self, record: Record[Any, Any]) -> None:
        self._fixed.at(record.key)
        self._inner.process(record)

    def close(self) -> None:
        self._inner.close()
