"""What the registry holds of a pipeline, and how that is written as JSON.

Two keys per pipeline: `name` is what its users want (definition, desired state) and `name/status`
is what the control loop made of it. Users and loop never write the same key, so neither can undo
the other. Invariants: a `generation` grows with every change a user makes; a `revision`
grows when the queries must be started again for it (another definition, or `restart`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

__all__ = [
    "FORMAT_VERSION",
    "STATUS_SUFFIX",
    "Desired",
    "ErrorRecord",
    "PipelineRecord",
    "ProgressRecord",
    "QueryRecord",
    "State",
    "StatusRecord",
    "UnreadableRecordError",
    "View",
    "name_problem",
]

FORMAT_VERSION: Final = 1
STATUS_SUFFIX: Final = "/status"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NAME_LENGTH_MAX = 200


class Desired(StrEnum):
    """What the user wants of a pipeline."""

    RUNNING = "running"
    STOPPED = "stopped"
    #: Stop it, then forget it.
    DELETED = "deleted"


class State(StrEnum):
    """What a pipeline does.

    starting -> running -> stopping -> stopped, or finished where the data was bounded; after a
    failure restarting until the next try, or failed where no try can help before a change.
    """

    STARTING = "starting"
    RUNNING = "running"
    RESTARTING = "restarting"
    FAILED = "failed"
    FINISHED = "finished"
    STOPPING = "stopping"
    STOPPED = "stopped"


class UnreadableRecordError(ValueError):
    """A record that this version cannot read; the text says why."""


def name_problem(name: object) -> str | None:
    """Why this cannot name a pipeline, or None. Names become files, queries and parts of keys."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return (
            f"{name!r} cannot name a pipeline: use letters, digits, '.', '_' and '-', "
            "beginning with a letter or digit"
        )
    if len(name) > _NAME_LENGTH_MAX:
        return f"a pipeline's name has at most {_NAME_LENGTH_MAX} characters, this has {len(name)}"
    if name.endswith(".dead-letter"):
        return f"{name!r} is the name of a query for bad records: choose one without '.dead-letter'"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRecord:
    """What users want: the value under the pipeline's name."""

    name: str
    definition: Mapping[str, Any]
    desired: Desired
    checkpoint: str
    #: The deployment whose control loop runs it: two loops must not run the same pipeline.
    deployment: str
    generation: int
    revision: int
    #: Whether its queries end by themselves.
    finite: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    delete_checkpoint: bool = False
    updated_at_ms: int = 0

    def to_bytes(self) -> bytes:
        return _to_bytes(asdict(self))

    @classmethod
    def from_bytes(cls, value: bytes) -> PipelineRecord:
        fields = _fields(value)
        try:
            return cls(**(_known(cls, fields) | {"desired": Desired(fields["desired"])}))
        except (KeyError, TypeError, ValueError) as error:
            raise UnreadableRecordError(f"not a pipeline's record: {error}") from None


