"""What every store has, and how a topology describes one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from moldau.streams.records import Headers


class Log(Protocol):
    """Writes a changelog record."""

    def __call__(
        self, key: bytes, value: bytes | None, timestamp: int | None, headers: Headers = ()
    ) -> None:
        """`None` as value deletes; `None` as time is that of the input record."""


#: Counts a record that came too late for a store.
Drop = Callable[[], None]


def no_log(key: bytes, value: bytes | None, timestamp: int | None, headers: Headers = ()) -> None:
    """The log of a store without a changelog."""


def no_drop() -> None:
    """Counts nothing."""


class StateStore(Protocol):
    """What a custom store implements. A task owns its stores; nothing else changes them."""

    @property
    def name(self) -> str:
        """The name under which processors get it."""

    def flush(self) -> None:
        """Called at every commit, before the offsets are committed."""

    def close(self) -> None:
        """Called once, when the task closes."""

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Apply one record of the changelog. It must not be logged again."""


@dataclass(slots=True)
class StoreBuilder:
    """A store of a topology: a name, and how a task makes its own instance.

    `create` gets the log and a function that counts records that came too late.
    """

    name: str
    create: Callable[[Log, Drop], Any]
    logging: bool = True
    history_ms: int | None = None
    #: Processors that use it, in the order in which they were connected.
    users: list[str] = field(default_factory=list)

    @property
    def is_versioned(self) -> bool:
        return self.history_ms is not None
