"""DB-API's exceptions (PEP 249)."""

from __future__ import annotations

__all__ = [
    "DataError",
    "DatabaseError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Warning",
    "error_of",
]


class Warning(Exception):
    """Something that a program should know of."""


class Error(Exception):
    """All errors of this client. `error_code` is ksqlDB's, None if no server sent it."""

    def __init__(
        self, message: str, *, error_code: int | None = None, statement: str | None = None
    ) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.statement = statement


class InterfaceError(Error):
    """The interface is used wrongly: a closed cursor, parameters that do not fit."""


class DatabaseError(Error):
    """The server refuses or fails."""


class DataError(DatabaseError):
    """A value cannot be written as SQL."""


class OperationalError(DatabaseError):
    """The server cannot be reached, or cannot do its work."""


class IntegrityError(DatabaseError):
    """A source is still in use."""


class InternalError(DatabaseError):
    """The server has a problem of its own."""


class ProgrammingError(DatabaseError):
    """The statement is wrong."""


class NotSupportedError(DatabaseError):
    """Something that streams do not have, such as a rollback."""


def error_of(
    status: int, message: str, error_code: int | None = None, statement: str | None = None
) -> DatabaseError:
    """The exception of an answer with this status."""
    kind: type[DatabaseError] = ProgrammingError
    if status >= 500:
        kind = InternalError if status == 500 else OperationalError
    elif status in (401, 403, 408, 429):
        kind = OperationalError
    return kind(message, error_code=error_code, statement=statement)
