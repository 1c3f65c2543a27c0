"""Tables that are updated in place, and charts of a column."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from moldau.cli.services.sql_shell.printing import Printer
from moldau.cli.services.sql_shell.splitting import Chart
from moldau.sql.client.errors import ProgrammingError
from moldau.sql.client.http import RowStream
from moldau.sql.client.listings import cell

__all__ = ["Board", "show_live"]

_BARS: Final = " ▁▂▃▄▅▆▇█"
_ROWS_MAX: Final = 1000
_REFRESH_S: Final = 0.1


class Board:
    """The last row of each key, or the last rows where there is no key."""

    def __init__(self, names: Sequence[str], chart: Chart, keys: Sequence[str]) -> None:
        self.names = list(names)
        self._chart = chart
        self._column = None if chart.column is None else self._index(chart.column)
        if chart.label is not None:
            keys = [chart.label]
        self._keys = [self._index(each) for each in keys if each in names or chart.label]
        self._rows: dict[Any, list[Any]] = {}
        self._values: deque[float | None] = deque(maxlen=_ROWS_MAX)
        self.count = 0

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise ProgrammingError(
                f"The query has no column {name}. It has: {', '.join(self.names)}"
            )
        return self.names.index(name)

    def add(self, row: list[Any]) -> None:
        """A new row, or a newer one of a key that is there."""
        self.count += 1
        key: Any = self.count
        if self._keys:
            key = json.dumps([row[index] for index in self._keys])
        self._rows[key] = row
        if len(self._rows) > _ROWS_MAX:
            del self._rows[next(iter(self._rows))]
        if self._column is not None:
            value = row[self._column]
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            self._values.append(float(value) if is_number else None)

    def shown(self, width: int, height: int) -> Any:
        """What the screen has room for."""
        if self._column is None:
            return self._table(height - 5)
        if self._chart.label is not None:
            return self._bars(width, height - 3)
        return self._line(width)

    def _table(self, height: int) -> Group:
        table = Table(*self.names)
        for row in list(self._rows.values())[-max(1, height) :]:
            table.add_row(*map(cell, row))
        return Group(table, Text(f"{len(self._rows)} rows, {self.count} changes", style="dim"))

    def _bars(self, width: int, height: int) -> Group:
        column = self._column or 0
        rows = list(self._rows.values())[-max(1, height) :]
        labels = [cell(row[self._keys[0]]) for row in rows]
        values = [row[column] if isinstance(row[column], int | float) else 0 for row in rows]
        room = max(map(len, labels), default=0)
        top = max([abs(each) for each in values], default=0) or 1
        space = max(10, width - room - 20)
        title = Text(f"{self._chart.column} by {self._chart.label}", style="bold")
        lines = [
            Text(f"{label:>{room}} │{'█' * max(0, round(value / top * space))} {value:g}")
            for label, value in zip(labels, values, strict=True)
        ]
        return Group(title, *lines)

    def _line(self, width: int) -> Group:
        values = list(self._values)[-max(10, width - 2) :]
        numbers = [each for each in values if each is not None]
        low, high = min(numbers, default=0.0), max(numbers, default=0.0)
        span = (high - low) or 1.0
        bars = "".join(
            " " if each is None else _BARS[1 + round((each - low) / span * 7)] for each in values
        )
        last = "" if not numbers else f", last {numbers[-1]:g}"
        title = Text(f"{self._chart.column}: {low:g} to {high:g}{last}", style="bold")
        return Group(title, Text(bars))


def show_live(printer: Printer, stream: RowStream, chart: Chart, keys: Sequence[str]) -> int:
    """Draw until the query ends or Ctrl-C; then the last state stays."""
    try:
        board = Board(stream.names, chart, keys)
    except ProgrammingError:
        stream.close()
        raise
    rows = (json.loads(line) for line in stream.lines())
    if not printer.is_terminal:
        for row in rows:
            board.add(row)
        printer.render(board.shown(printer.width, _ROWS_MAX))
        return board.count
    console = Console(file=printer.out)
    try:
        with Live(console=console, auto_refresh=False, transient=True) as live:
            _follow(rows, board, lambda: live.update(
                board.shown(console.width, console.height), refresh=True
            ))  # fmt: skip
    finally:
        printer.render(board.shown(console.width, console.height))
    return board.count


def _follow(rows: Iterator[list[Any]], board: Board, draw: Callable[[], None]) -> None:
    """Draw at most ten times a second, however many rows come, and also the last of them."""
    drawn, lock, ended = 0, threading.Lock(), threading.Event()

    def redraw() -> None:
        nonlocal drawn
        while not ended.wait(_REFRESH_S):
            with lock:
                if board.count != drawn:
                    drawn = board.count
                    draw()

    thread = threading.Thread(target=redraw, name="moldau-sql-live", daemon=True)
    thread.start()
    try:
        for row in rows:
            with lock:
                board.add(row)
    finally:
        ended.set()
        thread.join(timeout=time.get_clock_info("monotonic").resolution + 1)
