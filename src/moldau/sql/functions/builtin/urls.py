"""URLs, taken apart as java.net.URI does."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, unquote_plus, unquote_to_bytes

from moldau.sql.functions.declarations import ScalarFunction, overload, scalar
from moldau.sql.functions.errors import FunctionError

_URI = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL
)
_ILLEGAL = re.compile(r"[\x00-\x20\x7f<>\"{}|\\^`]|%(?![0-9A-Fa-f]{2})")
_HOST = re.compile(r"(?:[^@]*@)?(\[[^\]]*\]|[A-Za-z0-9.-]+)(?::(\d*))?", re.ASCII)


class Url(NamedTuple):
    protocol: str | None
    host: str | None
    port: int | None
    path: str | None
    query: str | None
    fragment: str | None


@lru_cache(maxsize=1000)
def _parse(text: str) -> Url:
    found = _URI.fullmatch(text)
    if found is None or _ILLEGAL.search(text) or not text:
        raise FunctionError(f"URL input has invalid syntax: {text}")
    scheme, authority, path, query, fragment = found.groups()
    if scheme and not authority and not path.startswith("/"):
        if not path:
            raise FunctionError(f"URL input has invalid syntax: {text}")
        # An opaque URI such as mailto:a@b has neither path nor query.
        return Url(scheme, None, None, None, None, _decoded(fragment))
    if ":" in path.split("/")[0] and not scheme:
        raise FunctionError(f"URL input has invalid syntax: {text}")
    host, port = None, None
    if authority:
        server = _HOST.fullmatch(authority)
        if server is not None and not server[1].startswith(("-", ".")):
            host = server[1]
            port = int(server[2]) if server[2] else None
    return Url(scheme, host, port, _decoded(path), _decoded(query), _decoded(fragment))


def _decoded(text: str | None) -> str | None:
    return None if text is None else unquote_to_bytes(text).decode("utf-8", "replace")


def _parameter(text: str, wanted: str) -> str | None:
    query = _parse(text).query
    if query is None:
        return None
    for pair in query.split("&"):
        name, mark, value = pair.partition("=")
        if name == wanted:
            return value if mark else ""
    return None


def _decode(text: str) -> str:
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise FunctionError(
            f"url_decode udf encountered an encoding exception while decoding: {text}"
        )
    return unquote_plus(text, errors="replace")


def _encode(text: str) -> str:
    return quote(text, safe="-_.* ").replace("~", "%7E").replace(" ", "+")


def _part(
    name: str, what: str, get: Callable[[Url], Any], result: str = "STRING"
) -> ScalarFunction:
    return scalar(
        f"url_extract_{name}",
        "URL",
        f"The {what} of a URL.",
        f"URL_EXTRACT_{name.upper()}('https://h:80/p?q=1#f')",
        overload(f"(STRING input) -> {result}", lambda text: get(_parse(text))),
    )


FUNCTIONS = [
    scalar(
        "url_decode_param",
        "URL",
        "The text that a URL's parameter stands for.",
        "URL_DECODE_PARAM('a+b%21') -> 'a b!'",
        overload("(STRING input) -> STRING", _decode),
    ),
    scalar(
        "url_encode_param",
        "URL",
        "A text as it stands in a URL's parameter.",
        "URL_ENCODE_PARAM('a b!') -> 'a+b%21'",
        overload("(STRING input) -> STRING", _encode),
    ),
    _part("fragment", "part after #", lambda url: url.fragment),
    _part("host", "host", lambda url: url.host),
    scalar(
        "url_extract_parameter",
        "URL",
        "The value of a parameter in a URL's query.",
        "URL_EXTRACT_PARAMETER('https://h/p?q=1', 'q') -> '1'",
        overload("(STRING input, STRING paramToFind) -> STRING", _parameter),
    ),
    _part("path", "path", lambda url: url.path),
    _part("port", "port, NULL if it names none,", lambda url: url.port, "INT"),
    _part("protocol", "protocol", lambda url: url.protocol),
    _part("query", "part between ? and #", lambda url: url.query),
]
