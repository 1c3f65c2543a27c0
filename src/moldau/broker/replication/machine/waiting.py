"""What waits for a partition: for an offset to be reached, or for any change.

Invariants: a waiter is called once and is removed before it is called, so that it may register
again immediately.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeAlias, TypeVar

from moldau.wire.errors import ErrorCode

W = TypeVar("W")

CommitWaiter: TypeAlias = Callable[[ErrorCode], None]
#: Called with an error and the low watermark.
DeleteWaiter: TypeAlias = Callable[[ErrorCode, int], None]


class Watcher(Protocol):
    """Called when a partition changes."""

    def on_partition_changed(self) -> None: ...


class OffsetWaiters(Generic[W]):
    """Waiters, each for its own offset."""

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
        """Remove and return those that waited for `offset` or less."""
        taken = [waiter for waiter, wanted in self._wanted.items() if wanted <= offset]
        for waiter in taken:
            del self._wanted[waiter]
        return taken

    def take_all(self) -> list[W]:
        taken, self._wanted = list(self._wanted), {}
        return taken


class PartitionWaiters:
    """Everything that waits for one partition."""

    __slots__ = ("appends", "changes", "commits", "deletions")

    def __init__(self) -> None:
        self.commits: OffsetWaiters[CommitWaiter] = OffsetWaiters()
        """Produce requests with acks=all."""
        self.deletions: OffsetWaiters[DeleteWaiter] = OffsetWaiters()
        """DeleteRecords requests."""
        self.changes: dict[Watcher, None] = {}
        """Fetches."""
        self.appends: dict[Watcher, None] = {}
        """Fetches that may read uncommitted records: those of followers."""

    def notify_changed(self) -> None:
        watchers, self.changes = self.changes, {}
        for watcher in watchers:
            watcher.on_partition_changed()

    def notify_appended(self) -> None:
        watchers, self.appends = self.appends, {}
        for watcher in watchers:
            watcher.on_partition_changed()

    def notify_committed(self, high_watermark: int, error: ErrorCode) -> None:
        for waiter in self.commits.take(high_watermark):
            waiter(error)

    def notify_deleted(self, low_watermark: int) -> None:
        for waiter in self.deletions.take(low_watermark):
            waiter(ErrorCode.NONE, low_watermark)

    def fail_all(self, error: ErrorCode) -> None:
        """This node no longer leads: nothing that waits can be answered here."""
        for waiter in self.commits.take_all():
            waiter(error)
        for deletion in self.deletions.take_all():
            deletion(error, -1)
        self.notify_changed()
        self.notify_appended()
