"""Scripts: statements with semicolons between them.

A script is read twice. `parse` checks the grammar of all of it before anything runs; `prepare`
makes the tree of one statement when its turn comes, because a statement before it may have created
a type that it uses.
"""

from __future__ import annotations

from dataclasses import dataclass

from moldau.data.errors import DataError
from moldau.sql.errors import TOO_LARGE, KsqlException, ParseFailedException, ParsingException
from moldau.sql.syntax.cursor import Cursor
from moldau.sql.syntax.expressions import Expression
from moldau.sql.syntax.lexer import EOF, Text, Token, tokens
from moldau.sql.syntax.statement_parser import StatementParser
from moldau.sql.syntax.statements import Statement
from moldau.sql.syntax.type_parser import TypeResolver
from moldau.sql.types import STRING, SqlType


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """A statement whose grammar is right."""

    text: str
    source: Text
    tokens: list[Token]
    start: int


def _no_types(name: str) -> SqlType | None:
    return None


def _any_type(name: str) -> SqlType | None:
    return STRING


def parse(sql: str, *, test_statements: bool = False) -> list[ParsedStatement]:
    """The statements of a script, or the first error of its grammar."""
    text = Text(sql)
    found = tokens(sql)
    cursor = Cursor(text, found)
    statements = []
    try:
        while cursor.kind != EOF:
            start = cursor.index
            _skip(cursor, test_statements)
            end = cursor.expect(";").end
            source = sql[found[start].start : end]
            statements.append(ParsedStatement(source, text, found, start))
    except ParsingException as error:
        at = f"line {error.line}:{error.column}: "
        raise ParseFailedException(
            f"{at}Syntax error at {at[:-2]}", text.line(error.line), str(error)
        ) from error
    return statements


def _skip(cursor: Cursor, test_statements: bool) -> None:
    """Check the grammar of a statement; what is wrong with its meaning is for `prepare`."""
    start = cursor.index
    try:
        StatementParser(cursor, _any_type, test_statements=test_statements).statement()
    except ParsingException as error:
        if error.detail.startswith("Syntax Error"):
            raise
        cursor.index = start
        _to_end(cursor)
    except (KsqlException, DataError, RecursionError):
        cursor.index = start
        _to_end(cursor)


def _to_end(cursor: Cursor) -> None:
    while cursor.kind not in (";", EOF):
        cursor.next()


def prepare(
    parsed: ParsedStatement,
    resolve_type: TypeResolver = _no_types,
    *,
    test_statements: bool = False,
) -> Statement:
    """The tree of a statement."""
    cursor = Cursor(parsed.source, parsed.tokens, parsed.start)
    try:
        return StatementParser(cursor, resolve_type, test_statements=test_statements).statement()
    except ParseFailedException:
        raise
    except (KsqlException, DataError) as error:
        raise ParseFailedException(f"Failed to prepare statement: {error}", parsed.text) from error
    except RecursionError as error:
        raise ParseFailedException(
            f"Failed to prepare statement: {TOO_LARGE}", parsed.text
        ) from error


def parse_expression(text: str, resolve_type: TypeResolver = _no_types) -> Expression:
    """An expression that stands alone."""
    cursor = Cursor(Text(text), tokens(text))
    found = StatementParser(cursor, resolve_type).expression()
    cursor.expect(EOF)
    return found
