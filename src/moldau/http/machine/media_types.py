"""Content negotiation: which media type answers an Accept header, which a Content-Type matches.

A route offers types in its order of preference, each with an optional `qs` (quality of the source,
0 to 1), as JAX-RS has it: `application/json; qs=0.5`. The client's weight `q` decides first, then
`qs`, then the order. A type takes the weight of the most specific range that matches it, so that
`*/*, application/json;q=0` refuses JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

__all__ = ["MediaType", "negotiate", "parse_accept", "parse_media_type", "select_consumed"]

_RANGES_MAX: Final = 100


class MediaType(NamedTuple):
    """`weight` is q in a request, qs in a route; `parameters` has all others."""

    type: str
    subtype: str
    weight: float = 1.0
    parameters: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        return f"{self.type}/{self.subtype}"

    @property
    def specificity(self) -> int:
        return (self.type != "*") + (self.subtype != "*")

    def includes(self, other: MediaType) -> bool:
        return self.type in ("*", other.type) and self.subtype in ("*", other.subtype)


def parse_media_type(text: str) -> MediaType | None:
    """`type/subtype; name=value ...`; None when it is none."""
    name, *rest = text.split(";")
    main, slash, sub = name.strip().lower().partition("/")
    if not slash or not _is_token(main) or not _is_token(sub) or (main == "*" != sub):
        return None
    weight, parameters = 1.0, []
    for each in rest:
        key, _, value = each.partition("=")
        key, value = key.strip().lower(), value.strip().strip('"')
        if key in ("q", "qs"):
            try:
                weight = float(value)
            except ValueError:
                return None
            if not 0.0 <= weight <= 1.0:
                return None
        elif key:
            parameters.append((key, value))
    return MediaType(main, sub, weight, tuple(parameters))


@lru_cache(maxsize=256)
def parse_accept(header: str) -> tuple[MediaType, ...] | None:
    """The ranges of an Accept header; None if it is not a valid one."""
    parts = [part for part in header.split(",") if part.strip()]
    if len(parts) > _RANGES_MAX:
        return None
    ranges = []
    for part in parts:
        found = parse_media_type(part)
        if found is None:
            return None
        ranges.append(found)
    return tuple(ranges)


@lru_cache(maxsize=1024)
def negotiate(accept: str | None, produces: tuple[str, ...]) -> str | None:
    """The type to answer with, without its qs; None if the client accepts none of them."""
    offered = _offered(produces)
    ranges = parse_accept(accept) if accept else ()
    if ranges is None:
        return None
    if not ranges:
        ranges = (MediaType("*", "*"),)
    best: tuple[float, float] = (0.0, 0.0)
    chosen: str | None = None
    for each in offered:
        matching = [found for found in ranges if found.includes(each)]
        if not matching:
            continue
        weight = max(matching, key=lambda found: (found.specificity, found.weight)).weight
        rank = (weight, each.weight)
        if weight > 0.0 and rank > best:
            best, chosen = rank, each.name
    return chosen


def select_consumed(content_type: str | None, consumes: Sequence[str]) -> str | None:
    """Which of the consumed types a Content-Type header is; the first if there is no header.

    None if it is none of them, or text in another encoding than UTF-8.
    """
    if content_type is None or not content_type.strip():
        return consumes[0]
    return _selected(content_type, tuple(consumes))


@lru_cache(maxsize=1024)
def _selected(content_type: str, consumes: tuple[str, ...]) -> str | None:
    given = parse_media_type(content_type)
    if given is None or given.specificity < 2:
        return None
    if dict(given.parameters).get("charset", "utf-8").lower() not in ("utf-8", "utf8", "us-ascii"):
        return None
    for text in consumes:
        accepted = parse_media_type(text)
        if accepted is not None and accepted.includes(given):
            return given.name if accepted.specificity < 2 else accepted.name
    return None


@lru_cache(maxsize=256)
def _offered(produces: tuple[str, ...]) -> tuple[MediaType, ...]:
    return tuple(found for found in map(parse_media_type, produces) if found is not None)


def _is_token(text: str) -> bool:
    return bool(text) and all(c.isalnum() or c in "!#$&^_.+-*" for c in text) and text.isascii()
