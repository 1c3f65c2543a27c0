"""Route and RouteTable: which handler a method and a path lead to.

Paths are matched as they were sent, segment by segment, and each segment is decoded afterwards: a
subject `a/b` is one segment, `a%2Fb`. A literal segment goes before a parameter. A trailing slash
makes no difference. `{name:int}` takes a whole number of 32 bits, `{name:long}` one of 64; another
text is not found (404), as in JAX-RS. Duplicates are refused when the table is made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from moldau.http.machine.errors import HttpError, method_not_allowed, not_found

__all__ = ["Match", "Parameter", "Route", "RouteTable"]

JSON: Final = "application/json"
_PARAMETER: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)(?::(int|long))?\}")
_NUMBER: Final = re.compile(r"[-+]?[0-9]{1,19}")
_BITS: Final = {"int": 31, "long": 63}
SEGMENTS_MAX: Final = 64
_KEPT_PATHS_MAX: Final = 4096
_KEPT_PATH_BYTES_MAX: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A query parameter, for the document; `schema` is JSON Schema."""

    name: str
    description: str = ""
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One operation. What is not about calling the handler is for the OpenAPI document.

    `handler` takes a Request and returns an Answer, or something to await that does.
    `consumes` empty: the body is not looked at. `streams_body`: the handler reads it in pieces.
    `timeout_ms`: None for the service's limit, 0 for a handler that limits itself.
    """

    method: str
    path: str
    handler: Callable[[Any], Any]
    summary: str = ""
    description: str = ""
    tag: str = ""
    consumes: tuple[str, ...] = ()
    produces: tuple[str, ...] = (JSON,)
    parameters: tuple[Parameter, ...] = ()
    body: Mapping[str, Any] | None = None
    body_required: bool = True
    responses: Mapping[int, Mapping[str, Any] | None] = field(default_factory=lambda: {200: None})
    public: bool = False
    timeout_ms: int | None = None
    streams_body: bool = False
    body_bytes_max: int | None = None
    hidden: bool = False

    @property
    def template(self) -> str:
        """The path without the types of parameters."""
        return _template(self.path)

    @property
    def path_parameters(self) -> tuple[tuple[str, str | None], ...]:
        """Names with `int`, `long` or None for text."""
        return tuple((found[1], found[2]) for found in _PARAMETER.finditer(self.path))


@cache
def _template(path: str) -> str:
    return _PARAMETER.sub(lambda found: "{" + found[1] + "}", path)


@dataclass(frozen=True, slots=True)
class Match:
    route: Route
    parameters: Mapping[str, Any]


class _Node:
    __slots__ = ("literals", "methods", "parameter")

    def __init__(self) -> None:
        self.literals: dict[str, _Node] = {}
        self.parameter: _Node | None = None
        self.methods: dict[str, Route] = {}


class RouteTable:
    """See the module. HEAD is served by GET."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._root = _Node()
        # Most requests repeat a path: an answer is a good part of what a small request costs.
        self._found: dict[tuple[str, bytes], Match] = {}
        for route in self.routes:
            self._add(route)

    def match(self, method: str, raw_path: bytes) -> Match:
        """Raises HttpError with 404 or 405. The parameters are not to be changed."""
        found = self._found.get((method, raw_path))
        if found is None:
            found = self._match(method, raw_path)
            if len(raw_path) <= _KEPT_PATH_BYTES_MAX:
                if len(self._found) >= _KEPT_PATHS_MAX:
                    self._found.clear()
                self._found[method, raw_path] = found
        return found

    def _match(self, method: str, raw_path: bytes) -> Match:
        segments = _segments(raw_path)
        found: list[str] = []
        node = _find(self._root, segments, 0, found)
        if node is None:
            raise not_found()
        route = node.methods.get("GET" if method == "HEAD" else method)
        if route is None:
            raise method_not_allowed(_allowed(node))
        return Match(route, _parameters(route, found))

    def allowed(self, raw_path: bytes) -> list[str]:
        """The methods of a path, for OPTIONS; raises HttpError with 404."""
        node = _find(self._root, _segments(raw_path), 0, [])
        if node is None:
            raise not_found()
        return _allowed(node)

    def _add(self, route: Route) -> None:
        node = self._root
        for segment in _segments(route.path.encode()):
            if _PARAMETER.fullmatch(segment):
                if node.parameter is None:
                    node.parameter = _Node()
                node = node.parameter
            else:
                node = node.literals.setdefault(segment, _Node())
        if route.method in node.methods:
            raise ValueError(f"two routes for {route.method} {route.path}")
        node.methods[route.method] = route


def _allowed(node: _Node) -> list[str]:
    methods = set(node.methods) | {"OPTIONS"}
    if "GET" in methods:
        methods.add("HEAD")
    return sorted(methods)


def _segments(raw_path: bytes) -> list[str]:
    segments = raw_path.decode("latin-1").split("/")[1:]
    if segments and not segments[-1]:
        segments.pop()
    if len(segments) > SEGMENTS_MAX:
        raise not_found()
    return segments


def _find(node: _Node, segments: list[str], position: int, found: list[str]) -> _Node | None:
    """The node of a path; the texts of its parameters are appended to `found`.

    The depth is that of the table, not of the path that a client sends.
    """
    if position == len(segments):
        return node if node.methods else None
    segment = segments[position]
    literal = node.literals.get(segment)
    if literal is None and "%" in segment:
        literal = node.literals.get(_decoded(segment))
    if literal is not None:
        end = _find(literal, segments, position + 1, found)
        if end is not None:
            return end
    if node.parameter is None or not segment:
        return None
    count = len(found)
    found.append(segment)
    end = _find(node.parameter, segments, position + 1, found)
    if end is None:
        del found[count:]
    return end


def _parameters(route: Route, texts: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for (name, kind), text in zip(route.path_parameters, texts, strict=True):
        decoded = _decoded(text)
        values[name] = decoded if kind is None else parse_number(decoded, kind)
    return values


def parse_number(text: str, kind: str) -> int:
    """A Java int or long; raises HttpError with 404."""
    if not _NUMBER.fullmatch(text):
        raise not_found()
    value, limit = int(text), 1 << _BITS[kind]
    if not -limit <= value < limit:
        raise not_found()
    return value


def _decoded(segment: str) -> str:
    """Raises HttpError for what is not UTF-8."""
    try:
        return unquote_to_bytes(segment.encode("latin-1")).decode()
    except UnicodeDecodeError:
        raise HttpError(400, "The path is not valid UTF-8 after percent-decoding.") from None
