"""What a comparison of two schemas has found so far, and how it asks for inner ones."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

from moldau.data.json_schema.diff.difference import Difference, DifferenceType
from moldau.data.json_schema.diff.shared import Shared
from moldau.data.json_schema.model import SchemaNode

#: A comparison in steps: it yields an inner pair, and is sent the differences of that pair, with
#: paths that start there.
Comparing = Generator[tuple[SchemaNode, SchemaNode], Sequence[Difference], None]


class Context:
    """The differences of one pair, in order, and the path at which the next one is."""

    def __init__(self, shared: Shared, path: Sequence[str] = ()) -> None:
        self.shared = shared
        self.differences: list[Difference] = []
        self._path = list(path)

    def sub(self) -> Context:
        """A context at the same path, whose differences may be dropped."""
        return Context(self.shared, self._path)

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

    def extend(self, other: Context) -> None:
        """Take what a sub-context has found."""
        for each in other.differences:
            self._append(each)

    def compare(self, original: SchemaNode | None, update: SchemaNode | None) -> Comparing:
        """Compare two inner schemas; their differences are added at the current path."""
        if original is None or update is None:
            if update is not None:
                self.add(DifferenceType.SCHEMA_ADDED)
            elif original is not None:
                self.add(DifferenceType.SCHEMA_REMOVED)
            return
        found = yield original, update
        prefix = "#/" + "/".join(self._path)
        for each in found:
            # "#/" is the pair itself.
            inner = each.path[2:]
            path = f"{prefix}/{inner}" if inner and self._path else prefix + inner
            self._append(Difference(each.type, path))

    @property
    def is_compatible(self) -> bool:
        return self.shared.are_compatible(self.differences)

    def _append(self, difference: Difference) -> None:
        self.shared.charge(difference)
        self.differences.append(difference)
