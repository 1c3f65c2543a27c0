"""A store of lists, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moldau.streams.stores.base import ChangelogRecord, Log, no_log
from moldau.streams.stores.sorted_keys import SortedKeys


class ListStore:
    """Bytes to a list of bytes: the records of an outer join that have no match yet."""

    def __init__(self, name: str, log: Log = no_log) -> None:
        self.name = name
        self._lists: dict[bytes, list[bytes]] = {}
        self._keys = SortedKeys()
        self._log = log

    def add(self, key: bytes, value: bytes) -> None:
        """Append to the list of a key."""
        values = self._lists.get(key)
        if values is None:
            values = self._lists[key] = []
            self._keys.add(key)
        values.append(value)
        self._log(key, self._encoded(values), None)

    def delete(self, key: bytes) -> None:
        """Delete the whole list of a key."""
        if self._lists.pop(key, None) is not None:
            self._keys.remove(key)
            self._log(key, None, None)

    def all(self) -> Iterator[tuple[bytes, bytes]]:
        """Every entry of every list, in the order of the keys. Keys may be deleted meanwhile."""
        for key in self._keys.starting(b""):
            for value in list(self._lists.get(key, ())):
                yield key, value

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing to close."""

    @staticmethod
    def _encoded(values: list[bytes]) -> bytes:
        """Kafka's serde of lists of bytes: a flag, the count, then size and bytes of each."""
        parts = [b"\x01", len(values).to_bytes(4)]
        for value in values:
            parts += [len(value).to_bytes(4), value]
        return b"".join(parts)

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        for key, value, _, _ in records:
            self._set(key, value)

    def _set(self, key: bytes, value: bytes | None) -> None:
        if self._lists.pop(key, None) is not None:
            self._keys.remove(key)
        if value is None:
            return
        position, found = 5, []
        for _ in range(int.from_bytes(value[1:5])):
            size = int.from_bytes(value[position : position + 4])
            found.append(value[position + 4 : position + 4 + size])
            position += 4 + size
        self._lists[key] = found
        self._keys.add(key)
