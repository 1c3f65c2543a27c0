"""Requests of connectors over HTTP, with a connection that stays open.

Decided here: which failures pass. No answer, 408, 429 and 5xx are RetriableErrors, unless the
caller takes the status itself.
"""

from __future__ import annotations

import base64
import http.client
import ssl
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from moldau.connect.api import ConfigDef, ConfigError, Kind, Password, RetriableError

RESPONSE_BYTES_MAX: Final = 64 * 1024 * 1024
RETRIED: Final = frozenset({408, 429, 500, 502, 503, 504})


def define_connection(config: ConfigDef, *, prefix: str = "") -> ConfigDef:
    """The settings of TLS and timeouts, which connectors over HTTP share."""
    return (
        config.define(f"{prefix}connect.timeout.ms", Kind.INT, 5_000, group="Connection",
                      doc="How long to wait for a connection")
        .define(f"{prefix}read.timeout.ms", Kind.INT, 30_000, group="Connection",
                doc="How long to wait for an answer")
        .define("ssl.truststore.location", Kind.STRING, None, group="Connection",
                doc="File with PEM certificates to trust; empty: those of the system")
        .define("ssl.verify.hostname", Kind.BOOLEAN, True, group="Connection",
                doc="Whether the certificate must be that of the host")
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    """With names in lower case."""
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


class WebClient:
    """One server. Not safe to use from several threads."""

    def __init__(
        self,
        url: str,
        *,
        key: str,
        timeout_s: float = 30.0,
        authorization: str | None = None,
        trusted: str | None = None,
        verify_hostname: bool = True,
    ) -> None:
        """`key` is the setting that the URL comes from, for errors."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError.invalid(key, url, "must be http://HOST:PORT or https://HOST:PORT")
        self._host = parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._prefix = parts.path.rstrip("/")
        #: Without a password that may stand in the URL.
        self.shown = f"{parts.scheme}://{self._host}:{self._port}{self._prefix}"
        self._timeout_s = timeout_s
        self._context: ssl.SSLContext | None = None
        if parts.scheme == "https":
            self._context = ssl.create_default_context(cafile=trusted or None)
            self._context.check_hostname = verify_hostname
        self._authorization = authorization
        if parts.username and authorization is None:
            self._authorization = basic(parts.username, parts.password or "")
        self._connection: http.client.HTTPConnection | None = None

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        taken: Collection[int] = (),
    ) -> Answer:
        """The answer. `taken` are failures that the caller handles."""
        given = dict(headers or {})
        if self._authorization is not None:
            given.setdefault("Authorization", self._authorization)
        try:
            answer = self._exchange(method, self._prefix + path, body, given)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise RetriableError(f"{self.shown} does not answer: {error}") from error
        if answer.status in RETRIED and answer.status not in taken:
            raise RetriableError(
                f"{method} {self.shown}{path} was answered with {answer.status}: "
                f"{answer.text[:500]}"
            )
        return answer

    def _exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Answer:
        was_open = self._connection is not None
        try:
            return self._ask(method, path, body, headers)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            self.close()
            if not was_open:
                raise
        # A server may close a connection that was idle.
        return self._ask(method, path, body, headers)

    def _ask(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Answer:
        if self._connection is None:
            self._connection = (
                http.client.HTTPSConnection(
                    self._host, self._port, timeout=self._timeout_s, context=self._context
                )
                if self._context is not None
                else http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_s)
            )
        self._connection.request(method, path or "/", body, dict(headers))
        response = self._connection.getresponse()
        data = response.read(RESPONSE_BYTES_MAX + 1)
        if len(data) > RESPONSE_BYTES_MAX:
            raise http.client.HTTPException(f"the answer has more than {RESPONSE_BYTES_MAX} bytes")
        found = {name.lower(): value for name, value in response.getheaders()}
        if response.will_close:
            self.close()
        return Answer(response.status, found, data)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def plain(value: Any) -> str | None:
    """The text of a password setting."""
    return value.value if isinstance(value, Password) else value
