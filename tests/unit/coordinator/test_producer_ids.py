"""Producer ids: from blocks, asked for ahead of time, of whoever is the controller."""

from __future__ import annotations

import asyncio

import pytest

from moldau.broker.coordinator.producer_ids import ControllerBlocks, ProducerIds
from moldau.peers.channel import ChannelError
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from support.channels import HandClock, settle


class Blocks:
    """A controller that grants what it is told to."""

    def __init__(self, *blocks: tuple[int, int] | Exception) -> None:
        self.blocks = list(blocks)
        self.asked = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self) -> tuple[int, int]:
        self.asked += 1
        await self.gate.wait()
        block = self.blocks.pop(0)
        if isinstance(block, Exception):
            raise block
        return block


NOT_NOW = ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "as told")


def test_ids_come_from_blocks_and_never_twice() -> None:
    async def scene() -> None:
        blocks = Blocks((1_000, 3), (5_000, 2), NOT_NOW)
        ids = ProducerIds(blocks)
        taken = await asyncio.gather(*(ids.next_id() for _ in range(5)))
        assert taken == [1_000, 1_001, 1_002, 5_000, 5_001]

    asyncio.run(scene())


def test_the_next_block_is_asked_for_before_the_last_id_is_gone() -> None:
    async def scene() -> None:
        blocks = Blocks((0, 10), (100, 10))
        ids = ProducerIds(blocks)
        for _ in range(9):
            await ids.next_id()
        await settle()
        assert blocks.asked == 1
        assert await ids.next_id() == 9
        await settle()
        assert blocks.asked == 2
        blocks.gate.clear()
        # Nobody waits: the block is there.
        assert await ids.next_id() == 100

    asyncio.run(scene())


def test_many_wait_for_one_request_and_who_gives_up_takes_it_from_nobody() -> None:
    async def scene() -> None:
        blocks = Blocks((0, 1_000))
        blocks.gate.clear()
        ids = ProducerIds(blocks)
        waiting = [asyncio.ensure_future(ids.next_id()) for _ in range(3)]
        await settle()
        waiting[0].cancel()
        await settle()
        blocks.gate.set()
        assert await asyncio.gather(*waiting[1:]) == [0, 1]
        assert blocks.asked == 1

    asyncio.run(scene())


def test_a_failed_allocation_is_tried_again_by_the_next() -> None:
    async def scene() -> None:
        ids = ProducerIds(Blocks(NOT_NOW, (0, 1_000)))
        with pytest.raises(ApiError):
            await ids.next_id()
        assert await ids.next_id() == 0

    asyncio.run(scene())


@pytest.mark.parametrize(
    "block", [(0, 10), (2_000, 0), (2_000, -1), (2**63 - 5, 10)], ids=["old", "empty", "-1", "end"]
)
def test_a_block_that_cannot_be_right_is_not_used(block: tuple[int, int]) -> None:
    async def scene() -> None:
        ids = ProducerIds(Blocks((1_000, 1), block, (3_000, 10)))
        assert await ids.next_id() == 1_000
        with pytest.raises(ApiError):
            await ids.next_id()
        assert await ids.next_id() == 3_000

    asyncio.run(scene())


def test_closing_ends_the_wait() -> None:
    async def scene() -> None:
        blocks = Blocks((0, 1_000))
        blocks.gate.clear()
        ids = ProducerIds(blocks)
        waiting = asyncio.ensure_future(ids.next_id())
        await settle()
        ids.close()
        with pytest.raises(ApiError):
            await waiting

    asyncio.run(scene())


class Controller:
    """Answers with error codes, blocks or failures of the channel, in turn."""

    def __init__(self, *answers: ErrorCode | tuple[int, int] | Exception) -> None:
        self.answers = list(answers)
        self.epochs: list[int] = []

    async def call(self, key: ApiKey, request: Message, *, timeout_ms: int) -> Message:
        assert key is ApiKey.ALLOCATE_PRODUCER_IDS
        assert isinstance(request, AllocateProducerIdsRequest)
        assert request.broker_id == 3
        assert timeout_ms > 0
        self.epochs.append(request.broker_epoch)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, ErrorCode):
            return AllocateProducerIdsResponse(error_code=answer)
        return AllocateProducerIdsResponse(producer_id_start=answer[0], producer_id_len=answer[1])


def test_a_broker_that_registers_again_asks_again_with_its_new_epoch() -> None:
    async def scene() -> None:
        clock, epochs = HandClock(), iter([7, 8, 9])
        controller = Controller(
            ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED, (4_000, 1_000)
        )
        blocks = ControllerBlocks(controller, clock, node_id=3, broker_epoch=lambda: next(epochs))
        asking = asyncio.ensure_future(blocks())
        for _ in range(2):
            await settle()
            clock.advance(50)
        assert await asking == (4_000, 1_000)
        assert controller.epochs == [7, 8, 9]

    asyncio.run(scene())


def test_asking_ends_after_some_seconds() -> None:
    async def scene() -> None:
        clock = HandClock()
        controller = Controller(*[ErrorCode.STALE_BROKER_EPOCH] * 200)
        blocks = ControllerBlocks(controller, clock, node_id=3, broker_epoch=lambda: 1)
        asking = asyncio.ensure_future(blocks())
        for _ in range(110):
            await settle(3)
            clock.advance(50)
        with pytest.raises(ApiError) as refused:
            await asking
        assert refused.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    asyncio.run(scene())


def test_without_a_controller_the_client_is_told_to_try_again() -> None:
    async def scene() -> None:
        controller = Controller(ChannelError("no active controller"))
        blocks = ControllerBlocks(controller, HandClock(), node_id=3, broker_epoch=lambda: 1)
        with pytest.raises(ApiError) as refused:
            await blocks()
        assert refused.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    asyncio.run(scene())
