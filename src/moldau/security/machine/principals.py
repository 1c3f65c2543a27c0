"""ssl.principal.mapping.rules: which user a certificate's distinguished name stands for.

Rules are tried in their order, the first that matches the whole name decides. The syntax is
Kafka's, with Java's replacement texts: `$1` is a group, a backslash takes away the meaning of the
next character, and a group that the pattern does not have is plain text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["InvalidRule", "NoMatchingRule", "PrincipalMapper"]

_RULE_TEXT = r"(DEFAULT)|RULE:((\\.|[^\\/])*)/((\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_RULE = re.compile(_RULE_TEXT)
_SPLITTER = re.compile(rf"\s*({_RULE_TEXT})\s*(,\s*|$)")


class InvalidRule(ValueError):
    """A rule that cannot be understood; the message quotes it."""


class NoMatchingRule(ValueError):
    """No rule matches a name; the message has both."""


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: str
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        match = re.fullmatch(self.pattern, name)
        if match is None:
            return None
        # Java replaces every occurrence; a pattern that can match nothing finds one more at the
        # end of the name.
        result = re.sub(self.pattern, self._expand, name)
        if self.case:
            return result.lower() if self.case == "L" else result.upper()
        return result

    def _expand(self, match: re.Match[str]) -> str:
        return _expanded(self.replacement, match)

    def __str__(self) -> str:
        return f"RULE:{self.pattern}/{self.replacement}{'/' if self.case else ''}{self.case}"


class _Default:
    def apply(self, name: str) -> str | None:
        return name

    def __str__(self) -> str:
        return "DEFAULT"


class PrincipalMapper:
    """The rules of one listener."""

    def __init__(self, rules: str) -> None:
        """Raises InvalidRule."""
        self._rules = [rule for text in _split(rules) if (rule := _parsed(text)) is not None]

    def name_of(self, distinguished_name: str) -> str:
        """The user's name; raises NoMatchingRule."""
        for rule in self._rules:
            name = rule.apply(distinguished_name)
            if name is not None:
                return name
        shown = ", ".join(map(str, self._rules))
        raise NoMatchingRule(f"No rules apply to {distinguished_name}, rules [{shown}]")


def _split(rules: str) -> list[str]:
    return [match[1] for match in _SPLITTER.finditer(rules.strip())]


def _parsed(text: str) -> _Rule | _Default | None:
    match = _RULE.match(text)
    end = 0 if match is None else match.end()
    if match is None or end != len(text):
        raise InvalidRule(f"Invalid rule: `{text}`, unmatched substring: `{text[end:]}`")
    if match[1] is not None:
        return _Default()
    if match[2] is None:
        return None
    try:
        re.compile(match[2])
    except re.error as error:
        raise InvalidRule(f"Invalid rule: `{text}`, not a regular expression: {error}") from None
    return _Rule(match[2], match[4], match[6])


def _expanded(replacement: str, match: re.Match[str]) -> str:
    """The replacement text with its groups."""
    parts: list[str] = []
    position = 0
    while position < len(replacement):
        character = replacement[position]
        position += 1
        if character == "\\" and position < len(replacement):
            parts.append(replacement[position])
            position += 1
        elif character == "$":
            text, position = _group_at(replacement, position, match)
            parts.append(text)
        else:
            parts.append(character)
    return "".join(parts)


def _group_at(replacement: str, position: int, match: re.Match[str]) -> tuple[str, int]:
    """What `$` at the place before stands for, and where it ends: as many digits as make a group
    that exists, at least one."""
    end = position
    group = -1
    while end < len(replacement) and replacement[end].isascii() and replacement[end].isdigit():
        longer = int(replacement[position : end + 1])
        if longer > match.re.groups:
            break
        group = longer
        end += 1
    if group < 0:
        return "$", position
    return match[group] or "", end
