"""CREATE: sources with their columns and properties, types and connectors."""

from __future__ import annotations

from typing import Literal as Choice

from moldau.sql.errors import KsqlException
from moldau.sql.syntax.cursor import Cursor, unquote
from moldau.sql.syntax.expressions import Literal, Position
from moldau.sql.syntax.query_parser import QueryParser, source_name
from moldau.sql.syntax.statements import (
    CreateAsSelect,
    CreateConnector,
    CreateSource,
    CreateType,
    Element,
    SourceKind,
    Statement,
)
from moldau.sql.syntax.type_parser import LiteralParser, TypeParser
from moldau.sql.types import BYTES, HEADERS_TYPE, SqlType


class CreateParser:
    """Reads CREATE statements at a cursor."""

    def __init__(self, cursor: Cursor, queries: QueryParser, types: TypeParser) -> None:
        self._at = cursor
        self._queries = queries
        self._types = types
        self._literals = LiteralParser(cursor)

    def create(self, position: Position) -> Statement:
        at = self._at
        at.next()
        or_replace = at.accept("OR", "REPLACE")
        if at.kind == "TYPE" and not or_replace:
            return self._create_type(position)
        if at.kind in ("SINK", "SOURCE") and at.ahead() == "CONNECTOR":
            return self._create_connector(position)
        is_source = at.accept("SOURCE")
        kind: SourceKind = "STREAM" if at.kind == "STREAM" else "TABLE"
        if at.kind not in ("STREAM", "TABLE"):
            at.no_viable()
        at.next()
        if_not_exists = at.accept("IF", "NOT", "EXISTS")
        name = source_name(at)
        elements = self.elements() if at.kind == "(" else ()
        properties = self.properties() if at.accept("WITH") else {}
        if at.kind == "AS" and not is_source and not elements:
            at.next()
            query = self._queries.query(persistent=True)
            if query.limit is not None:
                raise KsqlException(
                    f"CREATE {kind} AS SELECT statements don't support LIMIT clause."
                )
            return CreateAsSelect(
                kind=kind,
                name=name,
                query=query,
                properties=properties,
                or_replace=or_replace,
                if_not_exists=if_not_exists,
                position=position,
            )
        return CreateSource(
            kind=kind,
            name=name,
            elements=_checked(kind, elements),
            properties=properties,
            or_replace=or_replace,
            if_not_exists=if_not_exists,
            is_source=is_source,
            position=position,
        )

    def elements(self) -> tuple[Element, ...]:
        at = self._at
        at.expect("(")
        found = [self._element()]
        while at.kind != ")":
            at.expect(",", ")")
            found.append(self._element())
        at.next()
        return tuple(found)

    def _element(self) -> Element:
        at = self._at
        position = at.position
        name = at.identifier()
        kind = self._types.type()
        constraint: Choice["KEY", "PRIMARY KEY", "HEADERS"] | None = None
        header = None
        if at.accept("PRIMARY", "KEY"):
            constraint = "PRIMARY KEY"
        elif at.accept("KEY"):
            constraint = "KEY"
        elif at.accept("HEADERS"):
            constraint, header = "HEADERS", ""
        elif at.accept("HEADER"):
            at.expect("(")
            constraint, header = "HEADERS", unquote(at.expect("STRING").text).strip()
            at.expect(")")
        if constraint == "HEADERS":
            _check_header_type(kind, header or "")
        return Element(name, kind, constraint, header, position=position)

    def properties(self) -> dict[str, Literal]:
        at = self._at
        at.expect("(")
        found: dict[str, Literal] = {}
        while True:
            name = unquote(at.next().text) if at.kind == "STRING" else at.identifier()
            at.expect("=")
            if name in found:
                raise KsqlException(f"Duplicate property in the WITH clause: {name}")
            found[name] = self._literals.literal()
            if not at.accept(","):
                at.expect(",", ")") if at.kind != ")" else at.next()
                return found

    def _create_type(self, position: Position) -> Statement:
        at = self._at
        at.next()
        if_not_exists = at.accept("IF", "NOT", "EXISTS")
        name = at.identifier()
        at.expect("AS")
        kind = self._types.type()
        return CreateType(name=name, type=kind, if_not_exists=if_not_exists, position=position)

    def _create_connector(self, position: Position) -> Statement:
        at = self._at
        kind: Choice["SOURCE", "SINK"] = "SOURCE" if at.next().kind == "SOURCE" else "SINK"
        at.expect("CONNECTOR")
        if_not_exists = at.accept("IF", "NOT", "EXISTS")
        name = at.identifier()
        at.expect("WITH")
        return CreateConnector(
            kind=kind,
            name=name,
            properties=self.properties(),
            if_not_exists=if_not_exists,
            position=position,
        )


def _check_header_type(kind: SqlType, key: str) -> None:
    if key:
        if kind is not BYTES:
            raise KsqlException(
                f"Invalid type for HEADER('{key}') column: expected BYTES, got {kind}"
            )
    elif kind != HEADERS_TYPE:
        raise KsqlException(f"Invalid type for HEADERS column: expected {HEADERS_TYPE}, got {kind}")


def _checked(kind: SourceKind, elements: tuple[Element, ...]) -> tuple[Element, ...]:
    """Streams have KEY columns, tables PRIMARY KEY ones, and no name comes twice."""
    names = [each.name for each in elements]
    twice = [f"`{name}`" for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise KsqlException(f"Duplicate column names: {', '.join(twice)}")
    for each in elements:
        prefix = each.position.prefix if each.position else ""
        if kind == "STREAM" and each.constraint == "PRIMARY KEY":
            raise KsqlException(
                f"{prefix}Column `{each.name}` is a 'PRIMARY KEY' column: please use 'KEY' for "
                f"streams.\nTables have PRIMARY KEYs, which are unique and NON NULL.\nStreams "
                f"have KEYs, which have no uniqueness or NON NULL constraints."
            )
        if kind == "TABLE" and each.constraint == "KEY":
            raise KsqlException(
                f"{prefix}Column `{each.name}` is a 'KEY' column: please use 'PRIMARY KEY' for "
                f"tables.\nTables have PRIMARY KEYs, which are unique and NON NULL.\nStreams "
                f"have KEYs, which have no uniqueness or NON NULL constraints."
            )
    return elements
