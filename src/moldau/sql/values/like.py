"""LIKE: % is any text, _ any character, an escape character takes their meaning away."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from moldau.sql.errors import KsqlException

#: Java's `.` matches everything but these; DOTALL's opposite in Python excludes only \n.
_ANY = "[^\n\r\u0085\u2028\u2029]"


@lru_cache(maxsize=1000)
def matcher(pattern: str, escape: str | None = None) -> Callable[[str], bool]:
    """Whether a text matches the whole pattern."""
    parts: list[str] = []
    escaped = False
    for letter in pattern:
        if escaped:
            parts.append(re.escape(letter))
            escaped = False
        elif letter == escape:
            escaped = True
        elif letter == "%":
            parts.append(_ANY + "*")
        elif letter == "_":
            parts.append(_ANY)
        else:
            parts.append(re.escape(letter))
    if escaped:
        raise KsqlException("LIKE pattern must not end with escape character")
    match = re.compile("".join(parts)).fullmatch
    return lambda text: match(text) is not None


def like(text: str, pattern: str, escape: str | None = None) -> bool:
    return matcher(pattern, escape)(text)
