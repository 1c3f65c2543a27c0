"""Statements: the first word decides which one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal as Choice

from moldau.sql.errors import KsqlException
from moldau.sql.syntax.create_parser import CreateParser
from moldau.sql.syntax.cursor import Cursor, unquote
from moldau.sql.syntax.expression_parser import ExpressionParser
from moldau.sql.syntax.expressions import Expression, IntegerLiteral, Position
from moldau.sql.syntax.lexer import KEYWORDS
from moldau.sql.syntax.query_parser import QueryParser, source_name
from moldau.sql.syntax.statements import (
    AlterSource,
    AssertSchema,
    AssertSource,
    AssertTopic,
    AssertValues,
    ControlQuery,
    CreateSource,
    DefineVariable,
    Describe,
    DropConnector,
    DropSource,
    DropType,
    Duration,
    Explain,
    InsertInto,
    InsertValues,
    PrintTopic,
    Query,
    RunScript,
    SetProperty,
    Show,
    SourceKind,
    Statement,
    UndefineVariable,
    UnsetProperty,
)
from moldau.sql.syntax.type_parser import LiteralParser, TypeParser, TypeResolver
from moldau.sql.types import SqlType

_SHOWN = {
    "PROPERTIES": "PROPERTIES",
    "FUNCTIONS": "FUNCTIONS",
    "TYPES": "TYPES",
    "VARIABLES": "VARIABLES",
}
_DROPPED = ("STREAM", "TABLE", "CONNECTOR", "TYPE")
_SHOWN_EXTENDED = {"STREAMS", "TABLES", "QUERIES", "TOPICS"}


class StatementParser:
    """Reads statements at a cursor."""

    def __init__(
        self, cursor: Cursor, resolve_type: TypeResolver, *, test_statements: bool = False
    ) -> None:
        self._at = cursor
        self._expressions = ExpressionParser(cursor, resolve_type)
        self._queries = QueryParser(cursor, self._expressions)
        self._types = TypeParser(cursor, resolve_type)
        self._literals = LiteralParser(cursor)
        self._creates = CreateParser(cursor, self._queries, self._types)
        self._test_statements = test_statements
        self._rules: dict[str, Callable[[Position], Statement]] = {
            "SELECT": self._select,
            "LIST": self._show,
            "SHOW": self._show,
            "DESCRIBE": self._describe,
            "PRINT": self._print,
            "TERMINATE": self._control,
            "PAUSE": self._control,
            "RESUME": self._control,
            "SET": self._set,
            "UNSET": self._unset,
            "DEFINE": self._define,
            "UNDEFINE": self._undefine,
            "CREATE": self._creates.create,
            "INSERT": self._insert,
            "DROP": self._drop,
            "EXPLAIN": self._explain,
            "ALTER": self._alter,
            "ASSERT": self._assert,
        }
        if test_statements:
            self._rules["RUN"] = self._run_script

    def statement(self) -> Statement:
        """One statement, without the semicolon after it."""
        rule = self._rules.get(self._at.kind)
        if rule is None:
            self._at.unknown_statement()
        position = self._at.position
        return rule(position)

    def expression(self) -> Expression:
        """An expression that stands alone."""
        return self._expressions.expression()

    def _select(self, position: Position) -> Query:
        return self._queries.query(persistent=False)

    # What is there.

    def _show(self, position: Position) -> Statement:
        at = self._at
        at.next()
        scope: Choice["ALL", "SOURCE", "SINK"] | None = None
        if at.kind == "ALL":
            at.next()
            scope = "ALL"
        elif at.kind in ("SOURCE", "SINK"):
            scope = "SOURCE" if at.next().kind == "SOURCE" else "SINK"
        if scope in ("SOURCE", "SINK") or at.kind == "CONNECTORS":
            at.expect("CONNECTORS")
            return Show(what="CONNECTORS", scope=scope, position=position)
        if at.accept("CONNECTOR", "PLUGINS"):
            return Show(what="CONNECTOR PLUGINS", position=position)
        if at.kind in _SHOWN and scope is None:
            return Show(what=at.next().kind, position=position)  # type: ignore[arg-type]
        if at.kind in _SHOWN_EXTENDED and (scope is None or at.kind == "TOPICS"):
            what = at.next().kind
            extended = at.accept("EXTENDED")
            return Show(what=what, extended=extended, scope=scope, position=position)  # type: ignore[arg-type]
        return at.no_viable(*_SHOWN, *sorted(_SHOWN_EXTENDED), "CONNECTORS")

    def _describe(self, position: Position) -> Statement:
        at = self._at
        at.next()
        if at.accept("FUNCTION"):
            return Describe(what="FUNCTION", name=at.identifier_token().text, position=position)
        if at.accept("CONNECTOR"):
            return Describe(what="CONNECTOR", name=at.identifier(), position=position)
        if at.accept("STREAMS"):
            return Describe(what="STREAMS", extended=at.accept("EXTENDED"), position=position)
        if at.accept("TABLES"):
            return Describe(what="TABLES", extended=at.accept("EXTENDED"), position=position)
        name = source_name(at)
        extended = at.accept("EXTENDED")
        return Describe(what="SOURCE", name=name, extended=extended, position=position)

    def _resource_name(self) -> str:
        at = self._at
        if at.kind == "STRING":
            return unquote(at.next().text)
        return at.identifier(keep_case=True)

    def _print(self, position: Position) -> Statement:
        at = self._at
        at.next()
        topic = self._resource_name()
        beginning = at.accept("FROM", "BEGINNING")
        interval = limit = None
        if at.accept("INTERVAL") or at.accept("SAMPLE"):
            interval = self._literals.integer("INTERVAL")
        if at.accept("LIMIT"):
            limit = self._literals.integer("LIMIT")
        return PrintTopic(
            topic=topic,
            from_beginning=beginning,
            interval=interval,
            limit=limit,
            position=position,
        )

    def _explain(self, position: Position) -> Statement:
        at = self._at
        at.next()
        if at.kind in self._rules and at.ahead() != ";":
            return Explain(statement=self.statement(), position=position)
        return Explain(query_id=at.identifier(), position=position)

    # Running queries, and the session.

    def _control(self, position: Position) -> Statement:
        at = self._at
        action: Choice["TERMINATE", "PAUSE", "RESUME"]
        action = at.next().kind  # type: ignore[assignment]
        query_id = None if at.accept("ALL") else at.identifier()
        return ControlQuery(action=action, query_id=query_id, position=position)

    def _set(self, position: Position) -> Statement:
        self._at.next()
        return self._assignment(position, is_system=False)

    def _assignment(self, position: Position, *, is_system: bool) -> Statement:
        at = self._at
        name = unquote(at.expect("STRING").text)
        at.expect("=")
        value = unquote(at.expect("STRING").text)
        return SetProperty(name=name, value=value, is_system=is_system, position=position)

    def _unset(self, position: Position) -> Statement:
        self._at.next()
        return UnsetProperty(name=unquote(self._at.expect("STRING").text), position=position)

    def _define(self, position: Position) -> Statement:
        at = self._at
        at.next()
        name = self._variable_name()
        at.expect("=")
        return DefineVariable(name=name, value=unquote(at.expect("STRING").text), position=position)

    def _undefine(self, position: Position) -> Statement:
        self._at.next()
        return UndefineVariable(name=self._variable_name(), position=position)

    def _variable_name(self) -> str:
        """Any word: `${topic}` cannot be taken for a keyword."""
        at = self._at
        return (at.next() if at.kind in KEYWORDS else at.identifier_token()).text

    # What changes.

    def _insert(self, position: Position) -> Statement:
        at = self._at
        at.next()
        at.expect("INTO")
        target = source_name(at)
        if at.kind in ("SELECT", "WITH"):
            properties = self._creates.properties() if at.accept("WITH") else {}
            query = self._queries.query(persistent=True)
            return InsertInto(target=target, query=query, properties=properties, position=position)
        return self._values(target, "VALUES", position)

    def _values(self, target: str, word: str, position: Position) -> InsertValues:
        at = self._at
        names: list[str] = []
        if at.accept("("):
            names.append(at.identifier())
            while at.kind != ")":
                at.expect(",", ")")
                names.append(at.identifier())
            at.next()
        at.expect(word)
        at.expect("(")
        values: list[Expression] = []
        while at.kind != ")":
            if values:
                at.expect(",", ")")
            values.append(self._expressions.value_expression())
        at.next()
        if not values:
            raise KsqlException("Expected some values for INSERT INTO statement.")
        if names and len(names) != len(values):
            raise KsqlException(
                f"Expected number columns and values to match: {len(names)}, {len(values)}"
            )
        return InsertValues(
            target=target, columns=tuple(names), values=tuple(values), position=position
        )

    def _drop(self, position: Position) -> Statement:
        at = self._at
        at.next()
        what = at.kind
        if what not in _DROPPED:
            at.no_viable(*_DROPPED)
        at.next()
        if_exists = at.accept("IF", "EXISTS")
        if what == "CONNECTOR":
            return DropConnector(name=at.identifier(), if_exists=if_exists, position=position)
        if what == "TYPE":
            return DropType(name=at.identifier(), if_exists=if_exists, position=position)
        return DropSource(
            kind="STREAM" if what == "STREAM" else "TABLE",
            name=source_name(at),
            if_exists=if_exists,
            delete_topic=at.accept("DELETE", "TOPIC"),
            position=position,
        )

    def _alter(self, position: Position) -> Statement:
        at = self._at
        at.next()
        if at.accept("SYSTEM"):
            return self._assignment(position, is_system=True)
        kind: SourceKind = "STREAM" if at.kind == "STREAM" else "TABLE"
        if at.kind not in ("STREAM", "TABLE"):
            at.no_viable()
        at.next()
        name = source_name(at)
        columns = [self._added_column()]
        while at.accept(","):
            columns.append(self._added_column())
        return AlterSource(kind=kind, name=name, columns=tuple(columns), position=position)

    def _added_column(self) -> tuple[str, SqlType]:
        at = self._at
        at.expect("ADD")
        if at.kind == "COLUMN" and at.ahead(2) not in (",", ";", "<EOF>"):
            at.next()
        name = at.identifier()
        return name, self._types.type()

    # Assertions.

    def _assert(self, position: Position) -> Statement:
        at = self._at
        at.next()
        if self._test_statements and at.kind in ("VALUES", "NULL", "STREAM", "TABLE"):
            return self._assert_in_test(position)
        exists = not at.accept("NOT", "EXISTS")
        if at.accept("TOPIC"):
            topic = self._resource_name()
            properties = self._creates.properties() if at.accept("WITH") else {}
            return AssertTopic(
                topic=topic,
                properties=properties,
                timeout=self._timeout(),
                exists=exists,
                position=position,
            )
        at.expect("SCHEMA", "TOPIC")
        subject = self._resource_name() if at.accept("SUBJECT") else None
        schema_id = None
        if at.accept("ID"):
            literal = self._literals.literal()
            if not isinstance(literal, IntegerLiteral):
                raise KsqlException("ID must be an integer")
            schema_id = literal.value
        if subject is None and schema_id is None:
            raise KsqlException("ASSERT SCHEMA statements much include a subject name or an id")
        return AssertSchema(
            subject=subject,
            schema_id=schema_id,
            timeout=self._timeout(),
            exists=exists,
            position=position,
        )

    def _timeout(self) -> Duration | None:
        return self._queries.duration() if self._at.accept("TIMEOUT") else None

    def _assert_in_test(self, position: Position) -> Statement:
        at = self._at
        if at.accept("VALUES"):
            return AssertValues(values=self._values(source_name(at), "VALUES", position))
        if at.accept("NULL", "VALUES"):
            values = self._values(source_name(at), "KEY", position)
            return AssertValues(values=values, is_tombstone=True)
        kind: SourceKind = "STREAM" if at.next().kind == "STREAM" else "TABLE"
        name = source_name(at)
        elements = self._creates.elements() if at.kind == "(" else ()
        properties = self._creates.properties() if at.accept("WITH") else {}
        expected = CreateSource(
            kind=kind, name=name, elements=elements, properties=properties, position=position
        )
        return AssertSource(expected=expected, position=position)

    def _run_script(self, position: Position) -> Statement:
        self._at.next()
        self._at.expect("SCRIPT")
        return RunScript(path=unquote(self._at.expect("STRING").text), position=position)
