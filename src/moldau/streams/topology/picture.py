"""A topology as a picture: sub-topologies as frames, nodes from left to right, as SVG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from moldau.streams.machine.definitions import (
    Definition,
    SinkDefinition,
    SourceDefinition,
)
from moldau.streams.topology.assembly import Assembly

_CHARACTER, _LINE = 7.3, 17
_MARGIN, _GAP_X, _GAP_Y, _PADDING = 24, 48, 18, 10
_STYLE = """
text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #1b1f24 }
.title { font-weight: 600; fill: #57606a } .topic, .store { fill: #57606a }
.rate { fill: #0550ae }
.frame { fill: #f6f8fa; stroke: #d0d7de } .source { fill: #ddf4ff; stroke: #54aeff }
.processor { fill: #fff; stroke: #8c959f } .sink { fill: #dafbe1; stroke: #4ac26b }
.edge { fill: none; stroke: #57606a; stroke-width: 1.2; marker-end: url(#arrow) }
"""


@dataclass(slots=True)
class _Box:
    name: str
    kind: str
    lines: list[tuple[str, str]]
    x: float = 0
    y: float = 0

    @property
    def width(self) -> float:
        return max(len(text) for _, text in self.lines) * _CHARACTER + 2 * _PADDING

    @property
    def height(self) -> float:
        return len(self.lines) * _LINE + 2 * _PADDING - 4


def _box(node: Definition, rate: float | None) -> _Box:
    lines = [("name", node.name)]
    if rate is not None:
        lines.append(("rate", f"{rate:.1f} records/s"))
    if isinstance(node, SourceDefinition):
        topics = node.topics if node.pattern is None else [f"/{node.pattern.pattern}/"]
        lines += [("topic", f"\u25b8 {topic}") for topic in topics]
        return _Box(node.name, "source", lines)
    if isinstance(node, SinkDefinition):
        topic = node.topic if isinstance(node.topic, str) else "chosen for each record"
        return _Box(node.name, "sink", [*lines, ("topic", f"{topic} \u25b8")])
    lines += [("store", f"\u25a4 {store}") for store in node.stores]
    return _Box(node.name, "processor", lines)


def _depths(assembly: Assembly, names: list[str]) -> dict[str, int]:
    """How many steps a node is away from the sources; parents are added before children."""
    depths: dict[str, int] = {}
    for name in names:
        parents = assembly.nodes[name].parents
        depths[name] = max((depths[parent] + 1 for parent in parents), default=0)
    return depths


class _Frame:
    """A sub-topology: its nodes in columns."""

    def __init__(
        self,
        assembly: Assembly,
        number: int,
        names: list[str],
        top: float,
        rates: Mapping[str, float],
    ) -> None:
        self._assembly = assembly
        kind = " for a global store" if assembly.is_global(names) else ""
        self._title = f"Sub-topology {number}{kind}"
        self._top = top
        self._boxes = {name: _box(assembly.nodes[name], rates.get(name)) for name in names}
        depths = _depths(assembly, names)
        columns: list[list[_Box]] = [[] for _ in range(max(depths.values()) + 1)]
        for name in names:
            columns[depths[name]].append(self._boxes[name])
        x: float = _MARGIN + _PADDING
        bottom = top
        for column in columns:
            y = top + 34
            for box in column:
                box.x, box.y = x, y
                y += box.height + _GAP_Y
            bottom = max(bottom, y)
            x += max(box.width for box in column) + _GAP_X
        title = _MARGIN + 2 * _PADDING + len(self._title) * _CHARACTER
        self.width = max(x - _GAP_X + _PADDING, title) - _MARGIN
        self.height = bottom - top

    def draw(self) -> list[str]:
        parts = [
            f'<rect class="frame" x="{_MARGIN}" y="{self._top:g}" width="{self.width:g}" '
            f'height="{self.height:g}" rx="8"/>',
            f'<text class="title" x="{_MARGIN + _PADDING}" y="{self._top + 20:g}">'
            f"{escape(self._title)}</text>",
        ]
        for name, box in self._boxes.items():
            for parent in self._assembly.nodes[name].parents:
                parts.append(_edge(self._boxes[parent], box))
        for box in self._boxes.values():
            parts += _drawn(box)
        return parts


def _edge(start: _Box, end: _Box) -> str:
    x1, y1 = start.x + start.width, start.y + start.height / 2
    x2, y2 = end.x - 2, end.y + end.height / 2
    middle = (x1 + x2) / 2
    path = f"M{x1:g},{y1:g} C{middle:g},{y1:g} {middle:g},{y2:g} {x2:g},{y2:g}"
    return f'<path class="edge" d="{path}"/>'


def _drawn(box: _Box) -> list[str]:
    parts = [
        f'<rect class="{box.kind}" x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" '
        f'height="{box.height:g}" rx="5"/>'
    ]
    for row, (kind, text) in enumerate(box.lines):
        y = box.y + _PADDING + 11 + row * _LINE
        place = f'x="{box.x + _PADDING:g}" y="{y:g}"'
        parts.append(f'<text class="{kind}" {place}>{escape(text)}</text>')
    return parts


def draw(assembly: Assembly, rates: Mapping[str, float]) -> str:
    """The picture, as a document of its own; nodes that have a rate show it."""
    frames = []
    top: float = _MARGIN
    for number, names in enumerate(assembly.groups()):
        frame = _Frame(assembly, number, names, top, rates)
        frames.append(frame)
        top += frame.height + _MARGIN
    width = max((frame.width for frame in frames), default=0) + 2 * _MARGIN
    body = "\n".join(part for frame in frames for part in frame.draw())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{top:g}" '
        f'viewBox="0 0 {width:g} {top:g}" role="img" aria-label="Topology">\n'
        f"<style>{_STYLE}</style>\n"
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#57606a"/></marker></defs>'
        f"\n{body}\n</svg>\n"
    )
