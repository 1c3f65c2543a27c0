"""Tables and JSON on standard output.

Invariant: in a pipe a tool prints Kafka's plain text; colours and boxes appear on a terminal only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["Table", "aligned", "on_terminal", "print_json", "tabbed"]

PlainLayout = Callable[[Sequence[str], Sequence[Sequence[str]]], Iterable[str]]


def on_terminal() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty()


def tabbed(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns as wide as their widest cell, each followed by a tab: most of Kafka's tables."""
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    for row in (headers, *rows):
        yield "".join(f"{cell:<{width}}\t" for cell, width in zip(row, widths, strict=True))


def aligned(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns as wide as their widest cell, two blanks apart: tables that Kafka does not have."""
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    for row in (headers, *rows):
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


class Table:
    """Rows under headers: in a pipe in the layout of Kafka's tool, on a terminal with colours."""

    def __init__(
        self, *headers: str, plain: PlainLayout = tabbed, title: str | None = None
    ) -> None:
        self._headers = headers
        self._plain = plain
        self._title = title
        self._rows: list[tuple[str, ...]] = []
        self._styles: list[str | None] = []

    def add(self, *cells: object, style: str | None = None) -> None:
        """A row; `style` is its colour on a terminal."""
        self._rows.append(tuple(str(cell) for cell in cells))
        self._styles.append(style)

    def __len__(self) -> int:
        return len(self._rows)

    def show(self) -> None:
        if on_terminal():
            self._show_rich()
            return
        for line in self._plain(self._headers, self._rows):
            print(line)

    def _show_rich(self) -> None:
        from rich.console import Console
        from rich.text import Text

        console = Console()
        for part in self.parts(console.width):
            console.print(part, soft_wrap=isinstance(part, Text))

    def parts(self, width: int) -> Iterator[RenderableType]:
        """What is drawn on a terminal of `width` columns, from the top down."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table as RichTable
        from rich.text import Text

        from moldau.cli.support.machine.table_layout import fitted, lines_of

        if self._title is not None:
            yield Text(self._title, style="bold")
        if not self._rows:
            yield Text("  none", style="dim")
            return
        layout = fitted(self._headers, self._rows, width)
        for line in lines_of(layout.shared, width):
            yield Text(line, style="dim")
        styled = list(zip(self._rows, self._styles, strict=True))
        if not layout.columns:
            yield from _fields(self._headers, styled, {header for header, _ in layout.shared})
            return
        table = RichTable(box=SIMPLE_HEAD, header_style="bold cyan")
        for column in layout.columns:
            justify: Literal["left", "right"] = "right" if column.numeric else "left"
            table.add_column(
                column.header, justify=justify, overflow="fold", max_width=column.width
            )
        for row, style in styled:
            cells = (Text(row[column.index]) for column in layout.columns)
            table.add_row(*cells, style=style)
        yield table


def _fields(
    headers: Sequence[str],
    rows: Sequence[tuple[Sequence[str], str | None]],
    known: Container[str],
) -> Iterator[RenderableType]:
    """Each row as lines of header and value, where the terminal is too narrow for a table."""
    from rich.text import Text

    width = max(map(len, headers))
    for row, style in rows:
        yield Text()
        for header, cell in zip(headers, row, strict=True):
            if header not in known:
                line = Text(f"  {header:<{width}}  ", style="bold cyan")
                yield line.append(Text(cell, style=style or "default"))


def print_json(value: object) -> None:
    """One JSON document; indented and coloured on a terminal."""
    if on_terminal():
        from rich.console import Console

        Console().print_json(json.dumps(value))
    else:
        print(json.dumps(value))