@dataclass(frozen=True, slots=True)
class QueryRecord:
    """A query by Spark's ids: `id` is the checkpoint's, `run_id` is new with each start."""

    name: str
    id: str
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRecord:
    """The last thing that went wrong. `where` is a line of the user's, if one is known."""

    message: str
    where: str | None = None
    hint: str | None = None
    detail: str = ""
    at_ms: int = 0

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressRecord:
    """The latest batch of a pipeline's main query."""

    batch_id: int
    input_rows: int = 0
    input_rows_per_second: float | None = None
    processed_rows_per_second: float | None = None
    lag_records: int | None = None
    lag_seconds: float | None = None
    #: Rows that its sink has taken; None where the sink does not count them.
    output_rows: int | None = None
    #: What the batch spent its time with, by Spark's names such as `addBatch`, in milliseconds.
    durations_ms: Mapping[str, int] = field(default_factory=dict)
    #: While it works off a backlog: the part of it that is done, and how long the rest takes.
    backlog_done: float | None = None
    seconds_left: float | None = None
    at: str = ""

    @property
    def batch_seconds(self) -> float | None:
        """How long the batch took; None before it is known."""
        total = self.durations_ms.get("triggerExecution")
        return None if total is None else total / 1000

    @property
    def output_rows_per_second(self) -> float | None:
        if self.output_rows is None or not self.batch_seconds:
            return None
        return self.output_rows / self.batch_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusRecord:
    """What the control loop made of it: the value under `name/status`."""

    name: str
    state: State
    #: The revision that runs, or that failed.
    revision: int = 0
    #: Failures in a row: 0 again after it has run for a minute.
    attempts: int = 0
    #: How often it was started again by itself since its user started it.
    restarts: int = 0
    retry_at_ms: int | None = None
    since_ms: int = 0
    server_id: str | None = None
    session_id: str | None = None
    queries: tuple[QueryRecord, ...] = ()
    connector: str | None = None
    last_error: ErrorRecord | None = None
    progress: ProgressRecord | None = None
    #: What its main query does just now.
    activity: str | None = None
    #: `task` for a pipeline that runs without Spark.
    engine: str | None = None
    #: How many instances of a hosted application run.
    instances_running: int | None = None
    updated_at_ms: int = 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def to_bytes(self) -> bytes:
        return _to_bytes(self.to_json())

    @classmethod
    def from_bytes(cls, value: bytes) -> StatusRecord:
        return cls.from_json(_fields(value))

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> StatusRecord:
        error, progress = fields.get("last_error"), fields.get("progress")
        try:
            return replace(
                cls(**(_known(cls, fields) | {"state": State(fields["state"])})),
                queries=tuple(QueryRecord(**query) for query in fields.get("queries", ())),
                last_error=error and ErrorRecord(**_known(ErrorRecord, error)),
                progress=progress and ProgressRecord(**_known(ProgressRecord, progress)),
            )
        except (KeyError, TypeError, ValueError) as failure:
            raise UnreadableRecordError(f"not a pipeline's status: {failure}") from None


class View:
    """The registry as its records describe it, the latest of each key."""

    def __init__(self) -> None:
        self.pipelines: dict[str, PipelineRecord] = {}
        self.statuses: dict[str, StatusRecord] = {}
        #: Names whose record this version cannot read, and why.
        self.unreadable: dict[str, str] = {}

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        """Replay a record. A record that we did not write is ignored."""
        name = (key or b"").decode("utf-8", "replace")
        if name.endswith(STATUS_SUFFIX):
            self._apply_status(name.removesuffix(STATUS_SUFFIX), value)
        elif name_problem(name) is None:
            self._apply_pipeline(name, value)

    def _apply_pipeline(self, name: str, value: bytes | None) -> None:
        self.unreadable.pop(name, None)
        self.pipelines.pop(name, None)
        if value is None:
            return
        try:
            record = PipelineRecord.from_bytes(value)
        except UnreadableRecordError as error:
            self.unreadable[name] = str(error)
        else:
            self.pipelines[name] = record

    def _apply_status(self, name: str, value: bytes | None) -> None:
        self.statuses.pop(name, None)
        if value is None:
            return
        try:
            self.statuses[name] = StatusRecord.from_bytes(value)
        except UnreadableRecordError:
            # A status holds only what was; the loop finds out again what is.
            return


def _to_bytes(fields: Mapping[str, Any]) -> bytes:
    return json.dumps({"version": FORMAT_VERSION, **fields}, separators=(",", ":")).encode()


def _fields(value: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(value)
    except ValueError:
        raise UnreadableRecordError("the record is not JSON") from None
    if not isinstance(fields, dict):
        raise UnreadableRecordError("the record is not a JSON object")
    version = fields.get("version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise UnreadableRecordError(
            f"the record has version {version}, this Moldau reads up to {FORMAT_VERSION}: update it"
        )
    return fields


def _known(cls: type, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Without what a later Moldau added: that has to be harmless while the version stays."""
    names = cls.__dataclass_fields__  # type: ignore[attr-defined]
    return {name: value for name, value in fields.items() if name in names}
