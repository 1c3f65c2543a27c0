# cython: annotation_typing=False
"""Ordered maps of bytes: in memory, and with a part on disk.

The file is plain Python, and with `_maps.pxd` beside it also the source of a compiled module with
the same names and results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from moldau.streams.stores.sorted_keys import SortedKeys

#: What an entry that waits costs in memory beside its bytes.
OVERHEAD = 150
_MISSING: Any = object()
#: Stands for an entry that is deleted here, and may still be on disk.
DELETED: Any = object()


class OrderedMap:
    """Bytes to bytes, in the order of the keys."""

    __slots__ = ()

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, or `None`."""
        raise NotImplementedError

    def put(self, key: bytes, value: bytes | None) -> None:
        """Set a value; `None` deletes."""
        raise NotImplementedError

    def range(self, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """The entries from `start` to `end`, both included. Entries may change meanwhile."""
        raise NotImplementedError

    def backwards(
        self, start: bytes = b"", end: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """The same from `end` to `start`: the entries of one moment."""
        return reversed(list(self.range(start, end)))

    def prefix(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The entries whose key starts with `prefix`."""
        for key, value in self.range(prefix):
            if not key.startswith(prefix):
                return
            yield key, value

    def __len__(self) -> int:
        """How many entries there are, or about so many."""
        raise NotImplementedError


class ByteMap(OrderedMap):
    """Bytes to bytes, iterated in the order of the keys. Sorts only once someone iterates."""

    __slots__ = ("_keys", "_map")

    def __init__(self) -> None:
        self._map: dict[bytes, bytes] = {}
        self._keys: SortedKeys | None = None

    def __len__(self) -> int:
        return len(self._map)

    def get(self, key: bytes) -> bytes | None:
        return self._map.get(key)

    def put(self, key: bytes, value: bytes | None) -> None:
        """Set a value; `None` deletes."""
        if value is None:
            if self._map.pop(key, None) is not None and self._keys is not None:
                self._keys.remove(key)
            return
        if self._keys is not None and key not in self._map:
            self._keys.add(key)
        self._map[key] = value

    def range(self, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """The entries from `start` to `end`, both included. Entries may change meanwhile."""
        if self._keys is None:
            self._keys = SortedKeys(self._map)
        for key in self._keys.starting(start):
            if end is not None and key > end:
                return
            value = self._map.get(key)
            if value is not None:
                yield key, value


def merged(
    above: Iterator[tuple[Any, Any]], below: Iterator[tuple[Any, bytes]]
) -> Iterator[tuple[Any, bytes]]:
    """Two sequences in the same order; where both have a key, the one above counts."""
    one, two = next(above, None), next(below, None)
    while one is not None or two is not None:
        if two is None or (one is not None and one[0] <= two[0]):
            if one is None:
                return
            if two is not None and one[0] == two[0]:
                two = next(below, None)
            if one[1] is not None and one[1] is not DELETED:
                yield one
            one = next(above, None)
        else:
            yield two
            two = next(below, None)


class DiskMap(OrderedMap):
    """What is written waits in memory, and hides what is on disk."""

    __slots__ = ("_disk", "_disk_get", "_grow", "_keys", "_pending")

    def __init__(self, disk: Any, grow: Callable[[int], None]) -> None:
        self._disk = disk
        self._disk_get = disk.get
        self._grow = grow
        self._pending: dict[bytes, bytes | None] = {}
        self._keys: SortedKeys | None = None

    def __len__(self) -> int:
        return int(self._disk.count()) + len(self._pending)

    def get(self, key: bytes) -> bytes | None:
        found: bytes | None = self._pending.get(key, _MISSING)
        return self._disk_get(key) if found is _MISSING else found

    def put(self, key: bytes, value: bytes | None) -> None:
        """Set a value; `None` deletes."""
        if key not in self._pending:
            self._grow(len(key) + OVERHEAD + (0 if value is None else len(value)))
            if self._keys is not None:
                self._keys.add(key)
        self._pending[key] = value

    def range(self, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """The entries from `start` to `end`, both included. Entries may change meanwhile."""
        return merged(self._above(start, end), self._disk.scan(start, end))

    def _above(self, start: bytes, end: bytes | None) -> Iterator[tuple[bytes, bytes | None]]:
        if self._keys is None:
            self._keys = SortedKeys(self._pending)
        for key in self._keys.starting(start):
            if end is not None and key > end:
                return
            yield key, self.get(key)

    def write(self, transaction: Any) -> None:
        self._disk.write(transaction, self._pending)

    def written(self) -> None:
        self._pending = {}
        self._keys = None
