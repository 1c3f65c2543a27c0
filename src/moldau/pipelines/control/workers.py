"""What the loop's workers do: the server's life, and one pipeline's start, stop, look, removal.

Each function does one thing and says what came of it as an event; it may raise, and the loop makes
an event of that.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from moldau.client import Admin, OffsetAndMetadata, TopicPartition
from moldau.client.errors import KafkaError
from moldau.invariant import present
from moldau.pipelines.control.applications import Applications
from moldau.pipelines.control.folder import ControlFolder
from moldau.pipelines.control.logs import PipelineLogs
from moldau.pipelines.control.machine import events
from moldau.pipelines.control.machine.progress import mirror_group, read_offsets
from moldau.pipelines.control.queries import Look, Sessions
from moldau.pipelines.control.tasks import Tasks
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.machine.applications import is_application
from moldau.pipelines.machine.records import Desired, ErrorRecord, PipelineRecord, StatusRecord
from moldau.pipelines.registry import Registry, connection_config
from moldau.pipelines.tasks.machine.choosing import TASK, engine_of, moved_to_spark

__all__ = ["ServerWatch", "Workers"]

# A server that runs and answers nothing is replaced after this many questions in a row.
_ANSWER_EVERY_SECONDS: Final = 15.0
_ANSWER_SECONDS_MAX: Final = 10.0
_SILENT_MAX: Final = 6
_TIDY_EVERY_SECONDS: Final = 600.0
_MIRROR_SECONDS_MAX: Final = 10.0
_MIRROR_RETRY_SECONDS: Final = 60.0
_DETAIL_LENGTH_MAX: Final = 20_000

log = logging.getLogger(__name__)


class ServerWatch:
    """The deployment's Connect server, as the loop sees it; one job at a time."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._silent = 0
        self._asked_at = self._tidied_at = time.monotonic()
        self.server_id: str | None = None
        self.url: str | None = None

    def look(self) -> events.ServerSeen:
        """Which server runs. One that has not answered for long is ended."""
        # Only a process that has ended is gone. One that is too busy to listen runs its queries
        # still, and what was started beside them would run twice.
        if not self._server.attach():
            self.server_id = self.url = None
            return events.ServerSeen(None)
        self._note()
        if time.monotonic() - self._tidied_at >= _TIDY_EVERY_SECONDS:
            self._tidied_at = time.monotonic()
            self._server.tidy()
        if time.monotonic() - self._asked_at >= _ANSWER_EVERY_SECONDS:
            self._asked_at = time.monotonic()
            answers = self._server.answers(seconds_max=_ANSWER_SECONDS_MAX)
            self._silent = 0 if answers else self._silent + 1
            if self._silent >= _SILENT_MAX:
                log.error("the Spark server %s does not answer and is killed", self.server_id)
                self._server.stop()
                self._silent = 0
                self.server_id = self.url = None
        return events.ServerSeen(self.server_id)

    def start(self) -> events.ServerSeen:
        self._server.start()
        self._silent = 0
        self._asked_at = time.monotonic()
        self._note()
        return events.ServerSeen(self.server_id)

    def is_alive(self) -> bool:
        """A quick look, beside another job."""
        try:
            return self.server_id is not None and bool(self._server.attach())
        except Exception:
            log.warning("the Spark server cannot be checked", exc_info=True)
            return True

    def _note(self) -> None:
        state = self._server.state
        self.server_id = f"{state.pid}@{state.mark}"
        self.url = self._server.session_url


