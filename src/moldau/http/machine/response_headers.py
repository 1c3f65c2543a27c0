"""Headers that every answer gets, by the rules of `response.http.headers.config`.

A rule is `[action] [name]:[value]`, and stands in quotes where it has a comma of its own:

| action | effect |
|---|---|
| `set` | the header has this value |
| `add` | the answer has this header, too |
| `setDate`, `addDate` | the same; the value is added, in milliseconds, to the current time |
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

__all__ = ["HeaderRule", "parse_header_rules", "with_header_rules"]

_ACTIONS: Final = {each.lower(): each for each in ("set", "add", "setDate", "addDate")}

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = (
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
)  # fmt: skip

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class HeaderRule:
    action: str
    name: str
    value: str


def parse_header_rules(text: str) -> tuple[HeaderRule, ...]:
    """Raises ValueError, with Kafka's messages."""
    if not text.strip():
        return ()
    (parts,) = csv.reader([text], skipinitialspace=True)
    return tuple(_parse_rule(each) for each in parts)


def _parse_rule(text: str) -> HeaderRule:
    words = text.split(maxsplit=1)
    if len(words) != 2:
        raise ValueError(
            f"Invalid format of header config '{text}'. "
            "Expected: '[action] [header name]:[header value]'"
        )
    action = _ACTIONS.get(words[0].lower())
    if action is None:
        raise ValueError(
            f"Invalid header config action: '{words[0]}'. "
            f"Expected one of [{', '.join(_ACTIONS.values())}]"
        )
    name, separator, value = words[1].partition(":")
    if not separator or not name.strip():
        raise ValueError(
            f"Invalid format of header name and header value pair '{words[1]}'. "
            "Expected: '[header name]:[header value]'"
        )
    name, value = name.strip(), value.strip()
    if any(each.isspace() for each in name):
        raise ValueError(
            f"Invalid header name '{name}'. The '[header name]' cannot contain whitespace"
        )
    if not (name + value).isprintable() or not (name + value).isascii():
        raise ValueError(f"Invalid header config '{text}'.")
    if action.endswith("Date") and not value.lstrip("-").isdigit():
        raise ValueError(f"Invalid header config '{text}': {value!r} are no milliseconds")
    return HeaderRule(action, name, value)


def _date(moment: datetime) -> str:
    """As HTTP writes it, whatever the locale is."""
    return (
        f"{_DAYS[moment.weekday()]}, {moment.day:02} {_MONTHS[moment.month - 1]} {moment.year:04} "
        f"{moment:%H:%M:%S} GMT"
    )


def with_header_rules(rules: Sequence[HeaderRule], headers: Headers, now_s: float) -> Headers:
    """The headers of an answer, changed by all rules in their order."""
    found = list(headers)
    for rule in rules:
        name = rule.name.lower().encode()
        value = rule.value
        if rule.action.endswith("Date"):
            value = _date(_EPOCH + timedelta(seconds=now_s, milliseconds=int(value)))
        if rule.action.startswith("set"):
            found = [each for each in found if each[0].lower() != name]
        found.append((name, value.encode()))
    return found
