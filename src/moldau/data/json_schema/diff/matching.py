"""A matching of maximum size in a bipartite graph, by the algorithm of Hopcroft and Karp."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

_FREE = -1


def maximum_matching(
    rows: int, columns: int, edges: Collection[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The edges of a matching, by row. Earlier edges are preferred."""
    neighbors: list[list[int]] = [[] for _ in range(rows)]
    for row, column in edges:
        neighbors[row].append(column)
    column_of, row_of = [_FREE] * rows, [_FREE] * columns
    for row in range(rows):
        for column in neighbors[row]:
            if row_of[column] == _FREE:
                column_of[row], row_of[column] = column, row
                break
    while True:
        levels = _levels(neighbors, column_of, row_of)
        if levels is None:
            return [(row, column) for row, column in enumerate(column_of) if column != _FREE]
        for row in range(rows):
            if column_of[row] == _FREE:
                _augment(row, neighbors, levels, column_of, row_of)


def _levels(
    neighbors: list[list[int]], column_of: list[int], row_of: list[int]
) -> dict[int, int] | None:
    """The distance of each row from a free one on alternating paths; None if none reaches a gap."""
    levels = {row: 0 for row, column in enumerate(column_of) if column == _FREE}
    waiting, found = deque(levels), False
    while waiting:
        row = waiting.popleft()
        for column in neighbors[row]:
            after = row_of[column]
            if after == _FREE:
                found = True
            elif after not in levels:
                levels[after] = levels[row] + 1
                waiting.append(after)
    return levels if found else None


def _augment(
    start: int,
    neighbors: list[list[int]],
    levels: dict[int, int],
    column_of: list[int],
    row_of: list[int],
) -> None:
    """Match a free row by moving others along the levels, if that is possible."""
    path = [(start, iter(neighbors[start]))]
    chosen: list[int] = []
    while path:
        row, columns = path[-1]
        for column in columns:
            after = row_of[column]
            if after == _FREE:
                chosen.append(column)
                for (each, _), taken in zip(path, chosen, strict=True):
                    column_of[each], row_of[taken] = taken, each
                return
            if levels.get(after) == levels[row] + 1:
                chosen.append(column)
                path.append((after, iter(neighbors[after])))
                break
        else:
            # A dead end for every later path of this round as well.
            levels[row] = -len(levels) - 2
            path.pop()
            if chosen:
                chosen.pop()
