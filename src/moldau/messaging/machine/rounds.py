"""Rounds: find what a broker refuses among things that it takes or refuses together.

Acknowledgements of one partition are taken all or none. What is refused is asked again by halves,
so one that is refused takes as many more rounds as its number has bits, twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

__all__ = ["Rounds"]

T = TypeVar("T")


class Rounds(Generic[T]):
    def __init__(self, groups: Mapping[int, Iterable[T]]) -> None:
        self._waiting = {key: [list(group)] for key, group in groups.items()}

    def next(self) -> dict[int, list[T]]:
        """What to ask about each partition now; nothing when all is answered."""
        return {key: waiting.pop() for key, waiting in self._waiting.items() if waiting}

    def refused(self, key: int, group: list[T]) -> T | None:
        """The one that is refused, or None if it must be looked for."""
        if len(group) == 1:
            return group[0]
        middle = len(group) // 2
        self._waiting[key] += [each for each in (group[middle:], group[:middle]) if each]
        return None
