"""What the topic `__moldau_spark_sinks` says: decisions, and which parts of batches are committed.

Two kinds of records, by their keys:

- `decision:<prefix>`, written by a sink's driver in a transaction of `<prefix>-coordinator`: the
  transactions that make up a batch, all of which are to be committed.
- `part:<transactional id>`, written by a task inside the very transaction that holds its rows. It
  can be read as committed if and only if the rows are, so it proves what became of them, also after
  the coordinator of transactions has forgotten or another producer has used the transactional id.

The topic is read with its markers and whatever is not committed, for open transactions of other
queries would hide what is behind them from readers of committed records. Invariants: a
transaction's records count from its commit marker on, an aborted one's never; the newest record of
a key counts, which is what compaction leaves. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["TOPIC", "Entry", "SinksLog", "decision_key", "part_key", "partition_of"]

TOPIC = "__moldau_spark_sinks"
#: How many partitions the topic is made with. A sink's records are all in one of them.
PARTITION_COUNT = 16


def decision_key(prefix: str) -> bytes:
    return f"decision:{prefix}".encode()


def part_key(transactional_id: str) -> bytes:
    return f"part:{transactional_id}".encode()


def partition_of(prefix: str, partition_count: int) -> int:
    """Where the records of a sink are. FNV-1a, for it must be the same in every process."""
    number = 0xCBF29CE484222325
    for byte in prefix.encode():
        number = ((number ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return number % partition_count


class Entry(NamedTuple):
    """The newest committed record of a key."""

    value: bytes
    producer_id: int
    producer_epoch: int


Records = Iterable[tuple[bytes | None, bytes | None]]


class SinksLog:
    """See the module. Told of the batches of one partition, in their order."""

    def __init__(self) -> None:
        self.next_offset = 0
        self._committed: dict[bytes, Entry] = {}
        self._open: dict[int, list[tuple[bytes, bytes | None, int]]] = {}

    def appended(
        self, producer_id: int, producer_epoch: int, records: Records, *, is_transactional: bool
    ) -> None:
        found = [(key, value, producer_epoch) for key, value in records if key is not None]
        if is_transactional:
            self._open.setdefault(producer_id, []).extend(found)
        else:
            self._apply(producer_id, found)

    def ended(self, producer_id: int, *, is_commit: bool) -> None:
        """A marker. The epoch in it may be a later one (KIP-890), so the id alone decides."""
        found = self._open.pop(producer_id, [])
        if is_commit:
            self._apply(producer_id, found)

    def _apply(self, producer_id: int, found: list[tuple[bytes, bytes | None, int]]) -> None:
        for key, value, epoch in found:
            if value is None:
                self._committed.pop(key, None)
            else:
                self._committed[key] = Entry(value, producer_id, epoch)

    def get(self, key: bytes) -> Entry | None:
        return self._committed.get(key)

    def holds(self, transactional_id: str, producer_id: int, producer_epoch: int) -> bool:
        """Whether the transaction that a task wrote in is known to be committed."""
        entry = self._committed.get(part_key(transactional_id))
        return entry is not None and entry[1:] == (producer_id, producer_epoch)
