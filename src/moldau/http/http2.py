"""Http2Connection: HTTP/2 for the applications that uvicorn serves over HTTP/1.1 only.

A connection comes here when TLS has negotiated `h2`, or when a plain one begins with HTTP/2's
preface. h2 knows the protocol; here is what it leaves to its user. Every stream is one call of the
application. Limits, beside those that the application keeps itself:

- as many connections as `server.connection.limit`, and one without requests is closed after
  `idle.timeout.ms`;
- 100 requests at a time on a connection, and no client that resets more than it finishes;
- headers of `max.request.header.size` bytes, else 431;
- what has arrived of a body and is not read yet: a flow-control window of 64 KiB per stream. The
  window opens only as the application reads;
- what is sent waits for the client's windows and for room in the socket's buffer.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import MutableMapping
from typing import Any, Final
from urllib.parse import unquote

import h2.config
import h2.connection
import h2.events
import h2.exceptions
from h2.errors import ErrorCodes
from h2.settings import SettingCodes
from uvicorn.config import Config
from uvicorn.protocols.utils import get_local_addr, get_remote_addr, is_ssl
from uvicorn.server import ServerState

from moldau.http.machine.errors import HttpError
from moldau.http.machine.json_text import dump_json

__all__ = ["ALPN", "PREFACE", "Http2Connection"]

logger = logging.getLogger(__name__)

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
ALPN: Final = ("h2", "http/1.1")
STREAMS_MAX: Final = 100
CONNECTION_WINDOW: Final = 1 << 20
#: Streams that a client may reset beyond those it lets finish.
RESETS_MAX: Final = 100
#: Of a body that nobody reads any more: so much is taken and dropped before the stream is reset.
DRAINED_BYTES_MAX: Final = 4 << 20
#: A frame has 16 KiB at most; h2 waits for the whole of one before it looks at its length.
_BUFFERED_BYTES_MAX: Final = 64 << 10
#: Headers above the limit that are still read, so that the refusal says what was wrong.
_HEADERS_READ_FACTOR: Final = 4
#: Of HTTP/1.1's connections; HTTP/2 forbids them.
_CONNECTION_HEADERS: Final = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade")
)

Message = MutableMapping[str, Any]
Header = tuple[bytes, bytes]


class _Stream:
    """One request and its answer."""

    def __init__(self, stream_id: int) -> None:
        self.id = stream_id
        self.body: deque[tuple[bytes, int]] = deque()
        self.body_ended = False
        self.request_ended = False
        self.disconnected = False
        self.answered = False
        self.changed = asyncio.Event()
        """Something has arrived, or the stream has ended."""
        self.writable = asyncio.Event()
        """A window of the client has become larger, or nobody reads any more."""

    def end(self) -> None:
        self.disconnected = True
        self.changed.set()
        self.writable.set()


class Http2Connection(asyncio.Protocol):
    """See the module. Limits are set by the server on a subclass."""

    connections_max = 0
    header_bytes_max = 8192
    idle_s = 30.0

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any]
    ) -> None:
        self._app = config.loaded_app
        self._state = server_state
        self._app_state = app_state
        self._loop = asyncio.get_running_loop()
        self._h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding=None)
        )
        self._streams: dict[int, _Stream] = {}
        # What was dropped of requests that are answered and still arrive.
        self._draining: dict[int, int] = {}
        self._resets = 0
        self._idle: asyncio.TimerHandle | None = None
        self._drained = asyncio.Event()
        self._drained.set()
        self._stopping = False
        self._certificate: bytes | None = None
        self._server: tuple[str, int | None] | None = None
        self._client: tuple[str, int] | None = None
        self._scheme = "http"
        self.transport: asyncio.Transport = None  # type: ignore[assignment]

    # The connection.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        self._state.connections.add(self)  # type: ignore[arg-type]
        if self.connections_max and len(self._state.connections) > self.connections_max:
            transport.abort()
            return
        self._server = get_local_addr(transport)
        self._client = get_remote_addr(transport)
        self._scheme = "https" if is_ssl(transport) else "http"
        ssl_object = transport.get_extra_info("ssl_object")
        if ssl_object is not None:
            self._certificate = ssl_object.getpeercert(binary_form=True)
        limit = self.header_bytes_max * _HEADERS_READ_FACTOR
        self._h2.decoder.max_header_list_size = limit
        self._h2.update_settings(
            {
                SettingCodes.MAX_CONCURRENT_STREAMS: STREAMS_MAX,
                SettingCodes.MAX_HEADER_LIST_SIZE: self.header_bytes_max,
                SettingCodes.ENABLE_PUSH: 0,
            }
        )
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(CONNECTION_WINDOW)
        self._flush()
        self._watch_idle()

    def connection_lost(self, exc: Exception | None) -> None:
        self._state.connections.discard(self)
        self._unwatch_idle()
        self._drained.set()
        for stream in self._streams.values():
            stream.end()

    def pause_writing(self) -> None:
        self._drained.clear()
        # Who sends without reading gets no further answers to make, such as to its pings.
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        self._drained.set()
        self.transport.resume_reading()

    def shutdown(self) -> None:
        """Take no more requests; those that run may finish."""
        self._stopping = True
        if not self.transport.is_closing():
            self._h2.close_connection()
            self._flush()
            if not self._streams:
                self.transport.close()

    def _flush(self) -> None:
        data = self._h2.data_to_send()
        if data and not self.transport.is_closing():
            self.transport.write(data)

    def _watch_idle(self) -> None:
        self._unwatch_idle()
        if not self._streams:
            self._idle = self._loop.call_later(self.idle_s, self.shutdown)

    def _unwatch_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _close(self, code: ErrorCodes) -> None:
        try:
            self._h2.close_connection(code)
        except h2.exceptions.ProtocolError:
            logger.debug("The HTTP/2 connection is closed already")
        self._flush()
        self.transport.close()

    # What arrives.

    def data_received(self, data: bytes) -> None:
        try:
            events = self._h2.receive_data(data)
        except h2.exceptions.ProtocolError as error:
            logger.debug("An HTTP/2 client broke the protocol: %s", error)
            self._flush()
            self.transport.close()
            return
        if len(self._h2.incoming_buffer._data) > _BUFFERED_BYTES_MAX:
            self._close(ErrorCodes.FRAME_SIZE_ERROR)
            return
        for event in events:
            self._on_event(event)
        if not self.transport.is_closing():
            self._flush()

    def _on_event(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.RequestReceived():
                self._on_request(event)
            case h2.events.DataReceived():
                stream = self._streams.get(event.stream_id)
                size = event.flow_controlled_length
                if stream is None or stream.answered:
                    self._drain(event.stream_id, size)
                else:
                    stream.body.append((event.data, size))
                    stream.changed.set()
            case h2.events.StreamEnded():
                self._draining.pop(event.stream_id, None)
                stream = self._streams.get(event.stream_id)
                if stream is not None:
                    stream.body_ended = stream.request_ended = True
                    stream.changed.set()
            case h2.events.StreamReset():
                self._on_reset(event.stream_id)
            case h2.events.WindowUpdated() | h2.events.RemoteSettingsChanged():
                for stream in self._streams.values():
                    stream.writable.set()
            case h2.events.ConnectionTerminated():
                for stream in self._streams.values():
                    stream.end()
                self.transport.close()
            case _:
                # Pings and settings are acknowledged by h2; priorities are advice.
                pass

    def _drain(self, stream_id: int, size: int) -> None:
        """Drop what nobody reads: a client that sends all before it reads gets its answer."""
        if not size:
            return
        dropped = self._draining.get(stream_id, 0) + size
        if dropped > DRAINED_BYTES_MAX:
            self._draining.pop(stream_id, None)
            self._h2.increment_flow_control_window(size)
            self._h2.reset_stream(stream_id, ErrorCodes.NO_ERROR)
            return
        self._draining[stream_id] = dropped
        self._h2.acknowledge_received_data(size, stream_id)

    def _on_reset(self, stream_id: int) -> None:
        self._draining.pop(stream_id, None)
        stream = self._streams.get(stream_id)
        if stream is not None:
            stream.end()
        self._resets += 1
        if self._resets > RESETS_MAX:
            logger.warning("An HTTP/2 client resets its requests again and again; it is closed")
            self._close(ErrorCodes.ENHANCE_YOUR_CALM)

    def _on_request(self, event: h2.events.RequestReceived) -> None:
        stream_id = event.stream_id
        headers = [(bytes(name), bytes(value)) for name, value in event.headers]
        if self._stopping:
            self._h2.reset_stream(stream_id, ErrorCodes.REFUSED_STREAM)
            return
        stream = self._streams[stream_id] = _Stream(stream_id)
        self._unwatch_idle()
        size = sum(len(name) + len(value) + 4 for name, value in headers)
        if size > self.header_bytes_max:
            work = self._refuse_headers(stream)
        else:
            work = self._serve(stream, self._scope(headers))
        task = self._loop.create_task(work)
        self._state.tasks.add(task)
        task.add_done_callback(self._state.tasks.discard)
        task.add_done_callback(lambda done: self._on_done(stream))

    def _scope(self, headers: list[Header]) -> Message:
        pseudo = {name: value for name, value in headers if name.startswith(b":")}
        target = pseudo.get(b":path", b"/")
        raw_path, _, query = target.partition(b"?")
        given = [(name, value) for name, value in headers if not name.startswith(b":")]
        authority = pseudo.get(b":authority")
        if authority is not None and not any(name == b"host" for name, _ in given):
            given.insert(0, (b"host", authority))
        scope: Message = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "2",
            "server": self._server,
            "client": self._client,
            "scheme": self._scheme,
            "root_path": "",
            "method": pseudo.get(b":method", b"GET").decode("latin-1"),
            "path": unquote(raw_path.decode("latin-1")),
            "raw_path": raw_path,
            "query_string": query,
            "headers": given,
            "state": self._app_state.copy(),
        }
        if self._certificate is not None:
            scope["moldau.certificate"] = self._certificate
        return scope

    # One request.

    async def _serve(self, stream: _Stream, scope: Message) -> None:
        is_head = scope["method"] == "HEAD"

        async def receive() -> Message:
            return await self._receive(stream)

        async def send(message: Message) -> None:
            await self._send(stream, message, is_head=is_head)

        try:
            await self._app(scope, receive, send)
        except Exception:
            logger.exception("An HTTP/2 request failed")
        if not stream.answered and not stream.disconnected:
            self._reset(stream, ErrorCodes.INTERNAL_ERROR)

    async def _refuse_headers(self, stream: _Stream) -> None:
        error = HttpError(431, f"The headers have more than {self.header_bytes_max} bytes.")
        headers = [(b"content-type", b"application/json")]
        await self._send(
            stream,
            {"type": "http.response.start", "status": error.status, "headers": headers},
        )
        body = {"type": "http.response.body", "body": dump_json(error.body)}
        await self._send(stream, body)

    async def _receive(self, stream: _Stream) -> Message:
        while True:
            if stream.body:
                data, size = stream.body.popleft()
                if size and not stream.disconnected and not self.transport.is_closing():
                    self._h2.acknowledge_received_data(size, stream.id)
                    self._flush()
                more = bool(stream.body) or not stream.body_ended
                return {"type": "http.request", "body": data, "more_body": more}
            if stream.disconnected or stream.answered:
                return {"type": "http.disconnect"}
            if stream.body_ended:
                # Once; whoever asks again waits for the end of the stream.
                stream.body_ended = False
                return {"type": "http.request", "body": b"", "more_body": False}
            stream.changed.clear()
            await stream.changed.wait()

    async def _send(self, stream: _Stream, message: Message, *, is_head: bool = False) -> None:
        await self._drained.wait()
        if stream.disconnected or stream.answered or self.transport.is_closing():
            return
        if message["type"] == "http.response.start":
            headers = [(b":status", b"%d" % message["status"])]
            headers += self._state.default_headers
            headers += [
                (name, value)
                for name, value in message.get("headers", ())
                if name not in _CONNECTION_HEADERS
            ]
            self._h2.send_headers(stream.id, headers)
            self._flush()
            return
        data = b"" if is_head else bytes(message.get("body", b""))
        await self._send_data(stream, memoryview(data))
        if not message.get("more_body", False) and not stream.disconnected:
            self._h2.end_stream(stream.id)
            self._flush()
            stream.answered = True
            stream.changed.set()

    async def _send_data(self, stream: _Stream, data: memoryview) -> None:
        while data and not stream.disconnected and not self.transport.is_closing():
            room = self._h2.local_flow_control_window(stream.id)
            size = min(len(data), room, self._h2.max_outbound_frame_size)
            if size <= 0:
                stream.writable.clear()
                await stream.writable.wait()
                continue
            self._h2.send_data(stream.id, bytes(data[:size]))
            self._flush()
            data = data[size:]
            await self._drained.wait()

    def _reset(self, stream: _Stream, code: ErrorCodes) -> None:
        try:
            self._h2.reset_stream(stream.id, code)
        except h2.exceptions.ProtocolError:
            logger.debug("The stream is gone already")
        self._flush()
        stream.end()

    def _on_done(self, stream: _Stream) -> None:
        self._streams.pop(stream.id, None)
        if self.transport.is_closing():
            return
        if stream.answered:
            self._resets = max(0, self._resets - 1)
        unread = sum(size for _, size in stream.body)
        if unread and stream.request_ended:
            self._h2.increment_flow_control_window(unread)
        elif unread and not stream.disconnected:
            self._drain(stream.id, unread)
        self._flush()
        if self._stopping and not self._streams:
            self.transport.close()
        else:
            self._watch_idle()
