"""SqlClient: a SQL server's HTTP interface, with nothing but the standard library."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlsplit

from moldau.cli.support.failures import Failure

__all__ = ["SqlClient", "StatementFailed"]

_MEDIA_TYPE: Final = "application/vnd.ksql.v1+json"
_LINES: Final = "application/vnd.ksqlapi.delimited.v1"
_TIMEOUT_S: Final = 60.0


class StatementFailed(Exception):
    """What the server says against a statement."""


class SqlClient:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Failure(f"--server {url}: use a URL such as http://127.0.0.1:8088")
        self.url = f"{parts.scheme}://{parts.netloc}"
        self._parts = parts

    def _connection(self, timeout: float | None) -> HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            return HTTPSConnection(host, port or 443, timeout=timeout)
        return HTTPConnection(host, port or 80, timeout=timeout)

    def _post(
        self, path: str, body: Mapping[str, Any], accept: str, timeout: float | None
    ) -> tuple[HTTPConnection, HTTPResponse]:
        connection = self._connection(timeout)
        headers = {"Content-Type": _MEDIA_TYPE, "Accept": accept}
        try:
            connection.request("POST", path, json.dumps(body), headers)
            answer = connection.getresponse()
        except (OSError, HTTPException) as error:
            raise Failure(
                f"{self.url} cannot be reached: {error}. Start a server with: moldau sql start"
            ) from None
        if answer.status != 200:
            raise StatementFailed(_message(answer))
        return connection, answer

    def execute(
        self, text: str, properties: Mapping[str, str], variables: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        """The entities that statements are answered with."""
        body = {"ksql": text, "streamsProperties": properties, "sessionVariables": variables}
        connection, answer = self._post("/ksql", body, _MEDIA_TYPE, _TIMEOUT_S)
        with closing(connection):
            found: list[dict[str, Any]] = json.loads(answer.read())
        return found

    def rows(
        self, text: str, properties: Mapping[str, str], variables: Mapping[str, str]
    ) -> Iterator[Any]:
        """The header of a query, then its rows, as they come."""
        body = {"sql": text, "properties": properties, "sessionVariables": variables}
        connection, answer = self._post("/query-stream", body, _LINES, None)
        with closing(connection):
            for line in answer:
                if line.strip():
                    yield json.loads(line)


def _message(answer: HTTPResponse) -> str:
    try:
        found = json.loads(answer.read())
        return str(found["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {answer.status}"
