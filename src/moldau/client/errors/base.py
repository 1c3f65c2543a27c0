"""The root of everything a client raises, and the families under it."""

from __future__ import annotations

from typing import Any

from moldau.wire.errors import ErrorCode


class KafkaError(Exception):
    """The root. `code` is None for errors that no broker sent; `advice` says what to do."""

    code: ErrorCode | None = None
    advice: str = ""
    #: What became of the other parts, where one of several failed (`results.Results`).
    results: Any = None

    def __init__(self, message: str = "", *, advice: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if advice is not None:
            self.advice = advice

    @property
    def retriable(self) -> bool:
        """Whether the same call may succeed later: as Kafka says of the code, if there is one."""
        return self.code is not None and self.code.retriable

    def __str__(self) -> str:
        name = self.code.name if self.code is not None else ""
        parts = [part for part in (name, self.message) if part]
        text = ": ".join(parts) or type(self).__name__
        return f"{text} ({self.advice})" if self.advice else text


class RetriableError(KafkaError):
    """An error that may not occur again if the call is repeated."""

    @property
    def retriable(self) -> bool:
        return True


class AuthenticationError(KafkaError):
    """A node was not accepted, or did not accept the client: trying again does not help."""


class AuthorizationError(KafkaError):
    """The principal may not do this."""


class InvalidOffsetError(KafkaError):
    """A position that the log does not have."""


class InvalidMetadataError(RetriableError):
    """The client's view of the cluster was out of date."""


class ApplicationRecoverableError(KafkaError):
    """The client is of no more use, a new one may go on."""
