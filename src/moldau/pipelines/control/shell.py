"""The control loop: one thread that owns the decisions, and workers that act.

Each round reads what users want, looks at the server and at the queries, and carries out what
`decisions.py` says. Whatever can take long (starting, stopping, asking Spark) is done by a worker,
whose report is an event of a later round; so one pipeline that hangs keeps none of the others from
being looked after. What always holds: a session's id is written to the registry before anything is
started in it; where that cannot be written nothing is started.
"""

from __future__ import annotations

import logging
import os
import queue
import random
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final

from moldau.client.errors import KafkaError
from moldau.pipelines.control.folder import ControlFolder, Heartbeat
from moldau.pipelines.control.logs import PipelineLogs
from moldau.pipelines.control.machine import events
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
from moldau.spark.runtime.processes import start_mark

__all__ = ["ControlLoop"]

_ROUND_SECONDS: Final = 0.2
_LOOK_SECONDS: Final = 1.0
_BEAT_SECONDS: Final = 1.0
# Progress goes to the registry and the logs at these rates; the heartbeat's file has it at once.
_PROGRESS_WRITE_SECONDS: Final = 30.0
_PROGRESS_LOG_SECONDS: Final = 10.0
_WRITE_RETRY_SECONDS: Final = 5.0
_REGISTRY_RETRY_SECONDS: Final = 2.0
_SHUTDOWN_SECONDS_MAX: Final = 60.0
_WORKERS: Final = 4

log = logging.getLogger(__name__)


