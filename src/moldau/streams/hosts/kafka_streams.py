"""`KafkaStreams`: runs a topology against a cluster, in threads of this process."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import moldau
from moldau.client import Admin
from moldau.client.metrics import KafkaMetric, MetricName, Metrics
from moldau.client.topics import TopicPartition
from moldau.streams.errors import StreamsError
from moldau.streams.hosts.global_stores import GlobalStores
from moldau.streams.hosts.internal_topics import ensure_topics
from moldau.streams.hosts.planning import plan_of
from moldau.streams.hosts.restoring import RestoreListener
from moldau.streams.hosts.settings import StreamsSettings
from moldau.streams.hosts.state_directory import StateDirectory
from moldau.streams.hosts.stream_thread import StreamThread
from moldau.streams.hosts.task_factory import TaskFactory
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
from moldau.streams.stores.cache import RecordCache
from moldau.streams.topology.topology import Topology

_log = logging.getLogger(__name__)


UncaughtExceptionHandler = Callable[[BaseException], UncaughtExceptionResponse]


class KafkaStreams:
    """Runs a topology as one instance of an application.

    Settings have Kafka's names, in a mapping (`"num.stream.threads"`) or as keyword arguments
    (`num_stream_threads`). Instances with the same `application.id` share the work.

    KafkaStreams(topology, application_id="word-count", bootstrap_servers="127.0.0.1:9092").run()
    """

    def __init__(
        self, topology: Topology, config: Mapping[str, Any] | None = None, **settings: Any
    ) -> None:
        self.settings = StreamsSettings.of(config, settings)
        self._topology = topology
        values = self.settings.values
        topology.set_default_serdes(
            key=values["default.key.serde"], value=values["default.value.serde"]
        )
        self.plan = plan_of(topology.assembly, self.settings.application_id)
        if not self.plan.subtopologies and not self.plan.global_topics:
            raise StreamsError("the topology has no source: it has nothing to read")
        self._directory = StateDirectory(
            self.settings.state_dir, on_disk=values["default.dsl.store"] != "in_memory"
        )
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._lifecycle = Lifecycle()
        self._threads: list[StreamThread] = []
        self._global: GlobalStores | None = None
        self._admin: Admin | None = None
        self._metrics = Metrics()
        self._state_listener: StateListener | None = None
        self.restore_listener: RestoreListener | None = None
        self._on_uncaught: UncaughtExceptionHandler = lambda error: (
            UncaughtExceptionResponse.SHUTDOWN_CLIENT
        )
        self._error: BaseException | None = None
        self._placed: dict[str, Placed] = {}
        self._counts: dict[str, int] = {}
        self.shutdown_requested = False
        self.is_paused = False
        self.client_id = ""

    # Listeners and handlers: before `start`.

    def set_state_listener(self, listener: StateListener | None) -> None:
        """Call `listener(new, old)` at every change of the state."""
        self._require_created("Can only set StateListener before calling start()")
        self._state_listener = listener

    def set_global_state_restore_listener(self, listener: RestoreListener | None) -> None:
        """Call the methods of a `RestoreListener` while stores are restored."""
        self._require_created("Can only set GlobalStateRestoreListener before calling start()")
        self.restore_listener = listener

    def set_uncaught_exception_handler(self, handler: UncaughtExceptionHandler) -> None:
        """Ask `handler(error)` what to do when a thread stops by an error."""
        self._require_created("Can only set UncaughtExceptionHandler before calling start()")
        self._on_uncaught = handler

    def _require_created(self, message: str) -> None:
        if self.state is not State.CREATED:
            raise StreamsError(f"{message}. Current state is: {self.state.name}")

    # The life of the application.

    @property
    def state(self) -> State:
        """Where the application is: `State.RUNNING` when all its tasks are processed."""
        return self._lifecycle.state

    @property
    def error(self) -> BaseException | None:
        """What stopped the application, in the states PENDING_ERROR and ERROR."""
        return self._error

    def start(self) -> None:
        """Create internal topics, fill global stores, and start the threads."""
        with self._lock:
            self._require_created("The client is either already started or already stopped")
            self._change(self._lifecycle.enter(State.REBALANCING))
        try:
            self._open()
        except BaseException as error:
            self._error = error
            self._finish(State.PENDING_ERROR, State.ERROR, None, leave_group=True)
            raise
        for _ in range(self.settings.num_stream_threads):
            self._add_thread()

    def _open(self) -> None:
        self._directory.open()
        application_id = self.settings.application_id
        self.client_id = self.settings.client_id or f"{application_id}-{self.process_id}"
        self._metrics.tags["client-id"] = self.client_id
        add_client_metrics(self._metrics, self._facts())
        self._admin = Admin(self.settings.admin(f"{self.client_id}-admin"))
        self._counts = ensure_topics(self._admin, self.plan, self.settings)
        self._global = GlobalStores(
            self._topology.assembly, self.settings, self.client_id, self._on_global_error
        )
        self._global.start()

    def _facts(self) -> dict[str, tuple[str, Callable[[], Any]]]:
        return {
            "version": ("version of Moldau", lambda: moldau.__version__),
            "commit-id": ("commit of Moldau", lambda: "unknown"),
            "application-id": ("id of the application", lambda: self.settings.application_id),
            "topology-description": ("the topology", self._topology.describe),
            "state": ("state of the application", lambda: self.state.name),
            "alive-stream-threads": ("threads that run", lambda: float(len(self.threads))),
            "failed-stream-threads": ("threads that failed", lambda: float(self._failed_count)),
        }

    _failed_count = 0

    def _add_thread(self) -> StreamThread:
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

    def add_stream_thread(self) -> str | None:
        """Add a thread to a running application; its name."""
        if not self.state.is_running_or_rebalancing:
            return None
        return self._add_thread().name

    def remove_stream_thread(self, timeout: float | None = None) -> str | None:
        """Stop one thread of a running application; its name, or `None` if there is none."""
        threads = [thread for thread in self.threads if not thread.is_current]
        if not self.state.is_running_or_rebalancing or not threads:
            return None
        thread = threads[-1]
        thread.stop()
        if not thread.join(timeout):
            raise StreamsError(f"{thread.name} did not stop within {timeout} s")
        return thread.name

    def run(self) -> None:
        """Start, and run until SIGINT, SIGTERM or `close`; raises what stops the application."""
        with _signals(self._on_signal):
            self.start()
            self.wait()
            self.close()
        if self._error is not None:
            raise self._error

    def _on_signal(self) -> None:
        with self._changed:
            self._signalled = True
            self._changed.notify_all()

    _signalled = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the application has stopped; whether it has."""
        with self._changed:
            return self._changed.wait_for(
                lambda: self._signalled or self.state.has_completed_shutdown, timeout
            )

    def wait_for(self, state: State, timeout: float | None = None) -> bool:
        """Wait for a state; whether it was reached before `timeout` seconds or the end."""
        with self._changed:
            self._changed.wait_for(
                lambda: self.state is state or self.state.has_completed_shutdown, timeout
            )
            return self.state is state

    def close(self, timeout: float | None = None, *, leave_group: bool = True) -> bool:
        """Commit, close all tasks and leave the group; whether that was done within `timeout`.

        Without `leave_group` the group keeps this instance's tasks for it, until the session
        timeout.
        """
        if self.state in (State.PENDING_ERROR, State.ERROR):
            return self._wait_for_end(timeout)
        return self._finish(
            State.PENDING_SHUTDOWN, State.NOT_RUNNING, timeout, leave_group=leave_group
        )

    def _wait_for_end(self, timeout: float | None) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self.state.has_completed_shutdown, timeout)

    def _finish(
        self, pending: State, final: State, timeout: float | None, *, leave_group: bool
    ) -> bool:
        """Stop everything once; others who ask wait for the end."""
        with self._lock:
            change = self._lifecycle.enter(pending)
        if change is None:
            return self._wait_for_end(timeout)
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
        self._directory.close()
        self._metrics.close()
        with self._lock:
            change = self._lifecycle.enter(final)
        self._change(change)
        return True

    def pause(self) -> None:
        """Stop processing until `resume`; this instance keeps its tasks."""
        self.is_paused = True

    def resume(self) -> None:
        """Go on processing."""
        self.is_paused = False

    def clean_up(self) -> None:
        """Delete the local state of this instance: it is restored at the next start."""
        if self.state.is_running_or_rebalancing:
            raise StreamsError("Cannot clean up while running.")
        self._directory.clean_up()

    def __enter__(self) -> KafkaStreams:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<KafkaStreams {self.settings.application_id}, {self.state.name}>"

    def _change(self, change: tuple[State, State] | None) -> None:
        if change is None:
            return
        new, old = change
        _log.info("%s: from %s to %s", self.settings.application_id, old.name, new.name)
        with self._changed:
            self._changed.notify_all()
        listener = self._state_listener
        if listener is not None:
            listener(new, old)

    # For the threads.

    @property
    def admin(self) -> Admin:
        if self._admin is None:
            raise StreamsError("the application is not started")
        return self._admin

    @property
    def process_id(self) -> str:
        """The identity of this instance: the same after a restart in the same state directory."""
        return self._directory.process_id

    @property
    def is_identity_lasting(self) -> bool:
        return self._directory.is_lasting

    def factory(self, writer: Writer) -> TaskFactory:
        stores = {} if self._global is None else self._global.stores
        bytes_max = self.settings.cache_max_bytes // max(1, self.settings.num_stream_threads)
        return TaskFactory(
            self._topology.assembly,
            self.plan,
            self.settings,
            writer,
            stores,
            self._directory.open_task,
            RecordCache(bytes_max) if bytes_max else None,
        )

    def thread_metrics(self, name: str) -> ThreadMetrics:
        return ThreadMetrics(self._metrics, name, time.time_ns() // 1_000_000)

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
        response = self._on_uncaught(error)
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
            self._add_thread()

    def _on_global_error(self, error: BaseException) -> None:
        self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._error = error
        # Threads are joined, and this may be one of them.
        threading.Thread(
            target=self._finish,
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

    def refresh_topics(self) -> None:
        """A pattern may have found topics: the internal topics must fit them."""
        if any(each.patterns for each in self.plan.subtopologies):
            self._counts = ensure_topics(self.admin, self.plan, self.settings)

    def global_position(self, partition: TopicPartition) -> int:
        """The next offset that global stores read of a partition."""
        return 0 if self._global is None else self._global.position(partition)

    def metrics(self) -> Mapping[MetricName, KafkaMetric]:
        """The metrics of the application and its threads, by Kafka's names."""
        return self._metrics.metrics()


@contextmanager
def _signals(on_signal: Callable[[], None]) -> Iterator[None]:
    """End by SIGINT and SIGTERM, where the main thread runs this."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: signal.signal(number, lambda *_: on_signal())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
