"""Names of columns that have none: KSQL_COL_0, ROWKEY, the fields of structs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from moldau.sql.sources.schema import LogicalSchema
from moldau.sql.syntax.expressions import Dereference, Expression

_NUMBERED = re.compile(r"(.*?)(?:_([0-9]+))?", re.DOTALL)
_GENERATED = "KSQL_COL"
_SYNTHETIC_KEY = "ROWKEY"
_AGGREGATE = "KSQL_AGG_VARIABLE_"


def aggregate_column(index: int) -> str:
    return f"{_AGGREGATE}{index}"


def is_aggregate_column(name: str) -> bool:
    return name.startswith(_AGGREGATE)


def table_function_column(index: int) -> str:
    return f"KSQL_SYNTH_{index}"


def join_alias(source: str, column: str) -> str:
    """The name of a source's column inside a join."""
    return f"{source}_{column}"


def maybe_synthetic_key(name: str) -> bool:
    return name.startswith(_SYNTHETIC_KEY)


def _split(name: str) -> tuple[str, int]:
    found = _NUMBERED.fullmatch(name)
    prefix, number = found.groups() if found else (name, None)
    return prefix, int(number or 0)


class _Numbers:
    """Hands out prefix, prefix_1, ... except those that are taken."""

    def __init__(self, prefix: str, used: Iterable[int] = ()) -> None:
        self._prefix = prefix
        self._used = set(used)
        self._next = 0

    def next(self) -> str:
        while self._next in self._used:
            self._next += 1
        index, self._next = self._next, self._next + 1
        if index == 0 and self._prefix != _GENERATED:
            return self._prefix
        return f"{self._prefix}_{index}"


class AliasGenerator:
    """Makes names that no column of these schemas has."""

    def __init__(self, schemas: Iterable[LogicalSchema]) -> None:
        used: dict[str, set[int]] = {}
        for schema in schemas:
            for column in schema.columns:
                prefix, number = _split(column.name)
                used.setdefault(prefix, set()).add(number)
        self._numbers = {prefix: _Numbers(prefix, each) for prefix, each in used.items()}

    def _next(self, prefix: str) -> str:
        if prefix not in self._numbers:
            self._numbers[prefix] = _Numbers(prefix)
        return self._numbers[prefix].next()

    def alias_for(self, expression: Expression) -> str:
        """A struct's field lends its name; anything else is KSQL_COL_n."""
        if isinstance(expression, Dereference):
            return self._next(_split(expression.field)[0])
        return self._next(_GENERATED)

    def synthetic_key(self) -> str:
        """The key of a join whose condition is no column of either side."""
        return self._next(_SYNTHETIC_KEY)
