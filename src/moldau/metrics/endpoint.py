"""An HTTP port for metrics: `/metrics` for Prometheus, `/jolokia/...` for MBeans, `/health`.

A small server on asyncio alone, so that a broker needs no HTTP library. It serves its caller's
event loop, and lets the loop run between two pieces of a long answer: a broker with thousands of
partitions goes on serving its clients. Bounded: connections, header and body sizes, and the time
that a client may take.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import unquote

from moldau.metrics import jolokia, prometheus
from moldau.metrics.registry import Registry, Sample
from moldau.metrics.turns import collected

__all__ = ["MetricsEndpoint"]

CONNECTIONS_MAX: Final = 64
HEADER_BYTES_MAX: Final = 16 * 1024
BODY_BYTES_MAX: Final = 256 * 1024
CLIENT_SECONDS_MAX: Final = 30.0
STOP_SECONDS_MAX: Final = 2.0

JSON_TYPE: Final = "application/json; charset=utf-8"

logger = logging.getLogger(__name__)

_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Content Too Large",
    503: "Service Unavailable",
}


class _Problem(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class MetricsEndpoint:
    """Serves one registry."""

    def __init__(
        self,
        registry: Registry,
        *,
        host: str = "127.0.0.1",
        port: int,
        clients: Callable[[], object] | None = None,
    ) -> None:
        """`clients` returns what clients have pushed, for `/clients`."""
        self._registry = registry
        self._host = host
        self._port = port
        self._clients = clients
        self._server: asyncio.Server | None = None
        self._stopping = False
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    @property
    def port(self) -> int:
        """The port that is bound."""
        return self._port

    async def start(self) -> None:
        """OSError if the port cannot be bound."""
        self._server = await asyncio.start_server(
            self._on_connection, self._host, self._port, limit=HEADER_BYTES_MAX
        )
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self._stopping = True
        if self._server is not None:
            self._server.close()
        # Closed rather than cancelled: asyncio's streams report a cancelled task as an error.
        for writer in self._open.values():
            writer.close()
        if self._open:
            await asyncio.wait(tuple(self._open), timeout=STOP_SECONDS_MAX)

    async def _on_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        if task is None or len(self._open) >= CONNECTIONS_MAX:
            writer.close()
            return
        self._open[task] = writer
        try:
            keep_alive = True
            while keep_alive:
                async with asyncio.timeout(CLIENT_SECONDS_MAX):
                    keep_alive = await self._serve(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        except Exception:
            if not self._stopping:
                logger.exception("serving metrics failed")
        finally:
            self._open.pop(task, None)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether another one may follow."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, _, rest = head[0].partition(" ")
        target = rest.rpartition(" ")[0]
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:] if line)
        }
        try:
            body = await self._body(method, headers, reader)
            status, kind, text = 200, *(await self._answer(method, target, body))
        except _Problem as problem:
            status, kind, text = problem.status, "text/plain; charset=utf-8", f"{problem}\n"
        data = text.encode()
        keep_alive = headers.get("connection", "").lower() != "close" and status < 400
        writer.write(
            (
                f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\n"
                f"Content-Length: {len(data)}\r\n"
                f"Connection: {'keep-alive' if keep_alive else 'close'}\r\n\r\n"
            ).encode()
        )
        if method != "HEAD":
            writer.write(data)
        await writer.drain()
        return keep_alive

    async def _body(
        self, method: str, headers: dict[str, str], reader: asyncio.StreamReader
    ) -> bytes:
        if method not in ("GET", "HEAD", "POST"):
            raise _Problem(405, f"{method} is not served here; use GET")
        length = headers.get("content-length", "0")
        if not length.isdigit() or headers.get("transfer-encoding"):
            raise _Problem(400, "send the body with a Content-Length")
        if int(length) > BODY_BYTES_MAX:
            raise _Problem(413, f"a request may have {BODY_BYTES_MAX} bytes")
        return await reader.readexactly(int(length))

    async def _answer(self, method: str, target: str, body: bytes) -> tuple[str, str]:
        path = target.partition("?")[0]
        if path == "/metrics":
            page = prometheus.Page()
            async for sample in collected(self._registry):
                page.add(sample)
            return prometheus.CONTENT_TYPE, "".join(page.pieces())
        if path == "/jolokia" or path.startswith("/jolokia/"):
            found = [each async for each in collected(self._registry)]
            # It may have much to match and print; the samples are there already.
            return JSON_TYPE, await asyncio.to_thread(_jolokia, method, path, body, found)
        if path == "/clients" and self._clients is not None:
            return JSON_TYPE, json.dumps(self._clients())
        if path == "/health":
            return JSON_TYPE, '{"status":"UP"}'
        raise _Problem(404, "not found; there are /metrics, /jolokia/list and /health")


def _jolokia(method: str, path: str, body: bytes, samples: list[Sample]) -> str:
    now_s = int(time.time())
    if method != "POST":
        rest = unquote(path.removeprefix("/jolokia").lstrip("/"))
        return json.dumps(jolokia.answer_path(rest, lambda: samples, now_s))
    try:
        request = json.loads(body)
    except ValueError as error:
        raise _Problem(400, f"the body is not JSON: {error}") from None
    if isinstance(request, list):
        return json.dumps([jolokia.answer(each, lambda: samples, now_s) for each in request])
    return json.dumps(jolokia.answer(request, lambda: samples, now_s))
