"""Pipelines from Python: start, stop, watch.

    from moldau.pipelines import Pipelines

    with Pipelines("127.0.0.1:9092") as pipelines:
        pipelines.start("big-orders.yaml")
        print(pipelines.show("big-orders").state)

What is wanted is written to the registry; the control loop of the deployment folder brings it
about, started here if it does not run. Every call blocks, for a bounded time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from moldau.invariant import present
from moldau.pipelines import daemon
from moldau.pipelines.control.folder import ControlFolder
from moldau.pipelines.control.logs import follow, is_headline, tail
from moldau.pipelines.errors import PipelineError, UnknownPipeline
from moldau.pipelines.machine.applications import ApplicationDefinition, is_application
from moldau.pipelines.machine.records import (
    Desired,
    ErrorRecord,
    PipelineRecord,
    ProgressRecord,
    QueryRecord,
    State,
    StatusRecord,
    View,
)
from moldau.pipelines.registry import Registry
from moldau.pipelines.tasks.machine.choosing import choose, engine_of
from moldau.pipelines.tasks.machine.expressions import NotTranslated
from moldau.spark.runtime.places import DEFAULT_FOLDER

if TYPE_CHECKING:
    from moldau.pipelines.definition.pipeline import Pipeline

__all__ = ["PipelineInfo", "Pipelines"]

_POLL_SECONDS: Final = 0.1
# A server may have to be started first.
TIMEOUT_SECONDS: Final = 180.0
# How long a query that has just started is watched for failing in its first batch.
_SETTLE_SECONDS: Final = 60.0
# Spark gives a Python process ten seconds to start, which a busy machine may need for its imports
# alone. That says nothing about the pipeline, which is started again.
_TOO_BUSY: Final = "failed to connect back"
# Who has done nothing else for so long has no first batch to fail in.
_IDLE: Final = ("looking for records", "waiting for records", "waiting for the next trigger")
_IDLE_SECONDS: Final = 2.5


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineInfo:
    """A pipeline: what is wanted of it and what it does."""

    name: str
    desired: str
    state: str
    definition: Mapping[str, Any]
    checkpoint: str
    deployment: str
    generation: int
    revision: int
    finite: bool
    #: Failures in a row, 0 again after a minute without one.
    attempts: int = 0
    #: How often it was started again by itself.
    restarts: int = 0
    since_ms: int | None = None
    retry_at_ms: int | None = None
    connector: str | None = None
    session_id: str | None = None
    queries: tuple[QueryRecord, ...] = ()
    progress: ProgressRecord | None = None
    activity: str | None = None
    #: `spark`, or `task` for a pipeline that runs without Spark.
    engine: str = "spark"
    #: Of a hosted application: how many instances are wanted, and how many run.
    instances: int | None = None
    instances_running: int | None = None
    last_error: ErrorRecord | None = None
    updated_at_ms: int = 0
    #: Why its state may be out of date: no control loop runs.
    stale: str | None = None


class Pipelines:
    """The pipelines of a cluster, run from one deployment folder. Not for several threads."""

    def __init__(
        self,
        bootstrap_servers: str | None = None,
        *,
        folder: str | os.PathLike[str] = DEFAULT_FOLDER,
        config: Mapping[str, Any] | None = None,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        """Without `bootstrap_servers` the cluster is the one that the folder's loop works with.

        `config` are settings of the client, such as `request.timeout.ms`.
        """
        self._folder = ControlFolder(folder)
        known = self._folder.cluster or {}
        servers = bootstrap_servers or known.get("bootstrap.servers")
        if servers is None:
            raise PipelineError(
                f"{self._folder.path} has no cluster yet", hint="give the addresses of its brokers"
            )
        self._bootstrap_servers = servers
        self._config = {str(key): str(value) for key, value in (config or known).items()}
        self._timeout = timeout
        self._registry = Registry(servers, config=self._config)

    def __enter__(self) -> Pipelines:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._registry.close()

    @property
    def cluster(self) -> dict[str, str]:
        """The settings with which clients reach the cluster."""
        return {**self._config, "bootstrap.servers": self._bootstrap_servers}

    # Looking.

    def list(self) -> list[PipelineInfo]:
        """All pipelines of the cluster, by name."""
        view = self._registry.read()
        looked = _Looked(self._folder, view)
        return [looked.info(view.pipelines[name]) for name in sorted(view.pipelines)]

    def show(self, name: str) -> PipelineInfo:
        view = self._registry.read()
        record = view.pipelines.get(name)
        if record is None:
            raise _unknown(name, view)
        return _Looked(self._folder, view).info(record)

    def logs(
        self,
        name: str,
        *,
        lines: int | None = None,
        follow: bool = False,
        detail: bool = False,
    ) -> Iterator[str]:
        """The last `lines` of its log, or all; with `follow` then those to come, until it is gone.

        With `detail` errors come with all that is known, stacks of Java's included. The log is in
        the folder of the deployment that runs the pipeline.
        """
        record = self._registry.read().pipelines.get(name)
        path = self._folder.logs / f"{name}.log"
        if record is None and not path.exists():
            raise _unknown(name, self._registry.view)
        if record is not None:
            self._check_deployment(record)
        keep = (lambda line: True) if detail else is_headline
        return self._follow(name, path, lines, keep) if follow else tail(path, lines, keep)

    def _follow(
        self, name: str, path: Path, lines: int | None, keep: Callable[[str], bool]
    ) -> Iterator[str]:
        def is_gone() -> bool:
            return name not in self._registry.read().pipelines

        return follow(path, lines, keep, until=is_gone)

    def wait(self, name: str, *states: State | str, timeout: float | None = None) -> PipelineInfo:
        """Until the pipeline is in one of `states`; PipelineError if that takes too long."""
        wanted = {State(state) for state in states or (State.RUNNING,)}
        limit = self._timeout if timeout is None else timeout
        deadline = time.monotonic() + limit
        while True:
            info = self.show(name)
            if info.state in wanted and info.stale is None:
                return info
            if time.monotonic() > deadline:
                raise self._too_late(info, " or ".join(sorted(wanted)), limit)
            time.sleep(_POLL_SECONDS)

    # Changing.

    def start(
        self,
        definition: Pipeline | str | os.PathLike[str],
        *,
        wait: bool = True,
        timeout: float | None = None,
    ) -> PipelineInfo:
        """Start a pipeline: a definition, a file with one, or the name of one that is known.

        One that runs with another definition is started again from its checkpoint. With `wait` it
        runs, or has finished, when this returns; where it fails that is a PipelineError.
        """
        made = self._definition(definition)
        if made is None:
            record = self._want(str(definition), Desired.RUNNING)
        else:
            _check(made)
            record = self._declare(
                made.name, made.to_json(), checkpoint=_checkpoint_of(made), finite=made.finite
            )
        return self._started(record, wait=wait, timeout=timeout)

    def start_application(
        self,
        application: ApplicationDefinition,
        *,
        wait: bool = True,
        timeout: float | None = None,
    ) -> PipelineInfo:
        """Start a hosted application; one that runs otherwise is started again."""
        folder = str(self._folder.applications / application.name)
        record = self._declare(application.name, application.to_json(), checkpoint=folder)
        return self._started(record, wait=wait, timeout=timeout)

    def scale(
        self, name: str, instances: int, *, wait: bool = True, timeout: float | None = None
    ) -> PipelineInfo:
        """Run a hosted application with another number of instances."""
        definition = self.show(name).definition
        if not is_application(definition):
            raise PipelineError(
                f"{name} is a pipeline and has no instances",
                hint="its topics' partitions are spread over all of Spark's slots",
            )
        scaled = replace(ApplicationDefinition.from_json(definition), instances=instances)
        return self.start_application(scaled, wait=wait, timeout=timeout)

    def stop(self, name: str, *, wait: bool = True, timeout: float | None = None) -> PipelineInfo:
        """Stop it; its definition and its checkpoint stay, so that it can go on later."""
        self._want(name, Desired.STOPPED)
        self._ensure_running()
        return self.wait(name, State.STOPPED, timeout=timeout) if wait else self.show(name)

    def restart(
        self, name: str, *, wait: bool = True, timeout: float | None = None
    ) -> PipelineInfo:
        """Stop it and start it from its checkpoint, whatever it does now."""
        record = self._want(name, Desired.RUNNING, anew=True)
        return self._started(record, wait=wait, timeout=timeout)

    def delete(
        self,
        name: str,
        *,
        checkpoint: bool = False,
        wait: bool = True,
        timeout: float | None = None,
    ) -> None:
        """Stop and forget it; with `checkpoint` also how far it has come."""
        self._want(name, Desired.DELETED, delete_checkpoint=checkpoint)
        self._ensure_running()
        limit = self._timeout if timeout is None else timeout
        deadline = time.monotonic() + limit
        while wait and name in (view := self._registry.read()).pipelines:
            if time.monotonic() > deadline:
                info = _Looked(self._folder, view).info(view.pipelines[name])
                raise self._too_late(info, "deleted", limit)
            time.sleep(_POLL_SECONDS)

    # How.

    def _definition(self, given: Pipeline | str | os.PathLike[str]) -> Pipeline | None:
        """None for a name of the registry."""
        if not isinstance(given, str | os.PathLike):
            return given
        from moldau.pipelines.definition import Definition

        path = Path(given)
        if path.suffix in (".yaml", ".yml") or isinstance(given, os.PathLike):
            return Definition.load(path)
        if str(given) not in self._registry.read().pipelines and path.is_file():
            return Definition.load(path)
        return None

    def _started(
        self, record: PipelineRecord, *, wait: bool, timeout: float | None
    ) -> PipelineInfo:
        self._ensure_running()
        if not wait:
            return self.show(record.name)
        return self._wait_until_started(record, timeout)

    def _declare(
        self,
        name: str,
        fields: Mapping[str, Any],
        *,
        checkpoint: str | None = None,
        finite: bool = False,
    ) -> PipelineRecord:
        """Write the definition down; it is a new revision if it differs from the last."""
        checkpoint = checkpoint or str(self._folder.checkpoints / name)

        def change(present: PipelineRecord | None) -> PipelineRecord:
            self._check_checkpoint(name, checkpoint)
            if present is None:
                return PipelineRecord(
                    name=name,
                    definition=fields,
                    desired=Desired.RUNNING,
                    checkpoint=checkpoint,
                    deployment=self._folder.deployment,
                    generation=1,
                    revision=1,
                    finite=finite,
                    settings=_engine(fields, None, checkpoint),
                    updated_at_ms=_now_ms(),
                )
            self._check_deployment(present)
            settings = _engine(fields, present, checkpoint)
            moved = settings.get("engine") != engine_of(present.settings)
            changed = present.definition != fields or moved or self._is_over(present)
            return replace(
                present,
                definition=fields,
                desired=Desired.RUNNING,
                checkpoint=checkpoint,
                generation=present.generation + 1,
                revision=present.revision + changed,
                finite=finite,
                settings=settings,
                delete_checkpoint=False,
                updated_at_ms=_now_ms(),
            )

        return self._changed(name, change)

    def _want(
        self,
        name: str,
        desired: Desired,
        *,
        anew: bool = False,
        delete_checkpoint: bool = False,
    ) -> PipelineRecord:
        def change(present: PipelineRecord | None) -> PipelineRecord:
            if present is None:
                raise _unknown(name, self._registry.view)
            self._check_deployment(present)
            again = desired is Desired.RUNNING and (anew or self._is_over(present))
            return replace(
                present,
                desired=desired,
                generation=present.generation + 1,
                revision=present.revision + again,
                delete_checkpoint=delete_checkpoint,
                updated_at_ms=_now_ms(),
            )

        return self._changed(name, change)

    def _changed(self, name: str, change: Any) -> PipelineRecord:
        return present(self._registry.change(name, change), f"{name} was changed, not removed")

    def _is_over(self, record: PipelineRecord) -> bool:
        """Whether it failed or finished: started once more, it is to try once more."""
        status = self._registry.view.statuses.get(record.name)
        over = (State.FAILED, State.FINISHED, State.RESTARTING)
        return status is not None and status.state in over

    def _check_checkpoint(self, name: str, checkpoint: str) -> None:
        """Two pipelines in one checkpoint would each take the other's offsets for its own."""
        for other, record in self._registry.view.pipelines.items():
            if other != name and record.checkpoint.rstrip("/") == checkpoint.rstrip("/"):
                raise PipelineError(
                    f"the checkpoint {checkpoint} is that of the pipeline {other}",
                    hint="give each pipeline its own, or leave `checkpoint` out",
                )

    def _check_deployment(self, record: PipelineRecord) -> None:
        if record.deployment != self._folder.deployment:
            raise PipelineError(
                f"{record.name} belongs to another deployment, with its checkpoint in "
                f"{record.checkpoint}",
                hint="use that deployment's folder",
            )

    def _ensure_running(self) -> None:
        daemon.ensure_running(self._folder.path, self._bootstrap_servers, config=self._config)

    def _wait_until_started(self, record: PipelineRecord, timeout: float | None) -> PipelineInfo:
        limit = self._timeout if timeout is None else timeout
        deadline = time.monotonic() + limit
        running_since: float | None = None
        idle_since: float | None = None
        while True:
            info = self.show(record.name)
            status = _Looked(self._folder, self._registry.view).status(record.name)
            # Messages of an earlier revision are no answer to this start. A later one is: the loop
            # makes it when it hands a task over to Spark.
            current = status is not None and status.revision >= record.revision
            if current and _has_failed(info):
                raise _failed(info)
            if current and info.state == State.FINISHED:
                return info
            if current and info.state == State.RUNNING and info.stale is None:
                if info.instances is not None and info.instances == info.instances_running:
                    return info
                now = time.monotonic()
                running_since = now if running_since is None else running_since
                idle_since = (idle_since or now) if info.activity in _IDLE else None
                has_begun = info.instances is None and info.progress is not None
                if has_begun or now - running_since > _SETTLE_SECONDS:
                    return info
                if idle_since is not None and now - idle_since > _IDLE_SECONDS:
                    return info
            if time.monotonic() > deadline:
                raise self._too_late(info, State.RUNNING, limit)
            time.sleep(_POLL_SECONDS)

    def _too_late(self, info: PipelineInfo, wanted: str, seconds: float) -> PipelineError:
        heartbeat = self._folder.heartbeat()
        reason = info.stale or (heartbeat.problem if heartbeat is not None else None)
        if reason is None and info.last_error is not None:
            reason = str(info.last_error)
        because = f": {reason}" if reason else ""
        return PipelineError(
            f"{info.name} is not {wanted} after {seconds:g} s but {info.state}{because}",
            hint=f"moldau pipelines logs {info.name}, or {self._folder.output}",
        )


