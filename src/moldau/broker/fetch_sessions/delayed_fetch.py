"""A fetch that waits until min_bytes can be read, there is an error, or its timeout.

Invariants: it is answered exactly once, and while it waits every partition of the request is
watched. Changes of many partitions within one turn of the loop lead to one read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from moldau.broker.fetch_sessions.reader import FetchLimits, Reading, SlotReader
from moldau.broker.fetch_sessions.session import WaitingFetch
from moldau.broker.fetch_sessions.slot import FetchSlot
from moldau.broker.replication.machine.fetch_data import PartitionData
from moldau.broker.replication.machine.purgatory import Purgatory, Waiter
from moldau.wire.constants import Buffer


class Fetch(Protocol):
    """One request: which partitions it covers and how it is answered."""

    @property
    def slots(self) -> Iterable[FetchSlot]:
        """The partitions that have to be read now."""

    @property
    def others_count(self) -> int:
        """How many more it covers that have nothing new."""

    def wait(self, owner: WaitingFetch, reading: Reading) -> None:
        """Have `owner` called when any of the partitions changes."""

    def stop_waiting(self, owner: WaitingFetch) -> None: ...

    def answer(self, results: Sequence[tuple[FetchSlot, PartitionData]]) -> list[Buffer]: ...


class Answer(Protocol):
    """The part of an asyncio future that is needed here."""

    def done(self) -> bool: ...

    def set_result(self, result: Any, /) -> None: ...

    def set_exception(self, exception: Any, /) -> None: ...


class DelayedFetch(Waiter):
    """Waits for one fetch."""

    __slots__ = (
        "_answer",
        "_changed",
        "_counted",
        "_fetch",
        "_limits",
        "_purgatory",
        "_reader",
        "_reading",
        "_size",
    )

    def __init__(
        self,
        fetch: Fetch,
        limits: FetchLimits,
        reader: SlotReader,
        purgatory: Purgatory,
        answer: Answer,
    ) -> None:
        super().__init__()
        self._fetch = fetch
        self._limits = limits
        self._reader = reader
        self._purgatory = purgatory
        self._answer = answer
        self._changed: dict[FetchSlot, None] = {}
        # A session's slots outlive this fetch: the next one counts from nothing again.
        self._counted: list[FetchSlot] = []
        self._reading: Reading | None = None
        self._size = 0

    def start(self, reading: Reading, max_wait_ms: int) -> bool:
        """Begin to wait after a first read that was not enough; False if there is no place."""
        if not self._purgatory.admit(self, max_wait_ms):
            return False
        if reading.size:
            self._size = reading.size
            for slot, data in reading.results:
                slot.readable_size = data.records_size
                self._counted.append(slot)
        else:
            # Stays true until a partition changes, and holds no memory of the log.
            self._reading = reading
        self._fetch.wait(self, reading)
        return True

    def on_slot_changed(self, slot: FetchSlot) -> None:
        if not self._changed:
            self._purgatory.timers.call_soon(self._look_again)
        self._changed[slot] = None
        self._reading = None

    def on_timeout(self) -> None:
        self._finish(self._reading or self._read())

    def cancel(self) -> None:
        """The client has disconnected."""
        if self._purgatory.finish(self):
            self._stop_waiting()

    def supersede(self, reply: list[Buffer]) -> None:
        """End the wait with the given response."""
        if self._purgatory.finish(self):
            self._stop_waiting()
            if not self._answer.done():
                self._answer.set_result(reply)

    def _stop_waiting(self) -> None:
        self._fetch.stop_waiting(self)
        for slot in self._counted:
            slot.readable_size = 0

    def _look_again(self) -> None:
        changed, self._changed = self._changed, {}
        if self.finished:
            return
        if self._limits.min_bytes > 1 and not self._have_enough(changed):
            return
        reading = self._read()
        if reading.size >= self._limits.min_bytes or reading.urgent or self._lost(reading, changed):
            self._finish(reading)
        else:
            for slot in changed:
                slot.watch()

    def _have_enough(self, changed: dict[FetchSlot, None]) -> bool:
        """Count what the changed partitions have, without reading all the others."""
        limits = self._limits
        for slot in changed:
            data = self._reader.read_one(slot, limits, limits.max_bytes, True)
            if data.error_code or data.diverging_epoch is not None:
                return True
            self._size += data.records_size - slot.readable_size
            slot.readable_size = data.records_size
            self._counted.append(slot)
            slot.watch()
        return self._size >= limits.min_bytes

    @staticmethod
    def _lost(reading: Reading, changed: dict[FetchSlot, None]) -> bool:
        """Whether a partition was lost while the fetch waited for it: answer immediately."""
        return any(data.error_code and slot in changed for slot, data in reading.results)

    def _read(self) -> Reading:
        fetch = self._fetch
        return self._reader.read_all(fetch.slots, self._limits, fetch.others_count)

    def _finish(self, reading: Reading) -> None:
        if not self._purgatory.finish(self):
            return
        self._stop_waiting()
        if self._answer.done():
            return
        try:
            reply = self._fetch.answer(reading.results)
        except Exception as error:
            # The caller is a timer or a change elsewhere, which must not fail because of this
            # request: the error belongs to the request.
            self._answer.set_exception(error)
        else:
            self._answer.set_result(reply)
