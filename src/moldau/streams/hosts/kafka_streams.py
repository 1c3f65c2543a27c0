"""`KafkaStreams`: runs a topology against a cluster, in threads of this process."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from moldau.client.metrics import KafkaMetric, MetricName
from moldau.collecting import collecting_rarely
from moldau.streams.errors import StreamsError
from moldau.streams.hosts.instance import Instance, UncaughtExceptionHandler
from moldau.streams.hosts.restoring import RestoreListener, StandbyUpdateListener
from moldau.streams.hosts.settings import StreamsSettings, streams_settings
from moldau.streams.hosts.stream_thread import StreamThread
from moldau.streams.machine.lifecycle import NOT_STARTED, State, StateListener
from moldau.streams.serdes import SerdeLike
from moldau.streams.topology.topology import Topology

if TYPE_CHECKING:
    from moldau.streams.hosts.queries import (
        KeyQueryMetadata,
        LagInfo,
        LocalStore,
        Queries,
        StreamsMetadata,
    )
    from moldau.streams.hosts.thread_metadata import ThreadMetadata
    from moldau.streams.machine.definitions import Partitioner
    from moldau.streams.machine.store_queries import StateQueryRequest, StateQueryResult


class ClientInstanceIds(NamedTuple):
    """The ids of an instance's clients, those of threads by `client.id`."""

    admin: UUID
    consumers: dict[str, UUID]
    producers: dict[str, UUID]


