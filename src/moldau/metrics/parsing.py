"""Reads Prometheus's text format: what the command line tools get from a `/metrics` page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

__all__ = ["Line", "parse"]

_LINE: Final = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Line(NamedTuple):
    """One value. `labels` are in the order of the text."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float

    @property
    def text(self) -> str:
        """The name with its labels, as it was written."""
        inside = ",".join(f'{key}="{value}"' for key, value in self.labels)
        return f"{self.name}{{{inside}}}" if inside else self.name

    def label(self, name: str) -> str:
        return dict(self.labels).get(name, "")


def parse(text: str) -> Iterator[Line]:
    """The values of a page; lines that are none are skipped."""
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        found = _LINE.match(line)
        if found is None:
            continue
        name, labels, value = found.groups()
        try:
            number = float(value)
        except ValueError:
            continue
        pairs = tuple(
            (key, re.sub(r"\\(.)", lambda each: "\n" if each[1] == "n" else each[1], text))
            for key, text in _LABEL.findall(labels or "")
        )
        yield Line(name, pairs, number)
