"""The control loop: one thread that owns the decisions, and workers that act.

Each round reads what users want, looks at the server and at the queries, and carries out what
`decisions.py` says. Whatever can take long (starting, stopping, asking Spark) is done by a worker,
whose report is an event of a later round; so one pipeline that hangs keeps none of the others from
being looked after.

Invariants: a session's id is written to the registry before anything is started in it; where that
cannot be written nothing is started.
"""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Final

from moldau.client.errors import KafkaError
from moldau.invariant import InvariantError
from moldau.pipelines.control.folder import ControlFolder
from moldau.pipelines.control.logs import PipelineLogs
from moldau.pipelines.control.machine import events
from moldau.pipelines.control.machine.backlog import Backlog
from moldau.pipelines.control.machine.decisions import Reconciler
from moldau.pipelines.control.machine.events import Effect, Event, Spec
from moldau.pipelines.control.machine.progress import activity_of, line_of, progress_record
from moldau.pipelines.control.queries import Look
from moldau.pipelines.control.workers import ServerWatch, Workers
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.machine.records import (
    ErrorRecord,
    PipelineRecord,
    ProgressRecord,
    State,
    StatusRecord,
)
from moldau.pipelines.registry import Registry
from moldau.pipelines.tasks.machine.choosing import TASK, engine_of
from moldau.spark.hosting.machine.beats import Summary

__all__ = ["PipelineWatch", "Published", "Rounds"]

# Reports of workers begin a round at once; this is how long a user's change waits at most. Rounds
# without news are most of what an idle deployment's loop costs.
_ROUND_SECONDS: Final = 0.5
_LOOK_SECONDS: Final = 1.0
_SHOW_SECONDS: Final = 0.9
# Progress goes to the registry and the logs at these rates; the heartbeat's file has it at once.
_PROGRESS_WRITE_SECONDS: Final = 30.0
_PROGRESS_LOG_SECONDS: Final = 10.0
_WRITE_RETRY_SECONDS: Final = 5.0
_REGISTRY_RETRY_SECONDS: Final = 2.0
_SHUTDOWN_SECONDS_MAX: Final = 60.0
_WORKERS: Final = 4
_LOGGED_CHARACTERS_MAX: Final = 500

log = logging.getLogger(__name__)


@dataclass(slots=True)
class PipelineWatch:
    """What the loop remembers of one pipeline beside what is decided about it; times are those of
    `time.monotonic`."""

    looked_s: float = -math.inf
    is_looked_at: bool = False
    progress: ProgressRecord | None = None
    backlog: Backlog = field(default_factory=Backlog)
    activity: str | None = None
    #: Instances of a hosted application that run.
    instances_running: int | None = None
    progress_logged_s: float = -math.inf
    state_logged: str | None = None
    written_s: float = -math.inf
    #: Its status has changed and is not in the registry yet.
    is_unwritten: bool = False

    def see(self, look: Look) -> None:
        """What its queries, or its instances, do just now."""
        self.activity = activity_of(look.activity)
        self.instances_running = None
        if look.summary is not None and self.activity is None:
            self.activity = look.summary.activity
        if look.summary is not None:
            self.instances_running = look.summary.running

    def shown(self, status: StatusRecord) -> StatusRecord:
        """A status with what is remembered here."""
        runs = status.state is State.RUNNING
        return replace(
            status,
            progress=self.progress,
            activity=self.activity if runs else None,
            instances_running=self.instances_running if runs else None,
            updated_at_ms=_now_ms(),
        )


@dataclass(slots=True)
class Published:
    """What the heartbeat's thread reads; the loop replaces its fields as wholes."""

    round_at_ms: int
    problem: str | None = None
    server_id: str | None = None
    pipelines: dict[str, Any] = field(default_factory=dict)
    #: When that was, by `time.monotonic`.
    at_s: float = -math.inf

    def is_due(self) -> bool:
        """Once a second, as often as it is read."""
        now_s = time.monotonic()
        if now_s - self.at_s < _SHOW_SECONDS:
            return False
        self.at_s = now_s
        return True


