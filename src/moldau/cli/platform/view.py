"""What `moldau up` and `moldau status` show: lines in a pipe, a live table on a terminal."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from moldau.cli.support.output import print_now
from moldau.cli.support.tables import aligned

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

__all__ = ["LinesView", "LiveView", "status_lines"]

_HEADERS: Final = ("SERVICE", "NAME", "STATE", "ADDRESS", "PROCESS", "FOR", "MEMORY", "RESTARTS")
_COLOURS: Final = {
    "up": "green",
    "starting": "yellow",
    "waiting": "dim",
    "idle": "dim",
    "stopping": "yellow",
    "stopped": "dim",
    "failing": "bold red",
    "ended": "bold red",
}
_SHOWN_MESSAGES: Final = 8
_PAGE: Final = 4096


class LinesView:
    """Messages only, as they come."""

    def say(self, text: str) -> None:
        print_now(text)

    def show(self, status: dict[str, Any]) -> None:
        pass


class LiveView:
    """A table that is drawn again every second, with the last messages below it."""

    def __init__(self, footer: str) -> None:
        self._footer = footer
        self._status: dict[str, Any] | None = None
        self._live: Live | None = None

    def __enter__(self) -> LiveView:
        from rich.live import Live

        self._live = Live(get_renderable=self._draw, refresh_per_second=2, transient=False)
        self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def say(self, text: str) -> None:
        """It is among the status's messages."""

    def show(self, status: dict[str, Any]) -> None:
        self._status = status

    def _draw(self) -> RenderableType:
        from rich.box import SIMPLE_HEAD
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        if self._status is None:
            return Text("Starting ...")
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for header in _HEADERS:
            table.add_column(header, no_wrap=True)
        for service, row in zip(self._status["services"], _rows(self._status), strict=True):
            cells = [Text(cell) for cell in row]
            cells[2].stylize(_COLOURS.get(service["state"], ""))
            table.add_row(*cells)
        messages = "\n".join(self._status["messages"][-_SHOWN_MESSAGES:])
        footer = "" if self._status["stopping"] else f"\n{self._footer}"
        return Group(table, Text(messages, style="dim"), Text(footer))


def status_lines(status: dict[str, Any]) -> list[str]:
    """The same as plain text."""
    lines = list(aligned(_HEADERS, _rows(status)))
    for service in status["services"]:
        if service["problem"]:
            lines.append(f"{service['name']}: {service['problem']}")
    return lines


def _rows(status: dict[str, Any]) -> list[tuple[str, ...]]:
    now_ms = int(time.time() * 1000)
    return [
        (
            service["name"],
            service["title"],
            _state(service, now_ms),
            service["address"],
            str(service["pid"] or ""),
            _age(now_ms - service["sinceMs"]),
            _memory(service["pid"]),
            str(service["restarts"] or ""),
        )
        for service in status["services"]
    ]


def _state(service: dict[str, Any], now_ms: int) -> str:
    if service["state"] == "ended" and service["nextMs"] is not None:
        return f"ended, next start in {max(0, service['nextMs'] - now_ms) / 1000:.0f} s"
    return str(service["state"])


def _age(ms: int) -> str:
    seconds = max(0, ms // 1000)
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def _memory(pid: int | None) -> str:
    """Resident, with the children that a service has started."""
    if pid is None:
        return ""
    total = sum(map(_resident, [pid, *_children(pid)]))
    return f"{total / 1024 / 1024:.0f} MB" if total else ""


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]
