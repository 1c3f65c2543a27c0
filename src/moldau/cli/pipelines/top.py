"""`moldau pipelines top`: all pipelines on one screen, drawn again and again.

A thread of its own asks the cluster, so that the screen is drawn on time whatever the cluster does:
while no broker answers, it shows what the control loop of this deployment wrote last.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from moldau.cli.pipelines import texts
from moldau.cli.support.arguments import Commands
from moldau.cli.support.connecting import Unreachable
from moldau.cli.support.failures import ToolError
from moldau.cli.support.tables import Table, aligned, on_terminal, print_json

if TYPE_CHECKING:
    from rich.console import RenderableType

    from moldau.pipelines.api import PipelineInfo, Pipelines

__all__ = ["Reading", "add_top", "run_top", "table_of"]

_HEADERS: Final = (
    *("NAME", "STATE", "FOR", "RESTARTS", "IN/S", "OUT/S", "LAG", "BEHIND", "DONE", "LEFT"),
    *("BATCH", *(f"{phase.upper()} MS" for phase in texts.PHASES), "ALL MS"),
)
# A reading that is older than this many intervals is not shown as the present.
_OLD_INTERVALS: Final = 3
_OLD_SECONDS_MIN: Final = 5.0

Open = Callable[[argparse.Namespace], AbstractContextManager["Pipelines"]]


def add_top(commands: Commands) -> None:
    top = commands.add(
        "top",
        "watch all pipelines: rates, lag, phases of batches, errors",
        description="watch all pipelines on one screen: rows read and written per second, lag, how "
        "much of a backlog is done and how long the rest takes, the phases of the latest batch, "
        "restarts and errors. While no broker answers, the states are those that the control loop "
        "wrote last. Ctrl-C ends it.",
    )
    top.add_argument("--once", action="store_true", help="print one table and exit")
    top.add_argument(
        "--interval", type=float, default=1.0, metavar="S", help="seconds between two readings"
    )
    top.add_argument("--count", type=int, metavar="N", help="end after N readings")


@dataclass(frozen=True, slots=True)
class Reading:
    """The pipelines at a time of `time.monotonic`, and why they are not the cluster's own word."""

    infos: list[PipelineInfo]
    at_s: float
    problem: str | None = None


def run_top(arguments: argparse.Namespace, open_pipelines: Open) -> int:
    if arguments.interval <= 0:
        raise ToolError("--interval must be more than 0 seconds")
    if arguments.once:
        return _print(_read_once(arguments, open_pipelines), arguments)
    looker = _Looker(arguments, open_pipelines)
    try:
        if on_terminal() and not arguments.json:
            return _draw(looker, arguments)
        for _ in _ticks(arguments):
            _print(looker.reading(), arguments)
        return 0
    except KeyboardInterrupt:
        return 0
    finally:
        looker.close()


def _ticks(arguments: argparse.Namespace) -> Any:
    """One for each reading that is wanted, an interval apart."""
    done = 0
    while arguments.count is None or done < arguments.count:
        if done:
            time.sleep(arguments.interval)
        yield done
        done += 1


def _read_once(arguments: argparse.Namespace, open_pipelines: Open) -> Reading:
    try:
        with open_pipelines(arguments) as pipelines:
            return Reading(pipelines.list(), time.monotonic())
    except Unreachable as error:
        return _stored(arguments, error)


def _stored(arguments: argparse.Namespace, error: ToolError) -> Reading:
    from moldau.pipelines.stored import stored_infos

    found = stored_infos(arguments.data)
    if found is None:
        raise error
    infos, seconds = found
    problem = f"{error} These states are those that the control loop wrote {seconds:.0f} s ago."
    return Reading(infos, time.monotonic(), problem)


