"""Application: a service as an ASGI application, made of its routes.

Per request, in this order: route (404, 405), authentication (401, 403), the limit of requests in
flight (429), negotiation (406, 415), body (413, 408), handler (its own errors, 503 if it takes too
long). Every refusal has Confluent's body. A handler's bug is logged and answered with 500.

`/health`, `/metrics`, `/openapi.json` and `/docs` are there for every service.
"""

from __future__ import annotations

import asyncio
import gzip
import inspect
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.middleware.cors import CORSMiddleware

from moldau.http.authentication import Authentication
from moldau.http.config import HttpConfig
from moldau.http.machine import docs_page
from moldau.http.machine.errors import (
    HttpError,
    not_acceptable,
    not_found,
    too_many_requests,
    unsupported_media_type,
)
from moldau.http.machine.json_text import dump_json
from moldau.http.machine.media_types import negotiate, select_consumed
from moldau.http.machine.openapi import openapi_document
from moldau.http.machine.response_headers import HeaderRule, with_header_rules
from moldau.http.machine.routes import Route, RouteTable
from moldau.http.metrics import CONTENT_TYPE, Metrics
from moldau.http.request import Answer, ClientDisconnected, Receive, Request, Scope, Send
from moldau.http.websocket import WebSocket

__all__ = ["Application", "Service"]

logger = logging.getLogger(__name__)
access_log = logging.getLogger("moldau.http.access")

