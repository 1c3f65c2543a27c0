"""Versions of plug-ins and ranges of them, as Connect has them from Maven (KIP-891).

`1.2` is exactly that version, `[1.0,2.0)` a range, `[1,2),[3,)` two; `latest` or none is any.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Version", "VersionError", "VersionRange", "parse_range"]

_PART = re.compile(r"\d+|[a-z]+")
_QUALIFIERS = ("alpha", "beta", "milestone", "rc", "snapshot", "", "sp")
_SHORT = {"a": "alpha", "b": "beta", "m": "milestone", "cr": "rc", "c": "rc"}
_SAME_AS_NONE = ("ga", "final", "release")
_RELEASE = (1, _QUALIFIERS.index(""), "")


class VersionError(ValueError):
    """What is wrong with a range."""


@dataclass(frozen=True, slots=True)
class Version:
    """Compared part by part: numbers as numbers, `rc` before the release, other words after it."""

    text: str

    @property
    def _key(self) -> tuple[tuple[int, int, str], ...]:
        parts: list[tuple[int, int, str]] = []
        for part in (*_PART.findall(self.text.lower()), "release"):
            if not part.isdigit():
                # Zeros before a word or the end say nothing: 1.0-rc1 is 1-rc1.
                while parts and parts[-1] in ((2, 0, ""), _RELEASE):
                    parts.pop()
            parts.append(_weight(part))
        # The end is a release: what comes after it decides.
        return tuple(parts)

    def __lt__(self, other: Version) -> bool:
        return self._key < other._key

    def __le__(self, other: Version) -> bool:
        return self._key <= other._key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        return self.text


def _weight(part: str) -> tuple[int, int, str]:
    if part.isdigit():
        return (2, int(part), "")
    word = _SHORT.get(part, part)
    if word in _SAME_AS_NONE:
        return _RELEASE
    if word in _QUALIFIERS:
        return (1, _QUALIFIERS.index(word), "")
    return (1, len(_QUALIFIERS), word)


@dataclass(frozen=True, slots=True)
class _Between:
    least: Version | None
    most: Version | None
    with_least: bool
    with_most: bool

    def holds(self, version: Version) -> bool:
        if self.least is not None and not (
            self.least < version or (self.with_least and self.least == version)
        ):
            return False
        return self.most is None or (
            version < self.most or (self.with_most and self.most == version)
        )

    def __str__(self) -> str:
        least, most = self.least or "", self.most or ""
        return f"{'[' if self.with_least else '('}{least},{most}{']' if self.with_most else ')'}"


@dataclass(frozen=True, slots=True)
class VersionRange:
    parts: tuple[_Between, ...]

    def holds(self, version: Version) -> bool:
        return any(each.holds(version) for each in self.parts)

    def __str__(self) -> str:
        return ",".join(map(str, self.parts))


def parse_range(text: str | None) -> VersionRange | None:
    """None for any version; raises VersionError."""
    if text is None or text == "latest":
        return None
    text = text.strip()
    if not text:
        raise VersionError("a version may not be empty: name one, or a range such as [1.0,2.0)")
    if not text.startswith(("[", "(")):
        if "," in text or text.endswith(("]", ")")):
            raise VersionError(f"Single version must be surrounded by []: {text}")
        text = f"[{text}]"
    parts: list[_Between] = []
    rest = text
    while rest.startswith(("[", "(")):
        end = min((at for at in (rest.find("]"), rest.find(")")) if at >= 0), default=-1)
        if end < 0:
            raise VersionError(f"Unbounded range: {text}")
        parts.append(_between(rest[: end + 1]))
        if len(parts) > 1 and not _follows(parts[-2], parts[-1]):
            raise VersionError(f"Ranges overlap: {text}")
        rest = rest[end + 1 :].strip().removeprefix(",").strip()
    if rest:
        raise VersionError(f"Only fully-qualified sets allowed in multiple set scenario: {text}")
    return VersionRange(tuple(parts))


def _between(text: str) -> _Between:
    with_least, with_most = text[0] == "[", text[-1] == "]"
    inner = text[1:-1].strip()
    least, comma, most = (each.strip() for each in inner.partition(","))
    if not comma:
        if not (with_least and with_most):
            raise VersionError(f"Single version must be surrounded by []: {text}")
        most = least
    if comma and least == most:
        raise VersionError(f"Range cannot have identical boundaries: {text}")
    low, high = Version(least) if least else None, Version(most) if most else None
    if low is not None and high is not None and high < low:
        raise VersionError(f"Range defies version ordering: {text}")
    return _Between(low, high, with_least, with_most)


def _follows(one: _Between, other: _Between) -> bool:
    if one.most is None or other.least is None:
        return False
    return one.most < other.least or (
        one.most == other.least and not (one.with_most and other.with_least)
    )
