"""A fetch of a client with a quota: what it may not have yet, it does not get.

As in Kafka a response that would exceed the quota is answered empty and is not counted. The session
stays as it was, so the next fetch returns the same records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from moldau.broker.fetch_sessions.delayed_fetch import Fetch
from moldau.broker.fetch_sessions.reader import Reading
from moldau.broker.fetch_sessions.session import WaitingFetch
from moldau.broker.fetch_sessions.slot import FetchSlot
from moldau.broker.replication.machine.fetch_data import PartitionData
from moldau.wire.constants import Buffer

#: Puts a limit around a fetch; the number is its session's.
Limiter: TypeAlias = Callable[[Fetch, int], Fetch]
#: Takes the size of the records and the time it took to read them; the result is the throttle time
#: in ms, or 0 if they may be sent.
Admit: TypeAlias = Callable[[int, int], int]


class LimitedFetch:
    """Implements `Fetch` around another one."""

    __slots__ = ("_admit", "_cpu_ns", "_fetch", "_refuse", "_spent_ns", "_started_ns")

    def __init__(
        self,
        fetch: Fetch,
        admit: Admit,
        refuse: Callable[[int], list[Buffer]],
        cpu_ns: Callable[[], int],
        started_ns: int,
    ) -> None:
        """`refuse` makes an empty response with a throttle time."""
        self._fetch = fetch
        self._admit = admit
        self._refuse = refuse
        self._cpu_ns = cpu_ns
        self._started_ns = started_ns
        self._spent_ns: int | None = None

    @property
    def slots(self) -> Iterable[FetchSlot]:
        return self._fetch.slots

    @property
    def others_count(self) -> int:
        return self._fetch.others_count

    def wait(self, owner: WaitingFetch, reading: Reading) -> None:
        self._spent_ns = self._cpu_ns() - self._started_ns
        self._fetch.wait(owner, reading)

    def stop_waiting(self, owner: WaitingFetch) -> None:
        self._fetch.stop_waiting(owner)

    def answer(self, results: Sequence[tuple[FetchSlot, PartitionData]]) -> list[Buffer]:
        spent_ns = self._spent_ns
        if spent_ns is None:
            spent_ns = self._cpu_ns() - self._started_ns
        size = sum(data.records_size for _, data in results)
        throttle_ms = self._admit(size, spent_ns)
        if throttle_ms:
            return self._refuse(throttle_ms)
        return self._fetch.answer(results)
