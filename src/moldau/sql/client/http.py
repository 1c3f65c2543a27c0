"""SqlClient: a SQL server's HTTP interface, with nothing but the standard library."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from moldau.sql.client.errors import InterfaceError, OperationalError, error_of

__all__ = ["DEFAULT_URL", "RowStream", "SqlClient"]

DEFAULT_URL: Final = "http://127.0.0.1:8088"
_MEDIA_TYPE: Final = "application/vnd.ksql.v1+json"
_LINES: Final = "application/vnd.ksqlapi.delimited.v1"


class RowStream:
    """The lines of a query: the header, then rows as JSON, as they come."""

    def __init__(self, connection: HTTPConnection, answer: HTTPResponse) -> None:
        self._connection = connection
        self._socket = connection.sock
        self._answer = answer
        self._closed = False
        self._lines = self._read()
        try:
            found = json.loads(next(self._lines, b"{}"))
        except BaseException:
            self.close()
            raise
        self.query_id: str = found.get("queryId") or ""
        self.names: list[str] = found.get("columnNames") or []
        self.types: list[str] = found.get("columnTypes") or []

    def lines(self) -> Iterator[bytes]:
        """The rows that were not read yet; OperationalError when the query fails."""
        return self._lines

    def _read(self) -> Iterator[bytes]:
        try:
            for line in self._answer:
                if self._closed:
                    return
                stripped = line.strip()
                if not stripped:
                    continue
                if stripped[:1] == b"{" and b'"message"' in stripped and b"columnNames" not in line:
                    found = json.loads(stripped)
                    raise OperationalError(
                        str(found["message"]), error_code=found.get("error_code")
                    )
                yield stripped
        except (OSError, HTTPException, ValueError, AttributeError) as error:
            # AttributeError: another thread has closed the answer while this one was reading it.
            if not self._closed:
                raise OperationalError(f"The query broke off: {error}") from None
        finally:
            self.close()

    def close(self) -> None:
        """End the query, also from another thread; the server stops a query whose client leaves."""
        if self._closed:
            return
        self._closed = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        self._connection.close()


class SqlClient:
    """Each request has a connection of its own, so that threads may share a client."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        user: str | None = None,
        password: str | None = None,
        timeout_s: float = 60.0,
        tls: ssl.SSLContext | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InterfaceError(f"{url}: use a URL such as {DEFAULT_URL}")
        try:
            port = parts.port
        except ValueError:
            raise InterfaceError(f"{url}: the port is not a number up to 65535") from None
        self._tls = tls if parts.scheme == "https" else None
        self._is_tls = parts.scheme == "https"
        self._address = (parts.hostname, port or (443 if self._is_tls else 80))
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        self.url = f"{parts.scheme}://{host}:{self._address[1]}"
        self.timeout_s = timeout_s
        self._headers = dict(headers or {})
        name = user if user is not None else unquote(parts.username or "")
        if name:
            secret = password if password is not None else unquote(parts.password or "")
            token = base64.b64encode(f"{name}:{secret}".encode()).decode()
            self._headers["Authorization"] = f"Basic {token}"

    def _connection(self, timeout: float | None) -> HTTPConnection:
        host, port = self._address
        if self._is_tls:
            return HTTPSConnection(host, port, timeout=timeout, context=self._tls)
        return HTTPConnection(host, port, timeout=timeout)

    def _request(
        self,
        method: str,
        path: str,
        body: str | None,
        accept: str,
    ) -> tuple[HTTPConnection, HTTPResponse]:
        connection = self._connection(self.timeout_s)
        headers = {"Content-Type": _MEDIA_TYPE, "Accept": accept, **self._headers}
        try:
            connection.request(method, path, None if body is None else body.encode(), headers)
            answer = connection.getresponse()
        except (OSError, HTTPException) as error:
            connection.close()
            raise OperationalError(
                f"{self.url} cannot be reached: {error}. Start a server with: moldau sql start"
            ) from None
        if answer.status != 200:
            try:
                raise _failure(answer)
            finally:
                connection.close()
        return connection, answer

    def _json(self, method: str, path: str, body: Any = None) -> Any:
        sent = None if body is None else json.dumps(body)
        connection, answer = self._request(method, path, sent, _MEDIA_TYPE)
        try:
            return json.loads(answer.read())
        except (OSError, HTTPException, ValueError) as error:
            raise OperationalError(f"{self.url} sent no JSON: {error}") from None
        finally:
            connection.close()

    def info(self) -> dict[str, Any]:
        """Version, cluster and service id of the server."""
        found: dict[str, Any] = self._json("GET", "/info").get("KsqlServerInfo", {})
        return found

    def execute(
        self,
        text: str,
        properties: Mapping[str, Any] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> list[dict[str, Any]]:
        """The entities that statements are answered with."""
        body = {
            "ksql": text,
            "streamsProperties": dict(properties or {}),
            "sessionVariables": dict(variables or {}),
        }
        found: list[dict[str, Any]] = self._json("POST", "/ksql", body)
        return found

    def query(
        self,
        text: str,
        properties: Mapping[str, Any] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> RowStream:
        """Start a query: its columns are there when this returns."""
        body = {
            "sql": text,
            "properties": dict(properties or {}),
            "sessionVariables": dict(variables or {}),
        }
        connection, answer = self._request("POST", "/query-stream", json.dumps(body), _LINES)
        # A push query may be silent for as long as it wants.
        if connection.sock is not None:
            connection.sock.settimeout(None)
        return RowStream(connection, answer)

    def close_query(self, query_id: str) -> None:
        self._json("POST", "/close-query", {"queryId": query_id})


def _failure(answer: HTTPResponse) -> Exception:
    try:
        found = json.loads(answer.read())
        return error_of(
            answer.status,
            str(found["message"]),
            found.get("error_code"),
            found.get("statementText"),
        )
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return error_of(answer.status, f"The server answered with status {answer.status}")
