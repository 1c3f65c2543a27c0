"""Pipelines that run without Spark, as the control loop acts on them: start, look, stop."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from moldau.pipelines.control.queries import Look
from moldau.pipelines.machine.records import PipelineRecord, StatusRecord
from moldau.pipelines.tasks import host
from moldau.pipelines.tasks.runner import DEFINITION, HANDOVER, PROGRAM, PROGRESS
from moldau.spark.hosting import hosting
from moldau.spark.hosting.machine.application import HostedApplication
from moldau.spark.hosting.places import ApplicationPlaces

__all__ = ["Tasks"]

_STOP_SECONDS_MAX: Final = 20.0


class Tasks:
    """The small pipelines of one deployment; several threads use it."""

    def __init__(self, folder: Path, connection: Mapping[str, Any]) -> None:
        self._folder = folder
        self._connection = dict(connection)

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
        summary = hosting.look(places, run=run)
        facts: Mapping[str, Any] = next(
            (beat.facts for beat in places.beats(1) if beat.run == run), {}
        )
        activity = "Waiting for data" if summary.all_run else "Initializing"
        return Look((True,), None, facts.get(PROGRESS), activity, summary, facts.get(HANDOVER))

    def stop(self, status: StatusRecord) -> None:
        places = self._places(status.name)
        run = str(status.session_id)
        if places.signal_seen().run == run:
            hosting.request_stop(places, run=run)
            hosting.wait_until_ended(places, run=run, seconds_max=_STOP_SECONDS_MAX)

    def remove(self, name: str) -> None:
        shutil.rmtree(self._folder / name, ignore_errors=True)
