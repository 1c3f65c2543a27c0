"""HttpError: what a client gets instead of an answer, in Confluent's form.

The body is always `{"error_code": ..., "message": ...}`. The code is the HTTP status, or one of
five digits that begins with it and says more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

__all__ = [
    "HttpError",
    "bad_json",
    "method_not_allowed",
    "not_acceptable",
    "not_found",
    "payload_too_large",
    "too_many_requests",
    "unauthorized",
    "unsupported_media_type",
]


class HttpError(Exception):
    """Raised by handlers. `error_code` is the status unless it is given."""

    def __init__(
        self,
        status: int,
        message: str | None = None,
        *,
        error_code: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status = status
        self.error_code = status if error_code is None else error_code
        self.message = f"HTTP {status} {phrase_of(status)}" if message is None else message
        self.headers = dict(headers or {})
        super().__init__(self.message)

    @property
    def body(self) -> dict[str, Any]:
        return {"error_code": self.error_code, "message": self.message}


def phrase_of(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"


def not_found() -> HttpError:
    """Also for a path parameter or query parameter of the wrong type, as in JAX-RS."""
    return HttpError(404)


def method_not_allowed(allowed: Iterable[str]) -> HttpError:
    return HttpError(405, headers={"Allow": ",".join(allowed)})


def not_acceptable() -> HttpError:
    return HttpError(406)


def unsupported_media_type() -> HttpError:
    return HttpError(415)


def payload_too_large(limit_bytes: int) -> HttpError:
    return HttpError(413, f"The body of the request has more than {limit_bytes} bytes.")


def too_many_requests() -> HttpError:
    return HttpError(
        429,
        "Too many requests are running. Try again after a pause.",
        headers={"Retry-After": "1"},
    )


def unauthorized(challenges: Iterable[str], message: str | None = None) -> HttpError:
    return HttpError(401, message, headers={"WWW-Authenticate": ", ".join(challenges)})


def bad_json(reason: str) -> HttpError:
    return HttpError(400, f"The body of the request is not valid JSON: {reason}")
