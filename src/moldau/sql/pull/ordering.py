"""ORDER BY, OFFSET and LIMIT of a pull query, over the rows that it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from moldau.sql.errors import KsqlException
from moldau.sql.expressions.compiled import Compiler, ignore_errors
from moldau.sql.ports import Functions
from moldau.sql.sources.schema import LogicalSchema
from moldau.sql.syntax.expressions import ColumnRef, Expression, IntegerLiteral, columns, rewrite
from moldau.sql.syntax.formatting import text
from moldau.sql.syntax.statements import OrderItem, Query
from moldau.sql.types import ArrayType, Column, MapType, StructType

__all__ = ["Ordering", "check_no_ordering", "ordering_of"]

Row = tuple[Any, ...]
#: A row, or, where nothing is sorted, its text.
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _Key:
    evaluate: Callable[[Row], Any]
    descending: bool
    nulls_last: bool

    def __call__(self, row: Any) -> tuple[int, Any]:
        value = self.evaluate(row)
        if value is None:
            return (1 if self.nulls_last != self.descending else -1), 0
        return 0, value


@dataclass(frozen=True, slots=True)
class Ordering:
    """What becomes of the rows of a query once all of them are there."""

    keys: tuple[_Key, ...] = ()
    offset: int = 0
    limit: int | None = None

    @property
    def needed(self) -> int | None:
        """How many rows of one place can be enough; None for all."""
        if self.keys or self.limit is None:
            return None
        return self.offset + self.limit

    def apply(self, rows: Iterable[R]) -> list[R]:
        """Sort, skip and cut; also what several places have sorted and cut before."""
        found: Iterable[R] = rows
        if self.keys:
            ordered = list(rows)
            # From the last key to the first: sorting keeps the order of what is equal.
            for key in reversed(self.keys):
                ordered.sort(key=key, reverse=key.descending)
            found = ordered
        end = None if self.limit is None else self.offset + self.limit
        return list(islice(found, self.offset, end))


def check_no_ordering(query: Query) -> None:
    """Only pull queries end, and only what ends can be sorted."""
    if query.order_by or query.offset is not None:
        clause = "ORDER BY" if query.order_by else "OFFSET"
        raise KsqlException(
            f"{clause} is for pull queries: the rows of this query have no end. Leave out EMIT "
            "CHANGES to see what there is now, sorted."
        )


def ordering_of(query: Query, shown: Sequence[Column], functions: Functions) -> Ordering:
    """`shown` are the columns of the answer, which ORDER BY may use in expressions."""
    if query.offset is not None and query.offset < 0:
        raise KsqlException("Pull queries don't support negative integers in the OFFSET clause.")
    schema = LogicalSchema([Column(each.name, each.type) for each in shown])
    compiler = Compiler(schema, functions, ignore_errors)
    keys = tuple(_key(each, shown, compiler) for each in query.order_by)
    return Ordering(keys, query.offset or 0, query.limit)


def _key(item: OrderItem, shown: Sequence[Column], compiler: Compiler) -> _Key:
    expression = _by_position(item.expression, shown)
    names = [each.name for each in shown]
    for column in columns(expression):
        if column.name not in names:
            raise KsqlException(
                f"{column.prefix}ORDER BY column '{column.name}' is not selected: add it to the "
                f"SELECT list, which has {', '.join(names)}."
            )
    plain = rewrite(
        expression,
        lambda node: ColumnRef(node.name) if isinstance(node, ColumnRef) else None,
    )
    kind = compiler.type_of(plain, "ORDER BY")
    if isinstance(kind, ArrayType | MapType | StructType):
        raise KsqlException(f"ORDER BY {text(expression)}: values of {kind} have no order.")
    value = compiler.value(plain, "ORDER BY", f"Error computing ORDER BY {text(expression)}")
    last = not item.descending if item.nulls_last is None else item.nulls_last
    return _Key(value.evaluate, item.descending, last)


def _by_position(expression: Expression, shown: Sequence[Column]) -> Expression:
    """ORDER BY 2 sorts by the second column."""
    if not isinstance(expression, IntegerLiteral):
        return expression
    if not 1 <= expression.value <= len(shown):
        raise KsqlException(
            f"ORDER BY {expression.value}: the query has {len(shown)} columns, counted from 1."
        )
    return ColumnRef(shown[expression.value - 1].name)
