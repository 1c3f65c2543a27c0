"""Forwarding: a write that came to another instance is sent on to the primary.

The primary's answer is passed back as it is. `X-Forward` marks a request that was sent on once: it
is never sent on again, so that two instances that disagree cannot play it back and forth.
"""

from __future__ import annotations

import asyncio
import http.client
import ssl
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from moldau.http.request import Answer, Request
from moldau.security.tls import client_context
from moldau.services.registry.config import RegistryConfig
from moldau.services.registry.machine.election import Identity
from moldau.services.registry.machine.errors import RegistryError

__all__ = ["FORWARD_HEADER", "OFFSET_HEADER", "Forwarding"]

FORWARD_HEADER: Final = "x-forward"
#: How far the topic was read when the primary answered.
OFFSET_HEADER: Final = "x-registry-position"
_PASSED_ON: Final[tuple[str, ...]] = ("accept", "authorization", "content-type")


class Forwarding:
    def __init__(self, config: RegistryConfig) -> None:
        self._config = config
        self._context: ssl.SSLContext | None = None

    async def send(self, request: Request, primary: Identity) -> tuple[Answer, int]:
        """The primary's answer, and its position; RegistryError if it gives none."""
        body = await request.body()
        headers: dict[str, str] = {
            name: request.headers[name] for name in _PASSED_ON if name in request.headers
        }
        headers[FORWARD_HEADER] = "true"
        target = request.raw_path.decode("latin-1")
        query = request.scope["query_string"].decode("latin-1")
        if query:
            target = f"{target}?{query}"
        try:
            return await asyncio.to_thread(
                self._ask, primary, request.method, target, body, headers
            )
        except (OSError, http.client.HTTPException) as error:
            raise RegistryError(
                500,
                50003,
                f"Error while forwarding the request to the leader {primary.url}: {error}",
            ) from error

    def _ask(
        self,
        primary: Identity,
        method: str,
        target: str,
        body: bytes,
        headers: Mapping[str, str],
    ) -> tuple[Answer, int]:
        connection = self._connection(primary)
        try:
            connection.connect()
            connection.sock.settimeout(self._config.leader_read_timeout_ms / 1000)
            connection.request(method, target, body=body or None, headers=dict(headers))
            response = connection.getresponse()
            data = response.read()
        finally:
            connection.close()
        answer = Answer(
            status=response.status, body=data, media_type=response.getheader("content-type")
        )
        return answer, int(response.getheader(OFFSET_HEADER) or 0)

    def _connection(self, primary: Identity) -> http.client.HTTPConnection:
        address = urlsplit(primary.url)
        host, port = address.hostname or "", address.port
        timeout_s = self._config.leader_connect_timeout_ms / 1000
        if primary.scheme != "https":
            return http.client.HTTPConnection(host, port, timeout=timeout_s)
        if self._context is None:
            self._context = client_context(self._config.http.settings)
        return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=self._context)
