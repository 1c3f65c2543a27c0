"""Who waits for a partition: for an offset to be reached, or for any change.

What always holds: everybody is told once and is forgotten before being told, so that whoever is
told may ask again at once.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

W = TypeVar("W")


class Watcher(Protocol):
    """Somebody who wants to know when a partition changes."""

    def on_partition_changed(self) -> None: ...


class OffsetWaiters(Generic[W]):
    """Each waits for an offset of its own."""

    __slots__ = ("_wanted",)

    def __init__(self) -> None:
        self._wanted: dict[W, int] = {}

    def __len__(self) -> int:
        return len(self._wanted)

    def add(self, waiter: W, offset: int) -> None:
        self._wanted[waiter] = offset

    def forget(self, waiter: W) -> None:
        self._wanted.pop(waiter, None)

    def take(self, offset: int) -> list[W]:
        """Those for whom `offset` is enough."""
        taken = [waiter for waiter, wanted in self._wanted.items() if wanted <= offset]
        for waiter in taken:
            del self._wanted[waiter]
        return taken

    def take_all(self) -> list[W]:
        taken, self._wanted = list(self._wanted), {}
        return taken
