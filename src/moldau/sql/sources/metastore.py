"""The streams, tables and types that statements have created."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.config.suggestions import did_you_mean
from moldau.sql.errors import KsqlException, ReferentialIntegrityException
from moldau.sql.sources.data_source import DataSource
from moldau.sql.syntax.statements import SourceKind
from moldau.sql.types import SqlType


class MetaStore:
    """Sources and types by name. `copy` gives a sandbox to try statements in."""

    def __init__(self) -> None:
        self._sources: dict[str, DataSource] = {}
        self._types: dict[str, SqlType] = {}
        #: For each source, those that it was made from.
        self._reads: dict[str, set[str]] = {}

    def copy(self) -> MetaStore:
        other = MetaStore()
        other._sources = dict(self._sources)
        other._types = dict(self._types)
        other._reads = {name: set(reads) for name, reads in self._reads.items()}
        return other

    @property
    def sources(self) -> dict[str, DataSource]:
        return dict(self._sources)

    def source(self, name: str) -> DataSource | None:
        return self._sources.get(name)

    def put(self, source: DataSource, *, replace: bool = False) -> None:
        """Add a source, or replace one that may become this one."""
        before = self._sources.get(source.name)
        if before is not None and not replace:
            raise already_exists(source.kind, source.name, before.kind)
        if before is not None:
            issue = before.cannot_become(source)
            if issue is not None:
                raise KsqlException(f"Cannot upgrade data source: {issue}")
        self._sources[source.name] = source

    def add_reads(self, name: str, sources: Iterable[str]) -> None:
        """Note that a source is made from others, which then cannot be dropped."""
        self._reads.setdefault(name, set()).update(sources)

    def readers(self, name: str) -> list[str]:
        """The sources that are made from this one."""
        return sorted(each for each, reads in self._reads.items() if name in reads)

    def delete(self, name: str) -> None:
        if name not in self._sources:
            raise KsqlException(f"No data source with name {name} exists.")
        readers = self.readers(name)
        if readers:
            raise ReferentialIntegrityException(
                f"Cannot drop {name}.\nThe following streams and/or tables read from this source: "
                f"[{', '.join(readers)}].\nYou need to drop them before dropping {name}."
            )
        self._reads.pop(name, None)
        del self._sources[name]

    def hint(self, name: str, kind: SourceKind | None = None) -> str:
        """Sources whose names differ from this one in upper and lower case, or are much like it."""
        matches = sorted(
            (
                each
                for each in self._sources.values()
                if each.name.upper() == name.upper() and kind in (None, each.kind)
            ),
            key=lambda each: each.name,
        )
        if not matches:
            near = [each.name for each in self._sources.values() if kind in (None, each.kind)]
            return did_you_mean(name, near)
        if len(matches) > 1:
            shown = [f'"{each.name}" ({each.kind})' for each in matches]
            last = " or " if len(shown) == 2 else ", or "
            return (
                f"\nDid you mean {', '.join(shown[:-1])}{last}{shown[-1]}? "
                "Hint: wrap the source name in double quotes to make it case-sensitive."
            )
        found = matches[0].name
        if found != found.upper():
            return (
                f'\nDid you mean "{found}"? Hint: wrap the source name in double quotes '
                "to make it case-sensitive."
            )
        return f"\nDid you mean {found}? Hint: try removing double quotes from the source name."

    # Types.

    @property
    def types(self) -> dict[str, SqlType]:
        return dict(self._types)

    def resolve_type(self, name: str) -> SqlType | None:
        return self._types.get(name.upper())

    def register_type(self, name: str, sql_type: SqlType) -> bool:
        """Whether the name was free."""
        return self._types.setdefault(name.upper(), sql_type) is sql_type

    def delete_type(self, name: str) -> bool:
        """Whether there was one."""
        return self._types.pop(name.upper(), None) is not None


def already_exists(kind: str, name: str, existing: str) -> KsqlException:
    return KsqlException(
        f"Cannot add {kind.lower()} '{name}': A {existing.lower()} with the same name already "
        f"exists"
    )
