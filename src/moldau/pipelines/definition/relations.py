"""Steps that bring rows together: windows in time, joins of streams, lookups in a topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from moldau.pipelines.definition.placed import Placed, Transform, step_json
from moldau.pipelines.definition.transforms import names_of, pairs_of
from moldau.pipelines.definition.watermarks import Watermark

__all__ = ["JOINS", "MISSING", "WINDOW_COLUMNS", "Join", "Lookup", "Window"]

JOINS: Final = ("inner", "left", "right", "full")
WINDOW_COLUMNS: Final = ("window_start", "window_end")
KEEP, DROP, BAD = "keep", "drop", "bad"
MISSING: Final = (KEEP, DROP, BAD)
ROWS_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Window(Transform):
    """Aggregates of rows whose `time` is in the same window, and whose `by` columns are equal.

    With `size` alone windows follow each other, with `every` they begin that often and overlap, and
    with `gap` a window lasts until nothing has come for that long. `delay` is how late rows may
    come; it is not needed if the source or an earlier step has a watermark.
    """

    KIND: ClassVar[str] = "window"
    time: str
    aggregates: Mapping[str, str]
    size: str | None = field(default=None, kw_only=True)
    every: str | None = field(default=None, kw_only=True)
    gap: str | None = field(default=None, kw_only=True)
    by: tuple[str, ...] = field(default=(), kw_only=True)
    delay: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        Placed.__post_init__(self)
        object.__setattr__(self, "by", names_of(self.by))

    @property
    def watermark(self) -> Watermark | None:
        if self.delay is None:
            return None
        return Watermark(self.time, self.delay, place=self.place)

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"time": self.time}
        for name in ("size", "every", "gap", "delay"):
            if (value := getattr(self, name)) is not None:
                body[name] = value
        if self.by:
            body["by"] = list(self.by)
        return step_json(self, window={**body, "aggregates": dict(self.aggregates)})


@dataclass(frozen=True, slots=True)
class Join(Transform):
    """Rows of two streams with equal keys whose times are near each other.

    The row of `other` may be earlier by `before` and later by `after`. `time` has the column of
    this side and that of the other; a table that is read once has no time. Columns of the other
    side get `prefix`.
    """

    KIND: ClassVar[str] = "join"
    other: str
    keys: Mapping[str, str]
    kind: str = field(default="inner", kw_only=True)
    time: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    before: str | None = field(default=None, kw_only=True)
    after: str | None = field(default=None, kw_only=True)
    prefix: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        Placed.__post_init__(self)
        object.__setattr__(self, "keys", pairs_of(self.keys))
        object.__setattr__(self, "time", pairs_of(self.time))

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"with": self.other, "keys": dict(self.keys), "kind": self.kind}
        if self.time:
            body["time"] = dict(self.time)
        for name in ("before", "after", "prefix"):
            if value := getattr(self, name):
                body[name] = value
        return step_json(self, join=body)


@dataclass(frozen=True, slots=True)
class Lookup(Transform):
    """Columns of the latest record with this row's key in a compacted topic.

    `key` is a column or an expression. `columns` are those of the topic's `schema` that are wanted,
    by default all; `prefix` comes before their names. A row whose key the topic does not have is
    kept with nulls, dropped, or bad. At most `rows_max` keys are held.
    """

    KIND: ClassVar[str] = "lookup"
    topic: str
    key: str
    schema: str
    columns: tuple[str, ...] = field(default=(), kw_only=True)
    prefix: str = field(default="", kw_only=True)
    missing: str = field(default=KEEP, kw_only=True)
    rows_max: int = field(default=ROWS_MAX, kw_only=True)

    def __post_init__(self) -> None:
        Placed.__post_init__(self)
        object.__setattr__(self, "columns", names_of(self.columns))

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"topic": self.topic, "key": self.key, "schema": self.schema}
        if self.columns:
            body["columns"] = list(self.columns)
        if self.prefix:
            body["prefix"] = self.prefix
        if self.missing != KEEP:
            body["missing"] = self.missing
        if self.rows_max != ROWS_MAX:
            body["maxRows"] = self.rows_max
        return step_json(self, lookup=body)
