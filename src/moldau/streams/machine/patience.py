"""How long something that fails is tried again."""

from __future__ import annotations


class Patience:
    """Begins with the first failure, and ends with a success."""

    def __init__(self, limit_ms: int) -> None:
        self._limit_ms = limit_ms
        self._until_ms: int | None = None

    def is_over(self, now_ms: int) -> bool:
        """It has failed now: whether it has failed for too long."""
        if self._until_ms is None:
            self._until_ms = now_ms + self._limit_ms
        return now_ms >= self._until_ms

    def end(self) -> None:
        """It has succeeded."""
        self._until_ms = None
