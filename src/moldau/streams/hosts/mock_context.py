"""`MockProcessorContext`: a test calls a processor by hand, and sees what it asked its context for.

No topology runs: what is forwarded goes nowhere, and punctuations fire when the test calls them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moldau.streams.errors import StreamsError
from moldau.streams.machine.context import Cancellable, Node, Processor, ProcessorContext
from moldau.streams.machine.context import PunctuationType as Kind
from moldau.streams.machine.processor_metrics import ProcessorMetrics
from moldau.streams.machine.progress import Progress
from moldau.streams.machine.surroundings import Surroundings
from moldau.streams.machine.task_stores import TaskStores
from moldau.streams.records import Headers, Record, RecordContext, TaskCore
from moldau.streams.serdes import BYTES, SerdeLike, serde
from moldau.streams.stores._tables import ChangelogWriter
from moldau.streams.stores.base import StateStore, StoreBuilder


@dataclass(frozen=True, slots=True)
class CapturedForward:
    """A record that a processor has forwarded; `child` is `None` for all children."""

    record: Record[Any, Any]
    child: str | None = None


@dataclass(slots=True)
class CapturedPunctuator:
    """A call that a processor has asked for: a test makes it with `punctuator.callback(time)`."""

    interval_ms: int
    kind: Kind
    callback: Callable[[int], None]
    start_ms: int | None = None
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


class MockProcessorContext(ProcessorContext):
    """The context of a processor that a test calls by hand.

    context = MockProcessorContext()
    context.add_state_store(key_value_store("seen", key_serde="string", value_serde="long"))
    processor.init(context)
    processor.process(Record("a", 1, timestamp=0))
    assert context.forwarded() == [CapturedForward(Record("a", 2, timestamp=0))]
    """

    def __init__(
        self,
        *,
        application_id: str = "dummy-mock-app-id",
        task_id: str = "0_0",
        config: Mapping[str, Any] | None = None,
        default_key_serde: SerdeLike | None = None,
        default_value_serde: SerdeLike | None = None,
        state_dir: Path | None = None,
    ) -> None:
        surroundings = Surroundings(
            key_serde=serde(default_key_serde) or BYTES,
            value_serde=serde(default_value_serde) or BYTES,
            state_dir=state_dir,
            metrics=self._own_metrics,
        )
        made = _Runtime(
            application_id,
            task_id,
            {"application.id": application_id, **(config or {})},
            surroundings,
        )
        super().__init__(Node("mock", Processor(), ()), made)
        self._made = made
        self._metrics: ProcessorMetrics | None = None
        self._forwarded: list[CapturedForward] = []

    # What the test sets.

    def add_state_store(self, store: StoreBuilder | StateStore) -> None:
        """A store that the processor may ask for, in memory and without a changelog."""
        self._made.add(store)

    def set_record_metadata(
        self, topic: str, partition: int, offset: int, *, timestamp: int = 0, headers: Headers = ()
    ) -> None:
        """Where the records come from that the processor gets now."""
        context = RecordContext(topic, partition, offset, timestamp, headers)
        self._made.core.record_context = context

    def set_current_stream_time_ms(self, milliseconds: int) -> None:
        """Stream time; before, `current_stream_time_ms` raises an error."""
        self._made.core.stream_time_ms = milliseconds
        self._made.has_stream_time = True

    def set_current_system_time_ms(self, milliseconds: int) -> None:
        """The wall clock; before, `current_system_time_ms` raises an error."""
        self._made.core.wall_clock_ms = milliseconds
        self._made.has_system_time = True

    # What the test looks at.

    def forwarded(self, child: str | None = None) -> list[CapturedForward]:
        """What was forwarded since the last reset; for a child, what that child got."""
        return [each for each in self._forwarded if child is None or each.child in (None, child)]

    def reset_forwards(self) -> None:
        """Forget what was forwarded."""
        self._forwarded.clear()

    def scheduled_punctuators(self) -> list[CapturedPunctuator]:
        """The calls that the processor has asked for, in its order."""
        return list(self._made.punctuators)

    @property
    def committed(self) -> bool:
        """Whether the processor has asked for a commit since the last reset."""
        return self._made.commit_requested

    def reset_commit(self) -> None:
        """Forget that a commit was asked for."""
        self._made.commit_requested = False

    @property
    def dropped_records(self) -> int:
        """How many records the processor has dropped."""
        return self._made.core.dropped

    # What the processor calls.

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        self._forwarded.append(CapturedForward(record, child))

    def state_store(self, name: str) -> Any:
        return self._made.store(name)

    def current_stream_time_ms(self) -> int:
        if not self._made.has_stream_time:
            raise StreamsError("Stream time must be set before use via set_current_stream_time_ms.")
        return super().current_stream_time_ms()

    def current_system_time_ms(self) -> int:
        if not self._made.has_system_time:
            raise StreamsError("System time must be set before use via set_current_system_time_ms.")
        return super().current_system_time_ms()

    def _own_metrics(self) -> ProcessorMetrics:
        # A test that takes no metrics does not import the client's.
        from moldau.client.metrics import Metrics
        from moldau.streams.hosts.own_metrics import OwnMetrics

        if self._metrics is None:
            thread_id = threading.current_thread().name
            self._metrics = OwnMetrics(Metrics(), thread_id, is_debug=True)
        return self._metrics


@dataclass
class _Runtime:
    """The task, as far as a processor alone sees it."""

    application_id: str
    task_id: str
    config: dict[str, Any]
    surroundings: Surroundings
    core: TaskCore = field(default_factory=lambda: TaskCore(0))
    progress: Progress = field(default_factory=Progress)
    shared: dict[object, Any] = field(default_factory=dict)
    punctuators: list[CapturedPunctuator] = field(default_factory=list)
    commit_requested: bool = False
    has_stream_time: bool = False
    has_system_time: bool = False

    def __post_init__(self) -> None:
        self._stores = TaskStores(None, False, None, self.core)

    def add(self, store: StoreBuilder | StateStore) -> None:
        if isinstance(store, StoreBuilder):
            self._stores.create(store, ChangelogWriter(), self._drop, None, store.name)
        else:
            self._stores.by_name[store.name] = store

    def _drop(self) -> None:
        self.core.dropped += 1

    def store(self, name: str) -> Any:
        return self._stores.by_name.get(name)

    def is_global(self, name: str) -> bool:
        return False

    def failed(self, node: Node, record: Record[Any, Any], error: Exception) -> None:
        raise error

    def schedule(
        self,
        context: ProcessorContext,
        interval_ms: int,
        kind: Kind,
        callback: Callable[[int], None],
        start_ms: int | None = None,
    ) -> Cancellable:
        made = CapturedPunctuator(interval_ms, kind, callback, start_ms)
        self.punctuators.append(made)
        return made

    def request_commit(self) -> None:
        self.commit_requested = True
