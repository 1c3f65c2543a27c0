"""Checks on one parsed value. Each says in its `allowed` text what it accepts."""

from __future__ import annotations

from typing import Any, Protocol

from moldau.config.errors import ConfigError
from moldau.config.values import render_double

__all__ = [
    "AnyOf",
    "ListOf",
    "NonEmpty",
    "NonNull",
    "OneOf",
    "Range",
    "Validator",
]


class Validator(Protocol):
    @property
    def allowed(self) -> str:
        """What is accepted, in Kafka's notation where it has one."""

    def check(self, key: str, value: Any) -> None:
        """Raise ConfigError unless `value` may be used."""


def _number(value: float) -> str:
    if isinstance(value, int) or value == int(value):
        return str(int(value))
    return render_double(value)


class Range:
    """A number between two bounds, both inclusive; None leaves that side open."""

    __slots__ = ("least", "most")

    def __init__(self, least: float | None = None, most: float | None = None) -> None:
        self.least = least
        self.most = most

    @property
    def allowed(self) -> str:
        least = "..." if self.least is None else f"{_number(self.least)},..."
        return f"[{least}]" if self.most is None else f"[{least},{_number(self.most)}]"

    def check(self, key: str, value: Any) -> None:
        if value is None:
            raise ConfigError.invalid(key, value, "Value must be non-null")
        # Negated so that NaN, which compares false with everything, is refused.
        if self.least is not None and not value >= self.least:
            raise ConfigError.invalid(key, value, f"Value must be at least {_number(self.least)}")
        if self.most is not None and not value <= self.most:
            raise ConfigError.invalid(
                key, value, f"Value must be no more than {_number(self.most)}"
            )


class OneOf:
    """One of a few words."""

    __slots__ = ("_folded", "ignore_case", "words")

    def __init__(self, words: tuple[str, ...], *, ignore_case: bool = False) -> None:
        self.words = words
        self.ignore_case = ignore_case
        self._folded = frozenset(w.upper() if ignore_case else w for w in words)

    @property
    def allowed(self) -> str:
        prefix = "(case insensitive) " if self.ignore_case else ""
        return f"{prefix}[{', '.join(self.words)}]"

    def check(self, key: str, value: Any) -> None:
        probe = value.upper() if self.ignore_case and isinstance(value, str) else value
        if probe not in self._folded:
            case = " (case insensitive)" if self.ignore_case else ""
            words = ", ".join(self.words)
            raise ConfigError.invalid(key, value, f"String must be one of{case}: {words}")


class NonNull:
    """Any text, but a text."""

    __slots__ = ()
    allowed = "non-null string"

    def check(self, key: str, value: Any) -> None:
        if value is None:
            raise ConfigError.invalid(key, value, "entry must be non null")


class NonEmpty:
    """A text of at least one character; None means "not set" and passes."""

    __slots__ = ()
    allowed = "non-empty string"

    def check(self, key: str, value: Any) -> None:
        if value is not None and not value:
            raise ConfigError.invalid(key, value, "String must be non-empty")


class ListOf:
    """A list without empty entries, of given words or (no words) of any.

    Repeated entries never arrive here: parsing keeps the first of each (KIP-1161).
    """

    __slots__ = ("empty_allowed", "null_allowed", "words")

    def __init__(
        self, words: tuple[str, ...] = (), *, empty_allowed: bool = True, null_allowed: bool = False
    ) -> None:
        self.words = words
        self.empty_allowed = empty_allowed
        self.null_allowed = null_allowed

    @property
    def allowed(self) -> str:
        return f"[{', '.join(self.words)}]" if self.words else ""

    def check(self, key: str, value: Any) -> None:
        if value is None:
            if self.null_allowed:
                return
            raise ConfigError.invalid(key, value, "values must not be null")
        shown = ",".join(value)
        if not value and not self.empty_allowed:
            allowed = self.allowed or "any non-empty value"
            raise ConfigError(
                f"Configuration '{key}' must not be empty. Valid values include: {allowed}",
                key=key,
                value=shown,
            )
        for entry in value:
            if self.words and entry not in self.words:
                words = ", ".join(self.words)
                raise ConfigError.invalid(key, entry, f"String must be one of: {words}")
            if not entry:
                raise ConfigError.invalid(key, shown, "values must not be empty")


class AnyOf:
    """A range or one further number, as for compression levels: `[1,...,9] or -1`."""

    __slots__ = ("extra", "range")

    def __init__(self, range_: Range, extra: int) -> None:
        self.range = range_
        self.extra = extra

    @property
    def allowed(self) -> str:
        return f"{self.range.allowed} or {self.extra}"

    def check(self, key: str, value: Any) -> None:
        if value == self.extra:
            return
        try:
            self.range.check(key, value)
        except ConfigError:
            least, most = (_number(bound or 0) for bound in (self.range.least, self.range.most))
            raise ConfigError.invalid(
                key, value, f"Value must be between {least} and {most} or equal to {self.extra}"
            ) from None