class ControlLoop:
    """The loop of one deployment; whoever runs it has the folder's lock."""

    def __init__(self, folder: ControlFolder, config: Mapping[str, str], server: Any) -> None:
        self._folder = folder
        self._config = dict(config)
        self._bootstrap_servers = self._config["bootstrap.servers"]
        self._deployment = folder.deployment
        self._events: queue.SimpleQueue[Event | tuple[StatusRecord, Look]] = queue.SimpleQueue()
        self._logs = PipelineLogs(folder.logs, now=time.time)
        self._watch = ServerWatch(server)
        self._workers = Workers(self._bootstrap_servers, self._config, self._logs, self._watch)
        # Of their own each: where a server hangs, everybody who asks it waits, and the one that
        # looks after the server must not wait behind them.
        self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="pipelines")
        self._lookers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="looks")
        self._server_pool = ThreadPoolExecutor(1, thread_name_prefix="server")
        self._ending = threading.Event()
        self._ended = threading.Event()
        self._started_at_ms = _now_ms()
        self._round_at_ms = _now_ms()
        self._problem: str | None = None
        self._snapshot: dict[str, Any] = {}
        self._registry: Registry | None = None
        self._reconciler: Reconciler | None = None
        self._specs_seen: Mapping[str, Spec] | None = None
        self._asked: dict[str, float] = {}
        self._looking: set[str] = set()
        self._server_job = False
        self._progress: dict[str, ProgressRecord] = {}
        self._activity: dict[str, str | None] = {}
        self._progress_written: dict[str, float] = {}
        self._progress_logged: dict[str, float] = {}
        self._state_logged: dict[str, str] = {}
        self._unwritten: set[str] = set()
        self._write_after = 0.0

    def shut_down(self) -> None:
        """Ask it to stop all queries and end; may be called from a signal's handler."""
        self._ending.set()

    @property
    def is_ending(self) -> bool:
        return self._ending.is_set()

    def run(self) -> None:
        """Until it is asked to end."""
        beats = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        beats.start()
        try:
            registry = self._open_registry()
            if registry is None:
                return
            self._registry = registry
            statuses = registry.view.statuses
            remembered = {name: statuses[name] for name in self._own() if name in statuses}
            self._reconciler = Reconciler(
                random.SystemRandom(), lambda: str(uuid.uuid4()), remembered=remembered
            )
            self._rounds(registry, self._reconciler)
        finally:
            self._ended.set()
            beats.join()
            for pool in (self._pool, self._lookers, self._server_pool):
                pool.shutdown(wait=False, cancel_futures=True)
            self._workers.close()
            if self._registry is not None:
                self._registry.close()

    def _open_registry(self) -> Registry | None:
        """The broker may be just starting; it is waited for until the loop is to end."""
        while not self._ending.is_set():
            try:
                registry = Registry(self._bootstrap_servers, config=self._config)
                registry.read()
                return registry
            except (KafkaError, PipelineError, OSError) as error:
                self._problem = f"the registry cannot be reached: {error}"
                log.warning("%s", self._problem)
                self._ending.wait(_REGISTRY_RETRY_SECONDS)
        return None

    # Rounds.

    def _rounds(self, registry: Registry, reconciler: Reconciler) -> None:
        deadline: float | None = None
        while True:
            self._round_at_ms = _now_ms()
            if deadline is None and self._ending.is_set():
                deadline = time.monotonic() + _SHUTDOWN_SECONDS_MAX
                if self._take(events.Shutdown()):
                    return
            self._poll(registry)
            if self._take(self._wanted()):
                return
            self._look_at_server()
            self._look_at_queries(reconciler)
            self._write_what_waits()
            self._show()
            if self._take_all() or self._take(events.Tick()):
                return
            if deadline is not None and time.monotonic() > deadline:
                log.error("queries did not stop in %.0f s", _SHUTDOWN_SECONDS_MAX)
                return

    def _poll(self, registry: Registry, *, to_the_end: bool = False) -> None:
        """What users want now; while nobody can tell, it is what they wanted."""
        try:
            if to_the_end:
                registry.read()
            else:
                registry.poll(0.0)
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
        assert self._reconciler is not None
        if isinstance(event, events.ServerSeen | events.ServerStartFailed):
            self._server_job = False
        effects: list[Effect] = []
        if isinstance(event, events.Removed):
            # The decision should not see the record that has just been removed; if it does, it
            # is removed once more.
            assert self._registry is not None
            self._poll(self._registry, to_the_end=True)
            effects += self._reconciler.step(self._wanted(), _now_ms())
        effects += self._reconciler.step(event, _now_ms())
        error = self._reconciler.server_error
        self._problem = None if error is None else error.message
        over = False
        for effect in effects:
            over = self._perform(effect) or over
        return over

    def _own(self) -> dict[str, PipelineRecord]:
        """The pipelines of this deployment."""
        assert self._registry is not None
        view = self._registry.view
        return {
            name: record
            for name, record in view.pipelines.items()
            if record.deployment == self._deployment
        }

    def _wanted(self) -> events.SpecsRead:
        specs = {
            name: Spec(record.desired, record.revision, record.finite, record.delete_checkpoint)
            for name, record in self._own().items()
        }
        return events.SpecsRead(specs, self._folder.keep_server)

    # Looking.

    def _look_at_server(self) -> None:
        if not self._server_job and self._is_time("", _LOOK_SECONDS):
            self._server_job = True
            self._submit(self._watch.look, self._unseen, pool=self._server_pool)

    def _unseen(self, error: BaseException) -> Event:
        """A look that failed says nothing about the server: it is as it was."""
        log.warning("the Spark server cannot be looked at: %s", error)
        return events.ServerSeen(self._watch.server_id)

    def _look_at_queries(self, reconciler: Reconciler) -> None:
        for name in reconciler.running():
            if name in self._looking or not self._is_time(name, _LOOK_SECONDS):
                continue
            self._looking.add(name)
            self._lookers.submit(self._look, self._own().get(name), self._status(name))

    def _look(self, record: PipelineRecord | None, status: StatusRecord) -> None:
        try:
            look = self._workers.look(status.name, record, status)
        except Exception as error:
            # Whether the server is there is looked at by itself.
            log.info("%s cannot be looked at: %s", status.name, str(error).partition("\n")[0])
            look = Look((), None, None)
        self._events.put((status, look))

    def _on_look(self, looked_at: StatusRecord, look: Look) -> None:
        assert self._reconciler is not None
        name = looked_at.name
        self._looking.discard(name)
        status = self._reconciler.status(name)
        if status is None or status.state is not State.RUNNING or not look.active:
            return
        if status.session_id != looked_at.session_id:
            # It has been started anew meanwhile.
            return
        if look.progress is not None:
            self._on_progress(name, progress_record(look.progress))
        self._activity[name] = activity_of(look.activity)
        record = self._own().get(name)
        finite = record is not None and record.finite
        ended = not any(look.active) if finite and look.error is None else not all(look.active)
        if ended:
            error = None
            if look.error is not None:
                error = self._workers.explain(look.error, record)
                self._logs.write(name, "ERROR", _with_detail(error))
            self._take(events.Ended(name, error))

    def _on_progress(self, name: str, progress: ProgressRecord) -> None:
        if self._progress.get(name) == progress:
            return
        self._progress[name] = progress
        now = time.monotonic()
        due = now - self._progress_logged.get(name, -1e9) >= _PROGRESS_LOG_SECONDS
        if progress.input_rows and due:
            self._progress_logged[name] = now
            self._logs.write(name, "INFO", line_of(progress))
        if now - self._progress_written.get(name, -1e9) >= _PROGRESS_WRITE_SECONDS:
            self._write(name)

    def _is_time(self, name: str, seconds: float) -> bool:
        now = time.monotonic()
        if now - self._asked.get(name, -1e9) < seconds:
            return False
        self._asked[name] = now
        return True

    # Acting.

    def _perform(self, effect: Effect) -> bool:
        match effect:
            case events.Exit():
                return True
            case events.Report(name):
                self._log_state(name)
                self._write(name)
            case events.StartServer():
                log.info("starting the Spark server")
                self._server_job = True
                self._submit(
                    self._watch.start,
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
                self._progress.pop(name, None)
                self._state_logged.pop(name, None)
                self._submit(
                    lambda: self._workers.remove(name, delete_checkpoint),
                    lambda error: events.Removed(name, self._workers.explain(error, None)),
                )
        return False

    def _start(self, effect: events.Start) -> None:
        name = effect.name
        record = self._own().get(name)
        if record is None or name in self._unwritten:
            reason = "the registry cannot be written: nothing is started that nobody could find"
            self._logs.write(name, "WARN", reason)
            error = ErrorRecord(message=reason, at_ms=_now_ms())
            self._events.put(events.StartFailed(name, error, lasting=False))
            return
        self._progress.pop(name, None)
        self._activity.pop(name, None)

        def failed(error: BaseException) -> Event:
            told = self._workers.explain(error, record)
            if self._watch.is_alive():
                self._logs.write(name, "ERROR", _with_detail(told))
            return events.StartFailed(name, told, not self._workers.may_get_better(error))

        self._submit(lambda: self._workers.start(record, effect), failed, server_first=True)

    def _stop(self, name: str, status: StatusRecord) -> None:
        def failed(error: BaseException) -> Event:
            told = self._workers.explain(error, None)
            if self._watch.is_alive():
                self._logs.write(name, "WARN", f"it could not be stopped: {_with_detail(told)}")
            return events.Stopped(name, told)

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
                if server_first and not self._watch.is_alive():
                    # What fails because the server is gone is no failure of the pipeline's.
                    self._events.put(events.ServerSeen(None))
                event = on_error(error)
            self._events.put(event)

        (pool or self._pool).submit(act)

    def _status(self, name: str) -> StatusRecord:
        assert self._reconciler is not None
        status = self._reconciler.status(name)
        assert status is not None
        return replace(
            status,
            progress=self._progress.get(name),
            activity=self._activity.get(name) if status.state is State.RUNNING else None,
            updated_at_ms=_now_ms(),
        )

    # Telling.

    def _write(self, name: str) -> None:
        self._unwritten.add(name)
        self._progress_written[name] = time.monotonic()
        if time.monotonic() >= self._write_after:
            self._write_now(name)

    def _write_what_waits(self) -> None:
        if self._unwritten and time.monotonic() >= self._write_after:
            for name in sorted(self._unwritten):
                self._write_now(name)

    def _write_now(self, name: str) -> None:
        assert self._registry is not None
        assert self._reconciler is not None
        if self._reconciler.status(name) is None:
            self._unwritten.discard(name)
            return
        try:
            self._registry.write_status(self._status(name))
        except (KafkaError, OSError) as error:
            log.warning("the status of %s cannot be written: %s", name, error)
            self._write_after = time.monotonic() + _WRITE_RETRY_SECONDS
            return
        self._unwritten.discard(name)

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
            if self._watch.server_id is None:
                text = "restarting as soon as the Spark server is back"
        # What comes of one event is reported together, when it is all done.
        if self._state_logged.get(name) != text:
            self._state_logged[name] = text
            self._logs.write(name, "INFO", text)

    def _show(self) -> None:
        """For the heartbeat's thread: a whole that does not change any more."""
        assert self._reconciler is not None
        names = [name for name in self._own() if self._reconciler.status(name) is not None]
        self._snapshot = {name: self._status(name).to_json() for name in names}

    def _beat(self) -> None:
        while True:
            try:
                self._folder.beat(
                    Heartbeat(
                        pid=os.getpid(),
                        mark=start_mark(os.getpid()) or "",
                        at_ms=_now_ms(),
                        round_at_ms=self._round_at_ms,
                        started_at_ms=self._started_at_ms,
                        bootstrap_servers=self._bootstrap_servers,
                        deployment=self._deployment,
                        server_id=self._watch.server_id,
                        problem=self._problem,
                        pipelines=self._snapshot,
                    )
                )
            except OSError as error:
                log.warning("no heartbeat: %s", error)
            if self._ended.wait(_BEAT_SECONDS):
                return


def _with_detail(error: ErrorRecord) -> str:
    hint = f" ({error.hint})" if error.hint else ""
    return f"{error}{hint}\n{error.detail}".rstrip()


def _now_ms() -> int:
    return int(time.time() * 1000)
