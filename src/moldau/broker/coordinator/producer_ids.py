"""Hands out producer ids from blocks that the controller grants.

What always holds: no id is handed out twice, whatever fails; ids of a block
that was granted but not used up are lost with the broker, which is harmless.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from moldau.invariant import invariant

AllocateBlock = Callable[[], Awaitable[tuple[int, int]]]
"""Asks the controller; the first id and the count of a fresh block."""


class ProducerIds:
    def __init__(self, allocate_block: AllocateBlock) -> None:
        self._allocate_block = allocate_block
        self._next = 0
        self._end = 0
        # One request to the controller at a time; the others take from its block.
        self._lock = asyncio.Lock()

    async def next_id(self) -> int:
        """A fresh producer id; raises whatever the allocation raises."""
        while self._next == self._end:
            async with self._lock:
                if self._next == self._end:
                    first, count = await self._allocate_block()
                    invariant(count > 0 and first >= self._end, "blocks are new and not empty")
                    self._next, self._end = first, first + count
        self._next += 1
        return self._next - 1
