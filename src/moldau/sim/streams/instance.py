"""One process of an application: the real stream thread and clients on a simulated machine.

It has the parts of `streams/hosts/instance.py` that decide nothing about results left out: global
stores, several threads, queries, listeners.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from moldau.client.environment import ENVIRONMENT, ClientEnvironment
from moldau.client.errors import KafkaError
from moldau.client.metrics import Metrics
from moldau.sim.cluster import Cluster
from moldau.sim.machine import SimClock, where
from moldau.sim.network import Dialler
from moldau.sim.process import Process
from moldau.sim.streams.application import APPLICATION, topology
from moldau.sim.streams.state import SimStates
from moldau.sim.threads import SimLoopThread, SimThread, current_thread
from moldau.sim.world import Invariant
from moldau.streams.errors import StreamsError
from moldau.streams.hosts.administration import Administration
from moldau.streams.hosts.internal_topics import ensure_topics
from moldau.streams.hosts.planning import plan_of
from moldau.streams.hosts.restoring import RestoreListener, StandbyUpdateListener
from moldau.streams.hosts.settings import streams_settings
from moldau.streams.hosts.stream_thread import StreamThread
from moldau.streams.hosts.task_factory import TaskFactory
from moldau.streams.hosts.thread_metrics import ThreadMetrics
from moldau.streams.hosts.writing import Writer
from moldau.streams.machine.lifecycle import ThreadState, UncaughtExceptionResponse
from moldau.streams.machine.placement import Placed
from moldau.streams.machine.processor_metrics import ProcessorMetrics
from moldau.streams.stores._cache import RecordCache


class SimInstance:
    """`stream_thread.ThreadHost` in one simulated process."""

    is_identity_lasting = True
    shutdown_requested = False
    is_paused = False
    restore_listener: RestoreListener | None = None
    standby_listener: StandbyUpdateListener | None = None

    def __init__(
        self,
        cluster: Cluster,
        process: Process,
        host: str,
        process_id: str,
        states: SimStates,
        settings: Mapping[str, Any],
        *,
        random: Random,
        note: Callable[[str], None],
    ) -> None:
        self.process = process
        self.process_id = process_id
        self._cluster = cluster
        self._states = states
        self._note = note
        addresses = [f"{name}:{port}" for name, port in cluster.addresses]
        self.settings = streams_settings({**settings, "bootstrap.servers": addresses}, {})
        self._topology = topology()
        self._topology.set_default_serdes(key="string", value="string")
        self.plan = plan_of(self._topology.assembly, APPLICATION)
        self._admin: Administration | None = None
        self._stream_thread: StreamThread | None = None
        self.state = ThreadState.CREATED
        loop = cluster.loop
        environment = ClientEnvironment(
            clock=lambda: SimClock(cluster.world),
            random=lambda: random,
            connect=Dialler(cluster.net, host),
            thread=lambda name: SimLoopThread(loop),
            sleep=lambda seconds: current_thread().sleep(seconds),
        )
        context = process.context()
        context.run(ENVIRONMENT.set, environment)
        self._context: contextvars.Context = context
        self._thread = SimThread(loop, process, self._run, context)
        self._thread.on_end = self._on_end

    # Its life, in the simulated thread.

    def _run(self) -> None:
        self._admin = Administration(self.settings.admin(f"{APPLICATION}-admin"))
        try:
            ensure_topics(self._admin, self.plan, self.settings)
            thread = self._stream_thread = StreamThread(self, f"{APPLICATION}-StreamThread-1", 1)
            thread.run()
        except (KafkaError, StreamsError) as error:
            # The nodes were away for too long; who watches over the process starts it again.
            self._note(f"{self.process.name} gives up: {type(error).__name__}")
        finally:
            self._admin.close()

    def _on_end(self) -> None:
        error = self._thread.error
        if error is not None:
            self._cluster.report(
                Invariant.NO_SURPRISE,
                f"{self.process.name} ends with {error!r} at {where(error)}",
            )

    @property
    def ended(self) -> bool:
        return self._thread.ended

    def stop(self) -> None:
        """On the loop: ask it to commit, to leave and to end."""
        thread = self._stream_thread
        if thread is None:
            self.process.die()
        else:
            self._context.copy().run(thread.stop)

    # What the stream thread sees.

    @property
    def admin(self) -> Administration:
        if self._admin is None:
            raise StreamsError("the instance has not started")
        return self._admin

    def factory(self, writer: Writer, metrics: Callable[[], ProcessorMetrics]) -> TaskFactory:
        bytes_max = self.settings.cache_max_bytes
        return TaskFactory(
            self._topology.assembly,
            self.plan,
            self.settings,
            writer,
            {},
            self._states,
            RecordCache(bytes_max) if bytes_max else None,
            metrics,
        )

    def thread_metrics(self, name: str, state: Callable[[], str]) -> ThreadMetrics:
        return ThreadMetrics(Metrics(), name, 0)

    def on_thread_state(self, thread: StreamThread, state: ThreadState) -> None:
        self.state = state
        self._note(f"{self.process.name} {state.name}")

    def on_thread_error(
        self, thread: StreamThread, error: BaseException
    ) -> UncaughtExceptionResponse:
        if not isinstance(error, KafkaError | StreamsError):
            self._cluster.report(
                Invariant.NO_SURPRISE,
                f"{self.process.name} is stopped by {error!r} at {where(error)}",
            )
        self._note(f"{self.process.name} is stopped by {type(error).__name__}: {error}")
        return UncaughtExceptionResponse.SHUTDOWN_CLIENT

    def replace(self, thread: StreamThread) -> None:
        """Never asked for."""

    def on_placed(self, thread: StreamThread, placed: Placed) -> None:
        """Queries only."""

    def refresh_topics(self, *, certain: bool) -> None:
        """The application reads no topics by a pattern, and nobody deletes them."""
