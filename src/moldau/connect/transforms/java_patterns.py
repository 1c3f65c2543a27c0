"""Java's regular expressions and their replacements, as far as Python's differ (pure)."""

from __future__ import annotations

import re

from moldau.connect.api.errors import ConfigError

_NAMED_GROUP = re.compile(r"\(\?<([A-Za-z][A-Za-z0-9]*)>")
_POSIX = {
    r"\p{Alpha}": "[a-zA-Z]",
    r"\p{Digit}": "[0-9]",
    r"\p{Alnum}": "[a-zA-Z0-9]",
    r"\p{Upper}": "[A-Z]",
    r"\p{Lower}": "[a-z]",
    r"\p{Punct}": r"[!-/:-@\[-`{-~]",
    r"\p{Space}": r"[ \t\n\x0b\f\r]",
}


_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|$)", re.DOTALL)
_BOTH = re.compile(r"\[([^\[\]]+)&&(\[[^\[\]]+\]|[^\[\]]+)\]")


def _as_class(text: str) -> str:
    return text if text.startswith("[") else f"[{text}]"


def compiled(key: str, pattern: str) -> re.Pattern[str]:
    """The pattern; ConfigError if it is none."""
    text = _QUOTED.sub(lambda quoted: re.escape(quoted[1]), pattern)
    # A class that is two at once: what the second one has, where the first one has it, too.
    text = _BOTH.sub(lambda both: f"(?:(?=[{both[1]}]){_as_class(both[2])})", text)
    text = _NAMED_GROUP.sub(r"(?P<\1>", text).replace(r"\z", r"\Z")
    text = re.sub(r"\\k<([A-Za-z][A-Za-z0-9]*)>", r"(?P=\1)", text)
    for java, python in _POSIX.items():
        text = text.replace(java, python)
    try:
        return re.compile(text, re.ASCII)
    except re.error as error:
        raise ConfigError.invalid(key, pattern, f"Invalid regex: {error}") from None


class JavaRegex:
    """A validator for patterns."""

    allowed = "valid regex"

    def __init__(self, *, non_empty: bool = False) -> None:
        self._non_empty = non_empty

    def check(self, key: str, value: str) -> None:
        if self._non_empty and not value:
            raise ConfigError.invalid(key, value, "String must be non-empty")
        compiled(key, value)


def expand(match: re.Match[str], replacement: str) -> str:
    """A replacement text with `$1`, `${name}` and backslashes, by Java's rules."""
    out = []
    position = 0
    while position < len(replacement):
        character = replacement[position]
        if character == "\\":
            position += 1
            if position == len(replacement):
                raise ValueError("character to be escaped is missing")
            out.append(replacement[position])
            position += 1
        elif character == "$":
            group, position = _group(match, replacement, position + 1)
            out.append(match.group(group) or "")
        else:
            out.append(character)
            position += 1
    return "".join(out)


def _group(match: re.Match[str], text: str, position: int) -> tuple[str | int, int]:
    if text.startswith("{", position):
        end = text.find("}", position)
        name = text[position + 1 : end] if end > 0 else ""
        if name not in match.re.groupindex:
            raise ValueError(f"No group with name {{{name}}}")
        return name, end + 1
    if not text[position : position + 1].isdigit():
        raise ValueError("Illegal group reference")
    number = int(text[position])
    if number > match.re.groups:
        raise ValueError(f"No group {number}")
    position += 1
    # Further digits belong to the reference as long as there is such a group.
    while position < len(text) and text[position].isdigit():
        longer = number * 10 + int(text[position])
        if longer > match.re.groups:
            break
        number = longer
        position += 1
    return number, position
