"""Rewrites what ksqlDB's queries do not have into those that they have.

A query in FROM is merged into the one around it, and HAVING without groups becomes a part of WHERE.
What cannot be merged without changing the result is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from moldau.sql.analysis.sanitizer import sanitized
from moldau.sql.errors import KsqlException
from moldau.sql.ports import Functions
from moldau.sql.sources.metastore import MetaStore
from moldau.sql.sources.schema import PSEUDO_COLUMNS, WINDOW_BOUNDS
from moldau.sql.syntax.expressions import (
    ColumnRef,
    Expression,
    FunctionCall,
    Logical,
    rewrite,
    walk,
)
from moldau.sql.syntax.statements import (
    AllColumns,
    CreateAsSelect,
    Explain,
    InsertInto,
    Query,
    SelectItem,
    SingleColumn,
    Statement,
    StructAll,
)

__all__ = ["flattened"]

_INSTEAD = "Create a stream or table of it first: CREATE TABLE name AS SELECT ..."


def flattened(statement: Statement, metastore: MetaStore, functions: Functions) -> Statement:
    """The statement with plain queries only."""
    match statement:
        case Query():
            return _Flattener(metastore, functions).query(statement)
        case CreateAsSelect() | InsertInto():
            query = _Flattener(metastore, functions).query(statement.query)
            return replace(statement, query=query)
        case Explain() if statement.statement is not None:
            return replace(
                statement, statement=flattened(statement.statement, metastore, functions)
            )
    return statement


class _Flattener:
    def __init__(self, metastore: MetaStore, functions: Functions) -> None:
        self._metastore = metastore
        self._functions = functions

    def query(self, query: Query) -> Query:
        query = replace(query, unions=tuple(self.query(each) for each in query.unions))
        inner = query.source.query
        joined = [each.relation for each in query.joins if each.relation.query is not None]
        if joined or (query.joins and inner is not None):
            alias = joined[0].alias if joined else query.source.alias
            raise KsqlException(f"The query in brackets `{alias}` cannot be joined. {_INSTEAD}")
        if inner is not None:
            query = self._merged(query, self.query(inner))
        return self._without_having(query)

    def _has(self, kind: str, expressions: Iterable[Expression]) -> bool:
        return any(
            isinstance(node, FunctionCall) and self._functions.kind(node.name) == kind
            for expression in expressions
            for node in walk(expression)
        )

    # HAVING without GROUP BY.

    def _without_having(self, query: Query) -> Query:
        having = query.having
        selected = _selected(query)
        if having is None or query.group_by is not None or query.is_pull:
            return query
        if self._has("aggregate", [*selected, having]):
            return query
        if self._has("table", selected):
            raise KsqlException("HAVING cannot be used with table functions.")
        named = {
            each.alias: each.expression
            for each in query.select
            if isinstance(each, SingleColumn) and each.alias is not None
        }

        def plain(node: Expression) -> Expression | None:
            if isinstance(node, ColumnRef) and node.source is None:
                return named.get(node.name)
            return None

        return replace(query, where=_both(query.where, rewrite(having, plain)), having=None)

    # Queries in FROM.

    def _merged(self, outer: Query, inner: Query) -> Query:
        alias = outer.source.alias
        if inner.limit is not None or inner.offset is not None or inner.order_by or inner.unions:
            raise KsqlException(
                f"The query in brackets `{alias}` cannot have UNION, ORDER BY, LIMIT or OFFSET."
            )
        if inner.emit is not None:
            raise KsqlException(
                f"The query in brackets `{alias}` cannot have EMIT: it is part of the query around "
                "it."
            )
        inner = sanitized(inner, self._metastore)
        groups = inner.group_by is not None or self._has("aggregate", _selected(inner))
        flat = self._has("table", _selected(inner))
        self._check(outer, inner, groups=groups, flat=flat)
        columns = _Columns(inner, alias, self._metastore)
        where = None if outer.where is None else columns.replaced(outer.where)
        having = None if outer.having is None else columns.replaced(outer.having)
        return replace(
            outer,
            select=tuple(each for item in outer.select for each in columns.items(item)),
            source=inner.source,
            joins=inner.joins,
            window=outer.window or inner.window,
            where=inner.where if groups else _both(inner.where, where),
            group_by=columns.all(outer.group_by) or inner.group_by,
            partition_by=columns.all(outer.partition_by) or inner.partition_by,
            having=_both(inner.having, where if groups else having),
        )

    def _check(self, outer: Query, inner: Query, *, groups: bool, flat: bool) -> None:
        alias = outer.source.alias
        selected = _selected(outer)
        regroups = (
            outer.group_by is not None
            or outer.window is not None
            or self._has("aggregate", selected)
        )
        rekeys = outer.partition_by is not None
        spreads = self._has("table", selected)
        if groups and (regroups or rekeys or spreads or outer.having is not None):
            raise KsqlException(
                f"The query in brackets `{alias}` has groups: what is around it can only filter "
                f"and compute. {_INSTEAD}"
            )
        if flat and (regroups or spreads or outer.where is not None):
            raise KsqlException(
                f"The query in brackets `{alias}` has table functions: what is around it can only "
                f"compute. {_INSTEAD.replace('TABLE', 'STREAM')}"
            )
        if inner.partition_by is not None and (regroups or rekeys):
            raise KsqlException(
                f"The query in brackets `{alias}` has PARTITION BY, and what is around it changes "
                f"the key again. {_INSTEAD.replace('TABLE', 'STREAM')}"
            )


class _Columns:
    """What the names of an inner query stand for."""

    def __init__(self, inner: Query, alias: str, metastore: MetaStore) -> None:
        self._inner = inner
        self._alias = alias
        self._named = {
            each.alias or "": each.expression
            for each in inner.select
            if isinstance(each, SingleColumn)
        }
        relations = (inner.source, *(each.relation for each in inner.joins))
        found = [(each.alias, metastore.source(each.name)) for each in relations]
        self._sources = [(name, source) for name, source in found if source is not None]
        self._stars = [each.source for each in inner.select if isinstance(each, AllColumns)]

    def _column(self, node: ColumnRef) -> Expression:
        if node.name in self._named:
            return self._named[node.name]
        having = [
            alias
            for alias, source in self._sources
            if node.name in PSEUDO_COLUMNS
            or (source.is_windowed and node.name in WINDOW_BOUNDS)
            or (
                (None in self._stars or alias in self._stars)
                and source.schema.find(node.name) is not None
            )
        ]
        if len(having) == 1:
            return ColumnRef(node.name, having[0], position=node.position)
        if node.name in WINDOW_BOUNDS and self._inner.window is not None:
            return ColumnRef(node.name, position=node.position)
        shown = ", ".join(self._named) or "all columns of its source"
        raise KsqlException(
            f"{node.prefix}Column '{node.name}' cannot be resolved: the query in brackets "
            f"`{self._alias}` has {shown}."
        )

    def replaced(self, expression: Expression) -> Expression:
        def column(node: Expression) -> Expression | None:
            if not isinstance(node, ColumnRef):
                return None
            if node.source not in (None, self._alias):
                raise KsqlException(
                    f"{node.prefix}'{node.source}' is not a valid stream/table name or alias."
                )
            return self._column(node)

        return rewrite(expression, column)

    def all(self, expressions: tuple[Expression, ...] | None) -> tuple[Expression, ...] | None:
        return None if expressions is None else tuple(self.replaced(each) for each in expressions)

    def items(self, item: SelectItem) -> list[SelectItem]:
        match item:
            case SingleColumn(expression, alias):
                if alias is None and isinstance(expression, ColumnRef):
                    alias = expression.name
                return [replace(item, expression=self.replaced(expression), alias=alias)]
            case StructAll(base):
                return [replace(item, base=self.replaced(base))]
        return list(self._inner.select)


def _selected(query: Query) -> list[Expression]:
    return [each.expression for each in query.select if isinstance(each, SingleColumn)]


def _both(one: Expression | None, other: Expression | None) -> Expression | None:
    if one is None or other is None:
        return one or other
    return Logical("AND", one, other)
