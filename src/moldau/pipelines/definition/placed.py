"""What all parts of a definition have in common: the line they were written at, a JSON form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from moldau.pipelines.definition.places import Place, place_of_caller

__all__ = ["Placed", "Transform", "step_json", "with_place"]


class Placed:
    """Records the line that made it, unless a line of a file is given."""

    __slots__ = ()

    def __post_init__(self) -> None:
        if getattr(self, "place", None) is None:
            object.__setattr__(self, "place", place_of_caller())


@dataclass(frozen=True, slots=True)
class Transform(Placed):
    """A step that changes rows and is neither SQL nor a function."""

    name: str | None = field(default=None, kw_only=True)
    source: str | None = field(default=None, kw_only=True)
    place: Place | None = field(default=None, compare=False, kw_only=True, repr=False)


def with_place(fields: dict[str, Any], place: Place | None) -> dict[str, Any]:
    if place is not None:
        fields["place"] = place.to_json()
    return fields


def step_json(step: Any, **fields: Any) -> dict[str, Any]:
    written = {name: value for name, value in fields.items() if value not in (None, {})}
    if step.name is not None:
        written["name"] = step.name
    if step.source is not None:
        written["from"] = step.source
    return with_place(written, step.place)
