"""What can be wrong with a table, said in one sentence and with what to do about it."""

from __future__ import annotations


class TableError(Exception):
    """A source or sink that cannot be used as declared; `hint` says what would work."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message}. {hint}" if hint else message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[type[TableError], tuple[str, str]]:
        # Errors cross process borders between Spark's Python workers.
        return type(self), (self.message, self.hint)


class OptionError(TableError):
    """An option that is missing, unknown or has a value that cannot be meant."""


class SchemaMismatchError(TableError):
    """The rows do not fit the table's columns."""


class RejectedRowError(TableError):
    """The database refuses a row."""


class ChangedRowsError(TableError):
    """A table that is read as a stream was rewritten: its commits no longer only add rows."""
