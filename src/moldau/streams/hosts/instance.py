"""One running instance of an application: its clients, threads, stores and state."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import moldau
from moldau.client.metrics import Metrics
from moldau.client.topics import TopicPartition
from moldau.streams.errors import StreamsError, TopologyError
from moldau.streams.hosts.administration import Administration
from moldau.streams.hosts.global_stores import GlobalStores
from moldau.streams.hosts.internal_topics import ensure_topics
from moldau.streams.hosts.planning import check_names, plan_of
from moldau.streams.hosts.restoring import RestoreListener, StandbyUpdateListener
from moldau.streams.hosts.settings import StreamsSettings
from moldau.streams.hosts.state_directory import StateDirectory
from moldau.streams.hosts.stream_thread import StreamThread
from moldau.streams.hosts.streams_group import prefers_streams_group
from moldau.streams.hosts.task_factory import TaskFactory
from moldau.streams.hosts.task_metrics import NODE_GROUP, NodeRate
from moldau.streams.hosts.thread_metrics import ThreadMetrics, add_client_metrics
from moldau.streams.hosts.writing import Writer
from moldau.streams.machine.lifecycle import (
    Lifecycle,
    State,
    StateListener,
    ThreadState,
    UncaughtExceptionResponse,
)
from moldau.streams.machine.placement import Placed
from moldau.streams.machine.processor_metrics import ProcessorMetrics
from moldau.streams.stores._cache import RecordCache
from moldau.streams.topology.topology import Topology

_log = logging.getLogger(__name__)

UncaughtExceptionHandler = Callable[[BaseException], UncaughtExceptionResponse]


class Instance:
    """See the module. What `StreamThread` and `Queries` see of the application."""

    def __init__(self, topology: Topology, settings: StreamsSettings) -> None:
        self.settings = settings
        self._topology = topology
        values = settings.values
        topology.set_default_serdes(
            key=values["default.key.serde"], value=values["default.value.serde"]
        )
        if values["ensure.explicit.internal.resource.naming"]:
            check_names(topology.assembly)
        self.plan = plan_of(topology.assembly, settings.application_id)
        if not self.plan.subtopologies and not self.plan.global_topics:
            raise TopologyError(
                "Topology has no stream threads and no global threads, must subscribe to at least "
                "one source topic or global table."
            )
        on_disk = values["default.dsl.store"] != "in_memory"
        self.directory = StateDirectory(settings.state_dir, on_disk=on_disk)
        self.metrics = Metrics()
        self.state_listener: StateListener | None = None
        self.restore_listener: RestoreListener | None = None
        self.standby_listener: StandbyUpdateListener | None = None
        self.on_uncaught: UncaughtExceptionHandler = lambda error: (
            UncaughtExceptionResponse.SHUTDOWN_CLIENT
        )
        self.client_id = ""
        self.error: BaseException | None = None
        self.shutdown_requested = False
        self.is_paused = False
        self._failed_count = 0
        self._lock = threading.RLock()
        self.changed = threading.Condition(self._lock)
        self._lifecycle = Lifecycle()
        self._threads: list[StreamThread] = []
        self._global: GlobalStores | None = None
        self._admin: Administration | None = None
        self._placed: dict[str, Placed] = {}
        self._counts: dict[str, int] = {}

    # Start and end.

    @property
    def state(self) -> State:
        return self._lifecycle.state

    def start(self) -> None:
        """Create internal topics, fill global stores, and start the threads."""
        self._change(self._lifecycle.enter(State.REBALANCING))
        try:
            self._open()
        except BaseException as error:
            self.error = error
            self.finish(State.PENDING_ERROR, State.ERROR, None, leave_group=True)
            raise
        for _ in range(self.settings.num_stream_threads):
            self.add_thread()

    def _open(self) -> None:
        self.directory.open()
        application_id = self.settings.application_id
        self.client_id = self.settings.client_id or f"{application_id}-{self.process_id}"
        add_client_metrics(
            self.metrics,
            self._facts(),
            client_id=self.client_id,
            tags={
                "client-state": {"application-id": application_id, "process-id": self.process_id},
                "recording-level": {"process-id": self.process_id},
            },
        )
        self._admin = Administration(self.settings.admin(f"{self.client_id}-admin"))
        if self.settings.streams_group is None:
            chosen = prefers_streams_group(self._admin, self.plan, self.settings)
            self.settings = self.settings.replace(streams_group=chosen)
        self._counts = ensure_topics(self._admin, self.plan, self.settings)
        self._global = GlobalStores(
            self._topology.assembly, self.settings, self.client_id, self.metrics, self._fail
        )
        self._global.start()

    def _facts(self) -> dict[str, tuple[str, Callable[[], Any]]]:
        return {
            "version": ("version of Moldau", lambda: moldau.__version__),
            "commit-id": ("commit of Moldau", lambda: "unknown"),
            "application-id": ("id of the application", lambda: self.settings.application_id),
            "topology-description": ("the topology", self._topology.describe),
            "state": ("state of the application", lambda: self.state.name),
            "client-state": ("state of the application", lambda: self.state.name),
            "recording-level": (
                "which metrics are recorded",
                lambda: self.settings.values["metrics.recording.level"],
            ),
            "alive-stream-threads": ("threads that run", lambda: float(len(self.threads))),
            "failed-stream-threads": ("threads that failed", lambda: float(self._failed_count)),
        }

    def add_thread(self) -> StreamThread:
        with self._lock:
            used = {thread.number for thread in self._threads}
            number = next(n for n in range(1, len(used) + 2) if n not in used)
            thread = StreamThread(self, f"{self.client_id}-StreamThread-{number}", number)
            self._threads.append(thread)
            self._lifecycle.threads[thread.name] = thread.state
        thread.start()
        return thread

    @property
    def threads(self) -> list[StreamThread]:
        """The threads that are alive."""
        with self._lock:
            return list(self._threads)

    def finish(
        self, pending: State, final: State, timeout: float | None, *, leave_group: bool
    ) -> bool:
        """Stop everything once; others who ask wait for the end."""
        with self._lock:
            change = self._lifecycle.enter(pending)
        if change is None:
            return self.wait_for_end(timeout)
        self._change(change)
        deadline = None if timeout is None else time.monotonic() + timeout
        threads = self.threads
        for thread in threads:
            thread.stop(leave=leave_group)
        done = True
        for thread in threads:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            done = thread.join(left) and done
        if not done:
            return False
        if self._global is not None:
            self._global.close()
        if self._admin is not None:
            self._admin.close()
        self.directory.close()
        self.metrics.close()
        with self._lock:
            change = self._lifecycle.enter(final)
        self._change(change)
        return True

    def wait_for_end(self, timeout: float | None) -> bool:
        with self.changed:
            return self.changed.wait_for(lambda: self.state.has_completed_shutdown, timeout)

    def _change(self, change: tuple[State, State] | None) -> None:
        if change is None:
            return
        new, old = change
        _log.info("%s: from %s to %s", self.settings.application_id, old.name, new.name)
        with self.changed:
            self.changed.notify_all()
        listener = self.state_listener
        if listener is not None:
            listener(new, old)

    # For the threads.

    @property
    def admin(self) -> Administration:
        if self._admin is None:
            raise StreamsError("the application is not started")
        return self._admin

    @property
    def process_id(self) -> str:
        """The identity of this instance: the same after a restart in the same state directory."""
        return self.directory.process_id

    @property
    def is_identity_lasting(self) -> bool:
        return self.directory.is_identity_lasting

    def factory(self, writer: Writer, metrics: Callable[[], ProcessorMetrics]) -> TaskFactory:
        stores = {} if self._global is None else self._global.stores
        bytes_max = self.settings.cache_max_bytes // max(1, self.settings.num_stream_threads)
        return TaskFactory(
            self._topology.assembly,
            self.plan,
            self.settings,
            writer,
            stores,
            self.directory,
            RecordCache(bytes_max) if bytes_max else None,
            metrics,
        )

    def thread_metrics(self, name: str, state: Callable[[], str]) -> ThreadMetrics:
        return ThreadMetrics(
            self.metrics,
            name,
            time.time_ns() // 1_000_000,
            process_id=self.process_id,
            state=state,
            is_debug=self.settings.is_debug,
        )

    def on_thread_state(self, thread: StreamThread, state: ThreadState) -> None:
        with self._lock:
            if state is ThreadState.DEAD and thread in self._threads:
                self._threads.remove(thread)
                self._placed.pop(thread.name, None)
                thread.metrics.close()
            change = self._lifecycle.on_thread(thread.name, state)
        self._change(change)

    def on_thread_error(
        self, thread: StreamThread, error: BaseException
    ) -> UncaughtExceptionResponse:
        """A thread stops by an error: what follows."""
        self._failed_count += 1
        response = self.on_uncaught(error)
        match response:
            case UncaughtExceptionResponse.REPLACE_THREAD:
                return response
            case UncaughtExceptionResponse.SHUTDOWN_APPLICATION:
                self.shutdown_requested = True
        self._fail(error)
        return response

    def replace(self, thread: StreamThread) -> None:
        """Start another thread for one that has ended."""
        if self.state.is_running_or_rebalancing:
            self.add_thread()

    def _fail(self, error: BaseException) -> None:
        self.error = error
        # Threads are joined, and this may be one of them.
        threading.Thread(
            target=self.finish,
            args=(State.PENDING_ERROR, State.ERROR, None),
            kwargs={"leave_group": True},
            name=f"{self.client_id}-shutdown",
        ).start()

    def on_placed(self, thread: StreamThread, placed: Placed) -> None:
        """The leader of the group has placed the tasks."""
        with self._lock:
            self._placed[thread.name] = placed
        if placed.shutdown and not self.shutdown_requested:
            self.shutdown_requested = True
            self._fail(StreamsError("another instance requested the shutdown of the application"))

    def refresh_topics(self, *, certain: bool) -> None:
        """A pattern may have found topics: the internal topics must fit them.

        Unless it is `certain` that the source topics exist, they are looked for: the leader of the
        group misses one, and what it knows can be older than the topic. Raises
        MissingSourceTopicError if one does not exist.
        """
        if not certain or any(each.patterns for each in self.plan.subtopologies):
            self._counts = ensure_topics(self.admin, self.plan, self.settings)

    def picture(self) -> str:
        """The topology with the rates of its nodes."""
        return self._topology.svg({name: each.rate for name, each in self.node_rates().items()})

    def description(self) -> str:
        """The topology as Kafka Streams prints it."""
        return self._topology.describe()

    def node_rates(self) -> dict[str, NodeRate]:
        """Of the tasks that this instance has now, by the name of a node."""
        found: dict[str, NodeRate] = {}
        for name, metric in self.metrics.metrics().items():
            if name.group != NODE_GROUP or name.name not in ("process-rate", "process-total"):
                continue
            node = name.tags["processor-node-id"]
            before = found.get(node, NodeRate(0.0, 0))
            if name.name == "process-rate":
                found[node] = before._replace(rate=before.rate + metric.value)
            else:
                found[node] = before._replace(records=before.records + int(metric.value))
        return found

    # For queries.

    @property
    def global_stores(self) -> Mapping[str, Any]:
        return {} if self._global is None else self._global.stores

    @property
    def partition_counts(self) -> Mapping[str, int]:
        """The partitions of all topics that the application uses."""
        return self._counts

    @property
    def placements(self) -> list[Placed]:
        """What the leader of the group gave each thread last."""
        with self._lock:
            return list(self._placed.values())

    def global_position(self, partition: TopicPartition) -> int:
        """The next offset that global stores read of a partition."""
        return 0 if self._global is None else self._global.position(partition)