class Rounds:
    """See the module. One thread runs it."""

    def __init__(
        self,
        folder: ControlFolder,
        config: Mapping[str, str],
        server: Any,
        registry: Registry,
        reconciler: Reconciler,
        *,
        ending: threading.Event,
        published: Published,
    ) -> None:
        self._folder = folder
        self._deployment = folder.deployment
        self._registry = registry
        self._reconciler = reconciler
        self._ending = ending
        self._published = published
        # Bounded: each pipeline has one job and one look at a time. No SimpleQueue: a signal near
        # the end of its timed wait makes it wait for ever.
        self._events: queue.Queue[Event | tuple[StatusRecord, Look]] = queue.Queue()
        self._logs = PipelineLogs(folder.logs, now=time.time)
        self._server = ServerWatch(server)
        self._workers = Workers(config, self._logs, self._server, folder)
        # Three: callers of a server that hangs all wait, and its check must not wait behind them.
        self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="pipelines")
        self._lookers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="looks")
        self._server_pool = ThreadPoolExecutor(1, thread_name_prefix="server")
        self._server_looked_s = -math.inf
        self._is_server_job_under_way = False
        self._watches: defaultdict[str, PipelineWatch] = defaultdict(PipelineWatch)
        self._write_after_s = 0.0

    def close(self) -> None:
        """Workers that hang are not waited for."""
        for pool in (self._pool, self._lookers, self._server_pool):
            pool.shutdown(wait=False, cancel_futures=True)
        self._workers.close()

    # Rounds.

    def run(self) -> None:
        """Until the loop is to end and nothing runs any more."""
        deadline: float | None = None
        while True:
            self._published.round_at_ms = _now_ms()
            if deadline is None and self._ending.is_set():
                deadline = time.monotonic() + _SHUTDOWN_SECONDS_MAX
                if self._take(events.Shutdown()):
                    return
            self._poll()
            if self._take(self._wanted()):
                return
            self._look_at_server()
            self._look_at_queries()
            self._write_what_waits()
            self._show()
            if self._take_all() or self._take(events.Tick()):
                return
            if deadline is not None and time.monotonic() > deadline:
                log.error("queries did not stop in %.0f s", _SHUTDOWN_SECONDS_MAX)
                return

    def _poll(self, *, to_the_end: bool = False) -> None:
        """What users want now; while the registry cannot be read, what they wanted last."""
        try:
            if to_the_end:
                self._registry.read()
            else:
                self._registry.poll(0.0)
        except (KafkaError, PipelineError, OSError) as error:
            log.warning("the registry cannot be read: %s", error)
            self._ending.wait(_REGISTRY_RETRY_SECONDS)

    def _take_all(self) -> bool:
        """What workers have reported; waits a little for the first."""
        timeout = _ROUND_SECONDS
        while True:
            try:
                event = self._events.get(timeout=timeout)
            except queue.Empty:
                return False
            timeout = 0.001
            if isinstance(event, tuple):
                self._on_look(*event)
            elif self._take(event):
                return True

    def _take(self, event: Event) -> bool:
        """True if the loop is to end."""
        if isinstance(event, events.ServerSeen | events.ServerStartFailed):
            self._is_server_job_under_way = False
        effects: list[Effect] = []
        if isinstance(event, events.Removed):
            # The decision should not see the record that has just been removed; if it does, it
            # is removed once more.
            self._poll(to_the_end=True)
            effects += self._reconciler.step(self._wanted(), _now_ms())
        effects += self._reconciler.step(event, _now_ms())
        error = self._reconciler.server_error
        self._published.problem = None if error is None else error.message
        over = False
        for effect in effects:
            over = self._perform(effect) or over
        if isinstance(event, events.Removed) and self._reconciler.status(event.name) is None:
            self._watches.pop(event.name, None)
        return over

    def _own(self) -> dict[str, PipelineRecord]:
        """The pipelines of this deployment."""
        view = self._registry.view
        return {
            name: record
            for name, record in view.pipelines.items()
            if record.deployment == self._deployment
        }

    def _wanted(self) -> events.SpecsRead:
        specs = {name: _spec_of(record) for name, record in self._own().items()}
        return events.SpecsRead(specs, self._folder.keep_server)

    # Looking.

    def _look_at_server(self) -> None:
        now_s = time.monotonic()
        if self._is_server_job_under_way or now_s - self._server_looked_s < _LOOK_SECONDS:
            return
        self._server_looked_s = now_s
        self._is_server_job_under_way = True
        self._submit(self._server.look, self._unseen, pool=self._server_pool)

    def _unseen(self, error: BaseException) -> Event:
        """A look that failed says nothing about the server: it is as it was."""
        log.warning("the Spark server cannot be checked: %s", error)
        return events.ServerSeen(self._server.server_id)

    def _look_at_queries(self) -> None:
        now_s = time.monotonic()
        for name in self._reconciler.running():
            watch = self._watches[name]
            if watch.is_looked_at or now_s - watch.looked_s < _LOOK_SECONDS:
                continue
            watch.is_looked_at = True
            watch.looked_s = now_s
            self._lookers.submit(self._look, self._own().get(name), self._status(name))

    def _look(self, record: PipelineRecord | None, status: StatusRecord) -> None:
        try:
            look = self._workers.look(status.name, record, status)
        except Exception as error:
            # Whether the server is there is looked at by itself.
            log.info("%s cannot be checked: %s", status.name, _in_one_line(error))
            look = Look((), None, None)
        self._events.put((status, look))

    def _on_look(self, looked_at: StatusRecord, look: Look) -> None:
        name = looked_at.name
        watch = self._watches.get(name)
        if watch is None:
            # It was removed meanwhile.
            return
        watch.is_looked_at = False
        status = self._reconciler.status(name)
        if status is None or status.state is not State.RUNNING or not look.active:
            return
        if status.session_id != looked_at.session_id:
            # It has been started again meanwhile.
            return
        if look.progress is not None:
            self._on_progress(name, watch, progress_record(look.progress))
        watch.see(look)
        if look.handover is not None:
            reason = look.handover
            self._submit(lambda: self._workers.hand_over(name, reason), lambda error: events.Tick())
        if look.summary is not None:
            self._take(_instances_seen(name, look.summary))
        record = self._own().get(name)
        finite = record is not None and record.finite
        ended = not any(look.active) if finite and look.error is None else not all(look.active)
        if ended:
            error = None
            if look.error is not None:
                error = self._workers.explain(look.error, record)
                self._logs.write(name, "ERROR", _with_detail(error))
            self._take(events.Ended(name, error))

    def _on_progress(self, name: str, watch: PipelineWatch, progress: ProgressRecord) -> None:
        now_s = time.monotonic()
        progress = watch.backlog.seen(progress, now_s)
        if watch.progress == progress:
            return
        watch.progress = progress
        if progress.input_rows and now_s - watch.progress_logged_s >= _PROGRESS_LOG_SECONDS:
            watch.progress_logged_s = now_s
            self._logs.write(name, "INFO", line_of(progress))
        if now_s - watch.written_s >= _PROGRESS_WRITE_SECONDS:
            self._write(name)

    # Acting.

    def _perform(self, effect: Effect) -> bool:
        match effect:
            case events.Exit():
                return True
            case events.Report(name):
                self._published.at_s = -math.inf
                self._log_state(name)
                self._write(name)
            case events.StartServer():
                log.info("starting the Spark server")
                self._is_server_job_under_way = True
                self._submit(
                    self._server.start,
                    lambda error: events.ServerStartFailed(self._workers.explain(error, None)),
                    pool=self._server_pool,
                )
            case events.Start(name):
                self._start(effect)
            case events.Reattach(name):
                status = self._status(name)
                self._logs.write(name, "INFO", "taking over its queries from an earlier loop")
                self._submit(
                    lambda: self._workers.reattach(status),
                    lambda error: events.Reattached(name, found=False),
                )
            case events.Stop(name):
                self._stop(name, self._status(name))
            case events.Remove(name, delete_checkpoint):
                watch = self._watches[name]
                watch.progress = watch.state_logged = None
                self._submit(
                    lambda: self._workers.remove(name, delete_checkpoint),
                    lambda error: events.Removed(name, self._workers.explain(error, None)),
                )
        return False

    def _start(self, effect: events.Start) -> None:
        name = effect.name
        record = self._own().get(name)
        watch = self._watches[name]
        if record is None or watch.is_unwritten:
            reason = "not started, because the registry cannot be written"
            self._logs.write(name, "WARN", reason)
            error = ErrorRecord(message=reason, at_ms=_now_ms())
            self._events.put(events.StartFailed(name, error, lasting=False))
            return
        watch.progress = watch.activity = watch.instances_running = None
        watch.backlog = Backlog()

        def failed(error: BaseException) -> Event:
            explained = self._workers.explain(error, record)
            if self._server.is_alive():
                self._logs.write(name, "ERROR", _with_detail(explained))
            return events.StartFailed(name, explained, not self._workers.may_get_better(error))

        self._submit(lambda: self._workers.start(record, effect), failed, server_first=True)

    def _stop(self, name: str, status: StatusRecord) -> None:
        def failed(error: BaseException) -> Event:
            explained = self._workers.explain(error, None)
            if self._server.is_alive():
                self._logs.write(name, "WARN", f"cannot be stopped: {_with_detail(explained)}")
            return events.Stopped(name, explained)

        self._submit(lambda: self._workers.stop(status), failed, server_first=True)

    def _submit(
        self,
        work: Callable[[], Event],
        on_error: Callable[[BaseException], Event],
        *,
        server_first: bool = False,
        pool: ThreadPoolExecutor | None = None,
    ) -> None:
        """Let a worker do it; its outcome, or its failure, is an event."""

        def act() -> None:
            try:
                event = work()
            except Exception as error:
                log.debug("a worker failed", exc_info=True)
                if server_first and not self._server.is_alive():
                    # What fails because the server is gone is no failure of the pipeline's.
                    self._events.put(events.ServerSeen(None))
                event = on_error(error)
            self._events.put(event)

        (pool or self._pool).submit(act)

    def _status(self, name: str) -> StatusRecord:
        status = self._reconciler.status(name)
        if status is None:
            raise InvariantError(f"pipeline {name} has no status")
        return self._watches[name].shown(status)

    # Publishing.

    def _write(self, name: str) -> None:
        now_s = time.monotonic()
        watch = self._watches[name]
        watch.is_unwritten = True
        watch.written_s = now_s
        if now_s >= self._write_after_s:
            self._write_now(name)

    def _write_what_waits(self) -> None:
        if time.monotonic() < self._write_after_s:
            return
        for name in sorted(name for name, each in self._watches.items() if each.is_unwritten):
            self._write_now(name)

    def _write_now(self, name: str) -> None:
        if self._reconciler.status(name) is None:
            self._watches[name].is_unwritten = False
            return
        try:
            self._registry.write_status(self._status(name))
        except (KafkaError, OSError) as error:
            log.warning("the status of %s cannot be written: %s", name, error)
            self._write_after_s = _retry_at_s(ending=self._ending.is_set())
            return
        self._watches[name].is_unwritten = False

    def _log_state(self, name: str) -> None:
        status = self._status(name)
        text: str = status.state
        if status.state is State.RUNNING:
            ids = ", ".join(
                f"{query.name} {query.id} run {query.run_id}" for query in status.queries
            )
            text = f"running: {ids}"
        elif status.state is State.RESTARTING and status.retry_at_ms is not None:
            seconds = max(0.0, (status.retry_at_ms - _now_ms()) / 1000)
            text = f"restarting in {seconds:.1f} s (attempt {status.attempts + 1})"
            if self._server.server_id is None:
                text = "restarting as soon as the Spark server is back"
        # What comes of one event is reported together, when it is all done.
        watch = self._watches[name]
        if watch.state_logged != text:
            watch.state_logged = text
            self._logs.write(name, "INFO", text)

    def _show(self) -> None:
        """For the heartbeat's thread, which looks once a second: a whole that does not change."""
        if self._published.is_due():
            names = [name for name in self._own() if self._reconciler.status(name) is not None]
            self._published.pipelines = {name: self._status(name).to_json() for name in names}
            self._published.server_id = self._server.server_id