COMPRESSION_BYTES_MIN: Final = 1024
COMPRESSION_LEVEL: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What a service says about itself. `map_error` turns exceptions of its own into an HttpError;
    `health` raises, or returns facts for `/health`. `websockets` are handlers by path, each called
    with the request of the handshake and a WebSocket that is not accepted yet."""

    name: str
    title: str
    version: str
    routes: tuple[Route, ...]
    description: str = ""
    media_type: str = "application/json"
    schemas: Mapping[str, Any] = field(default_factory=dict)
    map_error: Callable[[Exception], HttpError | None] = lambda error: None
    health: Callable[[], Mapping[str, Any]] = dict
    websockets: Mapping[str, Callable[[Request, WebSocket], Awaitable[None]]] = field(
        default_factory=dict
    )


class Application:
    """See the module."""

    def __init__(
        self,
        service: Service,
        config: HttpConfig,
        *,
        authentication: Authentication,
        metrics: Metrics | None = None,
    ) -> None:
        self.service = service
        self.config = config
        self.metrics = metrics or Metrics(f"moldau_{service.name}")
        self.stopping = asyncio.Event()
        self.in_flight = 0
        self._held_bytes = 0
        self._authentication = authentication
        # A service may have a route of its own for one of these, such as Connect's /health.
        taken = {(each.method, each.path) for each in service.routes}
        own = [each for each in self._own_routes() if (each.method, each.path) not in taken]
        self._table = RouteTable((*service.routes, *own))
        self._requests = self.metrics.counter(
            "http_requests_total", "Requests answered.", "method", "path", "status"
        )
        self._seconds = self.metrics.counter(
            "http_request_seconds_total", "Time spent on requests.", "method", "path"
        )
        self.metrics.gauge("http_requests_in_flight", "Requests now.", lambda: self.in_flight)
        self._document: bytes | None = None

    @property
    def asgi(self) -> Any:
        """This application, with CORS and headers for all answers where they are on."""
        app: Any = self
        settings = self.config.settings
        if settings["access.control.allow.origin"]:
            app = CORSMiddleware(
                app,
                allow_origins=list(settings["access.control.allow.origin"]),
                allow_methods=list(settings["access.control.allow.methods"]) or ["*"],
                allow_headers=list(settings["access.control.allow.headers"]) or ["*"],
            )
        if self.config.header_rules:
            app = _HeaderRules(app, self.config.header_rules)
        return app

    def document(self) -> dict[str, Any]:
        """The OpenAPI document."""
        return openapi_document(
            self._table.routes,
            title=self.service.title,
            version=self.service.version,
            description=self.service.description,
            schemas=self.service.schemas,
            security=_security_schemes(self.config.settings["authentication.method"]),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        started_s = time.perf_counter()
        request = Request(
            scope,
            receive,
            stopping=self.stopping,
            limit_bytes=self.config.request_body_bytes_max,
            hold=self._hold,
        )
        status = 500
        self.in_flight += 1
        try:
            answer = await self._answer(request)
            status = answer.status
            await _send(request, answer, send, compress=self.config.compression)
        except ClientDisconnected:
            status = 499
        finally:
            self.in_flight -= 1
            self._held_bytes -= request.held_bytes
            self._record(request, status, time.perf_counter() - started_s)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Route and authenticate a handshake as a request is, then let its handler go on."""
        started_s = time.perf_counter()
        request = Request(
            {**scope, "method": "GET"}, receive, stopping=self.stopping, limit_bytes=0
        )
        socket = WebSocket(receive, send)
        status = 101
        self.in_flight += 1
        try:
            await socket.begin()
            handler = self.service.websockets.get(request.raw_path.decode("latin-1").rstrip("/"))
            if handler is None:
                raise not_found()
            if not self._is_skipped(request.raw_path):
                request.principal = await self._authentication.principal_of(request)
            if self.in_flight > self.config.requests_in_flight_max:
                raise too_many_requests()
            await handler(request, socket)
            await socket.close(1000, "done")
        except ClientDisconnected:
            status = 499
        except HttpError as error:
            status = error.status
            await socket.refuse(error.status, error.message)
        except Exception:
            status = 500
            logger.exception("websocket %s failed", _shown(request.raw_path))
            await socket.refuse(500, "Internal Server Error")
        finally:
            self.in_flight -= 1
            self._record(request, status, time.perf_counter() - started_s)

    def _hold(self, size: int) -> None:
        self._held_bytes += size
        if self._held_bytes > self.config.request_bytes_in_flight_max:
            raise too_many_requests()

    async def _answer(self, request: Request) -> Answer:
        """What to answer, whatever happens."""
        try:
            return await self._routed(request)
        except ClientDisconnected:
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or not self.stopping.is_set():
                raise
            # The stop waited long enough for this request; its client is still answered.
            task.uncancel()
            return self._refusal(request, HttpError(503, "The service is stopping."))
        except Exception as error:
            return self._refusal(request, error)

    async def _routed(self, request: Request) -> Answer:
        if request.method == "OPTIONS":
            allowed = ",".join(self._table.allowed(request.raw_path))
            return Answer(body=b"", headers={"Allow": allowed})
        match = self._table.match(request.method, request.raw_path)
        route = request.route = match.route
        request.path = match.parameters
        if not (route.public or self._is_skipped(request.raw_path)):
            request.principal = await self._authentication.principal_of(request)
        if self.in_flight > self.config.requests_in_flight_max and not route.public:
            raise too_many_requests()
        _negotiate(request, route)
        if route.body_bytes_max is not None:
            request.limit_bytes = route.body_bytes_max
        if route.timeout_ms == 0 or self.config.request_timeout_ms == 0:
            return await self._handled(request, route)
        limit_ms = route.timeout_ms or self.config.request_timeout_ms
        reading = True
        limit = asyncio.timeout(limit_ms / 1000)
        try:
            async with limit:
                if route.consumes and not route.streams_body:
                    await request.body()
                reading = False
                return await self._handled(request, route)
        except TimeoutError:
            if not limit.expired():
                # The handler's own: another service did not answer it.
                raise
            if reading:
                raise HttpError(
                    408, "The body of the request did not arrive in time.", headers=_CLOSE
                ) from None
            raise HttpError(
                503, f"The request took longer than {limit_ms} ms. Try again later."
            ) from None

    async def _handled(self, request: Request, route: Route) -> Answer:
        result = route.handler(request)
        if inspect.isawaitable(result):
            result = await result
        return result if isinstance(result, Answer) else Answer(body=result)

    def _refusal(self, request: Request, error: Exception) -> Answer:
        refused = error if isinstance(error, HttpError) else self.service.map_error(error)
        if refused is None:
            logger.error("%s %s failed", request.method, _shown(request.raw_path), exc_info=error)
            refused = HttpError(500, "Internal Server Error")
        headers = dict(refused.headers)
        if refused.status in (413, 429):
            # What is left of the body is not read.
            headers.update(_CLOSE)
        media_type = request.media_type
        if not media_type.endswith("json"):
            produces = request.route.produces if request.route is not None else ()
            media_type = _error_type(request, produces, self.service.media_type)
        return Answer(
            status=refused.status, body=refused.body, headers=headers, media_type=media_type
        )

    def _is_skipped(self, raw_path: bytes) -> bool:
        path = raw_path.decode("latin-1")
        for skipped in self.config.skip_paths:
            if path == skipped or (skipped.endswith("*") and path.startswith(skipped[:-1])):
                return True
        return False

    def _record(self, request: Request, status: int, seconds: float) -> None:
        path = request.route.template if request.route is not None else "-"
        method = request.method if request.route is not None else "-"
        self._requests.add(method, path, str(status))
        self._seconds.add(method, path, amount=seconds)
        if access_log.isEnabledFor(logging.INFO):
            access_log.info(
                '%s %s "%s %s" %d %.1f ms',
                request.client_host,
                request.principal.name,
                request.method,
                _shown(request.raw_path),
                status,
                seconds * 1000,
            )

    # What every service has.

    def _own_routes(self) -> Iterable[Route]:
        own = "this service"
        yield Route(
            method="GET", path="/health", handler=self._health, tag=own, public=True,
            summary="Whether the service can do its work",
            responses={200: {"type": "object"}, 503: {"type": "object"}},
        )  # fmt: skip
        yield Route(
            method="GET", path="/metrics", handler=self._metrics, tag=own,
            summary="Counters in Prometheus's text form", produces=("text/plain",),
            responses={200: {"type": "string"}},
        )  # fmt: skip
        yield Route(
            method="GET", path="/openapi.json", handler=self._openapi, tag=own,
            summary="This document", responses={200: {"type": "object"}},
        )  # fmt: skip
        yield Route(
            method="GET", path="/docs", handler=self._docs, tag=own,
            summary="This document as a page", produces=("text/html",),
            responses={200: {"type": "string"}},
        )  # fmt: skip

    def _health(self, request: Request) -> Answer:
        if self.stopping.is_set():
            return Answer(status=503, body={"status": "stopping"})
        try:
            facts = self.service.health()
        except Exception as error:
            return Answer(status=503, body={"status": "failing", "reason": str(error)})
        return Answer(body={"status": "ok", **facts})

    def _metrics(self, request: Request) -> Answer:
        return Answer(body=self.metrics.render().encode(), media_type=CONTENT_TYPE)

    def _openapi(self, request: Request) -> Answer:
        if self._document is None:
            self._document = dump_json(self.document())
        return Answer(body=self._document)

    def _docs(self, request: Request) -> Answer:
        return Answer(
            body=docs_page.render(self.service.title).encode(),
            media_type="text/html; charset=utf-8",
            headers={"Content-Security-Policy": docs_page.POLICY},
        )


