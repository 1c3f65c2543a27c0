"""Column layouts of the group tools in a pipe: columns of a minimum width, with blanks between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

__all__ = ["BARE", "Column", "PlainLayout", "assignment_text", "fixed", "growing", "spaced"]

PlainLayout = Callable[[Sequence[str], Sequence[Sequence[str]]], Iterator[str]]


class Column(NamedTuple):
    """`width` None is the width of each cell. `gap` follows the column."""

    width: int | None
    grows: bool = False
    extra: int = 0
    gap: str = " "


#: The last column of most tables: its cells end where their text ends.
BARE = Column(None)


def fixed(width: int, gap: str = " ") -> Column:
    """A longer cell pushes the rest of its own row to the right."""
    return Column(width, gap=gap)


def growing(width: int, extra: int = 0) -> Column:
    """As wide as the longest cell below the header, and at least `width`; plus `extra`."""
    return Column(width, grows=True, extra=extra)


def spaced(*columns: Column, lead: bool = True, tail: str = "") -> PlainLayout:
    """The layout. `lead` puts an empty line in front, `tail` ends each line."""

    def lines(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
        widths = [_width(column, [row[n] for row in rows]) for n, column in enumerate(columns)]
        if lead:
            yield ""
        for row in (headers, *rows):
            cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
            gaps = [column.gap for column in columns[:-1]] + [tail]
            yield "".join(cell + gap for cell, gap in zip(cells, gaps, strict=True))

    return lines


def _width(column: Column, cells: Sequence[str]) -> int:
    if column.width is None:
        return 0
    if not column.grows:
        return column.width
    return (
        max(column.width, *map(len, cells), 0) + column.extra
        if cells
        else (column.width + column.extra)
    )


def assignment_text(partitions: Sequence[tuple[str, int]]) -> str:
    """`a:0,1;b:2`: topics in order, with their partitions in order."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return ";".join(
        sorted(f"{topic}:{','.join(map(str, sorted(found)))}" for topic, found in by_topic.items())
    )
