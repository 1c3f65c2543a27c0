"""Why internal topics could not be created, remembered for the heartbeats that ask next.

What always holds: at most `ERRORS_MAX` are kept, none longer than its time.
"""

from __future__ import annotations

from collections.abc import Iterable

ERRORS_MAX = 1_000
_SHOWN_MAX = 3


class CreationErrors:
    def __init__(self) -> None:
        self._errors: dict[str, tuple[int, str]] = {}

    def note(self, topic: str, message: str, expires_at_ms: int) -> None:
        self._errors.pop(topic, None)
        self._errors[topic] = (expires_at_ms, message)
        if len(self._errors) > ERRORS_MAX:
            del self._errors[min(self._errors, key=self._errors.__getitem__)]

    def of(self, topics: Iterable[str], now_ms: int) -> dict[str, str]:
        """What went wrong with the topics; those should not be tried again yet."""
        found = {}
        for topic in topics:
            expires_at_ms, message = self._errors.get(topic, (now_ms, ""))
            if expires_at_ms > now_ms:
                found[topic] = message
            else:
                self._errors.pop(topic, None)
        return found


def shown(errors: dict[str, str]) -> str:
    listed = ", ".join(
        f"{topic} ({message})" for topic, message in list(errors.items())[:_SHOWN_MAX]
    )
    more = len(errors) - _SHOWN_MAX
    return f"{listed} and {more} more" if more > 0 else listed
