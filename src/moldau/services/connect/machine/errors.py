"""What the REST interface refuses, with Connect's status codes and texts."""

from __future__ import annotations

from moldau.config import ConfigError
from moldau.connect.api.errors import AlreadyExistsError, ConnectError, NotFoundError
from moldau.http.machine.errors import HttpError


class RequestTarget(Exception):
    """Another worker must do it: the leader, or the owner of a connector or task."""

    def __init__(self, message: str, url: str | None) -> None:
        super().__init__(message)
        self.url = url


class BadRequest(ConnectError):
    """400."""


class Conflict(ConnectError):
    """409."""


class Forbidden(ConnectError):
    """403."""


def as_http_error(error: Exception) -> HttpError | None:
    """None for what is a bug."""
    match error:
        case NotFoundError():
            return HttpError(404, str(error))
        case AlreadyExistsError() | Conflict():
            return HttpError(409, str(error))
        case Forbidden():
            return HttpError(403, str(error))
        case BadRequest() | ConfigError():
            return HttpError(400, str(error))
        case RequestTarget():
            return HttpError(
                409,
                "Cannot complete request momentarily due to no known leader URL, likely because a "
                "rebalance was underway.",
            )
        case ConnectError():
            return HttpError(500, str(error))
    return None


def invalid_config(count: int, messages: list[str]) -> BadRequest:
    return BadRequest(
        f"Connector configuration is invalid and contains the following {count} error(s):\n"
        + "\n".join(messages)
        + "\nYou can also find the above list of errors at the endpoint "
        "`/connector-plugins/{connectorType}/config/validate`"
    )
