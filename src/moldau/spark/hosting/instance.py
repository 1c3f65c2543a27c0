"""One instance of a hosted application: its program, its heartbeats, its signal.

One thread runs the program; a second one writes heartbeats and watches the signal.

Invariants: nothing is kept when an instance ends, because Spark gives the worker to another one: no
module global, no log handler, no thread. An instance whose process was started for it ends at once
when the parent of that process is gone.
"""

from __future__ import annotations

import importlib
import logging
import os
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from logging.handlers import RotatingFileHandler
from typing import Final

from moldau.spark.hosting.context import HostedContext
from moldau.spark.hosting.machine.application import HostedApplication
from moldau.spark.hosting.machine.beats import InstanceBeat
from moldau.spark.hosting.machine.supervision import (
    AskToStop,
    End,
    Event,
    Exit,
    InstanceSupervisor,
    ProgramFailed,
    ProgramReturned,
    Run,
    Tick,
    WorkerOrphaned,
)
from moldau.spark.hosting.places import ApplicationPlaces
from moldau.spark.runtime.processes import start_mark

__all__ = ["HostedInstance"]

_BEAT_SECONDS: Final = 1.0
# Far below what makes an instance count as silent.
_BEAT_MS_MAX: Final = 5_000
_LOG_SIZE_MAX: Final = 2 * 1024 * 1024
_LOG_FILES: Final = 2


class HostedInstance:
    """See the module. With `has_process` the process is there for this instance alone."""

    def __init__(
        self,
        places: ApplicationPlaces,
        application: HostedApplication,
        run: str,
        number: int,
        *,
        has_process: bool = True,
    ) -> None:
        self._places = places
        self._application = application
        self._run_id = run
        self._number = number
        self._has_process = has_process
        self._written: InstanceBeat | None = None
        self._lock = threading.Lock()
        self._supervisor = InstanceSupervisor(run, random.SystemRandom(), now_ms=_now_ms())
        self._changed = threading.Condition(self._lock)
        self._effects: list[Run | End] = []
        self._over = threading.Event()
        self._parent = os.getppid()
        self._mark = start_mark(os.getpid()) or ""
        disk = places.disk(number)
        disk.mkdir(parents=True, exist_ok=True)
        self._context = HostedContext(
            application=application.name,
            instance=number,
            instances=application.instances,
            settings=application.settings,
            disk=disk,
            log=logging.getLogger(f"moldau.hosted.{application.name}"),
            stopping=threading.Event(),
        )

    def run(self) -> None:
        handler = self._log_to_file()
        logger = logging.getLogger() if self._has_process else self._context.log
        level, path = logger.level, list(sys.path)
        logger.propagate = self._has_process
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        watcher = threading.Thread(target=self._watch, name="hosting", daemon=True)
        watcher.start()
        try:
            while isinstance(self._next(), Run):
                self._take(self._call())
        finally:
            self._over.set()
            watcher.join()
            logger.removeHandler(handler)
            logger.setLevel(level)
            if self._has_process:
                sys.path[:] = path
            handler.close()

    def _next(self) -> Run | End:
        with self._changed:
            self._changed.wait_for(lambda: bool(self._effects))
            return self._effects.pop(0)

    def _call(self) -> Event:
        log = self._context.log
        log.info("instance %d runs in process %d", self._number, os.getpid())
        try:
            _program(self._application.program)(self._context)
        except Exception as error:
            log.exception("instance %d failed", self._number)
            return ProgramFailed(_message(error), traceback.format_exc())
        log.info("instance %d has ended", self._number)
        return ProgramReturned()

    def _watch(self) -> None:
        """The second thread."""
        while True:
            self._take(Tick())
            if self._has_process and os.getppid() != self._parent:
                self._take(WorkerOrphaned())
            self._take(self._places.signal_seen())
            over = self._over.is_set()
            self._write_beat()
            if over:
                return
            self._over.wait(_BEAT_SECONDS)

    def _write_beat(self) -> None:
        """What is new at once, what is not now and then."""
        beat = self._beat()
        last = self._written
        is_news = last is None or replace(beat, at_ms=last.at_ms) != last
        if not is_news and last is not None and beat.at_ms - last.at_ms < _BEAT_MS_MAX:
            return
        try:
            self._places.beat(beat)
            self._written = beat
        except OSError as error:
            self._context.log.warning("no heartbeat: %s", error)

    def _take(self, event: Event) -> None:
        with self._changed:
            for effect in self._supervisor.step(event, _now_ms()):
                match effect:
                    case AskToStop():
                        self._context.stopping.set()
                    case Exit():
                        os._exit(1)
                    case Run() | End():
                        self._effects.append(effect)
                        self._changed.notify_all()

    def _beat(self) -> InstanceBeat:
        with self._lock:
            known = self._supervisor
            return InstanceBeat(
                instance=self._number,
                run=self._run_id,
                pid=os.getpid(),
                mark=self._mark,
                state=known.state,
                at_ms=_now_ms(),
                since_ms=known.since_ms,
                failures=known.failures,
                error=known.error,
                detail=known.detail,
                error_at_ms=known.error_at_ms,
                restarts=known.restarts,
                facts=self._context.facts,
            )

    def _log_to_file(self) -> logging.Handler:
        self._places.logs.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(
            self._places.log(self._number), maxBytes=_LOG_SIZE_MAX, backupCount=_LOG_FILES
        )
        handler.setFormatter(_Lines(self._number))
        return handler


class _Lines(logging.Formatter):
    """As the logs of pipelines: the first line of an entry has its level, others are indented."""

    def __init__(self, number: int) -> None:
        super().__init__(f"%(levelname)-5s instance {number}: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return super().format(record).replace("\n", "\n    ")


def _program(name: str) -> Callable[[HostedContext], None]:
    module, _, function = name.partition(":")
    found: Callable[[HostedContext], None] = getattr(importlib.import_module(module), function)
    return found


def _message(error: BaseException) -> str:
    text = str(error) or type(error).__name__
    cause = error.__cause__
    return text if cause is None else f"{text} ({cause})"


def _now_ms() -> int:
    return int(time.time() * 1000)
