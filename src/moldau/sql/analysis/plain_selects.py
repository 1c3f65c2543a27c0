"""ksqlDB's second planner (`ksql.new.query.planner.enabled`): only columns of one stream.

What it does otherwise than the first: the key has the key columns that were selected, in that
order, and may have none. That is a PARTITION BY of those columns, so the query gets one.
"""

from __future__ import annotations

from dataclasses import replace

from moldau.sql.errors import KsqlException
from moldau.sql.sources.data_source import DataSource
from moldau.sql.syntax.expressions import ColumnRef, Expression, NullLiteral
from moldau.sql.syntax.statements import AllColumns, Query, SelectItem, SingleColumn

__all__ = ["with_selected_keys"]

_HINT = "Set ksql.new.query.planner.enabled=false."


def with_selected_keys(query: Query, source: DataSource) -> Query:
    """The query with the keys that it selects; raises KsqlException for what the planner lacks."""
    _check(query)
    if source.kind == "TABLE":
        raise KsqlException("Input TABLES are not supported by the new planner")
    names = [name for item in query.select for name in _names(item, source)]
    before = [each.name for each in source.schema.key]
    keys = [name for name in names if name in before]
    if keys == before:
        return query
    alias = query.source.alias
    columns: tuple[Expression, ...] = tuple(ColumnRef(name, alias) for name in keys)
    return replace(query, partition_by=columns or (NullLiteral(),))


def _check(query: Query) -> None:
    lacking = [
        (query.where is not None, "WHERE"),
        (query.group_by is not None, "GROUP BY"),
        (query.having is not None, "HAVING"),
        (query.window is not None, "WINDOWS"),
        (query.partition_by is not None, "PARTITION BY"),
        (query.limit is not None, "LIMIT"),
        (bool(query.joins), "joins"),
    ]
    for is_used, what in lacking:
        if is_used:
            raise KsqlException(f"New query planner does not support {what}. {_HINT}")


def _names(item: SelectItem, source: DataSource) -> list[str]:
    match item:
        case AllColumns():
            return [each.name for each in source.schema.columns]
        case SingleColumn(ColumnRef(name), alias) if alias in (None, name):
            return [name]
    raise KsqlException(
        "New query planner only support column references, no expressions or aliases."
    )
