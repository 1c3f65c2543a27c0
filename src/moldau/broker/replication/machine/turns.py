"""Partitions of a large change that wait for their turn; clients are served between the turns.

Creating the files of a log takes much longer than changing a leader, so a turn has few of those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from uuid import UUID

from moldau.times import ElapsedMs

OPENED_PER_TURN = 2
CHANGED_PER_TURN = 200
# On a slow disk a turn ends after this time: a broker that sends no heartbeats is fenced.
TURN_MS_MAX = 20


class Turns:
    def __init__(
        self,
        *,
        defer: Callable[[Callable[[], None]], object],
        elapsed_ms: Callable[[], ElapsedMs],
        host: Callable[[UUID, int], None],
    ) -> None:
        """`defer(work)` has work done in the loop's next turn; `host` hosts a partition."""
        self._defer = defer
        self._elapsed_ms = elapsed_ms
        self._host = host
        # What waits, and whether files have to be created for it.
        self._waiting: dict[tuple[UUID, int], bool] = {}
        self._is_due = False
        self._settled: list[Callable[[], object]] = []
        #: How many of those that wait need files.
        self.unopened_count = 0
        #: How many of them do not: a client need not wait for those.
        self.ready_count = 0

    def __iter__(self) -> Iterator[tuple[UUID, int]]:
        return iter(self._waiting)

    def __contains__(self, partition: tuple[UUID, int]) -> bool:
        return partition in self._waiting

    def add(self, partition: tuple[UUID, int], *, is_new: bool) -> None:
        """`is_new`: files have to be created for it."""
        if partition not in self._waiting:
            self._waiting[partition] = is_new
            self.unopened_count += is_new
            self.ready_count += not is_new
        self._go_on()

    def take_ahead(self, partition: tuple[UUID, int]) -> None:
        """A client asks for the partition: if it waits, and not for files, this is its turn."""
        if self._waiting.get(partition) is False:
            self._take(partition)

    def when_settled(self, on_settled: Callable[[], object]) -> None:
        """Call `on_settled` once none that waits needs files."""
        if self.unopened_count:
            self._settled.append(on_settled)
        else:
            on_settled()

    def _go_on(self) -> None:
        if self._waiting and not self._is_due:
            self._is_due = True
            self._defer(self._turn)

    def _turn(self) -> None:
        self._is_due = False
        opened = 0
        over_ms = self._elapsed_ms() + TURN_MS_MAX
        for partition in list(islice(self._waiting, CHANGED_PER_TURN)):
            if opened == OPENED_PER_TURN or self._elapsed_ms() > over_ms:
                break
            opened += self._take(partition)
        if not self.unopened_count:
            waiting, self._settled = self._settled, []
            for on_settled in waiting:
                on_settled()
        self._go_on()

    def _take(self, partition: tuple[UUID, int]) -> bool:
        """Host it; whether files had to be created."""
        is_new = self._waiting.pop(partition, None)
        if is_new is None:
            # What another partition's change has called has asked for it.
            return False
        self.unopened_count -= is_new
        self.ready_count -= not is_new
        self._host(*partition)
        return is_new
