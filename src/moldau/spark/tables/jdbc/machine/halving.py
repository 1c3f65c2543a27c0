"""Rows of which a database refuses some: each one found by halving, the others kept in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["Range", "by_halves"]

#: A staging table, and the numbers of its first and last row.
Range = tuple[str, int, int]


def by_halves(
    ranges: Sequence[Range], moved: Callable[[Range], bool], refuse: Callable[[str, int], None]
) -> None:
    """Move rows in their order, so that the last of a key still wins.

    `moved` says whether all rows of a range went in; `refuse` takes one that does not.
    """
    waiting = list(ranges)[::-1]
    while waiting:
        table, first, last = waiting.pop()
        if moved((table, first, last)):
            continue
        if first < last:
            middle = (first + last) // 2
            waiting += [(table, middle + 1, last), (table, first, middle)]
            continue
        refuse(table, first)
