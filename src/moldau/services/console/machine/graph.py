"""Where the boxes and lines of a graph are drawn: columns from left to right along its edges.

Decided here: a node's column is one more than the largest of those that feed it; edges that close a
cycle do not count. A line over several columns has a lane of its own in those between. In a column
nodes and lanes are ordered by the places of their neighbours, in a few passes, so that few lines
cross. Invariants: every node is placed once, no two boxes overlap, and the same graph always gives
the same picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

__all__ = ["Edge", "Node", "picture"]

_CHARACTER: Final = 8.0
_WIDTH_MIN: Final = 90.0
_WIDTH_MAX: Final = 260.0
_HEIGHT: Final = 46.0
_RATE_LINE: Final = 16.0
#: As wide as "123,456.7 records/s".
_RATE_LETTERS: Final = 19
_LANE: Final = 8.0
_GAP_X: Final = 52.0
_GAP_Y: Final = 18.0
_MARGIN: Final = 16.0
_PASSES: Final = 4


@dataclass(frozen=True, slots=True)
class Node:
    """`kind` is its colour, `note` a second line, `link` the page it leads to. `rate` is what it
    processes per second, in a third line, and `records` how many it has processed."""

    id: str
    kind: str
    label: str
    note: str = ""
    link: str = ""
    rate: float | None = None
    records: int | None = None


class Edge(NamedTuple):
    source: str
    target: str


def picture(nodes: Sequence[Node], edges: Sequence[Edge]) -> dict[str, Any]:
    """Boxes with places and sizes, lines as paths of SVG, and the size of all of it."""
    by_id = {node.id: node for node in nodes}
    known = sorted({edge for edge in edges if edge.source in by_id and edge.target in by_id})
    columns = _columns(list(by_id), known)
    lanes, steps = _lanes(columns, known)
    columns = _ordered(columns, steps)
    places: dict[str, _Place] = {}
    x, height = _MARGIN, 0.0
    for column in columns:
        width = max((_width(by_id[name]) for name in column if name in by_id), default=0.0)
        y = _MARGIN
        for name in column:
            tall = _height(by_id[name]) if name in by_id else _LANE
            places[name] = _Place(x, y, width, tall)
            y += tall + _GAP_Y
        height = max(height, y - _GAP_Y)
        x += width + _GAP_X
    return {
        "width": x - _GAP_X + _MARGIN if columns else 2 * _MARGIN,
        "height": height + _MARGIN,
        "nodes": [
            _box(by_id[name], places[name])
            for column in columns
            for name in column
            if name in by_id
        ],
        "edges": [
            {
                "source": edge.source,
                "target": edge.target,
                "path": _path([places[one] for one in (edge.source, *lanes[edge], edge.target)]),
            }
            for edge in known
        ],
    }


class _Place(NamedTuple):
    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


def _width(node: Node) -> float:
    letters = max(len(node.label), len(node.note), 0 if node.rate is None else _RATE_LETTERS)
    return min(_WIDTH_MAX, max(_WIDTH_MIN, letters * _CHARACTER + 20))


def _height(node: Node) -> float:
    return _HEIGHT if node.rate is None else _HEIGHT + _RATE_LINE


def _box(node: Node, place: _Place) -> dict[str, Any]:
    return {
        "id": node.id,
        "kind": node.kind,
        "label": node.label,
        "note": node.note,
        "link": node.link,
        "rate": node.rate,
        "records": node.records,
        "x": place.x,
        "y": place.y,
        "width": place.width,
        "height": place.height,
        "letters": int((place.width - 20) / _CHARACTER),
    }


def _path(places: Sequence[_Place]) -> str:
    first, last = places[0], places[-1]
    if last.x <= first.x:
        return _backwards(first, last)
    x, y = first.x + first.width, first.middle
    parts = [f"M{x:g} {y:g}"]
    for place in places[1:]:
        middle = (x + place.x) / 2
        parts.append(f"C{middle:g} {y:g} {middle:g} {place.middle:g} {place.x:g} {place.middle:g}")
        x, y = place.x, place.middle
        if place is not last:
            x += place.width
            parts.append(f"H{x:g}")
    return "".join(parts)


def _backwards(source: _Place, target: _Place) -> str:
    """Below the boxes and around."""
    x1, x2 = source.x + source.width, target.x
    low = max(source.y + source.height, target.y + target.height) + _GAP_Y / 2
    out, back = x1 + _GAP_X / 3, x2 - _GAP_X / 3
    return (
        f"M{x1:g} {source.middle:g}C{out:g} {source.middle:g} {out:g} {low:g} {x1:g} {low:g}"
        f"H{x2:g}C{back:g} {low:g} {back:g} {target.middle:g} {x2:g} {target.middle:g}"
    )


def _lanes(
    columns: list[list[str]], edges: Sequence[Edge]
) -> tuple[dict[Edge, list[str]], list[Edge]]:
    """Adds lanes to the columns; those of each edge, and the edges from column to column."""
    numbers = {name: number for number, column in enumerate(columns) for name in column}
    lanes: dict[Edge, list[str]] = {}
    steps: list[Edge] = []
    for index, edge in enumerate(edges):
        between = range(numbers[edge.source] + 1, numbers[edge.target])
        # No name of a node begins like this.
        lanes[edge] = [f"\0{index}:{number}" for number in between]
        for number, name in zip(between, lanes[edge], strict=True):
            columns[number].append(name)
        chain = [edge.source, *lanes[edge], edge.target]
        steps += [Edge(*pair) for pair in pairwise(chain)]
    return lanes, steps


def _columns(names: Sequence[str], edges: Sequence[Edge]) -> list[list[str]]:
    forward = _without_cycles(names, edges)
    feeding: dict[str, list[str]] = {name: [] for name in names}
    for edge in forward:
        feeding[edge.target].append(edge.source)
    depths: dict[str, int] = {}
    # Each pass settles those whose sources are settled: at most one pass for each column.
    waiting = list(names)
    while waiting:
        ready = [name for name in waiting if all(one in depths for one in feeding[name])]
        for name in ready:
            depths[name] = max((depths[one] + 1 for one in feeding[name]), default=0)
        settled = set(ready)
        waiting = [name for name in waiting if name not in settled]
    columns: list[list[str]] = [[] for _ in range(max(depths.values(), default=-1) + 1)]
    for name in names:
        columns[depths[name]].append(name)
    return columns


def _without_cycles(names: Sequence[str], edges: Sequence[Edge]) -> list[Edge]:
    """The edges that a walk does not find to lead back to where it came from."""
    leaving: dict[str, list[str]] = {name: [] for name in names}
    for edge in edges:
        leaving[edge.source].append(edge.target)
    entered: set[str] = set()
    left: set[str] = set()
    kept: list[Edge] = []
    # First where nothing comes in, so that a walk goes with the data.
    targets = {edge.target for edge in edges}
    for start in sorted(names, key=lambda name: name in targets):
        if start in entered:
            continue
        entered.add(start)
        stack = [(start, iter(leaving[start]))]
        while stack:
            name, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                left.add(name)
                stack.pop()
            elif following in left:
                kept.append(Edge(name, following))
            elif following not in entered:
                kept.append(Edge(name, following))
                entered.add(following)
                stack.append((following, iter(leaving[following])))
    return kept


def _ordered(columns: list[list[str]], edges: Sequence[Edge]) -> list[list[str]]:
    neighbours: dict[str, list[str]] = {name: [] for column in columns for name in column}
    for edge in edges:
        neighbours[edge.source].append(edge.target)
        neighbours[edge.target].append(edge.source)
    for turn in range(_PASSES):
        order = range(len(columns)) if turn % 2 == 0 else range(len(columns) - 1, -1, -1)
        places = {name: index for column in columns for index, name in enumerate(column)}
        for number in order:
            columns[number] = _by_neighbours(columns[number], neighbours, places)
            places.update((name, index) for index, name in enumerate(columns[number]))
    return columns


def _by_neighbours(
    column: Sequence[str], neighbours: Mapping[str, Sequence[str]], places: Mapping[str, int]
) -> list[str]:
    def middle(name: str) -> float:
        around = [places[one] for one in neighbours[name]]
        return sum(around) / len(around) if around else float(places[name])

    return sorted(column, key=middle)
