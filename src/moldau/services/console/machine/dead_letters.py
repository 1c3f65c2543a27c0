"""Dead letters: why records failed, by Connect's headers, grouped; and what is sent back."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

__all__ = [
    "Reason",
    "is_dead_letter_name",
    "marker_key",
    "original_topic",
    "reason_of",
    "redriven_headers",
]

Headers = Iterable[tuple[str, bytes | None]]
PREFIXES: Final = ("__connect.errors.", "__streams.errors.")
COUNT: Final = "__moldau.redrive.count"
_NAMES: Final = re.compile(r"dlq|dead[-_.]?letter|[-_.]dead$|[-_.]errors?$|[-_.]failed$", re.I)
_NUMBERS: Final = re.compile(r"\d+")
MESSAGE_MAX: Final = 300


class Reason(NamedTuple):
    """Records with the same reason differ only in numbers of the message."""

    error: str
    message: str
    stage: str
    source: str
    topic: str

    def shown(self) -> dict[str, Any]:
        return self._asdict()


def is_dead_letter_name(topic: str) -> bool:
    return _NAMES.search(topic) is not None


def _texts(headers: Headers) -> dict[str, str]:
    found = {}
    for name, value in headers:
        for prefix in PREFIXES:
            if name.startswith(prefix):
                found[name.removeprefix(prefix)] = (value or b"").decode(errors="replace")
    return found


def reason_of(headers: Headers) -> Reason | None:
    """None for a record that has no header about an error."""
    texts = _texts(headers)
    if not texts:
        return None
    message = texts.get("exception.message", "")[:MESSAGE_MAX]
    return Reason(
        texts.get("exception.class.name", texts.get("exception", "")),
        _NUMBERS.sub("#", message),
        texts.get("stage", ""),
        texts.get("connector.name", texts.get("application.id", "")),
        texts.get("topic", ""),
    )


def original_topic(headers: Headers) -> str:
    return _texts(headers).get("topic", "")


def redriven_headers(headers: Headers) -> list[tuple[str, bytes | None]]:
    """Without those about the error; a counter says how often the record was sent back."""
    kept: list[tuple[str, bytes | None]] = []
    count = 0
    for name, value in headers:
        if name == COUNT:
            count = int(value) if value is not None and value.isdigit() else 0
        elif not name.startswith(PREFIXES):
            kept.append((name, value))
    return [*kept, (COUNT, str(count + 1).encode())]


def marker_key(topic: str, partition: int, offset: int) -> bytes:
    """Says that a record has been sent back."""
    return f"{topic}|{partition}|{offset}".encode()
