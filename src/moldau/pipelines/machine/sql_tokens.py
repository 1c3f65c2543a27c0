"""The words and signs of a SQL text, with their positions."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Token", "tokens_of", "words_of"]

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
      | (?P<quoted>`(?:[^`]|``)*`)
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<number>\d[\w.]*)
      | (?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """`depth` counts the brackets around it."""

    kind: str
    text: str
    start: int
    end: int
    depth: int

    def says(self, word: str) -> bool:
        return self.kind == "word" and self.text.lower() == word


def tokens_of(sql: str) -> list[Token]:
    """All of the text; a quote that is not closed is a sign."""
    found: list[Token] = []
    depth = 0
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup or "sign"
        if match[0] in (")", "]"):
            depth -= 1
        found.append(Token(kind, match[0], match.start(), match.end(), depth))
        if match[0] in ("(", "["):
            depth += 1
    return found


def words_of(sql: str) -> list[Token]:
    """Without spaces and comments."""
    return [token for token in tokens_of(sql) if token.kind != "space"]
