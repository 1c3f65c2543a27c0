"""Runs the control loop of a deployment: opens the registry, runs the rounds, writes heartbeats.

Invariants: heartbeats are written as long as `run` lasts, also while the registry is waited for and
while a round hangs (`round_at_ms` shows it); workers that hang are not waited for; a loop whose
owner was killed ends the Spark server and itself.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
import uuid
from collections.abc import Mapping
from typing import Any, Final

from moldau.client.errors import KafkaError
from moldau.pipelines.control.folder import ControlFolder, Heartbeat
from moldau.pipelines.control.machine.decisions import Reconciler
from moldau.pipelines.control.rounds import Published, Rounds
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.registry import Registry
from moldau.spark.runtime.errors import SparkRuntimeError
from moldau.spark.runtime.processes import start_mark
from moldau.spark.runtime.server import ConnectServer

__all__ = ["ControlLoop"]

_BEAT_SECONDS: Final = 1.0
_REGISTRY_RETRY_SECONDS: Final = 2.0
# A call to a cluster that is gone must not keep a loop that is to end for longer.
_CALL_SECONDS_MAX: Final = 3.0

log = logging.getLogger(__name__)


class ControlLoop:
    """The loop of one deployment; the process that runs it has the folder's lock."""

    def __init__(self, folder: ControlFolder, config: Mapping[str, str], server: Any) -> None:
        self._folder = folder
        self._config = dict(config)
        self._server = server
        self._ending = threading.Event()
        self._ended = threading.Event()
        self._started_at_ms = int(time.time() * 1000)
        self._published = Published(round_at_ms=self._started_at_ms)

    def shut_down(self) -> None:
        """Stop all queries and end. A signal handler may call it, if `run` is in another thread."""
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
            if registry is not None:
                with registry:
                    self._run(registry)
        finally:
            self._ended.set()
            beats.join()

    def _run(self, registry: Registry) -> None:
        view = registry.view
        remembered = {
            name: view.statuses[name]
            for name, record in view.pipelines.items()
            if record.deployment == self._folder.deployment and name in view.statuses
        }
        reconciler = Reconciler(
            random.SystemRandom(), lambda: str(uuid.uuid4()), remembered=remembered
        )
        rounds = Rounds(
            self._folder,
            self._config,
            self._server,
            registry,
            reconciler,
            ending=self._ending,
            published=self._published,
        )
        try:
            rounds.run()
        finally:
            rounds.close()

    def _open_registry(self) -> Registry | None:
        """The broker may be just starting; it is waited for until the loop is to end."""
        while not self._ending.is_set():
            try:
                return self._read_registry()
            except (KafkaError, PipelineError, OSError) as error:
                self._published.problem = f"the registry cannot be reached: {error}"
                log.warning("%s", self._published.problem)
                self._ending.wait(_REGISTRY_RETRY_SECONDS)
        return None

    def _read_registry(self) -> Registry:
        registry = Registry(
            self._config["bootstrap.servers"],
            config=self._config,
            call_timeout=_CALL_SECONDS_MAX,
            is_ending=self._ending.is_set,
        )
        try:
            registry.read()
        except BaseException:
            registry.close()
            raise
        return registry

    def _beat(self) -> None:
        mark = start_mark(os.getpid()) or ""
        while True:
            published = self._published
            try:
                self._folder.beat(
                    Heartbeat(
                        pid=os.getpid(),
                        mark=mark,
                        at_ms=int(time.time() * 1000),
                        round_at_ms=published.round_at_ms,
                        started_at_ms=self._started_at_ms,
                        bootstrap_servers=self._config["bootstrap.servers"],
                        deployment=self._folder.deployment,
                        server_id=published.server_id,
                        problem=published.problem,
                        pipelines=published.pipelines,
                    )
                )
            except OSError as error:
                log.warning("no heartbeat: %s", error)
            if self._ended.wait(_BEAT_SECONDS):
                return
            if self._folder.has_lost_owner() and not self._ending.is_set():
                self._end_with_owner()

    def _end_with_owner(self) -> None:
        """The broker has gone with the owner, so queries cannot end in order. The server is ended
        at once: what queries have written is whole at any time."""
        log.warning("`moldau start --spark` was killed: ending Spark and the control loop, too")
        self._ending.set()
        try:
            ConnectServer(self._folder.path).stop()
        except (SparkRuntimeError, OSError) as error:
            log.warning("the Spark server cannot be stopped: %s", error)
        self._folder.forget_lost_owner()
