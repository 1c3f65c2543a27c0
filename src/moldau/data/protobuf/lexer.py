"""The words of a `.proto` text, one after the other, without comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from moldau.data.schema_language import SchemaError

#: Longer texts are refused before they are read: a registry could not store them either.
TEXT_SIZE_MAX = 1024 * 1024


class TokenKind(Enum):
    NAME = "name"
    INTEGER = "integer"
    FLOAT = "float"
    STRING = "string"
    SYMBOL = "symbol"
    END = "end"


class Token(NamedTuple):
    kind: TokenKind
    text: str
    at: int


_WORDS = re.compile(
    r"""
    (?P<skipped>(?:[ \t\r\n\f\v]+|//[^\n]*|/\*.*?\*/)+)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<float>(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fF]?|[0-9]+[eE][+-]?[0-9]+[fF]?
       |[0-9]+[fF])
    |(?P<integer>0[xX][0-9a-fA-F]+|[0-9]+)
    |(?P<string>"[^"\\\n]*(?:\\.[^"\\\n]*)*"|'[^'\\\n]*(?:\\.[^'\\\n]*)*')
    |(?P<symbol>[{}()\[\]<>=;:,.\-]|/(?!\*))
    """,
    re.VERBOSE | re.DOTALL,
)
_KINDS = {kind.value: kind for kind in TokenKind}
_ESCAPE = re.compile(
    rb"\\(?:(?P<octal>[0-7]{1,3})|[xX](?P<hex>[0-9a-fA-F]{1,2})"
    rb"|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})|(?P<one>.))",
    re.DOTALL,
)
_ONE = {
    b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v",
    b"\\": b"\\", b"'": b"'", b'"': b'"', b"?": b"?",
}  # fmt: skip


class Tokens:
    """The tokens of a text, with one token of look-ahead."""

    def __init__(self, text: str) -> None:
        if len(text) > TEXT_SIZE_MAX:
            raise SchemaError(
                f"The text has {len(text)} characters. At most {TEXT_SIZE_MAX} are read: "
                "split the schema and use references."
            )
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise SchemaError(f"The text is not valid Unicode at character {error.start}") from None
        self._text = text
        self._tokens = self._scan()
        self.next = next(self._tokens)

    def take(self) -> Token:
        """The next token, after which there is another next one."""
        token = self.next
        if token.kind is not TokenKind.END:
            self.next = next(self._tokens)
        return token

    def error(self, message: str, at: int | None = None) -> SchemaError:
        """The error that says where it is: at the next token unless a place is given."""
        at = self.next.at if at is None else at
        line = self._text.count("\n", 0, at) + 1
        column = at - self._text.rfind("\n", 0, at)
        return SchemaError(f"Syntax error in :{line}:{column}: {message}")

    def bytes_of(self, token: Token) -> bytes:
        """What a quoted token stands for."""

        def replace(match: re.Match[bytes]) -> bytes:
            if octal := match["octal"]:
                return bytes([int(octal, 8) & 0xFF])
            if digits := match["hex"]:
                return bytes([int(digits, 16)])
            if digits := match["short"] or match["long"]:
                try:
                    return chr(int(digits, 16)).encode()
                except (ValueError, OverflowError, UnicodeEncodeError):
                    raise self.error(f"no such character: {digits.decode()}", token.at) from None
            if (one := match["one"]) not in _ONE:
                raise self.error("invalid escape sequence in a string", token.at)
            return _ONE[one]

        return _ESCAPE.sub(replace, token.text[1:-1].encode())

    def _scan(self) -> Iterator[Token]:
        text = self._text
        at = 1 if text.startswith("\ufeff") else 0
        match_at = _WORDS.match
        while at < len(text):
            match = match_at(text, at)
            if match is None:
                raise self.error(self._why_not(at), at)
            kind = match.lastgroup
            if kind != "skipped":
                yield Token(_KINDS[kind or "symbol"], match[0], at)
            at = match.end()
        yield Token(TokenKind.END, "", at)

    def _why_not(self, at: int) -> str:
        if self._text.startswith("/*", at):
            return "unterminated comment"
        if self._text[at] in "\"'":
            return "unterminated string"
        return f"unexpected character {self._text[at]!r}"
