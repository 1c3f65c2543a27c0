"""Errors with ksqlDB's texts."""

from __future__ import annotations


class KsqlException(Exception):
    """A statement or an expression is not valid, or cannot be executed."""

    @property
    def message(self) -> str:
        return str(self)


class KsqlStatementException(KsqlException):
    """A statement failed. `unlogged` may quote user data, and quotes the statement."""

    def __init__(self, message: str, statement: str, unlogged: str | None = None) -> None:
        super().__init__(message)
        self.statement = statement
        self.raw_unlogged = message if unlogged is None else unlogged
        self.unlogged = f"{self.raw_unlogged}\nStatement: {statement}"


class ParseFailedException(KsqlStatementException):
    """The text is not a statement."""


class ParsingException(KsqlException):
    """A place in the text is wrong. The first line is 1, the first column is 1."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(f"line {line}:{column}: {message}")
        self.line = line
        self.column = column
        self.detail = message


class UnsupportedError(KsqlException):
    """Something ksqlDB knows but does not do."""


class QueryFailed(KsqlException):
    """A query cannot go on: unlike an error of one row, it ends the query."""


class ReferentialIntegrityException(KsqlException):
    """A source is still read by others."""


TOO_LARGE = (
    "Error processing statement: Statement is too large to parse. "
    "This may be caused by having too many nested expressions in the statement."
)


def grammatical(words: list[str], conjunction: str) -> str:
    """A, B and C."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {conjunction} {words[-1]}"
