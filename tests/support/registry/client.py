"""A registry's HTTP interface, as raw as a test needs it."""

from __future__ import annotations

import http.client
import json
import threading
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

__all__ = ["MEDIA_TYPE", "Response", "RestClient", "segment"]

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"


@dataclass(frozen=True)
class Response:
    status: int
    body: bytes
    headers: dict[str, str]

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def segment(name: str) -> str:
    """A subject as a part of a path."""
    return quote(name, safe=":.*~")


class RestClient:
    """One connection for each thread that uses it."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self._address = (address.hostname or "", address.port)
        self._local = threading.local()

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        raw: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Response:
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        sent = {"Content-Type": MEDIA_TYPE, "Accept": MEDIA_TYPE, **(headers or {})}
        target = quote(path, safe="/:?&=%.,*~+-_@!$'();#[]")
        for attempt in (1, 2):
            connection = getattr(self._local, "connection", None)
            if connection is None:
                connection = http.client.HTTPConnection(*self._address, timeout=60)
                self._local.connection = connection
            try:
                connection.request(method, target, body=data, headers=sent)
                response = connection.getresponse()
                content = response.read()
                break
            except (http.client.HTTPException, ConnectionError):
                # The server closes connections that are idle.
                connection.close()
                self._local.connection = None
                if attempt == 2:
                    raise
        found = {name.lower(): value for name, value in response.getheaders()}
        return Response(response.status, content, found)

    def get(self, path: str) -> Response:
        return self.ask("GET", path)

    def register(self, subject: str, schema: str, type: str | None = None, **more: Any) -> Response:
        body: dict[str, Any] = {"schema": schema, **more}
        if type is not None:
            body["schemaType"] = type
        return self.ask("POST", f"/subjects/{segment(subject)}/versions", body)
