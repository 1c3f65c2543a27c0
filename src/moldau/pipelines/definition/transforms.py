"""Steps that change the shape of rows: flatten, mask, explode, headers, deduplicate.

Each has its YAML form as `body()`, under the name `KIND`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from moldau.pipelines.definition.placed import Placed, Transform, step_json
from moldau.pipelines.definition.watermarks import Watermark

__all__ = [
    "ColumnsToHeaders",
    "Deduplicate",
    "Explode",
    "Flatten",
    "HeadersToColumns",
    "Mask",
    "MaskRule",
    "mask_rule",
]

HASH, REDACT, PARTIAL = "hash", "redact", "partial"
ALGORITHMS: Final = ("sha256", "sha512")
_REDACTED: Final = "***"
_MASK_KEYS: Final = {HASH: (HASH, "salt"), REDACT: (REDACT,), PARTIAL: (PARTIAL,)}


@dataclass(frozen=True, slots=True)
class Flatten(Transform):
    """Structs become columns of their own: `address.city` becomes `address_city`.

    Without `columns` all structs do. `depth` is how many levels are opened, by default all.
    """

    KIND: ClassVar[str] = "flatten"
    columns: tuple[str, ...] = ()
    separator: str = field(default="_", kw_only=True)
    depth: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        Placed.__post_init__(self)
        object.__setattr__(self, "columns", names_of(self.columns))

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"separator": self.separator}
        if self.columns:
            body["columns"] = list(self.columns)
        if self.depth is not None:
            body["depth"] = self.depth
        return step_json(self, flatten=body)


@dataclass(frozen=True, slots=True)
class MaskRule:
    """How the values of a field are hidden."""

    how: str
    algorithm: str = "sha256"
    salt: str = ""
    #: What is written instead; None for the usual text, or null where the field is no text.
    replacement: str | None = None
    first: int = 0
    last: int = 0
    sign: str = "*"


@dataclass(frozen=True, slots=True)
class Mask(Transform):
    """Fields whose values are hidden: `hash`, `redact` or `partial`, each perhaps with options."""

    KIND: ClassVar[str] = "mask"
    columns: Mapping[str, str | Mapping[str, Any]]

    def to_json(self) -> dict[str, Any]:
        return step_json(self, mask=dict(self.columns))

    def rules(self) -> dict[str, MaskRule]:
        return {name: mask_rule(value) for name, value in self.columns.items()}


def mask_rule(written: object) -> MaskRule:
    """Raises ValueError with a sentence that says what is wrong."""
    if isinstance(written, str):
        return _rule(written, {written: None})
    if not isinstance(written, Mapping):
        raise ValueError(f"expected hash, redact or partial, got {written!r}")
    kinds = [how for how in _MASK_KEYS if how in written]
    if len(kinds) != 1:
        raise ValueError("exactly one of hash, redact and partial")
    return _rule(kinds[0], written)


def _rule(how: str, options: Mapping[str, Any]) -> MaskRule:
    if how not in _MASK_KEYS:
        raise ValueError(f"unknown way {how!r}; known are hash, redact and partial")
    if unknown := [str(name) for name in options if name not in _MASK_KEYS[how]]:
        raise ValueError(f"{how} has no option {unknown[0]!r}")
    value = options[how]
    if how == HASH:
        algorithm = str(value or ALGORITHMS[0]).lower()
        if algorithm not in ALGORITHMS:
            raise ValueError(f"unknown hash {algorithm!r}; known are {' and '.join(ALGORITHMS)}")
        return MaskRule(how, algorithm=algorithm, salt=str(options.get("salt") or ""))
    if how == REDACT:
        return MaskRule(how, replacement=None if value is None else str(value))
    return _partial(value)


def _partial(value: object) -> MaskRule:
    if value is None:
        return MaskRule(PARTIAL, last=4)
    if not isinstance(value, Mapping):
        raise ValueError("partial: expected {first: 0, last: 4}")
    if unknown := [str(name) for name in value if name not in ("first", "last", "with")]:
        raise ValueError(f"partial has no option {unknown[0]!r}; it has first, last and with")
    counts = {name: value.get(name, 0) for name in ("first", "last")}
    for name, count in counts.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise ValueError(f"partial: {name}: expected a number of characters, got {count!r}")
    sign = str(value.get("with", "*"))
    if len(sign) != 1:
        raise ValueError(f"partial: with: expected one character, got {sign!r}")
    return MaskRule(PARTIAL, first=counts["first"], last=counts["last"], sign=sign)


def redacted(rule: MaskRule) -> str:
    return _REDACTED if rule.replacement is None else rule.replacement


@dataclass(frozen=True, slots=True)
class Explode(Transform):
    """A row for each item of an array, or each entry of a map.

    `into` names the column of the items, or those of keys and values; `position` the column of
    their numbers. A row without items is left out, unless `outer`.
    """

    KIND: ClassVar[str] = "explode"
    column: str
    into: tuple[str, ...] = field(default=(), kw_only=True)
    position: str | None = field(default=None, kw_only=True)
    outer: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        Placed.__post_init__(self)
        object.__setattr__(self, "into", names_of(self.into))

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"column": self.column}
        if self.into:
            body["as"] = list(self.into)
        if self.position is not None:
            body["position"] = self.position
        if self.outer:
            body["outer"] = True
        return step_json(self, explode=body)


@dataclass(frozen=True, slots=True)
class HeadersToColumns(Transform):
    """Columns that get the text of a record's header: the last one of that name, or null."""

    KIND: ClassVar[str] = "headers_to_columns"
    columns: Mapping[str, str]

    def __post_init__(self) -> None:
        Placed.__post_init__(self)
        object.__setattr__(self, "columns", pairs_of(self.columns))

    def to_json(self) -> dict[str, Any]:
        return step_json(self, headers_to_columns=dict(self.columns))


@dataclass(frozen=True, slots=True)
class ColumnsToHeaders(Transform):
    """Columns that become headers of the record that is written; with `keep` also stay columns."""

    KIND: ClassVar[str] = "columns_to_headers"
    columns: Mapping[str, str]
    keep: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        Placed.__post_init__(self)
        object.__setattr__(self, "columns", pairs_of(self.columns))

    def to_json(self) -> dict[str, Any]:
        return step_json(
            self, columns_to_headers=dict(self.columns), keep=True if self.keep else None
        )


@dataclass(frozen=True, slots=True)
class Deduplicate(Transform):
    """Of the rows with the same keys only the first, as far apart as the watermark's delay.

    `watermark` is not needed if the source or an earlier step has one.
    """

    KIND: ClassVar[str] = "deduplicate"
    keys: tuple[str, ...]
    watermark: Watermark | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        Placed.__post_init__(self)
        object.__setattr__(self, "keys", names_of(self.keys))

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"keys": list(self.keys)}
        if self.watermark is not None:
            body["watermark"] = self.watermark.to_json()["watermark"]
        return step_json(self, deduplicate=body)


def names_of(written: object) -> tuple[str, ...]:
    """One name or several."""
    if isinstance(written, str):
        return (written,)
    return tuple(str(one) for one in written)  # type: ignore[attr-defined]  # a list


def pairs_of(written: object) -> dict[str, str]:
    """Names and what they are called elsewhere; of a list, the same."""
    if isinstance(written, Mapping):
        return {str(name): str(other) for name, other in written.items()}
    return {name: name for name in names_of(written)}