class _Looker:
    """Asks the cluster in a thread of its own; the first answer is waited for."""

    def __init__(self, arguments: argparse.Namespace, open_pipelines: Open) -> None:
        self._arguments = arguments
        self._open = open_pipelines
        self._latest = _read_once(arguments, open_pipelines)
        self._problem: ToolError = ToolError("No broker answers.")
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._look, name="pipelines-top", daemon=True)
        self._thread.start()

    def reading(self) -> Reading:
        """The latest of the cluster, or what is stored where that is too old."""
        latest, arguments = self._latest, self._arguments
        old_s = max(_OLD_INTERVALS * arguments.interval, _OLD_SECONDS_MIN)
        if latest.problem is None and time.monotonic() - latest.at_s <= old_s:
            return latest
        try:
            return _stored(arguments, self._problem)
        except ToolError as error:
            return Reading(latest.infos, latest.at_s, str(error))

    def close(self) -> None:
        # It may wait for a broker that does not answer; the process ends without it.
        self._ending.set()

    def _look(self) -> None:
        from moldau.client.errors import KafkaError
        from moldau.pipelines.errors import PipelineError

        while not self._ending.is_set():
            try:
                with self._open(self._arguments) as pipelines:
                    while not self._ending.is_set():
                        self._latest = Reading(pipelines.list(), time.monotonic())
                        self._ending.wait(self._arguments.interval)
            except ToolError as error:
                self._problem = error
            except (KafkaError, PipelineError, OSError) as error:
                self._problem = ToolError(f"{error}.")
            self._ending.wait(self._arguments.interval)


def _print(reading: Reading, arguments: argparse.Namespace) -> int:
    if arguments.json:
        print_json([texts.as_json(info) for info in reading.infos])
        return 0
    if not reading.infos:
        print("There are no pipelines. `moldau pipelines start FILE.yaml` starts one.")
    else:
        table_of(reading.infos).show()
    for line in _below(reading):
        print(line)
    return 0


def table_of(infos: list[PipelineInfo]) -> Table:
    table = Table(*_HEADERS, plain=aligned)
    for info in infos:
        progress = info.progress if info.state in ("running", "finished") else None
        done = None if progress is None else progress.backlog_done
        phases = [texts.phase_ms(progress, phase) for phase in texts.PHASES]
        total = None if progress is None else progress.batch_seconds
        table.add(
            info.name,
            texts.condition(info) + ("?" if info.stale else ""),
            texts.age(info.since_ms),
            info.restarts,
            texts.number(None if progress is None else progress.processed_rows_per_second),
            texts.number(None if progress is None else progress.output_rows_per_second),
            "-" if progress is None or progress.lag_records is None else progress.lag_records,
            texts.seconds(None if progress is None else progress.lag_seconds),
            "-" if done is None else f"{done:.0%}",
            texts.time_left(progress),
            "-" if progress is None else progress.batch_id,
            *("-" if ms is None else ms for ms in phases),
            "-" if total is None else f"{total * 1000:.0f}",
            style=texts.COLOURS.get(texts.condition(info)),
        )
    return table


def _below(reading: Reading) -> list[str]:
    """Errors with their age, and what is old."""
    lines = []
    for info in reading.infos:
        if (reason := texts.reason(info)) is not None:
            lines.append(f"{info.name}: {reason}")
        elif info.last_error is not None:
            error = info.last_error
            shown = f"{texts.short(str(error))} [{texts.age(error.at_ms)} ago, recovered]"
            lines.append(f"{info.name}: {shown}")
    stale = sorted({info.stale for info in reading.infos if info.stale})
    lines += [f"?: {each}, so this may be old. `moldau spark start` starts it." for each in stale]
    return [*lines, *([] if reading.problem is None else [f"moldau: {reading.problem}"])]


def _draw(looker: _Looker, arguments: argparse.Namespace) -> int:
    """A screen that is drawn over itself; the last one stays when it ends."""
    from rich.live import Live

    with Live(screen=True, auto_refresh=False) as live:
        for _ in _ticks(arguments):
            live.update(_screen(looker.reading(), live.console.width), refresh=True)
    return 0


def _screen(reading: Reading, width: int) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    at = time.strftime("%H:%M:%S")
    running = sum(info.state == "running" for info in reading.infos)
    title = Text(f"{len(reading.infos)} pipelines, {running} running, {at}", style="bold")
    if not reading.infos:
        hint = Text("`moldau pipelines start FILE.yaml` starts one.")
        return Group(title, hint, *map(Text, _below(reading)))
    errors = [Text(line, style="yellow") for line in _below(reading)]
    return Group(title, *table_of(reading.infos).parts(width), *errors)
