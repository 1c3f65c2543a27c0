"""Decides what is to be started, stopped, adopted or removed, and when a failure is tried again.

Events in, effects out; after every event the whole is compared with what is wanted, so that no
single event can be missed. What always holds:

- Start is decided only while no query of the pipeline can live: after its Stop has been reported,
  or after the server that ran it has gone.
- One effect per pipeline is under way at a time; its report is the next event about it.
- A failure is tried again after 1 s, 2 s, ... up to a minute, and for ever; a fault of the
  definition is not, until the definition changes or a restart is asked for (another revision).

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
from moldau.pipelines.machine.records import Desired, ErrorRecord, State, StatusRecord

__all__ = ["Reconciler"]

BACKOFF: Final = ExponentialBackoff(1_000, 60_000)
# Whoever ran this long has recovered: its next failure counts as the first.
WELL_AFTER_MS: Final = 60_000
STARTS_AT_ONCE_MAX: Final = 2


@dataclass(slots=True)
class _Run:
    """What is known of a pipeline's queries."""

    status: StatusRecord
    #: An effect is under way.
    busy: bool = False
    #: Remembered from the registry, not yet looked at.
    remembered: bool = False
    #: What it becomes once it has stopped.
    after_stop: State = State.STOPPED


@dataclass(slots=True)
class _Server:
    known: bool = False
    id: str | None = None
    busy: bool = False
    attempts: int = 0
    retry_at_ms: int = 0
    since_ms: int = 0
    #: It ran once in this life of the loop, so it is kept.
    seen: bool = False


