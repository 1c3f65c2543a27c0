"""Texts that match a regular expression of literals, classes, groups, alternatives, repetitions."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

from moldau.connect.api.errors import ConfigError


class Randomness(Protocol):
    """The part of `random.Random` that is used."""

    def random(self) -> float: ...

    def randint(self, a: int, b: int) -> int: ...


Make: TypeAlias = Callable[[Randomness], str]

_CLASSES: Final = {
    "d": string.digits,
    "w": string.ascii_letters + string.digits + "_",
    "s": " ",
}
_ANY: Final = string.ascii_letters + string.digits
#: How often something is repeated at most where the pattern sets no bound.
REPEATS_MAX: Final = 10


def text_maker(pattern: str) -> Make:
    """ConfigError for a pattern that is wrong, or uses what is not listed above."""
    parser = _Parser(pattern)
    made = parser.alternatives()
    if parser.at < len(pattern):
        raise parser.wrong("unbalanced )")
    return made


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self.at = 0

    def wrong(self, problem: str) -> ConfigError:
        return ConfigError.invalid("regex", self._pattern, f"{problem} at {self.at}")

    def _peek(self) -> str:
        return self._pattern[self.at : self.at + 1]

    def _next(self) -> str:
        found = self._peek()
        if not found:
            raise self.wrong("it ends too early")
        self.at += 1
        return found

    def alternatives(self) -> Make:
        choices = [self._sequence()]
        while self._peek() == "|":
            self.at += 1
            choices.append(self._sequence())
        if len(choices) == 1:
            return choices[0]
        return lambda source: choices[source.randint(0, len(choices) - 1)](source)

    def _sequence(self) -> Make:
        parts: list[Make] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._repeated(self._atom()))
        return lambda source: "".join([part(source) for part in parts])

    def _atom(self) -> Make:
        match self._next():
            case "(":
                if self._pattern.startswith("?:", self.at):
                    self.at += 2
                inner = self.alternatives()
                if self._next() != ")":
                    raise self.wrong("a ( is not closed")
                return inner
            case "[":
                return _one_of(self._class())
            case ".":
                return _one_of(_ANY)
            case "\\":
                letter = self._next()
                return _one_of(_CLASSES.get(letter, letter))
            case "^" | "$":
                return lambda source: ""
            case letter:
                return lambda source: letter

    def _class(self) -> str:
        letters = ""
        excluded = self._peek() == "^"
        self.at += excluded
        while self._peek() != "]" or not letters:
            letter = self._next()
            if letter == "\\":
                escaped = self._next()
                letters += _CLASSES.get(escaped, escaped)
            elif self._peek() == "-" and self._pattern[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                last = self._next()
                letters += "".join(map(chr, range(ord(letter), ord(last) + 1)))
            else:
                letters += letter
        self.at += 1
        return "".join(sorted(set(_ANY) - set(letters))) if excluded else letters

    def _repeated(self, part: Make) -> Make:
        match self._peek():
            case "?":
                low, high = 0, 1
            case "*":
                low, high = 0, REPEATS_MAX
            case "+":
                low, high = 1, REPEATS_MAX
            case "{":
                low, high = self._bounds()
            case _:
                return part
        self.at += 1
        return lambda source: "".join([part(source) for _ in range(source.randint(low, high))])

    def _bounds(self) -> tuple[int, int]:
        end = self._pattern.find("}", self.at)
        low, comma, high = self._pattern[self.at + 1 : end].partition(",")
        if end < 0 or not low.isdigit() or not (high.isdigit() or not high):
            raise self.wrong("not a number of repetitions")
        self.at = end
        if not comma:
            return int(low), int(low)
        return int(low), int(high) if high else int(low) + REPEATS_MAX


def _one_of(letters: str) -> Make:
    return lambda source: letters[source.randint(0, len(letters) - 1)]
