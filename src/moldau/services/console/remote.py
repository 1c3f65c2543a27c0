"""Requests to the services beside the cluster: registry, Connect and SQL server.

The blocking client of the standard library runs in a thread; every request has a time limit, and
the answer a limit of bytes. Errors of a service keep its status and message.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import http.client
import json
import threading
from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from moldau.http.machine.errors import HttpError
from moldau.http.request import Request
from moldau.services.console.backend import Backend, Call

__all__ = ["Remote", "managing", "require_management"]

_SECONDS_MAX: Final = 30.0
_BYTES_MAX: Final = 32 * 1024 * 1024
_LINE_BYTES_MAX: Final = 4 * 1024 * 1024
_QUEUE_MAX: Final = 1_000
_TITLES: Final = {
    "schema.registry.url": "Schema Registry",
    "connect.url": "Connect",
    "sql.url": "SQL server",
}


@contextlib.asynccontextmanager
async def managing(
    backend: Backend, request: Request, action: str, target: str, details: Any = None
) -> AsyncIterator[Call]:
    """A change of a service, with an entry in the audit. Raises HttpError."""
    async with backend.change(request, action, target, details) as call:
        await require_management(call)
        yield call


async def require_management(call: Call) -> None:
    """Services do not know the broker's ACLs: whoever changes them here needs ALTER on the cluster.
    Raises HttpError."""
    found = await call.admin.describe_cluster(include_authorized_operations=True)
    operations = found.authorized_operations
    if operations is not None and "ALTER" not in {each.name for each in operations}:
        raise HttpError(403, "Not allowed: this needs the operation ALTER on the cluster.")


class Remote:
    """One service of a cluster."""

    def __init__(self, call: Call, key: str) -> None:
        """Raises HttpError if it is not configured."""
        self.title = _TITLES[key]
        url = call.cluster.service_url(key)
        if url is None:
            raise HttpError(
                404, f"No {self.title} is configured for this cluster: set {key} of the console."
            )
        self.url = url

    async def ask(self, method: str, path: str, body: Any = None, *, media_type: str = "") -> Any:
        """The JSON of the answer; None if it has none. Raises HttpError."""
        return await asyncio.to_thread(self._ask, method, path, body, media_type)

    def _ask(self, method: str, path: str, body: Any, media_type: str) -> Any:
        connection = self._connection()
        try:
            answer = self._send(connection, method, path, body, media_type)
            data = answer.read(_BYTES_MAX + 1)
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from None
        finally:
            connection.close()
        if len(data) > _BYTES_MAX:
            raise HttpError(502, f"The answer of the {self.title} is too long.")
        return self._body(answer.status, data)

    async def lines(
        self, method: str, path: str, body: Any, *, media_type: str
    ) -> AsyncIterator[Any]:
        """The objects of an answer with one JSON value in each line, as they come."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[Any] = asyncio.Queue(_QUEUE_MAX)
        connection = self._connection(seconds_max=None)
        is_over = threading.Event()

        def put(item: Any) -> None:
            # Waits while the reader is behind, and ends with it.
            waiting = asyncio.run_coroutine_threadsafe(queue.put(item), loop)
            while not is_over.is_set():
                with contextlib.suppress(TimeoutError):
                    waiting.result(0.5)
                    return
            waiting.cancel()

        def read() -> None:
            try:
                answer = self._send(connection, method, path, body, media_type)
                if answer.status >= http.client.BAD_REQUEST:
                    self._body(answer.status, answer.read(_BYTES_MAX))
                while not is_over.is_set():
                    line = answer.readline(_LINE_BYTES_MAX)
                    if not line:
                        break
                    if line.strip():
                        put(json.loads(line))
                put(None)
            except HttpError as error:
                put(error)
            except (OSError, ValueError, http.client.HTTPException, AttributeError) as error:
                put(None if is_over.is_set() else self._unreachable(error))

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        try:
            while (item := await queue.get()) is not None:
                if isinstance(item, HttpError):
                    raise item
                yield item
        finally:
            is_over.set()
            with contextlib.suppress(OSError):
                if connection.sock is not None:
                    connection.sock.close()

    def _connection(
        self, seconds_max: float | None = _SECONDS_MAX
    ) -> http.client.HTTPConnection | http.client.HTTPSConnection:
        parts = urlsplit(self.url)
        kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        return kind(parts.hostname or "", parts.port, timeout=seconds_max)

    def _send(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: Any,
        media_type: str,
    ) -> http.client.HTTPResponse:
        parts = urlsplit(self.url)
        headers = {"Accept": media_type or "application/json"}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
        connection.request(method, parts.path.rstrip("/") + path, body=data, headers=headers)
        return connection.getresponse()

    def _body(self, status: int, data: bytes) -> Any:
        try:
            found = json.loads(data) if data.strip() else None
        except ValueError:
            found = None
        if status >= http.client.BAD_REQUEST:
            message = found.get("message") if isinstance(found, dict) else None
            shown = message or f"it answered with status {status}"
            # A login that the service refuses is the console's, not that of its user.
            status = 502 if status in (401, 403) or status >= 500 else status
            raise HttpError(status, f"{self.title}: {shown}")
        return found

    def _unreachable(self, error: Exception) -> HttpError:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return HttpError(502, f"The {self.title} at {self._shown()} cannot be reached: {reason}.")

    def _shown(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