class Reconciler:
    """Brings what runs to what is wanted; owned by one thread."""

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
        self._server = _Server()
        self._ending = False
        self.server_error: ErrorRecord | None = None
        self._runs = {
            name: _Run(status, remembered=status.session_id is not None)
            for name, status in (remembered or {}).items()
        }

    def status(self, name: str) -> StatusRecord | None:
        """What is known of a pipeline; None of one that is not."""
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
    def server_attempts(self) -> int:
        """How often in a row the server could not be started, or died."""
        return self._server.attempts

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
                self._server.busy = False
                self._server_failed(now_ms)
                self.server_error = event.error
            case Started():
                yield from self._on_started(event, now_ms)
            case StartFailed():
                yield from self._on_start_failed(event, now_ms)
            case Reattached():
                yield from self._on_reattached(event, now_ms)
            case Ended():
                yield from self._on_ended(event, now_ms)
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
        server = self._server
        server.known = True
        if event.server_id is not None:
            server.busy = False
            server.seen = True
            self.server_error = None
        if event.server_id == server.id:
            return
        if server.id is not None and event.server_id is None:
            self._server_failed(now_ms)
        server.id = event.server_id
        server.since_ms = now_ms
        for name, run in self._runs.items():
            if self._is_lost(run):
                self._lose(run, now_ms)
                yield Report(name)

    def _is_lost(self, run: _Run) -> bool:
        """Whether it ran on a server that is not there any more."""
        if run.busy or run.status.server_id == self._server.id:
            return False
        return run.status.session_id is not None

    def _lose(self, run: _Run, now_ms: int) -> None:
        """It is no failure of the pipeline's: it goes on as soon as a server is there."""
        after = run.after_stop if run.status.state is State.STOPPING else State.RESTARTING
        retry_at_ms = now_ms if after is State.RESTARTING else None
        self._set(run, after, now_ms, retry_at_ms=retry_at_ms, keep=False)
        run.remembered = False

    def _server_failed(self, now_ms: int) -> None:
        self._server.attempts += 1
        delay_ms = self._backoff.delay_ms(self._server.attempts, self._random)
        self._server.retry_at_ms = now_ms + delay_ms

    def _server_wanted(self) -> bool:
        if self._keep_server or self._server.seen:
            return True
        return any(
            spec.desired is Desired.RUNNING and self._may_run(name, spec)
            for name, spec in self._specs.items()
        )

    def _may_run(self, name: str, spec: Spec) -> bool:
        """Whether a server would be of use to it: not after it failed for good or finished."""
        run = self._runs.get(name)
        if run is None or run.status.revision != spec.revision:
            return True
        return run.status.state not in (State.FAILED, State.FINISHED)

    # Reports about pipelines.

    def _on_started(self, event: Started, now_ms: int) -> Iterator[Effect]:
        run = self._runs[event.name]
        run.busy = False
        run.status = replace(
            run.status, queries=event.queries, connector=event.connector, progress=None
        )
        if self._is_lost(run):
            self._lose(run, now_ms)
        else:
            self._set(run, State.RUNNING, now_ms)
        yield Report(event.name)

    def _on_start_failed(self, event: StartFailed, now_ms: int) -> Iterator[Effect]:
        run = self._runs[event.name]
        run.busy = False
        if self._is_lost(run):
            self._lose(run, now_ms)
        else:
            attempts = run.status.attempts + 1
            run.status = replace(run.status, last_error=event.error, attempts=attempts)
            # Part of it may run, or be about to: what comes next comes after its session is closed.
            run.after_stop = State.FAILED if event.lasting else State.RESTARTING
            self._set(run, State.STOPPING, now_ms)
        yield Report(event.name)

    def _on_reattached(self, event: Reattached, now_ms: int) -> Iterator[Effect]:
        run = self._runs[event.name]
        run.busy = run.remembered = False
        if not event.found:
            # Some of it may still run: its session is closed before it is started anew.
            run.after_stop = State.RESTARTING
            self._set(run, State.STOPPING, now_ms)
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
                message="its query was stopped by somebody else", at_ms=now_ms
            )
            run.status = replace(run.status, attempts=run.status.attempts + 1, last_error=error)
        self._set(run, State.STOPPING, now_ms)
        yield Report(event.name)

    def _on_stopped(self, event: Stopped, now_ms: int) -> Iterator[Effect]:
        run = self._runs[event.name]
        run.busy = run.remembered = False
        server_runs = self._server.id is not None and self._server.id == run.status.server_id
        if event.error is not None and server_runs:
            # Nothing else may be done while it could still run; it is asked again.
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
            self._set(run, State.RESTARTING, now_ms, retry_at_ms=now_ms + delay_ms, keep=False)
        else:
            retry_at_ms = now_ms if run.after_stop is State.RESTARTING else None
            self._set(run, run.after_stop, now_ms, retry_at_ms=retry_at_ms, keep=False)
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
            if running and now_ms - run.status.since_ms >= self._well_after_ms:
                run.status = replace(run.status, attempts=0)
        server = self._server
        if server.id is not None and now_ms - server.since_ms >= self._well_after_ms:
            server.attempts = 0

    def _set(
        self,
        run: _Run,
        state: State,
        now_ms: int,
        *,
        retry_at_ms: int | None = None,
        keep: bool = True,
    ) -> None:
        """`keep` says whether its session and queries may still be there."""
        since_ms = run.status.since_ms if run.status.state is state else now_ms
        run.status = replace(run.status, state=state, since_ms=since_ms, retry_at_ms=retry_at_ms)
        if not keep:
            run.status = replace(run.status, session_id=None, server_id=None, queries=())

    # What is wanted against what is.

    def _reconcile(self, now_ms: int) -> Iterator[Effect]:
        for name in sorted({*self._specs, *self._runs}):
            yield from self._reconcile_one(name, now_ms)
        yield from self._reconcile_server(now_ms)
        if self._ending and not any(
            run.busy or run.status.session_id is not None for run in self._runs.values()
        ):
            yield Exit()

    def _reconcile_server(self, now_ms: int) -> Iterator[Effect]:
        server = self._server
        if self._ending or server.busy or not server.known or server.id is not None:
            return
        if self._server_wanted() and now_ms >= server.retry_at_ms:
            server.busy = True
            yield StartServer()

    def _reconcile_one(self, name: str, now_ms: int) -> Iterator[Effect]:
        spec = self._specs.get(name)
        run = self._runs.get(name)
        if run is not None and (run.busy or not self._server.known):
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
        if self._is_lost(run):
            self._lose(run, now_ms)
            yield Report(name)
            yield from self._reconcile_one(name, now_ms)
        elif run.status.state is State.RUNNING:
            run.busy = True
            yield Reattach(name)
        else:
            # The loop ended between writing a session down and knowing its queries: they may be
            # about to start. Closing the session ends them whenever they do.
            run.remembered = False
            run.after_stop = State.RESTARTING
            yield from self._stop(name, run, now_ms)

    def _stop(self, name: str, run: _Run, now_ms: int) -> Iterator[Effect]:
        if now_ms < (run.status.retry_at_ms or 0):
            return
        run.busy = True
        if run.status.state is not State.STOPPING:
            self._set(run, State.STOPPING, now_ms)
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
        if self._server.id is None or now_ms < (run.status.retry_at_ms or 0):
            return
        if self._starts_under_way() >= self._starts_at_once_max:
            return
        run.busy = True
        session_id = self._new_session_id()
        run.status = replace(
            run.status,
            revision=spec.revision,
            server_id=self._server.id,
            session_id=session_id,
            queries=(),
        )
        self._set(run, State.STARTING, now_ms)
        yield Report(name)
        yield Start(name, spec.revision, self._server.id, session_id)

    def _starts_under_way(self) -> int:
        return sum(run.busy and run.status.state is State.STARTING for run in self._runs.values())

    def _want_stopped(
        self, name: str, run: _Run | None, spec: Spec | None, now_ms: int
    ) -> Iterator[Effect]:
        if spec is None:
            # Somebody else removed its record: there is nothing left to report about.
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
            self._set(run, State.STOPPED, now_ms, keep=False)
            yield Report(name)
        if spec.desired is Desired.DELETED and now_ms >= (run.status.retry_at_ms or 0):
            run.busy = True
            yield Remove(name, spec.delete_checkpoint)
