"""Requests to a Schema Registry over HTTP, with connections that stay open.

Decided here: which of several addresses is asked, and how often. A request that no registry has
answered, or that one has answered with 408, 429 or 5xx, goes to the next address after a pause,
`max.retries` times. Every method of the registry's interface may be repeated: registering a schema
twice gives one id.
"""

from __future__ import annotations

import base64
import http.client
import json
import random
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from moldau.client.errors import ConfigError
from moldau.serde.errors import RegistryError, RegistryUnavailableError

__all__ = ["Transport"]

CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
RESPONSE_BYTES_MAX: Final = 64 * 1024 * 1024
IDLE_MAX: Final = 8
_RETRIED: Final = frozenset({408, 429, 500, 502, 503, 504})
_PAUSE_FIRST_S: Final = 0.1
_PAUSE_MAX_S: Final = 5.0


class Transport:
    """Safe to use from several threads; each request has a connection of its own meanwhile."""

    def __init__(
        self,
        urls: tuple[str, ...],
        *,
        authorization: Callable[[], str | None],
        tls: Callable[[], ssl.SSLContext],
        timeout_s: float,
        retries_max: int,
    ) -> None:
        self._servers = [_Server(url, tls, timeout_s) for url in urls]
        self._authorization = authorization
        self._retries_max = retries_max
        self._preferred = 0

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """The document that the registry answers with; RegistryError if it refuses."""
        headers = {"Accept": f"{CONTENT_TYPE}, application/json; q=0.9"}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = CONTENT_TYPE
        if (authorization := self._authorization()) is not None:
            headers["Authorization"] = authorization
        problem: Exception | None = None
        for attempt in range(self._retries_max + 1):
            if attempt:
                time.sleep(_pause_s(attempt, len(self._servers)))
            place = (self._preferred + attempt) % len(self._servers)
            server = self._servers[place]
            try:
                status, answer = server.exchange(method, path, data, headers)
            except (OSError, http.client.HTTPException) as error:
                problem = RegistryUnavailableError(f"{server.shown} does not answer: {error}")
                continue
            self._preferred = place
            if 200 <= status < 300:
                return _document(answer, server.shown)
            problem = _refusal(status, answer, server.shown)
            if status not in _RETRIED:
                break
        if problem is None:
            raise RegistryUnavailableError("no registry was asked")
        raise problem

    def close(self) -> None:
        for server in self._servers:
            server.close()


class _Server:
    """One address of the registry, with its idle connections."""

    def __init__(self, url: str, tls: Callable[[], ssl.SSLContext], timeout_s: float) -> None:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError.invalid(
                "schema.registry.url", url, "must be http://HOST:PORT or https://HOST:PORT"
            )
        self.user_info = (parts.username, parts.password) if parts.username else None
        port = parts.port or (443 if parts.scheme == "https" else 80)
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        #: Without a password that may stand in the URL.
        self.shown = f"{parts.scheme}://{host}:{port}"
        self._host, self._port = parts.hostname, port
        self._prefix = parts.path.rstrip("/")
        self._context = tls() if parts.scheme == "https" else None
        self._timeout_s = timeout_s
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def exchange(
        self, method: str, path: str, data: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        connection, is_used = self._take()
        try:
            return self._ask(connection, method, path, data, headers)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            connection.close()
            if not is_used:
                raise
        # A server may close a connection that was idle; a new one shows whether it is still there.
        return self._ask(self._new(), method, path, data, headers)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _ask(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        data: bytes | None,
        headers: Mapping[str, str],
    ) -> tuple[int, bytes]:
        given = dict(headers)
        if self.user_info is not None and "Authorization" not in given:
            given["Authorization"] = basic_authorization(":".join(map(str, self.user_info)))
        try:
            connection.request(method, self._prefix + path, data, given)
            response = connection.getresponse()
            answer = response.read(RESPONSE_BYTES_MAX + 1)
        except BaseException:
            connection.close()
            raise
        if len(answer) > RESPONSE_BYTES_MAX:
            connection.close()
            raise http.client.HTTPException(f"the answer has more than {RESPONSE_BYTES_MAX} bytes")
        self._give_back(connection, keep=not response.will_close)
        return response.status, answer

    def _take(self) -> tuple[http.client.HTTPConnection, bool]:
        with self._lock:
            if self._idle:
                return self._idle.pop(), True
        return self._new(), False

    def _new(self) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_s)
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=self._timeout_s, context=self._context
        )

    def _give_back(self, connection: http.client.HTTPConnection, *, keep: bool) -> None:
        if keep:
            with self._lock:
                if len(self._idle) < IDLE_MAX:
                    self._idle.append(connection)
                    return
        connection.close()


def basic_authorization(user_info: str) -> str:
    return "Basic " + base64.b64encode(user_info.encode()).decode()


def _pause_s(attempt: int, servers: int) -> float:
    """None before the other addresses have been asked, then longer ones, none like another."""
    rounds = attempt // servers
    if rounds == 0:
        return 0.0
    pause_s: float = min(_PAUSE_FIRST_S * 2 ** (rounds - 1), _PAUSE_MAX_S)
    return pause_s * random.uniform(0.8, 1.2)


def _document(answer: bytes, shown: str) -> Any:
    if not answer:
        return None
    try:
        return json.loads(answer)
    except ValueError:
        raise RegistryUnavailableError(
            f"{shown} did not answer with JSON: is it a registry?"
        ) from None


def _refusal(status: int, answer: bytes, shown: str) -> RegistryError:
    try:
        body = json.loads(answer)
        message, code = str(body["message"]), int(body["error_code"])
    except (ValueError, KeyError, TypeError):
        message, code = http.client.responses.get(status, "refused"), status
    return RegistryError(message, status=status, error_code=code, url=shown)
