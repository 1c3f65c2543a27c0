"""Makes a query explicit: every column says which source it is of, every result has a name."""

from __future__ import annotations

from dataclasses import replace

from moldau.sql.analysis.names import AliasGenerator, join_alias
from moldau.sql.errors import KsqlException, grammatical
from moldau.sql.sources.data_source import DataSource
from moldau.sql.sources.metastore import MetaStore
from moldau.sql.sources.schema import PSEUDO_COLUMNS, WINDOW_BOUNDS
from moldau.sql.syntax.expressions import ColumnRef, Expression, Lambda, children, rewrite
from moldau.sql.syntax.formatting import text
from moldau.sql.syntax.statements import (
    InsertInto,
    Query,
    Relation,
    SelectItem,
    SingleColumn,
    StructAll,
)


class _Sources:
    """The sources of a query under their aliases."""

    def __init__(self, query: Query, metastore: MetaStore) -> None:
        self.is_join = bool(query.joins)
        self.by_alias: dict[str, DataSource] = {}
        self._clashing: set[str] = set()
        seen: set[str] = set()
        for relation in (query.source, *(each.relation for each in query.joins)):
            source = _find(relation, metastore)
            self.by_alias[relation.alias] = source
            names = {each.name for each in source.schema.columns}
            self._clashing |= seen & names
            seen |= names

    def clashes(self, name: str) -> bool:
        return self.is_join and (name in PSEUDO_COLUMNS or name in self._clashing)

    def having(self, name: str) -> list[str]:
        """The aliases of the sources that have a column."""
        return [
            alias
            for alias, source in self.by_alias.items()
            if name in PSEUDO_COLUMNS
            or (source.is_windowed and name in WINDOW_BOUNDS)
            or source.schema.find(name) is not None
        ]


def _find(relation: Relation, metastore: MetaStore) -> DataSource:
    if relation.spark is not None:
        raise KsqlException(
            f"{relation.spark} is a table of Spark: only the first source of CREATE STREAM|TABLE "
            "... AS may be one, which is copied to a topic. Join and group what was copied."
        )
    source = metastore.source(relation.name)
    if source is None:
        raise KsqlException(f"{relation.name} does not exist.{metastore.hint(relation.name)}")
    return source


def check_insert_target(statement: InsertInto, metastore: MetaStore) -> None:
    """INSERT INTO writes to streams that exist."""
    target = metastore.source(statement.target)
    if target is None:
        prefix = statement.position.prefix if statement.position else ""
        raise KsqlException(f"{prefix}Source `{statement.target}` does not exist.")
    if target.kind != "STREAM":
        raise KsqlException(
            f"INSERT INTO can only be used to insert into a stream. {target.name} is a table."
        )
    if target.schema.headers:
        raise KsqlException(f"Cannot insert into {target.name} because it has header columns")


def sanitized(query: Query, metastore: MetaStore) -> Query:
    """The query with qualified columns and with an alias for every column it selects."""
    sources = _Sources(query, metastore)
    rewriter = _Rewriter(sources)
    aliases = AliasGenerator(each.schema for each in sources.by_alias.values())

    def item(each: SelectItem) -> SelectItem:
        if isinstance(each, SingleColumn):
            expression = rewriter.rewrite(each.expression)
            alias = each.alias
            if alias is None:
                alias = _alias(expression, sources, aliases)
            return replace(each, expression=expression, alias=alias)
        if isinstance(each, StructAll):
            return replace(each, base=rewriter.rewrite(each.base))
        return each

    joins = tuple(replace(each, criteria=rewriter.rewrite(each.criteria)) for each in query.joins)
    return replace(
        query,
        select=tuple(item(each) for each in query.select),
        joins=joins,
        where=rewriter.optional(query.where),
        group_by=_distinct("GROUP BY", rewriter.all(query.group_by)),
        partition_by=_distinct("PARTITION BY", rewriter.all(query.partition_by)),
        having=rewriter.optional(query.having),
    )


def _alias(expression: Expression, sources: _Sources, aliases: AliasGenerator) -> str:
    if isinstance(expression, ColumnRef):
        if expression.source is not None and sources.clashes(expression.name):
            return join_alias(expression.source, expression.name)
        return expression.name
    return aliases.alias_for(expression)


def _distinct(
    clause: str, expressions: tuple[Expression, ...] | None
) -> tuple[Expression, ...] | None:
    for index, each in enumerate(expressions or ()):
        if expressions is not None and each in expressions[:index]:
            raise KsqlException(f"Duplicate {clause} expression: {text(each)}")
    return expressions


class _Rewriter:
    def __init__(self, sources: _Sources) -> None:
        self._sources = sources
        self._columns = {
            column.name for source in sources.by_alias.values() for column in source.schema.columns
        }

    def rewrite(self, expression: Expression) -> Expression:
        self._check_lambdas(expression, frozenset())
        return rewrite(expression, self._qualified)

    def optional(self, expression: Expression | None) -> Expression | None:
        return None if expression is None else self.rewrite(expression)

    def all(self, expressions: tuple[Expression, ...] | None) -> tuple[Expression, ...] | None:
        return None if expressions is None else tuple(self.rewrite(each) for each in expressions)

    def _qualified(self, node: Expression) -> Expression | None:
        if not isinstance(node, ColumnRef) or node.source is not None:
            return None
        aliases = self._sources.having(node.name)
        if len(aliases) > 1:
            could = sorted(f"{alias}.{node.name}" for alias in aliases)
            raise KsqlException(
                f"{node.prefix}Column '{node.name}' is ambiguous. Could be "
                f"{grammatical(could, 'or')}."
            )
        return replace(node, source=aliases[0]) if aliases else None

    def _check_lambdas(self, node: Expression, outer: frozenset[str]) -> None:
        from_here = outer
        if isinstance(node, Lambda):
            for argument in node.arguments:
                if argument in self._columns:
                    raise KsqlException(
                        f"Lambda function argument can't be a column name: {argument}"
                    )
            if outer & set(node.arguments):
                raise KsqlException("Reusing lambda arguments in nested lambda is not allowed")
            from_here = outer | set(node.arguments)
        for child in children(node):
            self._check_lambdas(child, from_here)
