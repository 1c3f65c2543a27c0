"""Words and numbers of `moldau pipelines`: how a pipeline is, in a few characters."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from moldau.pipelines.api import PipelineInfo
    from moldau.pipelines.machine.records import ProgressRecord

__all__ = [
    "COLOURS",
    "PHASES",
    "age",
    "as_json",
    "condition",
    "engine",
    "number",
    "phase_ms",
    "phases",
    "reason",
    "seconds",
    "short",
    "span",
    "time_left",
]

_ERROR_LENGTH_MAX: Final = 400
#: The phases of a batch for people, and what Spark calls the parts of each.
PHASES: Final = {
    "find": ("latestOffset", "getBatch"),
    "plan": ("queryPlanning",),
    "run": ("addBatch",),
    "commit": ("walCommit", "commitOffsets", "commitBatch"),
}

COLOURS: Final = {
    "running": "green",
    "starting": "cyan",
    "stopping": "cyan",
    "restarting": "yellow",
    "recovering": "yellow",
    "failing": "bold red",
    "failed": "bold red",
    "finished": "dim",
    "stopped": "dim",
}


def engine(info: PipelineInfo) -> str:
    """What runs it: micro-batches of Spark, or instances of a program."""
    return info.engine if info.instances is None else f"{info.instances} hosted"


def condition(info: PipelineInfo) -> str:
    """Its state for people: a pipeline that keeps failing is not simply running."""
    if info.attempts and info.desired == "running":
        if info.state == "running":
            return "recovering" if info.attempts == 1 else "failing"
        if info.state in ("stopping", "starting"):
            return "restarting"
    return info.state


def reason(info: PipelineInfo) -> str | None:
    """Why it is not well, with the age of the error; None if it is."""
    error = info.last_error
    if condition(info) not in ("failed", "restarting", "recovering", "failing"):
        return None
    # A pipeline that has lost its server keeps the error of an earlier failure.
    if error is None or (info.state != "failed" and not info.attempts):
        return "it starts again as soon as Spark is ready"
    times = f", {info.attempts} times in a row" if info.attempts > 1 else ""
    hint = f" ({error.hint})" if error.hint else ""
    return f"{short(str(error))}{hint} [{age(error.at_ms)} ago{times}]"


def age(since_ms: int | None) -> str:
    return span(time.time() - since_ms / 1000) if since_ms else "-"


def span(value: float) -> str:
    """A time in its two largest units."""
    whole = max(0, int(value))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86400}d{whole % 86400 // 3600}h"


def time_left(progress: ProgressRecord | None) -> str:
    """Until a backlog is worked off: `-` without one, `?` while it does not shrink."""
    if progress is None or progress.backlog_done is None:
        return "-"
    return "?" if progress.seconds_left is None else span(progress.seconds_left)


def phase_ms(progress: ProgressRecord | None, phase: str) -> int | None:
    """How long the latest batch spent in a phase; None where it is not known."""
    if progress is None:
        return None
    found = [progress.durations_ms[name] for name in PHASES[phase] if name in progress.durations_ms]
    return sum(found) if found else None


def phases(progress: ProgressRecord) -> str:
    """All of them in one line."""
    known = ((phase, phase_ms(progress, phase)) for phase in PHASES)
    parts = [f"{phase} {ms} ms" for phase, ms in known if ms is not None]
    total = progress.batch_seconds
    return ", ".join([*parts, *([] if total is None else [f"in all {total * 1000:.0f} ms"])])


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} s"


def short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _ERROR_LENGTH_MAX else f"{line[:_ERROR_LENGTH_MAX]} ..."


def as_json(info: PipelineInfo) -> dict[str, object]:
    from moldau.pipelines.definition.secrets import without_secrets

    return asdict(info) | {"definition": without_secrets(info.definition)}
