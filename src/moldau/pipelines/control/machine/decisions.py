"""Decides what is to be started, stopped, adopted or removed, and when a failure is retried.

Events in, effects out; after every event all pipelines are compared with what is wanted, so that
no single event can be missed. Invariants:

- Start is decided only while no query of the pipeline can run: after its Stop has been reported,
  or after the server that ran it has ended.
- One effect per pipeline is under way at a time; its report is the next event about it.
- A failure is retried after 1 s, 2 s, ... up to a minute, for ever; an error in the definition is
  not, until the definition changes or a restart is requested (another revision).

A pipeline: starting -> running -> stopping -> stopped | finished | restarting -> starting, or
failed. After a crash of the loop it is first reattached (running) or stopped (half started).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, assert_never

from moldau.peers.machine.backoff import ExponentialBackoff, RandomSource
from moldau.pipelines.control.machine.events import (
    Effect,
    Ended,
    Event,
    Exit,
    InstancesSeen,
    Reattach,
    Reattached,
    Remove,
    Removed,
    Report,
    ServerSeen,
    ServerStartFailed,
    Shutdown,
    Spec,
    SpecsRead,
    Start,
    Started,
    StartFailed,
    StartServer,
    Stop,
    Stopped,
    Tick,
)
from moldau.pipelines.control.machine.server import ServerReconciler
from moldau.pipelines.machine.records import Desired, ErrorRecord, State, StatusRecord

__all__ = ["Reconciler"]

BACKOFF: Final = ExponentialBackoff(1_000, 60_000)
# What has run this long has recovered: its next failure counts as the first.
WELL_AFTER_MS: Final = 60_000
# An application whose instances all run has come further than a query that has started: what ends
# it then is the death of workers. Spark gives it up after four of one task, however long apart.
INSTANCES_WELL_AFTER_MS: Final = 10_000
STARTS_AT_ONCE_MAX: Final = 2


@dataclass(slots=True)
class _Run:
    """The state of a pipeline's queries."""

    status: StatusRecord
    #: An effect is under way.
    busy: bool = False
    #: Read from the registry, not yet looked at.
    remembered: bool = False
    #: An instance of the hosted application is failing.
    ailing: bool = False
    #: All instances of the hosted application run.
    whole: bool = False
    #: How often instances were started again, as far as that is counted; None: not looked at yet.
    instance_restarts: int | None = None
    #: What it becomes once it has stopped.
    after_stop: State = State.STOPPED

    def set(
        self, state: State, now_ms: int, *, retry_at_ms: int | None = None, keep: bool = True
    ) -> None:
        """`keep` says whether its session and queries may still exist."""
        since_ms = self.status.since_ms if self.status.state is state else now_ms
        self.status = replace(self.status, state=state, since_ms=since_ms, retry_at_ms=retry_at_ms)
        if not keep:
            self.status = replace(self.status, session_id=None, server_id=None, queries=())

    @property
    def is_task(self) -> bool:
        """Whether it runs without Spark."""
        return self.status.engine is not None

    def is_lost(self, server_id: str | None) -> bool:
        """Whether it ran on another server than the one that runs now."""
        if self.busy or self.status.server_id == server_id or self.is_task:
            return False
        return self.status.session_id is not None

    def lose(self, now_ms: int) -> None:
        """Its server has ended. The pipeline has not failed: it continues on the next server."""
        after = self.after_stop if self.status.state is State.STOPPING else State.RESTARTING
        retry_at_ms = now_ms if after is State.RESTARTING else None
        self.set(after, now_ms, retry_at_ms=retry_at_ms, keep=False)
        self.remembered = False


