"""Watermarks: how late rows may come."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from moldau.pipelines.definition.placed import Placed, step_json
from moldau.pipelines.definition.places import Place


@dataclass(frozen=True, slots=True)
class Watermark(Placed):
    """How late rows may come: state older than `delay` before the newest `column` is let go."""

    column: str
    delay: str
    name: str | None = field(default=None, kw_only=True)
    source: str | None = field(default=None, kw_only=True)
    place: Place | None = field(default=None, compare=False, kw_only=True, repr=False)

    def to_json(self) -> dict[str, Any]:
        return step_json(self, watermark={"column": self.column, "delay": self.delay})
