from __future__ import annotations

import asyncio

import pytest

from moldau.broker.coordinator.producer_ids import ProducerIds
from moldau.wire.errors import ApiError, ErrorCode


def test_ids_come_from_blocks_and_never_twice() -> None:
    async def scene() -> None:
        blocks = iter([(1_000, 3), (5_000, 2)])
        asked = 0

        async def allocate() -> tuple[int, int]:
            nonlocal asked
            asked += 1
            await asyncio.sleep(0)
            return next(blocks)

        ids = ProducerIds(allocate)
        assert await asyncio.gather(*(ids.next_id() for _ in range(5))) == [
            1_000,
            1_001,
            1_002,
            5_000,
            5_001,
        ]
        assert asked == 2

    asyncio.run(scene())


def test_a_failed_allocation_is_tried_again_by_the_next() -> None:
    async def scene() -> None:
        fail = True

        async def allocate() -> tuple[int, int]:
            if fail:
                raise ApiError(ErrorCode.NOT_CONTROLLER, "as told")
            return 0, 1_000

        ids = ProducerIds(allocate)
        with pytest.raises(ApiError):
            await ids.next_id()
        fail = False
        assert await ids.next_id() == 0

    asyncio.run(scene())
