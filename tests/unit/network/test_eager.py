"""Handlers that are begun without a task: their results, waits, errors and cancellation."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from moldau.broker.network.context import ConnectionInfo, RequestContext
from moldau.broker.network.dispatcher import Dispatcher, Route
from moldau.broker.network.eager import rest_of
from moldau.broker.network.interface import Reply
from moldau.clock import LoopClock
from moldau.invariant import InvariantError
from moldau.peers.deadline import Deadline
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.framing import decode_response, encode_request_frame
from moldau.wire.messages import HeartbeatRequest, HeartbeatResponse

HEARTBEAT = API_BY_KEY[ApiKey.HEARTBEAT]


def in_a_loop(test: Callable[..., Any]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


def dispatched(handle: Callable[[Any, Any], Any], *, prompt: bool = True) -> Any:
    """What the dispatcher returns for one heartbeat."""
    dispatcher = Dispatcher({ApiKey.HEARTBEAT: Route(handle, prompt=prompt)})
    frame = encode_request_frame(HEARTBEAT, 4, 7, "tester", HeartbeatRequest(group_id="g"))
    return dispatcher.dispatch(ConnectionInfo(listener_name="L"), memoryview(frame)[4:])


def error_of(reply: Reply) -> int:
    assert isinstance(reply, bytes)
    response: HeartbeatResponse = decode_response(HEARTBEAT, 4, reply[4:])[1]
    return response.error_code


async def at_once(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
    return HeartbeatResponse()


async def refusing(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
    raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS, "again")


@in_a_loop
async def test_a_handler_that_does_not_wait_has_answered_when_it_is_dispatched() -> None:
    assert error_of(dispatched(at_once)) == ErrorCode.NONE
    assert error_of(dispatched(refusing)) == ErrorCode.REBALANCE_IN_PROGRESS
    assert isinstance(dispatched(at_once, prompt=False), Awaitable)


@pytest.mark.parametrize("first", ["yield", "future", "done in between"])
@in_a_loop
async def test_a_handler_that_waits_goes_on_in_a_task(first: str) -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    began: list[asyncio.Task[Any] | None] = []

    async def handle(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
        began.append(asyncio.current_task())
        await (asyncio.sleep(0) if first == "yield" else future)
        await asyncio.sleep(0)
        began.append(asyncio.current_task())
        with pytest.raises(ZeroDivisionError):
            await failing
        return HeartbeatResponse(error_code=ErrorCode.ILLEGAL_GENERATION)

    failing: asyncio.Future[None] = loop.create_future()
    reply = dispatched(handle)
    if first == "done in between":
        future.set_result(None)
    loop.call_soon(lambda: future.done() or future.set_result(None))
    loop.call_soon(failing.set_exception, ZeroDivisionError())
    assert error_of(await reply) == ErrorCode.ILLEGAL_GENERATION
    # Begun by the caller's own task, continued in another one.
    assert began[0] is asyncio.current_task()
    assert began[1] not in (None, began[0])


@in_a_loop
async def test_a_cancelled_rest_cleans_up() -> None:
    steps: list[str] = []
    never: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def work() -> None:
        try:
            await never
        except asyncio.CancelledError:
            steps.append("cancelled")
            await asyncio.sleep(0)
            steps.append("cleaned up")
            raise

    begun = work()
    rest = rest_of(begun, begun.send(None))
    # Tasks take nothing else from Python 3.12 on.
    assert inspect.iscoroutine(rest)
    task = asyncio.get_running_loop().create_task(rest)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert steps == ["cancelled", "cleaned up"]


def test_a_time_limit_without_a_task_is_a_bug_and_not_ignored() -> None:
    # It would never end a wait; a prompt route must not use one before its first wait.
    async def set_clock() -> LoopClock:
        return LoopClock()

    clock = asyncio.run(set_clock())
    with pytest.raises((InvariantError, RuntimeError)):
        Deadline(clock, 10)
