"""How a table is fitted to a terminal: no cell is cut into pieces that cannot be read.

What does not fit is made narrower in this order: columns with the same text in every row become
a line above the table, headers are broken between their words, long texts are broken into lines.
Numbers are never broken. If all that is not enough, each row is a list of its fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Column", "Layout", "fitted", "is_number", "lines_of"]

# Blanks on both sides of a cell, and one between columns.
_GAP = 3
# A text that is wrapped to less than this cannot be read.
_TEXT_WIDTH_MIN = 16
_WORDS = re.compile(r"[^-_ ]+[-_ ]*|[-_ ]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True)
class Column:
    index: int
    header: str
    """With line breaks where it is broken."""
    numeric: bool
    width: int | None
    """What it is limited to; None: as wide as its cells."""


@dataclass(frozen=True)
class Layout:
    shared: tuple[tuple[str, str], ...]
    """Headers and values that hold for every row."""
    columns: tuple[Column, ...]
    """Empty: each row is a list of its fields."""


def is_number(cell: str) -> bool:
    return cell == "-" or cell.lstrip("-").replace(".", "", 1).isdigit()


def fitted(headers: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Layout:
    """The layout of a table with at least one row for a terminal of `width` columns."""
    cells = list(zip(*rows, strict=True))
    everything = [_column(index, header, cells[index]) for index, header in enumerate(headers)]
    if _needed(everything, cells) <= width:
        return Layout((), tuple(everything))
    same = {
        index
        for index, column in enumerate(cells)
        if len(rows) > 1
        and len(set(column)) == 1
        and (column[0] == "-" or not is_number(column[0]))
    }
    kept = [column for column in everything if column.index not in same] or everything[:1]
    same -= {column.index for column in kept}
    shared = tuple((headers[index], cells[index][0]) for index in sorted(same))
    if _needed(kept, cells) <= width:
        return Layout(shared, tuple(kept))
    broken = [_broken(column, cells[column.index]) for column in kept]
    if _needed(broken, cells) <= width:
        return Layout(shared, tuple(broken))
    return Layout(shared, _narrowed(broken, cells, width))


def lines_of(shared: Iterable[tuple[str, str]], width: int) -> list[str]:
    """What all rows share, as many in a line as fit."""
    lines: list[str] = []
    for header, value in shared:
        entry = f"  {header} {value}"
        if lines and len(lines[-1]) + len(entry) + 1 <= width:
            lines[-1] += f" {entry}"
        else:
            lines.append(entry)
    return lines


def _column(index: int, header: str, cells: Sequence[str]) -> Column:
    return Column(index, header, all(map(is_number, cells)), None)


def _broken(column: Column, cells: Sequence[str]) -> Column:
    """With a header in several lines, but not narrower than the cells need anyway."""
    words = [part for word in _WORDS.findall(column.header) for part in _CAMEL.split(word)]
    limit = max(_longest(cells), _longest(words))
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + len(word) <= limit:
            lines[-1] += word
        else:
            lines.append(word)
    return Column(column.index, "\n".join(lines), column.numeric, None)


def _narrowed(
    columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int
) -> tuple[Column, ...]:
    """The widest texts are made equally narrow; nothing if they would become too narrow."""
    natural = {column.index: _width(column, cells) for column in columns}
    texts = [column.index for column in columns if not column.numeric]
    limit = max((natural[index] for index in texts), default=0)
    while limit > _TEXT_WIDTH_MIN and _needed(columns, cells, texts, limit) > width:
        limit -= 1
    if _needed(columns, cells, texts, limit) > width:
        return ()
    return tuple(
        Column(column.index, column.header, column.numeric, limit)
        if column.index in texts and natural[column.index] > limit
        else column
        for column in columns
    )


def _needed(
    columns: Sequence[Column],
    cells: Sequence[Sequence[str]],
    limited: Sequence[int] = (),
    limit: int = 0,
) -> int:
    widths = [
        min(_width(column, cells), limit) if column.index in limited else _width(column, cells)
        for column in columns
    ]
    return sum(widths) + _GAP * len(widths) + 1


def _width(column: Column, cells: Sequence[Sequence[str]]) -> int:
    return max(_longest(column.header.split("\n")), _longest(cells[column.index]))


def _longest(texts: Sequence[str]) -> int:
    return max(map(len, texts), default=0)
