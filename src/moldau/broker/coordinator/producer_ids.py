"""Allocates producer ids from blocks that the controller grants.

The next block is requested when nine tenths of the current one are used, so that a producer seldom
waits for it. Invariant: no id is allocated twice, whatever fails. Unused ids of a block are lost
with the broker, which is harmless.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from moldau.clock import Clock, pause
from moldau.invariant import of_type
from moldau.peers.channel import ChannelError
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import AllocateProducerIdsRequest, AllocateProducerIdsResponse

logger = logging.getLogger(__name__)

AllocateBlock = Callable[[], Awaitable[tuple[int, int]]]
"""Asks the controller; the first id and the count of a fresh block."""

_USED_BEFORE_NEXT_PERCENT: Final = 90
_ID_MAX: Final = 2**63 - 1
_RETRY_MS: Final = 50
_WAIT_MS_MAX: Final = 5_000


class ProducerIds:
    def __init__(self, allocate_block: AllocateBlock) -> None:
        self._allocate_block = allocate_block
        self._next = 0
        self._end = 0
        self._ask_from = 0
        self._following: tuple[int, int] | None = None
        # One request to the controller at a time, which all callers share.
        self._request: asyncio.Task[None] | None = None

    async def next_id(self) -> int:
        """A fresh producer id; raises ApiError if there is none to be had."""
        while self._next == self._end:
            if self._following is None:
                request = self._start_request()
                # A caller that is cancelled must not cancel the request of the others.
                await asyncio.wait([request])
                if request.cancelled():
                    raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "this node is stopping")
                request.result()
                continue
            self._next, count = self._following
            self._following = None
            self._end = self._next + count
            self._ask_from = self._next + count * _USED_BEFORE_NEXT_PERCENT // 100
        self._next += 1
        if self._next > self._ask_from and self._following is None:
            self._start_request()
        return self._next - 1

    def _start_request(self) -> asyncio.Task[None]:
        if self._request is None:
            self._request = asyncio.get_running_loop().create_task(
                self._fetch(), name="allocate producer ids"
            )
            self._request.add_done_callback(self._on_requested)
        return self._request

    async def _fetch(self) -> None:
        first, count = await self._allocate_block()
        if count <= 0 or first < self._end or first > _ID_MAX - count:
            raise ApiError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"the controller grants {count} producer ids from {first}, after {self._end}",
            )
        self._following = first, count

    def _on_requested(self, request: asyncio.Task[None]) -> None:
        self._request = None
        if not request.cancelled() and (error := request.exception()) is not None:
            logger.warning("requesting producer ids failed: %s", error)

    def close(self) -> None:
        if self._request is not None:
            self._request.cancel()


class ControllerCalls(Protocol):
    """The way to the active controller."""

    async def call(self, key: ApiKey, request: Message, *, timeout_ms: int) -> Message:
        """Its response; raises ChannelError if none comes in time."""
        ...


class ControllerBlocks:
    """Asks the active controller for a block of producer ids, for a few seconds."""

    def __init__(
        self,
        controller: ControllerCalls,
        clock: Clock,
        *,
        node_id: int,
        broker_epoch: Callable[[], int],
    ) -> None:
        self._controller = controller
        self._clock = clock
        self._node_id = node_id
        self._broker_epoch = broker_epoch

    async def __call__(self) -> tuple[int, int]:
        until_ms = self._clock.elapsed_ms() + _WAIT_MS_MAX
        while True:
            left_ms = until_ms - self._clock.elapsed_ms()
            # Read each time: a broker that has to register again gets another epoch.
            request = AllocateProducerIdsRequest(
                broker_id=self._node_id, broker_epoch=self._broker_epoch()
            )
            try:
                response = await self._controller.call(
                    ApiKey.ALLOCATE_PRODUCER_IDS, request, timeout_ms=max(left_ms, 1)
                )
            except ChannelError as error:
                raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, str(error)) from error
            answer = of_type(response, AllocateProducerIdsResponse)
            if not answer.error_code:
                return answer.producer_id_start, answer.producer_id_len
            if left_ms <= _RETRY_MS:
                raise ApiError(
                    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                    f"the controller grants no producer ids: error {answer.error_code}",
                )
            await pause(self._clock, _RETRY_MS)
