"""Pipelines that run without Spark, as the control loop acts on them: start, look, stop."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from moldau.pipelines.control.queries import Look
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.machine.records import PipelineRecord, StatusRecord
from moldau.pipelines.tasks import host
from moldau.pipelines.tasks.runner import DEFINITION, HANDOVER, PROGRAM, PROGRESS
from moldau.spark.hosting import hosting
from moldau.spark.hosting.machine.application import HostedApplication
from moldau.spark.hosting.machine.beats import Summary
from moldau.spark.hosting.places import ApplicationPlaces

__all__ = ["Tasks"]

_STOP_SECONDS_MAX: Final = 20.0
# Its process is started again long before, and reports every few seconds.
_SILENT_SECONDS_MAX: Final = 30.0


class Tasks:
    """The small pipelines of one deployment; several threads use it."""

    def __init__(
        self,
        folder: Path,
        connection: Mapping[str, Any],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._connection = dict(connection)
        self._clock = clock
        #: By run, since when a run that should go on was not seen to.
        self._silent_since_s: dict[str, float] = {}

    def _places(self, name: str) -> ApplicationPlaces:
        return ApplicationPlaces(self._folder / name)

    def start(self, record: PipelineRecord, definition: Mapping[str, Any], run: str) -> None:
        places = self._places(record.name)
        places.write_application(
            HostedApplication(
                name=record.name,
                program=PROGRAM,
                instances=1,
                settings={**self._connection, DEFINITION: dict(definition)},
            )
        )
        places.signal(run, stop=False)
        host.ensure_running(self._folder)

    def goes_on(self, status: StatusRecord) -> bool:
        """Whether its run is to go on. An earlier loop that ended without a broker has asked it to
        stop and could not write that down."""
        seen = self._places(status.name).signal_seen()
        return seen.run == status.session_id and not seen.stop

    def look(self, status: StatusRecord) -> Look:
        """What its runner reports; a host that has died is started again."""
        host.ensure_running(self._folder)
        places = self._places(status.name)
        run = str(status.session_id)
        try:
            summary = self._with_silence(hosting.look(places, run=run), run)
        except (OSError, ValueError, KeyError) as error:
            # Started again, it gets new ones.
            problem = f"its files in {places.folder} cannot be read: {error}"
            return Look((False,), PipelineError(problem, retriable=True), None)
        facts: Mapping[str, Any] = next(
            (beat.facts for beat in places.beats(1) if beat.run == run), {}
        )
        activity = "Waiting for data" if summary.all_run else "Initializing"
        return Look((True,), None, facts.get(PROGRESS), activity, summary, facts.get(HANDOVER))

    def _with_silence(self, summary: Summary, run: str) -> Summary:
        """One that says nothing for long is not well, though nothing says why."""
        if summary.running or summary.failures:
            self._silent_since_s.pop(run, None)
            return summary
        silent_s = self._clock() - self._silent_since_s.setdefault(run, self._clock())
        if silent_s < _SILENT_SECONDS_MAX:
            return summary
        return replace(
            summary,
            failures=1,
            error=f"its process has reported nothing for {silent_s:.0f} s; see "
            f"{self._folder / 'host.out'}",
            error_at_ms=int((time.time() - silent_s) * 1000),
        )

    def stop(self, status: StatusRecord) -> None:
        places = self._places(status.name)
        run = str(status.session_id)
        self._silent_since_s.pop(run, None)
        if places.signal_seen().run == run:
            hosting.request_stop(places, run=run)
            hosting.wait_until_ended(places, run=run, seconds_max=_STOP_SECONDS_MAX)

    def remove(self, name: str) -> None:
        shutil.rmtree(self._folder / name, ignore_errors=True)
