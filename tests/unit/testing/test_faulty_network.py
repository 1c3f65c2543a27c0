"""What happens to single requests between a node's sockets and its dispatcher."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from typing import Any

import pytest

from moldau.broker.network.context import ConnectionInfo
from moldau.broker.network.interface import InvalidRequest, Reply
from moldau.testing.machine.rules import Cut, Cuts, Rule, RuleBook
from moldau.testing.process.network import FaultyReceiver, Switchboard
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.framing import decode_response, encode_request_frame
from moldau.wire.messages import FindCoordinatorRequest, HeartbeatRequest, ProduceRequest

INFO = ConnectionInfo()


class Inner:
    """Answers with the number of the request, at once or when it is told to."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.later: asyncio.Future[Reply] | None = None

    def is_pipelined(self, frame: memoryview) -> bool:
        return frame[:2] == ApiKey.PRODUCE.to_bytes(2, "big")

    def dispatch(self, connection: ConnectionInfo, frame: memoryview) -> Reply | Awaitable[Reply]:
        self.taken.append(int.from_bytes(frame[4:8], "big"))
        return b"answer" if self.later is None else self.later


class Stage:
    def __init__(self) -> None:
        self.inner = Inner()
        self.board = Switchboard(RuleBook(lambda number: Random(number)))
        self.receiver = FaultyReceiver(self.inner, self.board)
        self._number = 0

    def send(self, key: ApiKey = ApiKey.HEARTBEAT, client_id: str = "app") -> Any:
        self._number += 1
        requests: dict[ApiKey, Callable[[], Any]] = {
            ApiKey.HEARTBEAT: HeartbeatRequest,
            ApiKey.PRODUCE: lambda: ProduceRequest(acks=-1),
            ApiKey.FIND_COORDINATOR: lambda: FindCoordinatorRequest(coordinator_keys=["g"]),
        }
        api = API_BY_KEY[key]
        version = min(4, api.max_version)
        frame = encode_request_frame(api, version, self._number, client_id, requests[key]())
        # As of a connection: gone when dispatch returns.
        buffer = bytearray(frame[4:])
        reply = self.receiver.dispatch(INFO, memoryview(buffer))
        buffer[:] = bytes(len(buffer))
        return reply

    def task(self, reply: Any) -> asyncio.Task[Any]:
        async def wait() -> Any:
            return await reply

        return asyncio.get_running_loop().create_task(wait())


def on_a_loop(test: Callable[[Stage], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        async def main() -> None:
            await test(Stage())

        asyncio.run(main())

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    return run


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@on_a_loop
async def test_without_faults_answers_pass_as_they_are(stage: Stage) -> None:
    assert stage.send() == b"answer"


@on_a_loop
async def test_a_request_from_behind_a_cut_is_carried_out_when_that_is_healed(
    stage: Stage,
) -> None:
    stage.board.set_cuts(Cuts([Cut(far="*")]))
    waiting = stage.task(stage.send())
    await turns()
    assert stage.inner.taken == []
    stage.board.set_cuts(Cuts())
    assert await waiting == b"answer"
    assert stage.inner.taken == [1]


@on_a_loop
async def test_an_answer_that_may_not_leave_waits(stage: Stage) -> None:
    stage.board.set_cuts(Cuts([Cut(far="*", incoming=False)]))
    waiting = stage.task(stage.send())
    await turns()
    assert stage.inner.taken == [1]
    assert not waiting.done()
    stage.board.set_cuts(Cuts([Cut(far=3)]))
    assert await waiting == b"answer"


@on_a_loop
async def test_a_cut_also_holds_back_answers_to_what_was_asked_before(stage: Stage) -> None:
    stage.inner.later = asyncio.get_running_loop().create_future()
    waiting = stage.task(stage.send(client_id="moldau-node-3"))
    await turns()
    stage.board.set_cuts(Cuts([Cut(far=3)]))
    stage.inner.later.set_result(b"late")
    await turns()
    assert not waiting.done()
    stage.board.set_cuts(Cuts())
    assert await waiting == b"late"


@on_a_loop
async def test_a_produce_that_is_appended_does_not_hold_up_the_next(stage: Stage) -> None:
    """A connection tells by the kind of awaitable."""
    stage.inner.later = asyncio.get_running_loop().create_future()
    produced, other = stage.send(ApiKey.PRODUCE), stage.send(ApiKey.HEARTBEAT)
    assert isinstance(produced, asyncio.Future)
    assert not isinstance(other, asyncio.Future)
    stage.inner.later.set_result(b"replicated")
    assert await produced == b"replicated"
    assert await other == b"replicated"


@on_a_loop
async def test_a_slow_produce_does_hold_up_the_next(stage: Stage) -> None:
    """Or a later one could overtake it."""
    stage.board.rules.add(Rule(rule_id=1, kind="slow", delay_ms=1))
    produced = stage.send(ApiKey.PRODUCE)
    assert not isinstance(produced, asyncio.Future)
    assert stage.inner.taken == []
    assert await produced == b"answer"


@pytest.mark.parametrize("carried_out", [False, True])
def test_a_drop_ends_with_its_connection(carried_out: bool) -> None:
    async def run() -> None:
        stage = Stage()
        stage.board.rules.add(Rule(rule_id=1, kind="drop", carried_out=carried_out))
        waiting = stage.task(stage.send())
        await turns()
        assert not waiting.done()
        assert stage.inner.taken == ([1] if carried_out else [])
        stage.board.remove(1)
        with pytest.raises(InvalidRequest, match="fault that has ended"):
            await waiting
        assert stage.send() == b"answer"

    asyncio.run(run())


@on_a_loop
async def test_a_client_that_gives_up_takes_nobody_along(stage: Stage) -> None:
    stage.board.rules.add(Rule(rule_id=1, kind="drop"))
    one, other = stage.task(stage.send()), stage.task(stage.send())
    await turns()
    one.cancel()
    await turns()
    assert not other.done()
    stage.board.clear()
    with pytest.raises(InvalidRequest):
        await other


@on_a_loop
async def test_an_error_is_answered_without_asking_the_broker(stage: Stage) -> None:
    stage.board.rules.add(Rule(rule_id=1, kind="fail", error=14, apis=(ApiKey.FIND_COORDINATOR,)))
    reply = await stage.send(ApiKey.FIND_COORDINATOR)
    _, response = decode_response(API_BY_KEY[ApiKey.FIND_COORDINATOR], 4, memoryview(reply)[4:])
    assert [each.error_code for each in response.coordinators] == [14]  # type: ignore[attr-defined]
    assert stage.inner.taken == []
    assert stage.send(ApiKey.HEARTBEAT) == b"answer"


@on_a_loop
async def test_delays_add_up_before_what_ends_a_request(stage: Stage) -> None:
    stage.board.rules.add(Rule(rule_id=1, kind="slow", delay_ms=1))
    stage.board.rules.add(Rule(rule_id=2, kind="disconnect"))
    with pytest.raises(InvalidRequest, match="disconnected"):
        await stage.send()
    assert (stage.board.rules.hits(1), stage.board.rules.hits(2)) == (1, 1)
    assert stage.inner.taken == []