class _HeaderRules:
    """Adds headers to every answer, CORS's own included."""

    def __init__(self, app: Any, rules: tuple[HeaderRule, ...]) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = with_header_rules(
                    self._rules, list(message.get("headers", ())), time.time()
                )
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, sent)


_CLOSE: Final = {"Connection": "close"}


def _negotiate(request: Request, route: Route) -> None:
    chosen = negotiate(request.headers.get("accept"), route.produces)
    if chosen is None:
        raise not_acceptable()
    request.media_type = chosen
    if route.consumes:
        consumed = select_consumed(request.headers.get("content-type"), route.consumes)
        if consumed is None:
            raise unsupported_media_type()
        request.consumed_type = consumed


def _error_type(request: Request, produces: tuple[str, ...], default: str) -> str:
    json_types = tuple(each for each in produces if "json" in each) or (default,)
    return negotiate(request.headers.get("accept"), json_types) or default


async def _send(request: Request, answer: Answer, send: Send, *, compress: bool) -> None:
    headers = [(b"content-type", (answer.media_type or request.media_type).encode("latin-1"))]
    data = b""
    if answer.status == 204:
        headers = []
    elif answer.chunks is None:
        data = answer.body if isinstance(answer.body, bytes) else dump_json(answer.body)
        # Never what is made while it is sent: a client may wait for each piece.
        if compress and len(data) >= COMPRESSION_BYTES_MIN:
            headers.append((b"vary", b"accept-encoding"))
            if _accepts_gzip(request.headers.get("accept-encoding", "")):
                data = gzip.compress(data, COMPRESSION_LEVEL, mtime=0)
                headers.append((b"content-encoding", b"gzip"))
        headers.append((b"content-length", b"%d" % len(data)))
    headers += [
        (name.lower().encode("latin-1"), value.encode("latin-1", "replace"))
        for name, value in answer.headers.items()
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    if answer.chunks is not None and request.method != "HEAD":
        await _send_chunks(request, answer.chunks, send)
    if request.method == "HEAD":
        data = b""
    await send({"type": "http.response.body", "body": data, "more_body": False})


async def _send_chunks(request: Request, chunks: AsyncGenerator[bytes, None], send: Send) -> None:
    """Until they end or the client goes: what makes them must not go on for nobody."""

    async def sent() -> None:
        async with aclosing(chunks):
            async for chunk in chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})

    if not request.is_read:
        # The rest of the body belongs to what makes the chunks.
        await sent()
        return
    sending = asyncio.create_task(sent())
    watching = asyncio.create_task(request.disconnected())
    try:
        await asyncio.wait((sending, watching), return_when=asyncio.FIRST_COMPLETED)
        if not sending.done():
            raise ClientDisconnected
        await sending
    finally:
        for task in (sending, watching):
            task.cancel()
        await asyncio.gather(sending, watching, return_exceptions=True)


def _accepts_gzip(header: str) -> bool:
    for each in header.split(","):
        name, _, weight = each.partition(";")
        if name.strip().lower() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0")
    return False


def _security_schemes(methods: Iterable[str]) -> dict[str, Any]:
    known = {
        "BASIC": {"type": "http", "scheme": "basic"},
        "BEARER": {"type": "http", "scheme": "bearer"},
    }
    return {name.lower(): known[name] for name in methods if name in known}


def _shown(raw_path: bytes) -> str:
    """For the log: as it was sent, without characters that could end a line."""
    return raw_path[:500].decode("latin-1").encode("unicode_escape").decode()
