"""Reads Java .properties text: comments, continuation lines, escapes and three separators.

What `dump_properties` writes is read back as it was, here and by Java.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moldau.config.errors import ConfigError

__all__ = ["dump_properties", "load_properties"]

_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"})
_ESCAPED_IN_KEYS = _ESCAPED | str.maketrans({c: f"\\{c}" for c in "=: #!"})


def load_properties(text: str) -> dict[str, str]:
    """Keys and values in order; a key given twice keeps its last value, as in Java."""
    properties: dict[str, str] = {}
    for number, line in _logical_lines(text):
        key, value = _split(line)
        properties[_unescape(key, number)] = _unescape(value, number)
    return properties


def dump_properties(properties: Mapping[str, str]) -> str:
    """One line for every key, in order."""
    lines = []
    for key, value in properties.items():
        escaped = value.translate(_ESCAPED)
        # Blanks before a value do not count, unless the first is escaped.
        blank = "\\" if escaped.startswith(" ") else ""
        lines.append(f"{key.translate(_ESCAPED_IN_KEYS)}={blank}{escaped}\n")
    return "".join(lines)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines joined over their continuations, with the number of their first line."""
    # Java ends lines at \n, \r or \r\n only; splitlines would also split at form feeds.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    pending: str | None = None
    start = 0
    for number, raw in enumerate(lines, 1):
        line = raw.lstrip(_BLANK)
        if pending is None:
            if not line or line[0] in "#!":
                continue
            start = number
        else:
            line = pending + line
        if _ends_in_continuation(line):
            pending = line[:-1]
            continue
        pending = None
        yield start, line
    if pending is not None:
        yield start, pending


def _ends_in_continuation(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    """At the first unescaped `=`, `:` or blank; blanks around the separator do not count."""
    position, length = 0, len(line)
    while position < length and line[position] not in "=: \t\f":
        position += 2 if line[position] == "\\" else 1
    key = line[:position]
    rest = line[position:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return key, rest


def _unescape(text: str, line_number: int) -> str:
    if "\\" not in text:
        return text
    parts: list[str] = []
    position, length = 0, len(text)
    while position < length:
        character = text[position]
        position += 1
        if character != "\\" or position == length:
            # A lone backslash at the very end vanishes, as it does in Java.
            if character != "\\":
                parts.append(character)
            continue
        escaped = text[position]
        position += 1
        if escaped == "u":
            digits = text[position : position + 4]
            if len(digits) < 4 or not all(c in "0123456789abcdefABCDEF" for c in digits):
                raise ConfigError(
                    f"Malformed \\uxxxx escape in line {line_number} of the properties: "
                    f"four hexadecimal digits must follow \\u, found {digits!r}"
                )
            parts.append(chr(int(digits, 16)))
            position += 4
        else:
            parts.append(_ESCAPES.get(escaped, escaped))
    joined = "".join(parts)
    # Two \u escapes may form one character outside the basic plane.
    return joined.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