class _Looked:
    """Statuses from the registry and from the loop's heartbeat, the newer of both."""

    def __init__(self, folder: ControlFolder, view: View) -> None:
        self._view = view
        self._deployment = folder.deployment if folder.path.exists() else None
        self._alive = folder.is_locked()
        heartbeat = folder.heartbeat()
        self._beats = {} if heartbeat is None or not self._alive else heartbeat.statuses()

    def status(self, name: str) -> StatusRecord | None:
        written, beat = self._view.statuses.get(name), self._beats.get(name)
        if written is None or beat is None:
            return written or beat
        return max(written, beat, key=lambda status: status.updated_at_ms)

    def info(self, record: PipelineRecord) -> PipelineInfo:
        status = self.status(record.name)
        own = record.deployment == self._deployment
        stale = None
        if own and not self._alive and record.desired is not Desired.STOPPED:
            stale = "the control loop does not run"
        return PipelineInfo(
            name=record.name,
            desired=record.desired.value,
            state=_shown_state(record, status).value,
            definition=record.definition,
            checkpoint=record.checkpoint,
            deployment=record.deployment,
            generation=record.generation,
            revision=record.revision,
            finite=record.finite,
            attempts=0 if status is None else status.attempts,
            restarts=0 if status is None else status.restarts,
            since_ms=None if status is None else status.since_ms,
            retry_at_ms=None if status is None else status.retry_at_ms,
            connector=None if status is None else status.connector,
            session_id=None if status is None else status.session_id,
            queries=() if status is None else status.queries,
            progress=None if status is None else status.progress,
            activity=None if status is None else status.activity,
            engine=engine_of(record.settings),
            instances=_instances(record.definition),
            instances_running=None if status is None else status.instances_running,
            last_error=None if status is None else status.last_error,
            updated_at_ms=max(record.updated_at_ms, 0 if status is None else status.updated_at_ms),
            stale=stale,
        )


