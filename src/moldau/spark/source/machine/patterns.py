"""`subscribePattern`: a regular expression of Java's, matched against whole topic names.

Pure. Python's expressions are Java's where topics are concerned, but for a few spellings, which are
translated here; what is left and cannot be understood is refused when the query is made.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["PatternError", "TopicPattern"]

# Java's names for sets of characters. Topics' names are ASCII.
_SETS: Final = {
    "Lower": "a-z",
    "Ll": "a-z",
    "javaLowerCase": "a-z",
    "Upper": "A-Z",
    "Lu": "A-Z",
    "javaUpperCase": "A-Z",
    "Alpha": "a-zA-Z",
    "L": "a-zA-Z",
    "IsAlphabetic": "a-zA-Z",
    "Digit": "0-9",
    "N": "0-9",
    "Nd": "0-9",
    "IsDigit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": "._-",
    "P": "._-",
}
_TOKEN: Final = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|$)"
    r"|\\(?P<kind>[pP])\{(?P<set>\w+)\}"
    r"|\\(?P<letter>[pP])(?P<short>[LNP])"
    r"|\(\?<(?P<group>[a-zA-Z]\w*)>"
    r"|\\k<(?P<back>\w+)>"
    r"|\\z"
    r"|(?P<escaped>\\.)"
    r"|(?P<open>\[)|(?P<close>\])",
    re.DOTALL,
)


class PatternError(ValueError):
    """No expression that can be matched."""


class TopicPattern:
    """A pattern; equal to another of the same text."""

    __slots__ = ("_compiled", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self._compiled = re.compile(_translated(text))
        except re.error as error:
            raise PatternError(f"no regular expression: {error}") from None

    def matches(self, topic: str) -> bool:
        """Whether the whole name fits."""
        return self._compiled.fullmatch(topic) is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TopicPattern) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"TopicPattern({self.text!r})"

    def __reduce__(self) -> tuple[type[TopicPattern], tuple[str]]:
        return TopicPattern, (self.text,)


def _translated(text: str) -> str:
    depth = 0
    parts = []
    position = 0
    for found in _TOKEN.finditer(text):
        parts.append(_checked(text[position : found.start()], depth))
        position = found.end()
        if found["open"]:
            if depth:
                raise PatternError("a set of characters inside another, which is Java's alone")
            depth += 1
        elif found["close"]:
            depth = max(0, depth - 1)
        parts.append(_token(found, depth))
    parts.append(_checked(text[position:], depth))
    return "".join(parts)


def _checked(part: str, depth: int) -> str:
    if depth and "&&" in part:
        raise PatternError("&& in a set of characters, which is Java's alone")
    return part


def _token(found: re.Match[str], depth: int) -> str:
    if found["quoted"] is not None:
        return re.escape(found["quoted"])
    name = found["set"] or found["short"]
    if name is not None:
        members = _SETS.get(name)
        if members is None:
            raise PatternError(f"no set of characters is known as \\p{{{name}}}")
        negative = (found["kind"] or found["letter"]) == "P"
        if depth and negative:
            raise PatternError(f"\\P{{{name}}} inside a set of characters")
        return members if depth else f"[{'^' if negative else ''}{members}]"
    if found["group"] is not None:
        return f"(?P<{found['group']}>"
    if found["back"] is not None:
        return f"(?P={found['back']})"
    return "\\Z" if found[0] == "\\z" else found[0]
