"""Queries: SELECT and all its clauses."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal as Choice

from moldau.sql.errors import KsqlException, ParsingException
from moldau.sql.syntax.cursor import Cursor, unquote
from moldau.sql.syntax.expression_parser import UNITS, ExpressionParser
from moldau.sql.syntax.expressions import Expression, IntegerLiteral, LongLiteral, Position
from moldau.sql.syntax.statements import (
    AllColumns,
    Duration,
    JoinedSource,
    OrderItem,
    Query,
    Relation,
    SelectItem,
    SingleColumn,
    SparkTable,
    StructAll,
    Window,
    Within,
)
from moldau.sql.syntax.type_parser import LiteralParser

_JOIN_STARTS = frozenset({"JOIN", "INNER", "LEFT", "RIGHT", "FULL"})
_AFTER_GROUPING = frozenset({"PARTITION", "HAVING", "EMIT", "LIMIT", ";", "<EOF>"})
#: Tables of Spark that CREATE ... AS copies, and the name of one that has none.
SPARK_FORMATS = ("delta", "iceberg", "jdbc", "parquet", "json", "csv", "avro", "xml", "text")
SPARK_ALIAS = "SPARK_TABLE"


class QueryParser:
    """Reads queries at a cursor."""

    def __init__(self, cursor: Cursor, expressions: ExpressionParser) -> None:
        self._at = cursor
        self._expressions = expressions
        self._literals = LiteralParser(cursor)

    def query(self, *, persistent: bool) -> Query:
        """A query. In a persistent one EMIT CHANGES may be left out."""
        at = self._at
        first = self._branch()
        unions = []
        while at.at_word("UNION", "ALL", "SELECT", "DISTINCT"):
            at.next()
            if not at.accept("ALL"):
                at.error(
                    "UNION would have to remember all rows to leave out those that come twice\n"
                    "Expecting 'ALL'"
                )
            unions.append(self._branch())
        order_by = self._ordering() if at.at_word("ORDER", "BY") else ()
        emit: Choice["CHANGES", "FINAL"] | None = "CHANGES" if persistent else None
        if at.accept("EMIT"):
            emit = "FINAL" if at.expect("CHANGES", "FINAL").kind == "FINAL" else "CHANGES"
        limit = self._literals.integer("LIMIT") if at.accept("LIMIT") else None
        offset = None
        if at.at_word("OFFSET", "INTEGER_VALUE", "-"):
            at.next()
            offset = self._literals.integer("OFFSET")
        if limit is None and offset is not None and at.accept("LIMIT"):
            limit = self._literals.integer("LIMIT")
        return replace(
            first,
            emit=emit,
            limit=limit,
            order_by=order_by,
            offset=offset,
            unions=tuple(replace(each, emit=emit) for each in unions),
        )

    def _branch(self) -> Query:
        """SELECT up to HAVING: one side of a UNION, or all of a query."""
        at = self._at
        position = at.position
        outside = self._expressions.sources
        self._expressions.sources = self._aliases()
        at.expect("SELECT")
        select = [self._select_item()]
        while at.accept(","):
            select.append(self._select_item())
        at.expect("FROM")
        source = self._relation()
        joins = []
        while at.kind in _JOIN_STARTS:
            joins.append(self._joined_source())
        window = self._window() if at.accept("WINDOW") else None
        where = self._expressions.expression() if at.accept("WHERE") else None
        group_by = self._grouping("GROUP BY") if at.accept("GROUP", "BY") else None
        partition_by = self._grouping("PARTITION BY") if at.accept("PARTITION", "BY") else None
        having = self._expressions.expression() if at.accept("HAVING") else None
        self._expressions.sources = outside
        return Query(
            position=position,
            select=tuple(select),
            source=source,
            joins=tuple(joins),
            window=window,
            where=where,
            group_by=group_by,
            partition_by=partition_by,
            having=having,
        )

    def _ordering(self) -> tuple[OrderItem, ...]:
        at = self._at
        at.next()
        at.expect("BY")
        found = [self._order_item()]
        while at.accept(","):
            found.append(self._order_item())
        return tuple(found)

    def _order_item(self) -> OrderItem:
        at = self._at
        expression = self._expressions.value_expression()
        descending = at.accept_word("DESC")
        if not descending:
            at.accept_word("ASC")
        nulls_last = None
        if at.accept_word("NULLS"):
            nulls_last = at.accept_word("LAST")
            if not nulls_last and not at.accept_word("FIRST"):
                at.error("Expecting {'FIRST', 'LAST'}")
        return OrderItem(expression, descending, nulls_last)

    def _aliases(self) -> set[str] | None:
        """The names and aliases of FROM, which stands after the columns that use them."""
        at = self._at
        start, depth = at.index, 0
        while not (at.kind == "FROM" and depth == 0 and at.ahead(-1) != "DISTINCT"):
            if at.kind in (";", "<EOF>"):
                at.index = start
                return None
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(at.kind, 0)
            at.next()
        at.next()
        found: set[str] = set()
        try:
            found |= self._names()
            while at.kind not in (";", "<EOF>"):
                if at.next().kind == "JOIN":
                    found |= self._names()
        except ParsingException:
            at.index = start
            return None
        at.index = start
        return found

    def _names(self) -> set[str]:
        relation = self._relation()
        return {relation.name, relation.alias}

    def _select_item(self) -> SelectItem:
        at = self._at
        position = at.position
        if at.accept("*"):
            return AllColumns(position=position)
        if at.at_identifier() and at.ahead() == "." and at.ahead(2) == "*":
            source = at.identifier()
            at.expect_all(".", "*")
            known = self._expressions.sources
            if known is not None and source not in known:
                raise KsqlException(f"'{source}' is not a valid stream/table name or alias.")
            return AllColumns(source, position=position)
        expression = self._expressions.expression()
        if at.kind == "->" and at.ahead() == "*":
            at.expect_all("->", "*")
            return StructAll(expression, position=position)
        alias = None
        if at.accept("AS") or (at.at_identifier() and at.kind != "EMIT"):
            alias = at.identifier()
        return SingleColumn(expression, alias, position=position)

    def _relation(self) -> Relation:
        at = self._at
        position = at.position
        if at.kind == "(" and at.ahead() == "SELECT":
            at.next()
            query = self.query(persistent=False)
            at.expect(")")
            at.accept("AS")
            if not at.at_identifier() or self._starts_clause():
                at.error("A query in brackets needs a name\nExpecting an alias")
            alias = source_name(at)
            return Relation(alias, alias, query, position=position)
        if at.ahead() == "." and at.ahead(2) == "BACKQUOTED_IDENTIFIER":
            return self._spark_table(position)
        name = source_name(at)
        alias = name
        if at.accept("AS") or (at.at_identifier() and not self._starts_clause()):
            alias = source_name(at)
        return Relation(name, alias, position=position)

    def _spark_table(self, position: Position) -> Relation:
        """format.`place` or format.`place#option=value,option=value`, as Spark has it."""
        at = self._at
        kind = at.next().text.lower()
        if kind not in SPARK_FORMATS:
            raise KsqlException(
                f"Illegal argument at {position}. {kind} is not a kind of table: use one of "
                f"{', '.join(SPARK_FORMATS)}"
            )
        at.expect(".")
        place = unquote(at.next().text)
        location, _, given = place.partition("#")
        pairs = [each.partition("=") for each in given.split(",") if each.strip()]
        if not location or not all(name.strip() and equals for name, equals, _ in pairs):
            raise KsqlException(
                f"Illegal argument at {position}. Write a table as {kind}.`/path` or "
                f"{kind}.`/path#option=value,option=value`. Got: {kind}.`{place}`"
            )
        options = tuple((name.strip(), value.strip()) for name, _, value in pairs)
        alias = SPARK_ALIAS
        if at.accept("AS") or (at.at_identifier() and not self._starts_clause()):
            alias = source_name(at)
        table = SparkTable(kind, location, options)
        return Relation(str(table), alias, spark=table, position=position)

    def _starts_clause(self) -> bool:
        """EMIT, PARTITION and ORDER may be names, but where a clause may follow they start it."""
        at = self._at
        return (
            (at.kind == "EMIT" and at.ahead() in ("CHANGES", "FINAL"))
            or (at.kind == "PARTITION" and at.ahead() == "BY")
            or at.at_word("ORDER", "BY")
            or at.at_word("UNION", "ALL", "SELECT", "DISTINCT")
            or at.at_word("OFFSET", "INTEGER_VALUE", "-")
        )

    def _joined_source(self) -> JoinedSource:
        at = self._at
        kind: Choice["INNER", "LEFT", "RIGHT", "OUTER"] = "INNER"
        if at.accept("FULL"):
            kind = "OUTER"
            at.accept("OUTER")
        elif at.accept("LEFT"):
            kind = "LEFT"
            at.accept("OUTER")
        elif at.accept("RIGHT"):
            kind = "RIGHT"
            at.accept("OUTER")
        else:
            at.accept("INNER")
        at.expect("JOIN")
        relation = self._relation()
        within = self._within() if at.accept("WITHIN") else None
        at.expect("ON")
        return JoinedSource(kind, relation, self._expressions.expression(), within)

    def _within(self) -> Within:
        at = self._at
        if at.accept("("):
            before = self.duration()
            at.expect(",")
            after = self.duration()
            at.expect(")")
        else:
            before = after = self.duration()
        grace = self.duration() if at.accept("GRACE", "PERIOD") else None
        return Within(before, after, grace)

    def duration(self) -> Duration:
        """A number and a unit."""
        found = self._literals.number()
        at = self._at
        if at.kind not in UNITS:
            at.no_viable()
        unit = UNITS[at.next().kind]
        if not isinstance(found, IntegerLiteral | LongLiteral):
            raise KsqlException(f'For input string: "{found.value}"')  # type: ignore[attr-defined]
        return Duration(found.value, unit)

    def _window(self) -> Window:
        at = self._at
        if at.kind == "IDENTIFIER" and at.ahead() in ("TUMBLING", "HOPPING", "SESSION"):
            at.next()
        position = at.position
        advance = None
        if at.accept("SESSION"):
            kind: Choice["TUMBLING", "HOPPING", "SESSION"] = "SESSION"
            at.expect("(")
            size = self.duration()
        else:
            token = at.kind
            if token not in ("TUMBLING", "HOPPING"):
                at.no_viable()
            at.next()
            kind = "HOPPING" if token == "HOPPING" else "TUMBLING"
            at.expect_all("(", "SIZE")
            size = self.duration()
            if kind == "HOPPING":
                at.expect_all(",", "ADVANCE", "BY")
                advance = self.duration()
        retention = self.duration() if at.accept(",", "RETENTION") else None
        grace = self.duration() if at.accept(",", "GRACE", "PERIOD") else None
        at.expect(")")
        return Window(kind, size, advance, retention, grace, position=position)

    def _grouping(self, clause: str) -> tuple[Expression, ...]:
        at = self._at
        if at.kind == "(" and self._is_list():
            at.next()
            found: list[Expression] = []
            while at.kind != ")":
                if found:
                    at.expect(",", ")")
                found.append(self._expressions.value_expression())
            at.next()
        else:
            found = [self._expressions.value_expression()]
            while at.accept(","):
                found.append(self._expressions.value_expression())
        if not found:
            raise KsqlException(f"{clause} requires at least one expression")
        return tuple(found)

    def _is_list(self) -> bool:
        """Whether the bracket that opens here holds the whole clause: (a, b) or ()."""
        at = self._at
        closed, depth, commas = at.matching(), 0, 0
        if closed == 0 or at.ahead(closed + 1) not in _AFTER_GROUPING:
            return False
        for offset in range(closed):
            kind = at.ahead(offset)
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(kind, 0)
            commas += kind == "," and depth == 1
        return commas > 0 or closed == 1


def source_name(at: Cursor) -> str:
    """The name of a stream or table."""
    position = at.position
    name = at.identifier()
    if not all(each.isascii() and (each.isalnum() or each in "_-") for each in name):
        raise KsqlException(
            f"Illegal argument at {position}. Source names may only contain alphanumeric values, "
            f"'_' or '-'. Got: '{name}'"
        )
    return name
