"""Hosted applications, as the control loop acts on them: start, look, stop, logs.

Invariants: slots are counted before an application starts, for one application at a time; an
application is stopped by its signal first and killed by Spark only if that does not help.
"""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from moldau.pipelines.control.logs import PipelineLogs
from moldau.pipelines.control.queries import STOP_TIMEOUT, Look, Sessions
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.machine.applications import ApplicationDefinition
from moldau.pipelines.machine.records import PipelineRecord, QueryRecord, StatusRecord
from moldau.spark.hosting import hosting
from moldau.spark.hosting.places import ApplicationPlaces

__all__ = ["Applications"]

_STOP_SECONDS_MAX: Final = 25.0
_LOG_BYTES_MAX: Final = 256 * 1024
_HEAD: Final = re.compile(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL) +(.*)")


class Applications:
    """The hosted applications of one deployment; several threads use it."""

    def __init__(
        self,
        folder: Path,
        sessions: Sessions,
        logs: PipelineLogs,
        connection: Mapping[str, Any],
    ) -> None:
        self._folder = folder
        self._sessions = sessions
        self._connection = dict(connection)
        self._forwarder = _LogForwarder(logs)
        self._starting = threading.Lock()
        self._taken: dict[str, int] = {}

    def places(self, name: str) -> ApplicationPlaces:
        return ApplicationPlaces(self._folder / name)

    def start(self, record: PipelineRecord, url: str, session_id: str) -> tuple[QueryRecord, ...]:
        definition = ApplicationDefinition.from_json(record.definition)
        application = definition.hosted(self._connection)
        places = self.places(record.name)
        session = self._sessions.open(record.name, url, session_id)
        session.conf.set("spark.sql.streaming.stopTimeout", STOP_TIMEOUT)
        with self._starting:
            try:
                hosting.check_slots(session, application, self._taken)
            except hosting.NotEnoughSlots as error:
                raise PipelineError(error.message, hint=error.hint) from None
            self._taken[record.name] = application.instances
        try:
            self._forwarder.skip(record.name, places, application.instances)
            query = hosting.start(session, application, places, run=session_id)
        except BaseException:
            self._taken.pop(record.name, None)
            raise
        self._sessions.keep(record.name, [query])
        return (QueryRecord(record.name, str(query.id), str(query.runId)),)

    def reattach(self, status: StatusRecord) -> None:
        """Count the slots of an application that an earlier loop started."""
        places = self.places(status.name)
        if self._is_run(places, status):
            instances = places.application().instances
            self._taken[status.name] = instances
            self._forwarder.skip(status.name, places, instances)

    def look(self, status: StatusRecord, look: Look) -> Look:
        """What Spark says of its query, with what its instances report."""
        places = self.places(status.name)
        if status.session_id is None or not self._is_run(places, status):
            return look
        summary = hosting.look(places, run=status.session_id)
        self._forwarder.forward(status.name, places, summary.instances)
        # Spark's numbers are those of the rows that started the instances.
        return Look(look.active, look.error, None, None, summary)

    def stop(self, status: StatusRecord) -> None:
        """Ask the instances of its run to end and give them time for it."""
        places = self.places(status.name)
        if status.session_id is None or not self._is_run(places, status):
            return
        hosting.request_stop(places, run=status.session_id)
        hosting.wait_until_ended(places, run=status.session_id, seconds_max=_STOP_SECONDS_MAX)
        self._forwarder.forward(status.name, places, places.application().instances)

    def ended(self, name: str) -> None:
        """Nothing of it runs any more."""
        self._taken.pop(name, None)

    def remove(self, name: str) -> None:
        self.ended(name)
        shutil.rmtree(self._folder / name, ignore_errors=True)

    def _is_run(self, places: ApplicationPlaces, status: StatusRecord) -> bool:
        return status.session_id is not None and places.signal_seen().run == status.session_id


class _LogForwarder:
    """Copies what instances log to the log of their application."""

    def __init__(self, logs: PipelineLogs) -> None:
        self._logs = logs
        self._positions: dict[Path, int] = {}

    def skip(self, name: str, places: ApplicationPlaces, instances: int) -> None:
        """What is there is of an earlier run."""
        for number in range(instances):
            path = places.log(number)
            self._positions[path] = path.stat().st_size if path.exists() else 0

    def forward(self, name: str, places: ApplicationPlaces, instances: int) -> None:
        for number in range(instances):
            for level, text in self._new_entries(places.log(number)):
                self._logs.write(name, level, text)

    def _new_entries(self, path: Path) -> list[tuple[str, str]]:
        position = self._positions.get(path, 0)
        try:
            with path.open("rb") as file:
                size = file.seek(0, 2)
                # A shorter file is a new one: the old one was renamed.
                file.seek(position if size >= position else 0)
                data = file.read(_LOG_BYTES_MAX)
                whole = data[: data.rfind(b"\n") + 1]
                self._positions[path] = file.tell() - len(data) + len(whole)
        except OSError:
            return []
        entries: list[tuple[str, str]] = []
        for line in whole.decode(errors="replace").splitlines():
            head = _HEAD.fullmatch(line)
            if head is not None:
                level = {"WARNING": "WARN", "CRITICAL": "ERROR"}.get(head[1], head[1])
                entries.append((level, head[2]))
            elif entries:
                level, text = entries[-1]
                entries[-1] = (level, f"{text}\n{line.removeprefix('    ')}")
        return entries
