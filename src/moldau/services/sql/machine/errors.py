"""ksqlDB's error bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moldau.http.machine.errors import HttpError
from moldau.sql.errors import KsqlException, KsqlStatementException

__all__ = ["BAD_REQUEST", "BAD_STATEMENT", "KsqlHttpError", "ksql_error", "statement_error"]

BAD_REQUEST = 40000
BAD_STATEMENT = 40001
QUERY_ENDPOINT = 40002
FORBIDDEN = 40301
NOT_FOUND = 40400
ASSERTION_FAILED = 41700
SERVER_ERROR = 50000
NOT_READY = 50300


class KsqlHttpError(HttpError):
    """An error with ksqlDB's body; one of a statement quotes it and what was done before it."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        error_code: int,
        statement: str | None = None,
        entities: Sequence[dict[str, Any]] = (),
    ) -> None:
        super().__init__(status, message, error_code=error_code)
        self.statement = statement
        self.entities = list(entities)

    @property
    def body(self) -> dict[str, Any]:
        if self.statement is None:
            return {
                "@type": "generic_error",
                "error_code": self.error_code,
                "message": self.message,
            }
        return {
            "@type": "statement_error",
            "error_code": self.error_code,
            "message": self.message,
            "statementText": self.statement,
            "entities": self.entities,
        }


def statement_error(
    error: Exception, statement: str, entities: Sequence[dict[str, Any]] = ()
) -> KsqlHttpError:
    """What a statement that failed is answered with."""
    message = str(error)
    if isinstance(error, KsqlStatementException):
        message = error.raw_unlogged
        statement = error.statement or statement
    return KsqlHttpError(
        400, message, error_code=BAD_STATEMENT, statement=statement, entities=entities
    )


def ksql_error(error: Exception) -> HttpError | None:
    """For the application: errors that no handler has caught."""
    if isinstance(error, KsqlStatementException):
        return statement_error(error, error.statement)
    if isinstance(error, KsqlException):
        return KsqlHttpError(400, str(error), error_code=BAD_REQUEST)
    return None
