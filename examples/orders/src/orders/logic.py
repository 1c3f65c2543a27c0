"""How a service's rules look to what runs them (`processing`).

A `Logic` is the state of one partition and the rules on it, without clock, network or broker.
`process` only decides: it answers a record with records to write and changes nothing. Among them
are those for the service's changelog, and `replay` of these is the only thing that changes the
state. It serves live records and the restart alike, so what is rebuilt is what was there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Protocol

__all__ = ["Incoming", "Logic", "Memory", "Outgoing"]

#: How long an order that is done is remembered, so that it is not done again. In event time.
REMEMBERED_MS: Final = 24 * 3600 * 1000
_FORGOTTEN_AT_ONCE_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class Incoming:
    topic: str
    key: str
    value: dict[str, Any] | None
    #: The event time: services hand on the timestamp of the order.
    timestamp: int


@dataclass(frozen=True, slots=True)
class Outgoing:
    topic: str
    key: str
    value: dict[str, Any] | None
    timestamp: int


class Logic(Protocol):
    def process(self, record: Incoming) -> list[Outgoing]:
        """What to write because of this record, in one transaction with having read it."""

    def replay(self, topic: str, key: str, value: dict[str, Any] | None) -> None:
        """A record of the changelog or of a table: the only way the state changes."""


class Memory:
    """What is known of each order; values have their event time under `at`.

    Orders that are done are given to be forgotten after a day, a few at a time, the first done
    first: so memory and changelog are bounded by a day's orders and by those that still wait, and
    a waiting request is never forgotten.
    """

    def __init__(
        self,
        is_done: Callable[[dict[str, Any]], bool],
        remembered_ms: int = REMEMBERED_MS,
    ) -> None:
        self._is_done = is_done
        self._remembered_ms = remembered_ms
        self._values: dict[str, dict[str, Any]] = {}
        self._done_at: OrderedDict[str, int] = OrderedDict()
        self._newest_ms = 0

    def get(self, key: str) -> dict[str, Any] | None:
        return self._values.get(key)

    def replay(self, key: str, value: dict[str, Any] | None) -> None:
        self._done_at.pop(key, None)
        if value is None:
            self._values.pop(key, None)
            return
        self._values[key] = value
        self._newest_ms = max(self._newest_ms, value["at"])
        if self._is_done(value):
            self._done_at[key] = value["at"]

    def outlived(self) -> Iterator[tuple[str, int]]:
        """Keys to forget now, with their times."""
        for key, at in islice(self._done_at.items(), _FORGOTTEN_AT_ONCE_MAX):
            if at >= self._newest_ms - self._remembered_ms:
                return
            yield key, at
