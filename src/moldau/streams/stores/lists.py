"""A store of lists, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moldau.streams.serdes import BYTES, ListSerde
from moldau.streams.stores.base import ChangelogRecord, Log, no_log
from moldau.streams.stores.sorted_keys import SortedKeys

_LISTS = ListSerde(BYTES)


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
        self._log(key, _LISTS.serialize("", values), None)

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

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        for key, value, _, _ in records:
            self._set(key, value)

    def _set(self, key: bytes, value: bytes | None) -> None:
        if self._lists.pop(key, None) is not None:
            self._keys.remove(key)
        found = _LISTS.deserialize("", value)
        if found is not None:
            self._lists[key] = [each for each in found if each is not None]
            self._keys.add(key)