def _spec_of(record: PipelineRecord) -> Spec:
    return Spec(
        record.desired,
        record.revision,
        record.finite,
        record.delete_checkpoint,
        TASK if engine_of(record.settings) == TASK else None,
    )


def _instances_seen(name: str, summary: Summary) -> events.InstancesSeen:
    error = None
    if summary.error is not None:
        error = ErrorRecord(message=summary.error, detail=summary.detail, at_ms=summary.error_at_ms)
    return events.InstancesSeen(
        name, summary.failures, error, summary.restarts, all_run=summary.all_run
    )


def _with_detail(error: ErrorRecord) -> str:
    hint = f" ({error.hint})" if error.hint else ""
    return f"{error}{hint}\n{error.detail}".rstrip()


def _in_one_line(error: Exception) -> str:
    """What went wrong; Spark passes on gRPC's text, which has that in its later lines."""
    details = getattr(error, "details", None)
    text = details() if callable(details) else None
    return " ".join((text or str(error)).split())[:_LOGGED_CHARACTERS_MAX]


def _retry_at_s(*, ending: bool) -> float:
    """A loop that is to end waits for a lost cluster once."""
    return math.inf if ending else time.monotonic() + _WRITE_RETRY_SECONDS


def _now_ms() -> int:
    return int(time.time() * 1000)