class Workers:
    """Shared by the loop's threads; a pipeline is in the hands of one at a time."""

    def __init__(
        self,
        config: Mapping[str, str],
        logs: PipelineLogs,
        watch: ServerWatch,
        folder: ControlFolder,
    ) -> None:
        self._bootstrap_servers = config["bootstrap.servers"]
        self._config = config
        self._logs = logs
        self._watch = watch
        self._secrets = folder.secrets
        self._sessions = Sessions(self._bootstrap_servers, config, folder.secrets)
        connection = connection_config(self._bootstrap_servers, config)
        self._tasks = Tasks(folder.tasks, connection)
        self._applications = Applications(folder.applications, self._sessions, logs, connection)
        self._admin: Admin | None = None
        self._admin_lock = threading.Lock()
        self._mirrored: dict[str, dict[TopicPartition, int]] = {}
        self._mirror_after: dict[str, float] = {}

    def close(self) -> None:
        if self._admin is not None:
            self._admin.close()

    def start(self, record: PipelineRecord, effect: events.Start) -> events.Started:
        if is_application(record.definition):
            started = self._applications.start(record, self._url(), effect.session_id)
            return events.Started(record.name, started)
        if engine_of(record.settings) == TASK:
            definition = self._sessions.definition(record).to_json()
            self._tasks.start(record, definition, effect.session_id)
            return events.Started(record.name, (), "moldau")
        queries, connector = self._sessions.start(record, self._url(), effect.session_id)
        return events.Started(record.name, queries, connector)

    def reattach(self, status: StatusRecord) -> events.Reattached:
        if status.engine == TASK:
            return events.Reattached(status.name, found=self._tasks.goes_on(status))
        session_id = present(status.session_id, f"{status.name} has run in a session")
        found = self._sessions.reattach(status.name, self._url(), session_id, status.queries)
        if found:
            self._applications.reattach(status)
        return events.Reattached(status.name, found)

    def stop(self, status: StatusRecord) -> events.Stopped:
        if status.engine == TASK:
            self._tasks.stop(status)
        elif status.session_id is not None:
            url = self._url()
            self._applications.stop(status)
            self._sessions.close(status.name, url, status.session_id, status.queries)
        self._applications.ended(status.name)
        return events.Stopped(status.name)

    def remove(self, name: str, delete_checkpoint: bool) -> events.Removed:
        """Its record goes last: whatever fails before is tried again."""
        self._sessions.forget(name)
        self._applications.ended(name)

        def gone(present: PipelineRecord | None) -> PipelineRecord | None:
            if present is not None and present.desired is not Desired.DELETED:
                # Its user wants it again.
                return present
            return None

        with Registry(self._bootstrap_servers, config=self._config) as registry:
            record = registry.read().pipelines.get(name)
            if record is not None and record.desired is Desired.DELETED and delete_checkpoint:
                _delete_checkpoint(record.checkpoint)
            if registry.change(name, gone) is None:
                self._tasks.remove(name)
                self._logs.remove(name)
                shutil.rmtree(self._secrets / name, ignore_errors=True)
        return events.Removed(name)

    def look(self, name: str, record: PipelineRecord | None, status: StatusRecord | None) -> Look:
        if status is not None and status.engine == TASK:
            return self._tasks.look(status)
        look = self._sessions.look(name)
        if record is not None and is_application(record.definition):
            return look if status is None else self._applications.look(status, look)
        # Our own source mirrors its offsets itself.
        official = status is not None and status.connector == "kafka"
        if official and look.progress is not None and record is not None:
            self._mirror(record, look.progress)
        return look

    def hand_over(self, name: str, reason: str) -> events.Tick:
        """Let Spark continue a pipeline where its task has stopped: another revision."""

        def moved(present: PipelineRecord | None) -> PipelineRecord | None:
            if present is None or engine_of(present.settings) != TASK:
                return present
            return replace(
                present,
                settings=moved_to_spark(present.settings),
                generation=present.generation + 1,
                revision=present.revision + 1,
                updated_at_ms=int(time.time() * 1000),
            )

        with Registry(self._bootstrap_servers, config=self._config) as registry:
            registry.change(name, moved)
        self._logs.write(name, "INFO", f"continues with micro-batches of Spark: {reason}")
        return events.Tick()

    def explain(self, error: BaseException, record: PipelineRecord | None) -> ErrorRecord:
        """A failure in the user's terms; all that is known is its detail."""
        explained = self._explained(error, record)
        detail = explained.detail or ("" if explained is error else str(error))
        return ErrorRecord(
            message=explained.message,
            where=explained.where,
            hint=explained.hint,
            detail=detail[:_DETAIL_LENGTH_MAX],
            at_ms=int(time.time() * 1000),
        )

    def may_get_better(self, error: BaseException) -> bool:
        """Whether another try may go well with the same definition."""
        return bool(getattr(self._explained(error, None), "retriable", True))

    def _explained(self, error: BaseException, record: PipelineRecord | None) -> PipelineError:
        from moldau.pipelines.machine.explaining import explain

        if isinstance(error, PipelineError):
            return error
        try:
            plain = record is not None and not is_application(record.definition)
            definition = self._sessions.definition(record) if record and plain else None
        except PipelineError:
            definition = None
        return explain(error, definition)

    def _url(self) -> str:
        url = self._watch.url
        if url is None:
            raise ConnectionError("no Spark server runs")
        return url

    def _mirror(self, record: PipelineRecord, progress: Mapping[str, Any]) -> None:
        """Commit for a group what Spark's own connector has read, so that lag tools see it."""
        name = record.name
        group = mirror_group(record.definition)
        offsets = read_offsets(progress)
        if group is None or not offsets or self._mirrored.get(name) == offsets:
            return
        if time.monotonic() < self._mirror_after.get(name, 0.0):
            return
        try:
            self._admin_client().alter_consumer_group_offsets(
                group,
                {partition: OffsetAndMetadata(offset) for partition, offset in offsets.items()},
                timeout=_MIRROR_SECONDS_MAX,
            )
        except KafkaError as error:
            self._mirror_after[name] = time.monotonic() + _MIRROR_RETRY_SECONDS
            self._logs.write(name, "WARN", f"offsets cannot be committed to {group}: {error}")
            return
        self._mirrored[name] = offsets

    def _admin_client(self) -> Admin:
        with self._admin_lock:
            if self._admin is None:
                self._admin = Admin(connection_config(self._bootstrap_servers, self._config))
            return self._admin


def _delete_checkpoint(checkpoint: str) -> None:
    scheme, separator, rest = checkpoint.partition("://")
    if separator and scheme != "file":
        raise PipelineError(
            f"the checkpoint {checkpoint} is not on this machine", hint="delete it by hand"
        )
    shutil.rmtree(Path(rest if separator else checkpoint), ignore_errors=True)
