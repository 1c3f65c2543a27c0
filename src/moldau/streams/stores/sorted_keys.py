"""Keys in their order, for maps that are scanned while they change."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator

_BLOCK = 512


class SortedKeys:
    """Distinct keys in blocks, so that adding one moves at most a block.

    Keys may be added and removed during an iteration, which goes on behind the last key it gave.
    """

    __slots__ = ("_blocks", "_last")

    def __init__(self, keys: Iterable[bytes] = ()) -> None:
        ordered = sorted(keys)
        self._blocks = [ordered[at : at + _BLOCK] for at in range(0, len(ordered), _BLOCK)]
        #: The last key of each block.
        self._last = [block[-1] for block in self._blocks]

    def add(self, key: bytes) -> None:
        """Add a key that is not there."""
        if not self._blocks:
            self._blocks, self._last = [[key]], [key]
            return
        at = min(bisect_left(self._last, key), len(self._blocks) - 1)
        block = self._blocks[at]
        insort(block, key)
        if len(block) > 2 * _BLOCK:
            self._blocks[at : at + 1] = [block[:_BLOCK], block[_BLOCK:]]
            self._last[at : at + 1] = [block[_BLOCK - 1], block[-1]]
        else:
            self._last[at] = block[-1]

    def remove(self, key: bytes) -> None:
        """Remove a key that is there."""
        at = bisect_left(self._last, key)
        block = self._blocks[at]
        del block[bisect_left(block, key)]
        if block:
            self._last[at] = block[-1]
        else:
            del self._blocks[at], self._last[at]

    def starting(self, start: bytes) -> Iterator[bytes]:
        """The keys from `start` on."""
        at = bisect_left(self._last, start)
        if at == len(self._blocks):
            return
        block = self._blocks[at]
        keys = block[bisect_left(block, start) :]
        while keys:
            yield from keys
            last = keys[-1]
            at = bisect_right(self._last, last)
            keys = []
            if at < len(self._blocks):
                block = self._blocks[at]
                keys = block[bisect_right(block, last) :]
