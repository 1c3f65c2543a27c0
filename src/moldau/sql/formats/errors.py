"""What goes wrong between rows and bytes."""

from __future__ import annotations

from moldau.sql.errors import KsqlException


class SerdeError(KsqlException):
    """A row that cannot be written, or bytes that are no row: Kafka's SerializationException."""


class Misfit(ValueError):
    """A value that is not of its type, and where: the way to it grows as it is passed on."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason, path)
        self.reason = reason
        self.path = path

    def within(self, step: str) -> Misfit:
        return Misfit(self.reason, step + self.path)

    def __str__(self) -> str:
        return f"{self.reason}, path: ${self.path}"
