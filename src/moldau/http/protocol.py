"""LimitedProtocol: uvicorn's HTTP connection with the limits that it lacks.

A connection beyond the limit is closed at once. Headers larger than the limit are refused with 431
before they are kept. A request whose headers take longer than the idle time ends the connection,
however slowly bytes arrive. The client's certificate goes into the scope. A connection that turns
out to be HTTP/2's is handed over before anything of it is parsed.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from moldau.http.http2 import PREFACE, Http2Connection
from moldau.http.machine.errors import HttpError
from moldau.http.machine.json_text import dump_json
from moldau.http.machine.offers import Offers

__all__ = ["LimitedProtocol"]


class LimitedProtocol(HttpToolsProtocol):
    """See the module. Limits are set by the server on a subclass."""

    connections_max = 0
    header_bytes_max = 8192
    idle_s = 30.0
    http2: type[Http2Connection] = Http2Connection

    #: The first bytes, while they may be HTTP/2's preface.
    _first: bytes | None = b""
    _certificate: bytes | None = None
    _header_bytes = 0
    _in_headers = True
    _deadline_s: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._offers = Offers()
        if self.connections_max and len(self.connections) > self.connections_max:
            transport.abort()
            return
        ssl_object = transport.get_extra_info("ssl_object")
        if ssl_object is not None:
            self._certificate = ssl_object.getpeercert(binary_form=True)
            if ssl_object.selected_alpn_protocol() == "h2":
                self._hand_over(b"")
                return
        self._expect_headers()

    def _hand_over(self, data: bytes) -> None:
        """Go on as HTTP/2."""
        self.connections.discard(self)
        self._unset_keepalive_if_required()
        protocol = self.http2(self.config, self.server_state, self.app_state)
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        if data:
            protocol.data_received(data)

    def data_received(self, data: bytes) -> None:
        if self._first is not None:
            data = self._first + data
            self._first = data if PREFACE.startswith(data[: len(PREFACE)]) else None
            if self._first is not None:
                if len(data) >= len(PREFACE):
                    self._hand_over(data)
                return
        if self._in_headers:
            self._header_bytes += len(data)
            data = self._offers.passed(data)
        if data:
            super().data_received(data)
        if not self._in_headers or self.transport.is_closing():
            return
        if self._header_bytes > self.header_bytes_max:
            self._refuse_headers()
        elif self._header_bytes:
            self._expect_headers()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._certificate is not None:
            self.scope["moldau.certificate"] = self._certificate  # type: ignore[typeddict-unknown-key]

    def on_headers_complete(self) -> None:
        self._in_headers, self._deadline_s = False, None
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > self.header_bytes_max:
            self._refuse_headers()
            return
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self.transport.is_closing():
            super().on_message_complete()
        self._in_headers, self._header_bytes = True, 0

    def send_400_response(self, msg: str) -> None:
        self._write_error(HttpError(400, msg))

    def _expect_headers(self) -> None:
        """Close the connection unless all headers are there in time."""
        if self._deadline_s is None:
            self._deadline_s = self.loop.time() + self.idle_s
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_at(
            self._deadline_s, self.timeout_keep_alive_handler
        )

    def _refuse_headers(self) -> None:
        self._write_error(
            HttpError(431, f"The headers have more than {self.header_bytes_max} bytes.")
        )

    def _write_error(self, error: HttpError) -> None:
        body = dump_json(error.body)
        self.transport.write(
            b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
            b"connection: close\r\n\r\n%s" % (error.status, _PHRASES[error.status], len(body), body)
        )
        self.transport.close()


_PHRASES: dict[int, Any] = {400: b"Bad Request", 431: b"Request Header Fields Too Large"}
