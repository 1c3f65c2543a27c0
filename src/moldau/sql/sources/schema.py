"""The columns of a source, or of a row somewhere in a query."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from moldau.sql.errors import KsqlException
from moldau.sql.types import BIGINT, INTEGER, Column, Namespace, SqlType, quoted

ROWTIME = "ROWTIME"
ROWPARTITION = "ROWPARTITION"
ROWOFFSET = "ROWOFFSET"
WINDOWSTART = "WINDOWSTART"
WINDOWEND = "WINDOWEND"
#: Columns that every source has beside its own.
PSEUDO_COLUMNS: dict[str, SqlType] = {ROWTIME: BIGINT, ROWPARTITION: INTEGER, ROWOFFSET: BIGINT}
WINDOW_BOUNDS = frozenset({WINDOWSTART, WINDOWEND})
SYSTEM_COLUMNS = WINDOW_BOUNDS | PSEUDO_COLUMNS.keys()

_ORDER = {Namespace.KEY: 0, Namespace.VALUE: 1, Namespace.HEADERS: 2}


class DuplicateColumnException(KsqlException):
    """Two columns of one part of the schema have the same name."""

    def __init__(self, column: Column) -> None:
        part = column.namespace.value.lower()
        super().__init__(f"Duplicate {part} columns found in schema: {_shown(column)}")
        self.column = column


def _shown(column: Column) -> str:
    return f"{quoted(column.name)} {column.type}"


def key_column(name: str, sql_type: SqlType) -> Column:
    return Column(name, sql_type, Namespace.KEY)


class LogicalSchema:
    """Columns in order. Inside a query a value column may have the name of a key column."""

    def __init__(self, columns: Iterable[Column] = ()) -> None:
        self.columns = tuple(columns)
        seen: set[tuple[Namespace, str]] = set()
        headers: set[str | None] = set()
        for column in self.columns:
            place = column.namespace, column.name
            if place in seen:
                raise DuplicateColumnException(column)
            seen.add(place)
            if column.namespace is Namespace.HEADERS:
                _check_headers(column, headers)

    @cached_property
    def key(self) -> tuple[Column, ...]:
        return tuple(each for each in self.columns if each.namespace is Namespace.KEY)

    @cached_property
    def value(self) -> tuple[Column, ...]:
        return tuple(each for each in self.columns if each.namespace is Namespace.VALUE)

    @cached_property
    def headers(self) -> tuple[Column, ...]:
        return tuple(each for each in self.columns if each.namespace is Namespace.HEADERS)

    @cached_property
    def value_index(self) -> dict[str, int]:
        """The place of each value column in a row."""
        return {each.name: index for index, each in enumerate(self.value)}

    def find(self, name: str) -> Column | None:
        """The column of a name; a key column before a value column."""
        found = [each for each in self.columns if each.name == name]
        return min(found, key=lambda each: _ORDER[each.namespace]) if found else None

    def find_value(self, name: str) -> Column | None:
        index = self.value_index.get(name)
        return None if index is None else self.value[index]

    def is_key(self, name: str) -> bool:
        return any(each.name == name for each in self.key)

    def _plain_values(self) -> list[Column]:
        """Value columns that are neither system columns nor copies of the key or headers."""
        other = {each.name for each in (*self.key, *self.headers)}
        return [
            each
            for each in self.value
            if each.name not in SYSTEM_COLUMNS and each.name not in other
        ]

    def with_pseudo_and_key_in_value(
        self, *, windowed: bool, for_pull: bool = False
    ) -> LogicalSchema:
        """The row that a source passes on: its values, headers, pseudo columns and key."""
        columns = [*self.key, *self._plain_values(), *self.headers]
        columns += [Column(each.name, each.type) for each in self.headers]
        for name, sql_type in PSEUDO_COLUMNS.items():
            if name == ROWTIME or not for_pull:
                columns.append(Column(name, sql_type))
        columns += [Column(each.name, each.type) for each in self.key]
        if windowed:
            columns += [Column(WINDOWSTART, BIGINT), Column(WINDOWEND, BIGINT)]
        return LogicalSchema(columns)

    def without_pseudo_and_key_in_value(self) -> LogicalSchema:
        return LogicalSchema([*self.key, *self.headers, *self._plain_values()])

    def with_pseudo_to_materialize(self) -> LogicalSchema:
        """What the store of a source table holds: what could not be found again later, too."""
        columns = [*self.key, *self._plain_values()]
        columns += [Column(each.name, each.type) for each in self.headers]
        columns += [Column(ROWPARTITION, INTEGER), Column(ROWOFFSET, BIGINT)]
        return LogicalSchema([*columns, *self.headers])

    def key_as_value(self) -> LogicalSchema:
        """The key alone, to evaluate an expression over it."""
        return LogicalSchema([*self.key, *(Column(each.name, each.type) for each in self.key)])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogicalSchema) and self.columns == other.columns

    def __hash__(self) -> int:
        return hash(self.columns)

    def __str__(self) -> str:
        return ", ".join(str(each) for each in self.columns)

    def __repr__(self) -> str:
        return f"LogicalSchema({self})"


def _check_headers(column: Column, seen: set[str | None]) -> None:
    if None in seen:
        raise KsqlException("Schema already contains a HEADERS column.")
    if column.header_key in seen:
        raise KsqlException(f"Schema already contains a HEADER('{column.header_key}') column.")
    seen.add(column.header_key)


def value_columns(pairs: Iterable[tuple[str, SqlType]]) -> list[Column]:
    return [Column(name, sql_type) for name, sql_type in pairs]
