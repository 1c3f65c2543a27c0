"""Small HTTP requests off the event loop: token endpoints and key sets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

__all__ = ["FetchFailed", "as_path", "fetch_json", "read_text"]

RESPONSE_BYTES_MAX: Final = 1024 * 1024
DEFAULT_TIMEOUT_S: Final = 10.0


class FetchFailed(Exception):
    """A document cannot be had; the message has no secrets in it."""


def as_path(url: str) -> Path | None:
    """The file that a `file:` URL or a plain path names; None for others."""
    parts = urlsplit(url)
    if parts.scheme in ("http", "https"):
        return None
    return Path(unquote(parts.path) if parts.scheme == "file" else url)


def read_text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise FetchFailed(f"{path} cannot be read: {error}") from None


async def fetch_json(
    url: str,
    *,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
) -> Any:
    """The JSON document at a URL, or the answer to a POST if there is a body."""
    return await asyncio.to_thread(_fetch, url, body, dict(headers or {}), timeout_s)


def _fetch(url: str, body: bytes | None, headers: dict[str, str], timeout_s: float) -> Any:
    # Here, since it takes long to import and few need it.
    import urllib.error
    import urllib.request

    try:
        request = urllib.request.Request(url, data=body, headers=headers)
        with urllib.request.urlopen(request, timeout=timeout_s) as response:
            data = response.read(RESPONSE_BYTES_MAX + 1)
    except urllib.error.HTTPError as error:
        raise FetchFailed(f"{url} answered {error.code} {error.reason}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise FetchFailed(f"{url} cannot be reached: {reason}") from None
    if len(data) > RESPONSE_BYTES_MAX:
        raise FetchFailed(f"{url} answered with more than {RESPONSE_BYTES_MAX} bytes")
    try:
        return json.loads(data)
    except ValueError:
        raise FetchFailed(f"{url} did not answer with JSON") from None
