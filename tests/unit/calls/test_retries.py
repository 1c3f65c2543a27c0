"""Retries: which errors, how often, and how long the pauses are."""

from __future__ import annotations

import asyncio

import pytest

from moldau.broker.calls.retries import Retries
from moldau.wire.errors import ApiError, ErrorCode

LOST, MOVED, REJECTED = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.INVALID_REQUEST,
)


class World:
    def __init__(self, *errors: ErrorCode) -> None:
        self.errors = list(errors)
        self.pauses: list[int] = []
        self.seen: list[ErrorCode] = []
        self.retries = Retries(
            self._wait,
            retried={LOST, MOVED},
            attempt_count_max=5,
            delay_ms_first=100,
            delay_ms_max=300,
        )

    async def _wait(self, delay_ms: int) -> None:
        self.pauses.append(delay_ms)

    async def _attempt(self) -> str:
        if self.errors:
            raise ApiError(self.errors.pop(0))
        return "done"

    async def _before_retry(self, code: ErrorCode) -> None:
        self.seen.append(code)
        if code is MOVED:
            raise ApiError(REJECTED, "before the retry")

    def run(self, *, prepare: bool = False) -> str:
        return asyncio.run(self.retries.run(self._attempt, self._before_retry if prepare else None))


def test_pauses_grow_to_a_bound() -> None:
    world = World(LOST, MOVED, LOST, LOST)
    assert world.run() == "done"
    assert world.pauses == [100, 200, 300, 300]


def test_the_number_of_attempts_is_bounded() -> None:
    world = World(*[LOST] * 9)
    with pytest.raises(ApiError) as raised:
        world.run()
    assert raised.value.code is LOST
    assert len(world.errors) == 9 - 5
    assert len(world.pauses) == 4


def test_other_errors_are_raised_at_once() -> None:
    world = World(LOST, REJECTED, LOST)
    with pytest.raises(ApiError) as raised:
        world.run()
    assert raised.value.code is REJECTED
    assert world.pauses == [100]


def test_what_fails_before_a_retry_ends_the_call() -> None:
    world = World(LOST, MOVED)
    with pytest.raises(ApiError, match="before the retry"):
        world.run(prepare=True)
    assert world.seen == [LOST, MOVED]
    assert world.pauses == [100]