def _shown_state(record: PipelineRecord, status: StatusRecord | None) -> State:
    """What is about to happen counts: after a start is requested its state is already starting."""
    state = State.STOPPED if status is None else status.state
    if record.desired is Desired.RUNNING:
        waits = status is None or status.revision != record.revision
        if state is State.STOPPED or (waits and state in (State.FAILED, State.FINISHED)):
            return State.STARTING
    elif state in (State.RUNNING, State.STARTING):
        return State.STOPPING
    return state


def _engine(
    fields: Mapping[str, Any], present: PipelineRecord | None, checkpoint: str
) -> Mapping[str, Any]:
    if is_application(fields):
        return {}
    from moldau.pipelines.tasks.offsets import has_checkpoint

    try:
        return choose(
            fields,
            None if present is None else present.settings,
            has_checkpoint=has_checkpoint(checkpoint),
        )
    except NotTranslated as error:
        raise PipelineError(
            f"engine: task cannot run {fields['name']}: {error}",
            hint="leave `engine` out, or write engine: spark",
        ) from None


def _instances(definition: Mapping[str, Any]) -> int | None:
    if not is_application(definition):
        return None
    return ApplicationDefinition.from_json(definition).instances


def _checkpoint_of(definition: Pipeline) -> str | None:
    """The definition's own checkpoint, as the server finds it."""
    own = definition.checkpoint
    if own is None or "://" in own:
        return own
    return str(Path(definition.base) / own)


