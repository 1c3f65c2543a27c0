"""Requests from worker to worker: a user's request that another one must answer, and internal ones,
which are signed with the session key."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import http.client
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from moldau.connect.api import ConnectError
from moldau.connect.machine.config_state import SessionKey
from moldau.http.machine.errors import HttpError
from moldau.http.request import Answer, Request
from moldau.services.connect.machine.errors import Conflict, RequestTarget

SIGNATURE = "X-Connect-Authorization"
ALGORITHM = "X-Connect-Request-Signature-Algorithm"
_DIGESTS = {
    "HmacSHA1": hashlib.sha1,
    "HmacSHA256": hashlib.sha256,
    "HmacSHA384": hashlib.sha384,
    "HmacSHA512": hashlib.sha512,
}
_TIMEOUT_S = 90.0
_PASSED_ON: tuple[str, ...] = ("accept", "authorization", "content-type")


def sign(key: SessionKey, algorithm: str, body: bytes) -> dict[str, str]:
    """The headers of an internal request."""
    digest = hmac.new(key.key, body, _DIGESTS[algorithm]).digest()
    return {SIGNATURE: base64.b64encode(digest).decode(), ALGORITHM: algorithm}


def is_signed(
    key: SessionKey, allowed: tuple[str, ...], headers: Mapping[str, str], body: bytes
) -> bool:
    """Whether the headers (in lower case) prove that a worker of this cluster sent the body."""
    algorithm = headers.get(ALGORITHM.lower(), "")
    given = headers.get(SIGNATURE.lower(), "")
    if algorithm not in allowed or algorithm not in _DIGESTS:
        return False
    wanted = sign(key, algorithm, body)[SIGNATURE]
    return hmac.compare_digest(given, wanted)


async def forward(request: Request, target: RequestTarget) -> Answer:
    """Another worker's answer. Two hops are enough: after that the group is changing."""
    given = request.text("forward")
    if given is not None and given.lower() != "true":
        raise Conflict(
            "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
        )
    if not target.url:
        raise Conflict(
            "Cannot complete request momentarily due to no known leader URL, likely because a "
            "rebalance was underway."
        )
    query = {name: values[0] for name, values in request.query.items() if name != "forward"}
    query["forward"] = "true" if given is None else "false"
    headers: dict[str, str] = {
        name: request.headers[name] for name in _PASSED_ON if name in request.headers
    }
    path = request.raw_path.decode("latin-1")
    status, data, found = await asyncio.to_thread(
        _send, target.url, request.method, path, query, await request.body(), headers
    )
    location = {}
    if "location" in found:
        # The client knows this worker, and may not reach the other.
        location = {"Location": request.base_url + urlsplit(found["location"]).path}
    return Answer(status=status, body=data, media_type=found.get("content-type"), headers=location)


async def send_internal(
    url: str | None, method: str, path: str, body: Any, key: SessionKey, algorithm: str
) -> None:
    """Raises ConnectError unless the other worker accepts."""
    if not url:
        raise ConnectError("the leader is not known")
    data = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
    headers = {"content-type": "application/json", **sign(key, algorithm, data)}
    status, answer, _ = await asyncio.to_thread(_send, url, method, path, {}, data, headers)
    if status >= 300:
        raise ConnectError(
            f"{method} {url}{path}: {status} {answer[:500].decode(errors='replace')}"
        )


def _send(
    url: str,
    method: str,
    path: str,
    query: Mapping[str, str],
    body: bytes,
    headers: Mapping[str, str],
) -> tuple[int, bytes, dict[str, str]]:
    address = urlsplit(url)
    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    connection = kind(address.hostname or "", address.port, timeout=_TIMEOUT_S)
    target = f"{path}?{urlencode(query)}" if query else path
    try:
        connection.request(method, target, body=body or None, headers=dict(headers))
        response = connection.getresponse()
        data = response.read()
        return response.status, data, {k.lower(): v for k, v in response.getheaders()}
    except (OSError, http.client.HTTPException) as error:
        raise HttpError(500, f"IO Error trying to forward REST request: {error}") from error
    finally:
        connection.close()
