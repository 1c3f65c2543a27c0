"""Whether something listens at an address: on real sockets, and where there is no answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from moldau.clock import LoopClock
from moldau.peers.channel import ConnectionRefused, Reach
from moldau.peers.node_channel import is_refusal
from moldau.wire.apis import ApiKey
from moldau.wire.messages import HeartbeatRequest
from support.channels import HandClock, settle, transport
from support.ports import free_port

Run = Callable[[Coroutine[Any, Any, None]], None]

REFUSED = "[Errno 111] Connect call failed"


def test_a_listener_accepts_and_its_absence_refuses(run: Run) -> None:
    async def script() -> None:
        ways = transport(LoopClock())
        gone = asyncio.Event()

        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            assert await reader.read() == b""
            writer.close()
            gone.set()

        server = await asyncio.start_server(accepted, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        assert await ways.probe("127.0.0.1", port, timeout_ms=10_000) is Reach.ACCEPTED
        # Nothing was sent, and the connection is closed.
        await gone.wait()
        server.close()
        await server.wait_closed()
        assert await ways.probe("127.0.0.1", port, timeout_ms=10_000) is Reach.REFUSED

    run(script())


def test_an_unknown_name_says_nothing(run: Run) -> None:
    async def script() -> None:
        async def connect(*_: object) -> Any:
            raise OSError("Name or service not known")

        ways = transport(LoopClock(), connect)
        assert await ways.probe("nowhere.invalid", 1, timeout_ms=10_000) is Reach.UNKNOWN

    run(script())


def test_an_address_that_does_not_answer_says_nothing(run: Run) -> None:
    async def script() -> None:
        clock = HandClock()
        ways = transport(clock, lambda *_: asyncio.get_running_loop().create_future())
        probe = asyncio.ensure_future(ways.probe("10.0.0.1", 9092, timeout_ms=1_000))
        await settle()
        clock.advance(999)
        await settle()
        assert not probe.done()
        clock.advance(1)
        assert await probe is Reach.UNKNOWN

    run(script())


def test_a_call_that_was_refused_says_so(run: Run) -> None:
    async def script() -> None:
        ways = transport(LoopClock())
        channel = ways.channel(2, "127.0.0.1", free_port(), "PLAINTEXT")
        with pytest.raises(ConnectionRefused):
            await channel.call(ApiKey.HEARTBEAT, HeartbeatRequest(), timeout_ms=10_000)
        ways.close()

    run(script())


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        pytest.param(ConnectionRefusedError(111, "no"), True, id="one address"),
        pytest.param(OSError(f"Multiple exceptions: {REFUSED}, {REFUSED}"), True, id="all"),
        pytest.param(
            OSError(f"Multiple exceptions: {REFUSED}, [Errno 113] No route"), False, id="some"
        ),
        pytest.param(ConnectionResetError(104, "reset"), False, id="reset"),
        pytest.param(TimeoutError(), False, id="no answer"),
        pytest.param(ValueError("no host name"), False, id="no name"),
    ],
)
def test_what_counts_as_refused(error: OSError, refused: bool) -> None:
    assert is_refusal(error) is refused
