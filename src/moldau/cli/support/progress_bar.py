"""A progress bar on stderr with count, rate and time left.

It appears once the work has taken a second: short work shows none.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

__all__ = ["Bar"]

_APPEARS_AFTER_SECONDS = 1.0


class _Rate(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> RenderableType:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f} {self._unit}/s", style="cyan")


class Bar:
    """Can be advanced at any rate: it is drawn a few times a second."""

    def __init__(self, description: str, total: float | None, unit: str) -> None:
        self._description = description
        self._total = total
        self._unit = unit
        self._completed = 0.0
        self._started = time.monotonic()
        self._shown: Progress | None = None
        self._task = TaskID(0)

    def advance(self, count: float = 1) -> None:
        self.update(self._completed + count)

    def update(self, completed: float) -> None:
        self._completed = completed
        if self._shown is None:
            if time.monotonic() - self._started < _APPEARS_AFTER_SECONDS:
                return
            self._shown = Progress(
                *self._columns(), console=Console(stderr=True), transient=True, expand=False
            )
            self._task = self._shown.add_task(self._description, total=self._total)
            self._shown.start()
        self._shown.update(self._task, completed=completed)

    def close(self) -> None:
        if self._shown is not None:
            self._shown.stop()

    def _columns(self) -> Iterable[ProgressColumn]:
        yield TextColumn("{task.description}")
        yield BarColumn()
        if self._total is not None:
            yield TextColumn("{task.percentage:>3.0f}%")
        yield TextColumn("{task.completed:,.0f} " + self._unit)
        yield _Rate(self._unit)
        yield TimeElapsedColumn()
        if self._total is not None:
            yield TextColumn("left")
            yield TimeRemainingColumn()