class KafkaStreams:
    """Runs a topology as one instance of an application.

    Settings have Kafka's names, in a mapping (`"num.stream.threads"`) or as keyword arguments
    (`num_stream_threads`). Instances with the same `application.id` share the work.

    KafkaStreams(topology, application_id="word-count", bootstrap_servers="127.0.0.1:9092").run()
    """

    def __init__(
        self, topology: Topology, config: Mapping[str, Any] | None = None, **settings: Any
    ) -> None:
        self.instance = Instance(topology, streams_settings(config, settings))
        self._signalled = False

    @property
    def settings(self) -> StreamsSettings:
        """The settings, checked."""
        return self.instance.settings

    # Listeners and handlers: before `start`.

    def set_state_listener(self, listener: StateListener | None) -> None:
        """Call `listener(new, old)` at every change of the state."""
        self._require_created("Can only set StateListener before calling start()")
        self.instance.state_listener = listener

    def set_global_state_restore_listener(self, listener: RestoreListener | None) -> None:
        """Call the methods of a `RestoreListener` while stores are restored."""
        self._require_created("Can only set GlobalStateRestoreListener before calling start()")
        self.instance.restore_listener = listener

    def set_standby_update_listener(self, listener: StandbyUpdateListener | None) -> None:
        """Call the methods of a `StandbyUpdateListener` while copies of stores are kept."""
        self._require_created("Can only set StandbyUpdateListener before calling start()")
        self.instance.standby_listener = listener

    def set_uncaught_exception_handler(self, handler: UncaughtExceptionHandler) -> None:
        """Ask `handler(error)` what to do when a thread stops by an error."""
        self._require_created("Can only set UncaughtExceptionHandler before calling start()")
        self.instance.on_uncaught = handler

    def _require_created(self, message: str) -> None:
        if self.state is not State.CREATED:
            raise StreamsError(f"{message}. Current state is: {self.state.name}")

    # The life of the application.

    @property
    def state(self) -> State:
        """Where the application is: `State.RUNNING` when all its tasks are processed."""
        return self.instance.state

    @property
    def error(self) -> BaseException | None:
        """What stopped the application, in the states PENDING_ERROR and ERROR."""
        return self.instance.error

    def start(self) -> None:
        """Create internal topics, fill global stores, and start the threads."""
        if self.state is not State.CREATED:
            raise StreamsError(
                "The client is either already started or already stopped, cannot re-start"
            )
        self.instance.start()

    def run(self) -> None:
        """Start, and run until SIGINT, SIGTERM or `close`; raises what stops the application."""
        with collecting_rarely(), _signals(self._on_signal):
            self.start()
            self.wait()
            self.close()
        if self.error is not None:
            raise self.error

    def _on_signal(self) -> None:
        with self.instance.changed:
            self._signalled = True
            self.instance.changed.notify_all()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the application has stopped; whether it has."""
        with self.instance.changed:
            return self.instance.changed.wait_for(
                lambda: self._signalled or self.state.has_completed_shutdown, timeout
            )

    def wait_for(self, state: State, timeout: float | None = None) -> bool:
        """Wait for a state; whether it was reached before `timeout` seconds or the end."""
        with self.instance.changed:
            self.instance.changed.wait_for(
                lambda: self.state is state or self.state.has_completed_shutdown, timeout
            )
            return self.state is state

    def close(self, timeout: float | None = None, *, leave_group: bool = True) -> bool:
        """Commit, close all tasks and leave the group; whether that was done within `timeout`.

        Without `leave_group` the group keeps this instance's tasks for it, until the session
        timeout.
        """
        if timeout is not None and timeout < 0:
            raise ValueError("Timeout can't be negative.")
        if self.state in (State.PENDING_ERROR, State.ERROR):
            return self.instance.wait_for_end(timeout)
        return self.instance.finish(
            State.PENDING_SHUTDOWN, State.NOT_RUNNING, timeout, leave_group=leave_group
        )

    def pause(self) -> None:
        """Stop processing until `resume`; this instance keeps its tasks."""
        self.instance.is_paused = True

    def resume(self) -> None:
        """Go on processing."""
        self.instance.is_paused = False

    @property
    def is_paused(self) -> bool:
        return self.instance.is_paused

    def clean_up(self) -> None:
        """Delete the local state of this instance: it is restored at the next start."""
        if self.state.is_running_or_rebalancing:
            raise StreamsError("Cannot clean up while running.")
        self.instance.directory.clean_up()

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

    # Threads.

    @property
    def threads(self) -> list[StreamThread]:
        """The threads that are alive."""
        return self.instance.threads

    def add_stream_thread(self) -> str | None:
        """Add a thread to a running application; its name."""
        if not self.state.is_running_or_rebalancing:
            return None
        return self.instance.add_thread().name

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

    def metadata_for_local_threads(self) -> list[ThreadMetadata]:
        """The threads of this instance and their tasks, as they are now."""
        admin = f"{self.instance.client_id}-admin"
        return [thread.metadata(admin) for thread in self.threads]

    def client_instance_ids(self, timeout: float) -> ClientInstanceIds:
        """The ids under which the cluster knows the metrics of this instance's clients."""
        if timeout < 0:
            raise ValueError("The timeout cannot be negative.")
        if self.state is State.CREATED:
            raise StreamsError(f"{NOT_STARTED}.")
        if not self.state.is_running_or_rebalancing:
            raise StreamsError(f"KafkaStreams has been stopped ({self.state.name}).")
        consumers, producers = {}, {}
        for thread in self.threads:
            consumer, producer = thread.client_instance_ids(timeout)
            consumers[f"{thread.name}-consumer"] = consumer
            producers[f"{thread.name}-producer"] = producer
        admin = self.instance.admin.client_instance_id(timeout)
        return ClientInstanceIds(admin, consumers, producers)

    def metrics(self) -> Mapping[MetricName, KafkaMetric]:
        """The metrics of the application and its threads, by Kafka's names."""
        return self.instance.metrics.metrics()

    def svg(self) -> str:
        """A picture of the topology with the records per second of this instance, as of now."""
        return self.instance.picture()

    def live_topology(self) -> dict[str, Any]:
        """The topology as text, and what each node of this instance processes, for JSON.

        >>> print(streams.live_topology()["nodes"]["KSTREAM-SINK-0000000003"]["rate"])
        """
        return {
            "application": self.settings.application_id,
            "topology": self.instance.description(),
            "nodes": {
                name: {"rate": each.rate, "records": each.records}
                for name, each in self.instance.node_rates().items()
            },
        }

    # Queries. Their modules are imported by the first one: most applications answer none.

    @cached_property
    def queries(self) -> Queries:
        """Reads the stores of this instance."""
        from moldau.streams.hosts.queries import Queries

        return Queries(self.instance)

    def store(
        self,
        name: str,
        *,
        stale: bool = False,
        partitions: Collection[int] | None = None,
        headers: bool = False,
    ) -> LocalStore:
        """The partitions of a store that are in this instance: streams.store("counts").get("a").

        `stale` also reads tasks that are being restored, and standby tasks; `partitions` are those
        that are wanted, if not all; `headers` shows also the headers of a store that has them.
        """
        return self.queries.store(name, stale=stale, partitions=partitions, headers=headers)

    def active_partitions(self, store: str) -> dict[str, frozenset[int]]:
        """The partitions of a store that each instance has, by `application.server`."""
        return self.queries.active_partitions(store)

    def query(self, request: StateQueryRequest) -> StateQueryResult:
        """Ask the partitions of a store that are in this instance (KIP-796).

        >>> request = StateQueryRequest(store="counts", query=KeyQuery("hello"))
        >>> print(streams.query(request).only_partition_result)
        """
        from moldau.streams.hosts.store_queries import run_query

        return run_query(self.queries, request)

    def query_metadata_for_key(
        self,
        store: str,
        key: Any,
        key_serde: SerdeLike = "string",
        *,
        partitioner: Partitioner | None = None,
    ) -> KeyQueryMetadata:
        """Which instance has a key, by `application.server`.

        `partitioner` is that of the store's input, if it is not the default; it gets `None` as the
        value.
        """
        return self.queries.metadata_for_key(store, key, key_serde, partitioner)

    def streams_metadata_for_store(self, store: str) -> list[StreamsMetadata]:
        """The instances that have a partition of a store."""
        return self.queries.metadata_for_store(store)

    def metadata_for_all_streams_clients(self) -> list[StreamsMetadata]:
        """All instances that have an `application.server`."""
        return self.queries.all_metadata()

    def all_local_store_partition_lags(self) -> dict[str, dict[int, LagInfo]]:
        """How far each local store is behind its changelog, by store and partition."""
        return self.queries.lags()


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
