"""The last offset of every key in the dirty part of a log, within a memory budget.

Invariant: a record at or below `latest_offset` is superseded exactly when the map
has a higher offset for its key. Keys are compared as they are up to 32 bytes; longer ones
by a digest that is longer than any key kept as it is, so the two never meet.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from moldau.wire.records import Record

KEY_SIZE_MAX = 32
# What CPython takes for one entry: the key's bytes object (up to 80), the offset (32), and
# a share of the hash table that is never more than this while the table grows.
ENTRY_SIZE = 200


def slot_of(key: bytes) -> bytes:
    """What stands for a key in the map."""
    if len(key) <= KEY_SIZE_MAX:
        return key
    return blake2b(key, digest_size=KEY_SIZE_MAX + 1).digest()


class OffsetMap:
    __slots__ = ("entries_max", "latest_offset", "offsets")

    def __init__(self, size_max: int) -> None:
        self.entries_max = max(size_max // ENTRY_SIZE, 1)
        self.offsets: dict[bytes, int] = {}
        self.latest_offset = -1

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def is_full(self) -> bool:
        """No further batch may be added. The one that filled it is in completely, because
        cleaning must get on by at least one batch however small the budget is."""
        return len(self.offsets) >= self.entries_max

    def add(self, records: Iterable[Record], from_offset: int) -> None:
        offsets = self.offsets
        for record in records:
            key = record.key
            if key is not None and record.offset >= from_offset:
                if len(key) > KEY_SIZE_MAX:
                    key = slot_of(key)
                offsets[key] = record.offset

    def cover(self, offset: int) -> None:
        """Everything up to `offset` has been looked at."""
        self.latest_offset = max(self.latest_offset, offset)
