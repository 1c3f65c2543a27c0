"""What an instance reports of itself, and what the reports of all instances say together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final

__all__ = ["SILENT_MS_MAX", "InstanceBeat", "InstanceState", "Summary", "summary_of"]

#: An instance that has reported nothing for so long hangs, or its worker is gone.
SILENT_MS_MAX: Final = 30_000
_ERROR_LENGTH_MAX: Final = 4_000


class InstanceState(StrEnum):
    """running -> stopping -> ended; after a failure waiting until the next try."""

    WAITING = "waiting"
    RUNNING = "running"
    STOPPING = "stopping"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceBeat:
    """The last report of one instance in one run of its application."""

    instance: int
    run: str
    pid: int
    mark: str
    state: InstanceState
    at_ms: int
    since_ms: int
    #: Failures in a row.
    failures: int = 0
    error: str | None = None
    detail: str = ""
    error_at_ms: int = 0
    #: How often it was started again in this run.
    restarts: int = 0
    #: What the program itself reports.
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> InstanceBeat:
        """Raises ValueError if it is not one."""
        fields = json.loads(text)
        try:
            known = {name: fields[name] for name in cls.__dataclass_fields__ if name in fields}
            return cls(**(known | {"state": InstanceState(fields["state"])}))
        except (KeyError, TypeError) as error:
            raise ValueError(f"not the report of an instance: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """An application as its instances report it."""

    instances: int
    running: int
    ended: int
    activity: str
    #: Of the instance that has failed most often in a row.
    error: str | None = None
    detail: str = ""
    error_at_ms: int = 0
    failures: int = 0
    #: Of all instances together.
    restarts: int = 0

    @property
    def all_run(self) -> bool:
        return self.running == self.instances


def summary_of(beats: Iterable[InstanceBeat], *, instances: int, run: str, now_ms: int) -> Summary:
    """Of the instances of `run`; reports of earlier runs do not count."""
    current = [each for each in beats if each.run == run and each.instance < instances]
    heard = [each for each in current if now_ms - each.at_ms <= SILENT_MS_MAX]
    running = [each for each in heard if each.state is InstanceState.RUNNING]
    ended = [each for each in current if each.state is InstanceState.ENDED]
    silent = [
        each for each in current if each not in heard and each.state is not InstanceState.ENDED
    ]
    failing = [each for each in heard if each.failures]
    parts = [f"{len(running)} of {instances} instances run"]
    if failing:
        parts.append(f"{len(failing)} failing")
    if silent:
        numbers = ", ".join(str(each.instance) for each in silent)
        parts.append(f"no report from {numbers} for {SILENT_MS_MAX // 1000} s")
    if len(current) < instances:
        parts.append(f"{instances - len(current)} not started")
    worst = max(failing, key=lambda each: each.failures, default=None)
    return Summary(
        instances=instances,
        running=len(running),
        ended=len(ended),
        activity=", ".join(parts),
        error=None if worst is None else f"instance {worst.instance}: {worst.error}",
        detail="" if worst is None else worst.detail[:_ERROR_LENGTH_MAX],
        error_at_ms=0 if worst is None else worst.error_at_ms,
        failures=0 if worst is None else worst.failures,
        restarts=sum(each.restarts for each in current),
    )
