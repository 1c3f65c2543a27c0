"""Request: what a handler is given. Answer: what it returns where JSON with 200 is not enough."""

from __future__ import annotations

import asyncio
import re
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
    MutableMapping,
)
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl

from moldau.http.machine.errors import HttpError, not_found, payload_too_large
from moldau.http.machine.json_text import load_json
from moldau.http.machine.routes import Route, parse_number

__all__ = ["ANONYMOUS", "Answer", "Principal", "Receive", "Request", "Scope", "Send"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

QUERY_PARAMETERS_MAX: Final = 1000
_NONE: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class Principal:
    """The user a request is from. `method` is none, basic, bearer or certificate.

    `secret` is the password or token, for services that pass it on to the broker.
    """

    name: str
    method: str = "none"
    secret: str | None = field(default=None, repr=False)
    roles: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"User:{self.name}"


ANONYMOUS: Final = Principal("ANONYMOUS")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer other than JSON with status 200.

    `body` is what JSON can express, or bytes, which are sent as they are; `chunks` is a body that
    is made while it is sent. `media_type` None is the negotiated one.
    """

    status: int = 200
    body: Any = None
    chunks: AsyncGenerator[bytes, None] | None = None
    media_type: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Request:
    """One request. Headers and query are read when they are asked for."""

    __slots__ = (
        "_body",
        "_headers",
        "_hold",
        "_query",
        "_receive",
        "consumed_type",
        "held_bytes",
        "limit_bytes",
        "media_type",
        "path",
        "principal",
        "route",
        "scope",
        "stopping",
    )

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        *,
        stopping: asyncio.Event,
        limit_bytes: int,
        hold: Callable[[int], None] = lambda size: None,
    ) -> None:
        """`hold` is called with the size of what the body takes in memory; it may raise."""
        self.scope = scope
        self.stopping = stopping
        """Set when the service stops: whoever waits for long returns what there is."""
        self.limit_bytes = limit_bytes
        self.path: Mapping[str, Any] = _NONE
        self.principal = ANONYMOUS
        self.route: Route | None = None
        self.media_type = ""
        """The negotiated type of the answer."""
        self.consumed_type = ""
        """Which of the route's types the body has."""
        self.held_bytes = 0
        self._receive = receive
        self._hold = hold
        self._body: bytes | None = None
        self._headers: dict[str, str] | None = None
        self._query: Mapping[str, list[str]] | None = None

    # Metadata.

    @property
    def method(self) -> str:
        found: str = self.scope["method"]
        return found

    @property
    def raw_path(self) -> bytes:
        found: bytes = self.scope["raw_path"]
        return found

    @property
    def client_host(self) -> str:
        client = self.scope.get("client")
        return str(client[0]) if client else "-"

    @property
    def headers(self) -> dict[str, str]:
        """By lower-case name; repeated ones are joined by commas."""
        if self._headers is None:
            found: dict[str, str] = {}
            for raw_name, raw_value in self.scope["headers"]:
                name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
                found[name] = f"{found[name]},{value}" if name in found else value
            self._headers = found
        return self._headers

    @property
    def base_url(self) -> str:
        """Scheme and host as the client wrote them, also behind a load balancer that says so with
        X-Forwarded-Proto and X-Forwarded-Host."""
        given = self.headers.get("x-forwarded-proto") or str(self.scope["scheme"])
        scheme = given.split(",")[0].strip()
        host = self.headers.get("x-forwarded-host", self.headers.get("host", ""))
        host = host.split(",")[0].strip()
        if not host or not re.fullmatch(r"[A-Za-z0-9._\-:\[\]]+", host):
            address, port = self.scope["server"]
            host = f"{address}:{port}"
        return f"{scheme if scheme in ('http', 'https') else 'http'}://{host}"

    # Query parameters, with JAX-RS's rules: a number that is none is not found, a boolean is true
    # only as `true`.

    @property
    def query(self) -> Mapping[str, list[str]]:
        if self._query is None:
            if not self.scope["query_string"]:
                self._query = _NONE
                return _NONE
            found: dict[str, list[str]] = {}
            try:
                pairs = parse_qsl(
                    self.scope["query_string"].decode("latin-1"),
                    keep_blank_values=True,
                    errors="strict",
                    max_num_fields=QUERY_PARAMETERS_MAX,
                )
            except UnicodeDecodeError:
                raise HttpError(400, "The query is not valid UTF-8 after decoding.") from None
            except ValueError:
                raise HttpError(400, "The query has too many parameters.") from None
            for name, value in pairs:
                found.setdefault(name, []).append(value)
            self._query = found
        return self._query

    def text(self, name: str, default: str | None = None) -> str | None:
        values = self.query.get(name)
        return values[0] if values else default

    def flag(self, name: str, *, default: bool = False) -> bool:
        value = self.text(name)
        return default if value is None else value.lower() == "true"

    def number(self, name: str, default: int | None = None, *, kind: str = "int") -> int | None:
        """`kind` is int or long. Raises HttpError with 404 for what is no number."""
        value = self.text(name)
        if value is None or value == "":
            return default
        try:
            return parse_number(value, kind)
        except HttpError:
            raise not_found() from None

    # The body.

    @property
    def is_read(self) -> bool:
        """Whether all of the body is there."""
        return self._body is not None

    async def body(self) -> bytes:
        """All of it, or HttpError with 413 if it is larger than the limit."""
        if self._body is None:
            pieces: list[bytes] = []
            async for piece in self.stream():
                self.held_bytes += len(piece)
                self._hold(len(piece))
                pieces.append(piece)
            self._body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return self._body

    async def stream(self) -> AsyncIterator[bytes]:
        """The pieces of the body as they arrive, up to the limit."""
        announced = self.headers.get("content-length", "")
        if announced.isdigit() and int(announced) > self.limit_bytes:
            raise payload_too_large(self.limit_bytes)
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnected
            piece = message.get("body", b"")
            size += len(piece)
            if size > self.limit_bytes:
                raise payload_too_large(self.limit_bytes)
            if piece:
                yield piece
            if not message.get("more_body", False):
                return

    async def disconnected(self) -> None:
        """Returns when the client has gone; for handlers that have read the body and wait."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def json(self) -> Any:
        """The body as JSON; raises HttpError with 400."""
        return load_json(await self.body())


class ClientDisconnected(Exception):
    """The client closed the connection before its request was complete."""