def _check(definition: Pipeline) -> None:
    from moldau.pipelines import build

    build.check(definition)


def _has_failed(info: PipelineInfo) -> bool:
    """Whether a start that is waited for has failed, which is raised."""
    if info.last_error is None:
        return False
    if info.state == State.RESTARTING:
        return _TOO_BUSY not in info.last_error.message
    if info.state == State.RUNNING:
        return (info.instances is not None or info.engine == "task") and info.attempts > 0
    return info.state == State.FAILED


def _failed(info: PipelineInfo) -> PipelineError:
    error = present(info.last_error, f"{info.name} has failed with an error")
    hint = error.hint
    if hint is None and info.state in (State.RESTARTING, State.RUNNING):
        hint = f"it is retried: moldau pipelines show {info.name}"
    return PipelineError(
        f"{info.name} failed: {error.message}" if error.where is None else error.message,
        where=error.where,
        hint=hint,
        detail=error.detail,
    )


def _unknown(name: str, view: View) -> PipelineError:
    if name in view.unreadable:
        return PipelineError(f"the record of {name} cannot be read: {view.unreadable[name]}")
    from moldau.config.suggestions import did_you_mean

    guess = did_you_mean(name, view.pipelines).strip() or "moldau pipelines list"
    return UnknownPipeline(f"there is no pipeline {name}", hint=guess)


def _now_ms() -> int:
    return int(time.time() * 1000)
