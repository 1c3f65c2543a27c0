"""What a comparison of two schemas has found so far, and how it asks for inner ones."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from moldau.data.json_schema.diff.difference import Difference, DifferenceType
from moldau.data.json_schema.diff.shared import Shared
from moldau.data.json_schema.model import SchemaNode

#: Of the one difference that ends a trial: it is copied on every level on the way up.
TRIAL_PATH_LENGTH_MAX = 1000


@dataclass(frozen=True, slots=True)
class Found:
    """The differences of a pair, with paths that start there, and whether all are compatible."""

    differences: tuple[Difference, ...]
    compatible: bool


@dataclass(frozen=True, slots=True)
class Compare:
    """Asks for the comparison of an inner pair.

    `trial`: if it is incompatible, the first reason is enough.
    """

    original: SchemaNode
    update: SchemaNode
    trial: bool = False


#: A comparison in steps: it yields a request, and is sent what was found.
Comparing = Generator[Compare, Found, None]
#: A comparison that returns whether it has found a compatible schema; nothing is added if not.
Trying = Generator[Compare, Found, bool]


class Rejected(Exception):
    """Ends a trial at the first incompatible difference, which it carries."""

    def __init__(self, difference: Difference) -> None:
        super().__init__(difference.type.name)
        self.difference = difference


class Context:
    """The differences of one pair, in order, and the path at which the next one is."""

    def __init__(self, shared: Shared, *, trial: bool) -> None:
        self.shared = shared
        self.trial = trial
        self._differences: list[Difference] = []
        self._path: list[str] = []

    @contextmanager
    def at(self, *names: str) -> Iterator[None]:
        self._path += names
        try:
            yield
        finally:
            del self._path[-len(names) :]

    def add(self, type_: DifferenceType, keyword: str | None = None) -> None:
        names = self._path if keyword is None else [*self._path, keyword]
        self._append(Difference(type_, "#/" + "/".join(names)))

    def take(self, found: Found) -> None:
        """Add the differences of an inner pair at the current path."""
        prefix = "#/" + "/".join(self._path)
        for each in found.differences:
            # "#/" is the pair itself.
            inner = each.path[2:] if not self.trial else each.path[2:TRIAL_PATH_LENGTH_MAX]
            path = f"{prefix}/{inner}" if inner and self._path else prefix + inner
            self._append(Difference(each.type, path))

    def compare(self, original: SchemaNode | None, update: SchemaNode | None) -> Comparing:
        """Compare two inner schemas and take what is found."""
        if original is not None and update is not None:
            self.take((yield Compare(original, update)))
        elif update is not None:
            self.add(DifferenceType.SCHEMA_ADDED)
        elif original is not None:
            self.add(DifferenceType.SCHEMA_REMOVED)

    @property
    def found(self) -> Found:
        differences = tuple(self._differences)
        return Found(differences, self.shared.are_compatible(differences))

    def _append(self, difference: Difference) -> None:
        if self.trial:
            if not self.shared.are_compatible((difference,)):
                raise Rejected(difference)
            if self.shared.brief:
                return
        self.shared.charge(difference)
        self._differences.append(difference)