class Reconciler:
    """Makes what runs match what is wanted; owned by one thread."""

    def __init__(
        self,
        random: RandomSource,
        new_session_id: Callable[[], str],
        *,
        remembered: Mapping[str, StatusRecord] | None = None,
        backoff: ExponentialBackoff = BACKOFF,
        well_after_ms: int = WELL_AFTER_MS,
        starts_at_once_max: int = STARTS_AT_ONCE_MAX,
    ) -> None:
        self._random = random
        self._new_session_id = new_session_id
        self._backoff = backoff
        self._well_after_ms = well_after_ms
        self._starts_at_once_max = starts_at_once_max
        self._specs: Mapping[str, Spec] = {}
        self._keep_server = False
        self._server = ServerReconciler(random, backoff, well_after_ms=well_after_ms)
        self._ending = False
        self._runs = {
            name: _Run(status, remembered=status.session_id is not None)
            for name, status in (remembered or {}).items()
        }

    def status(self, name: str) -> StatusRecord | None:
        """The status of a pipeline; None if it is not known."""
        run = self._runs.get(name)
        return None if run is None else run.status

    def running(self) -> list[str]:
        """The pipelines whose queries are to be watched."""
        return sorted(
            name
            for name, run in self._runs.items()
            if run.status.state is State.RUNNING and not run.busy and not run.remembered
        )

    @property
    def server_error(self) -> ErrorRecord | None:
        """Why the server could not be started, until it runs."""
        return self._server.error

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        effects = list(self._take(event, now_ms))
        effects += self._reconcile(now_ms)
        return effects

    def _take(self, event: Event, now_ms: int) -> Iterator[Effect]:
        match event:
            case SpecsRead():
                self._specs = event.specs
                self._keep_server = event.keep_server
            case ServerSeen():
                yield from self._on_server_seen(event, now_ms)
            case ServerStartFailed():
                self._server.on_start_failed(event, now_ms)
            case Started():
                yield from self._on_started(event, now_ms)
            case StartFailed():
                yield from self._on_start_failed(event, now_ms)
            case Reattached():
                yield from self._on_reattached(event, now_ms)
            case Ended():
                yield from self._on_ended(event, now_ms)
            case InstancesSeen():
                yield from self._on_instances_seen(event)
            case Stopped():
                yield from self._on_stopped(event, now_ms)
            case Removed():
                yield from self._on_removed(event, now_ms)
            case Shutdown():
                self._ending = True
            case Tick():
                self._on_tick(now_ms)
            case _:
                assert_never(event)

    # The server.

    def _on_server_seen(self, event: ServerSeen, now_ms: int) -> Iterator[Effect]:
        if not self._server.on_seen(event, now_ms):
            return
        for name, run in self._runs.items():
            if run.is_lost(self._server.id):
                run.lose(now_ms)
                yield Report(name)

    def _server_wanted(self) -> bool:
        if self._keep_server or self._server.has_run:
            return True
        return any(
            spec.desired is Desired.RUNNING and spec.engine is None and self._may_run(name, spec)
            for name, spec in self._specs.items()
        )

    def _may_run(self, name: str, spec: Spec) -> bool:
        """Whether it needs a server: not after it has failed for good or finished."""
        run = self._runs.get(name)
        if run is None or run.status.revision != spec.revision:
            return True
        return run.status.state not in (State.FAILED, State.FINISHED)

    # Reports about pipelines.

    def _on_started(self, event: Started, now_ms: int) -> Iterator[Effect]:
        run = self._runs[event.name]
        run.busy = run.ailing = run.whole = False
        run.instance_restarts = 0
        run.status = replace(
            run.status, queries=event.queries, connector=event.connector, progress=None
        )
        if run.is_lost(self._server.id):
            run.lose(now_ms)
        else:
            run.set(State.RUNNING, now_ms)
        yield Report(event.name)

    def _on_start_failed(self, event: StartFailed, now_ms: int) -> Iterator[Effect]:
        run = self._runs[event.name]
        run.busy = False
        if run.is_lost(self._server.id):
            run.lose(now_ms)
        else:
            attempts = run.status.attempts + 1
            run.status = replace(run.status, last_error=event.error, attempts=attempts)
            # Part of it may run, or be about to: what comes next comes after its session is closed.
            run.after_stop = State.FAILED if event.lasting else State.RESTARTING
            run.set(State.STOPPING, now_ms)
        yield Report(event.name)

    def _on_reattached(self, event: Reattached, now_ms: int) -> Iterator[Effect]:
        run = self._runs[event.name]
        run.busy = run.remembered = False
        if not event.found:
            # Some of it may still run: its session is closed before it is started again.
            run.after_stop = State.RESTARTING
            run.set(State.STOPPING, now_ms)
        yield Report(event.name)

    def _on_ended(self, event: Ended, now_ms: int) -> Iterator[Effect]:
        run = self._runs.get(event.name)
        if run is None or run.busy or run.status.state is not State.RUNNING:
            return
        spec = self._specs.get(event.name)
        if event.error is None and spec is not None and spec.finite:
            run.after_stop = State.FINISHED
            run.status = replace(run.status, attempts=0, last_error=None)
        else:
            run.after_stop = State.RESTARTING
            error = event.error or ErrorRecord(
                message="its query was stopped by another program", at_ms=now_ms
            )
            run.status = replace(run.status, attempts=run.status.attempts + 1, last_error=error)
        run.set(State.STOPPING, now_ms)
        yield Report(event.name)

    def _on_instances_seen(self, event: InstancesSeen) -> Iterator[Effect]:
        """An instance that fails is started again where it runs: the application is not."""
        run = self._runs.get(event.name)
        if run is None or run.busy or run.status.state is not State.RUNNING:
            return
        was_ailing, run.ailing = run.ailing, event.failures > 0
        run.whole = event.all_run
        if run.ailing:
            run.status = replace(run.status, attempts=event.failures, last_error=event.error)
        elif was_ailing:
            run.status = replace(run.status, attempts=0)
        new = 0 if run.instance_restarts is None else event.restarts - run.instance_restarts
        run.instance_restarts = event.restarts
        if new > 0:
            run.status = replace(run.status, restarts=run.status.restarts + new)
        if run.ailing != was_ailing or new > 0:
            yield Report(event.name)

    def _on_stopped(self, event: Stopped, now_ms: int) -> Iterator[Effect]:
        run = self._runs[event.name]
        run.busy = run.remembered = False
        server_runs = self._server.id is not None and self._server.id == run.status.server_id
        if event.error is not None and (server_runs or run.is_task):
            # Nothing else may be done while it could still run: the stop is retried.
            attempts = run.status.attempts + 1
            delay_ms = self._backoff.delay_ms(attempts, self._random)
            run.status = replace(
                run.status,
                attempts=attempts,
                last_error=event.error,
                retry_at_ms=now_ms + delay_ms,
            )
        elif run.after_stop is State.RESTARTING and run.status.attempts:
            delay_ms = self._backoff.delay_ms(run.status.attempts, self._random)
            run.set(State.RESTARTING, now_ms, retry_at_ms=now_ms + delay_ms, keep=False)
        else:
            retry_at_ms = now_ms if run.after_stop is State.RESTARTING else None
            run.set(run.after_stop, now_ms, retry_at_ms=retry_at_ms, keep=False)
        yield Report(event.name)

    def _on_removed(self, event: Removed, now_ms: int) -> Iterator[Effect]:
        run = self._runs[event.name]
        run.busy = False
        if event.error is None:
            del self._runs[event.name]
            return
        attempts = run.status.attempts + 1
        run.status = replace(
            run.status,
            attempts=attempts,
            last_error=event.error,
            retry_at_ms=now_ms + self._backoff.delay_ms(attempts, self._random),
        )
        yield Report(event.name)

    def _on_tick(self, now_ms: int) -> None:
        for run in self._runs.values():
            running = run.status.state is State.RUNNING and not run.remembered
            well_after_ms = self._well_after_ms
            if run.whole:
                well_after_ms = min(well_after_ms, INSTANCES_WELL_AFTER_MS)
            if running and not run.ailing and now_ms - run.status.since_ms >= well_after_ms:
                run.status = replace(run.status, attempts=0)
        self._server.on_tick(now_ms)

    # Comparing what is wanted with what runs.

    def _reconcile(self, now_ms: int) -> Iterator[Effect]:
        for name in sorted({*self._specs, *self._runs}):
            yield from self._reconcile_one(name, now_ms)
        if not self._ending and self._server.start(now_ms, wanted=self._server_wanted()):
            yield StartServer()
        if self._ending and not any(
            run.busy or run.status.session_id is not None for run in self._runs.values()
        ):
            yield Exit()

    def _reconcile_one(self, name: str, now_ms: int) -> Iterator[Effect]:
        spec = self._specs.get(name)
        run = self._runs.get(name)
        if run is not None and (run.busy or not self._server.is_known):
            return
        if run is not None and run.remembered:
            yield from self._look_at_remembered(name, run, now_ms)
        elif run is not None and run.status.state in (State.STOPPING, State.STARTING):
            yield from self._stop(name, run, now_ms)
        elif spec is not None and spec.desired is Desired.RUNNING and not self._ending:
            yield from self._want_running(name, run, spec, now_ms)
        elif run is not None and run.status.state is State.RUNNING:
            run.after_stop = State.STOPPED
            yield from self._stop(name, run, now_ms)
        elif not self._ending:
            yield from self._want_stopped(name, run, spec, now_ms)

    def _look_at_remembered(self, name: str, run: _Run, now_ms: int) -> Iterator[Effect]:
        if run.is_lost(self._server.id):
            run.lose(now_ms)
            yield Report(name)
            yield from self._reconcile_one(name, now_ms)
        elif run.status.state is State.RUNNING:
            run.busy = True
            yield Reattach(name)
        else:
            # The loop ended after it wrote the session to the registry and before it knew the
            # queries: they may be about to start. Closing the session ends them whenever they do.
            run.remembered = False
            run.after_stop = State.RESTARTING
            yield from self._stop(name, run, now_ms)

    def _stop(self, name: str, run: _Run, now_ms: int) -> Iterator[Effect]:
        if now_ms < (run.status.retry_at_ms or 0):
            return
        run.busy = True
        if run.status.state is not State.STOPPING:
            run.set(State.STOPPING, now_ms)
            yield Report(name)
        yield Stop(name)

    def _want_running(
        self, name: str, run: _Run | None, spec: Spec, now_ms: int
    ) -> Iterator[Effect]:
        changed = run is None or run.status.revision != spec.revision
        if run is not None and run.status.state is State.RUNNING:
            if changed:
                run.after_stop = State.RESTARTING
                run.status = replace(run.status, attempts=0)
                yield from self._stop(name, run, now_ms)
            return
        if run is None:
            run = self._runs[name] = _Run(StatusRecord(name=name, state=State.STOPPED))
        elif not changed and run.status.state in (State.FAILED, State.FINISHED):
            return
        if changed:
            run.status = replace(run.status, attempts=0, retry_at_ms=None)
        if now_ms < (run.status.retry_at_ms or 0):
            return
        server_id = self._server.id if spec.engine is None else None
        if server_id is None and spec.engine is None:
            return
        if self._starts_under_way() >= self._starts_at_once_max:
            return
        run.busy = True
        session_id = self._new_session_id()
        again = run.status.state is State.RESTARTING
        run.status = replace(
            run.status,
            restarts=0 if changed else run.status.restarts + again,
            revision=spec.revision,
            server_id=server_id,
            session_id=session_id,
            queries=(),
            engine=spec.engine,
        )
        run.set(State.STARTING, now_ms)
        yield Report(name)
        yield Start(name, spec.revision, server_id or "", session_id)

    def _starts_under_way(self) -> int:
        return sum(run.busy and run.status.state is State.STARTING for run in self._runs.values())

    def _want_stopped(
        self, name: str, run: _Run | None, spec: Spec | None, now_ms: int
    ) -> Iterator[Effect]:
        if spec is None:
            # Its record was removed by another program: there is nothing left to report about.
            self._runs.pop(name, None)
            return
        if run is None:
            run = self._runs[name] = _Run(
                StatusRecord(
                    name=name, state=State.STOPPED, revision=spec.revision, since_ms=now_ms
                )
            )
            if spec.desired is Desired.STOPPED:
                yield Report(name)
        if run.status.state is not State.STOPPED:
            run.status = replace(run.status, attempts=0)
            run.set(State.STOPPED, now_ms, keep=False)
            yield Report(name)
        if spec.desired is Desired.DELETED and now_ms >= (run.status.retry_at_ms or 0):
            run.busy = True
            yield Remove(name, spec.delete_checkpoint)
