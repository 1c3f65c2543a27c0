"""Which HTTP status an error of Kafka has; the message is what the pages show."""

from __future__ import annotations

from typing import Final

from moldau.client.errors import (
    AuthenticationError,
    AuthorizationError,
    KafkaError,
    KafkaTimeoutError,
    SerializationError,
)
from moldau.http.machine.errors import HttpError
from moldau.wire.errors import ErrorCode

__all__ = ["bad_request", "console_error", "missing"]

_NOT_FOUND: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        ErrorCode.DELEGATION_TOKEN_NOT_FOUND,
        ErrorCode.RESOURCE_NOT_FOUND,
    }
)
_CONFLICTS: Final = frozenset(
    {
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REASSIGNMENT_IN_PROGRESS,
        ErrorCode.DUPLICATE_RESOURCE,
    }
)
#: What passes: the same request may succeed later.
_UNAVAILABLE: Final = frozenset(
    {ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.COORDINATOR_NOT_AVAILABLE}
)


def console_error(error: Exception) -> HttpError | None:
    """None for what is a bug."""
    if not isinstance(error, KafkaError):
        return None
    message = str(error)
    if isinstance(error, AuthenticationError):
        return HttpError(401, f"The broker did not accept the login: {message}", error_code=40101)
    if isinstance(error, AuthorizationError):
        return HttpError(403, f"Not allowed: {message}", error_code=40301)
    if error.code in _NOT_FOUND:
        return HttpError(404, message)
    if error.code in _CONFLICTS:
        return HttpError(409, message)
    if error.code in _UNAVAILABLE or isinstance(error, KafkaTimeoutError):
        return HttpError(503, f"The cluster did not answer: {message}")
    if error.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED:
        return HttpError(429, message)
    if isinstance(error, SerializationError):
        return HttpError(422, message)
    if error.code is None or error.code is ErrorCode.UNKNOWN_SERVER_ERROR:
        return HttpError(502, message)
    return HttpError(400, message)


def bad_request(message: str) -> HttpError:
    return HttpError(400, message)


def missing(what: str, name: object) -> HttpError:
    return HttpError(404, f"There is no {what} {name}.")
