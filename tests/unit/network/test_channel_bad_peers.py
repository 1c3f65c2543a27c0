"""Peers that cut, garble, stall, lie or run mad: each call ends, and nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from moldau.clock import LoopClock
from moldau.peers.channel import (
    CallTimedOut,
    ChannelError,
    RawResponse,
    UnsupportedVersion,
)
from moldau.peers.node_channel import NodeChannel
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.framing import encode_response_frame
from moldau.wire.messages import HeartbeatRequest, HeartbeatResponse
from support.channels import (
    EVERYTHING,
    HandClock,
    Peer,
    PeerSide,
    api_versions,
    peer,
    settle,
    transport,
    until,
)

Run = Callable[[Coroutine[Any, Any, None]], None]
Script = Callable[[PeerSide], Coroutine[Any, Any, None]]

HEARTBEAT = API_BY_KEY[ApiKey.HEARTBEAT]
GOOD = HeartbeatResponse(throttle_time_ms=42)


@asynccontextmanager
async def calling(
    script: Script, clock: Any = None, **settings: int
) -> AsyncIterator[tuple[Peer, NodeChannel]]:
    """A peer with that script and a channel to it; at the end nothing of the channel is left."""
    async with peer(script) as other:
        settings = {"reconnect_backoff_ms": 1, "reconnect_backoff_max_ms": 2, **settings}
        channels = transport(clock or LoopClock(), **settings)
        before = asyncio.all_tasks()
        channel = channels.channel(2, "127.0.0.1", other.port, "PLAINTEXT")
        yield other, channel
        channels.close()
        await until(lambda: other.open == 0)
        await settle()
        assert asyncio.all_tasks() <= before
        if isinstance(clock, HandClock):
            assert clock.pending == []


async def beat(channel: NodeChannel, timeout_ms: int = 10_000) -> RawResponse:
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    return await channel.call_raw(ApiKey.HEARTBEAT, request, timeout_ms=timeout_ms)


async def good(side: PeerSide) -> None:
    await side.negotiate()
    while True:
        await side.answer(GOOD)


def in_turn(*scripts: Script) -> Script:
    """Each connection gets the next script, the last one stays."""
    left = list(scripts)

    async def script(side: PeerSide) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(side)

    return script


def answer_of(correlation_id: int) -> bytes:
    return encode_response_frame(HEARTBEAT, 4, correlation_id, GOOD)


def versions_of(correlation_id: int) -> bytes:
    return encode_response_frame(API_BY_KEY[ApiKey.API_VERSIONS], 4, correlation_id, EVERYTHING)


@pytest.mark.parametrize("cut", range(len(answer_of(1))))
def test_a_response_cut_at_any_byte(run: Run, cut: int) -> None:
    async def cutting(side: PeerSide) -> None:
        await side.negotiate()
        await side.request()
        side.send(answer_of(1)[:cut])

    async def scenario() -> None:
        async with calling(in_turn(cutting, good)) as (other, channel):
            with pytest.raises(ChannelError, match=r"node 2 .* has no answer") as error:
                await beat(channel)
            assert ("inside a response" in str(error.value)) == (cut > 0)
            assert (await beat(channel)).version == 4
            assert other.connections == 2

    run(scenario())


def test_versions_cut_at_any_byte(run: Run) -> None:
    async def scenario() -> None:
        frame = versions_of(0)
        positions = [*range(12), *range(12, len(frame), 41)]
        cuts, count = iter(positions), len(positions)

        async def cutting(side: PeerSide) -> None:
            cut = next(cuts, None)
            if cut is None:
                await good(side)
                return
            await side.request()
            side.send(frame[:cut])

        async with calling(cutting) as (other, channel):
            for _ in range(count):
                with pytest.raises(ChannelError, match="not sent: the peer closed the connection"):
                    await beat(channel)
            assert (await beat(channel)).version == 4
            assert other.connections == count + 1

    run(scenario())


def test_a_response_in_single_bytes(run: Run) -> None:
    async def dripping(side: PeerSide) -> None:
        _, _, correlation_id, _ = await side.request()
        side.send(versions_of(correlation_id))
        while True:
            _, _, correlation_id, _ = await side.request()
            for byte in answer_of(correlation_id):
                side.send(bytes([byte]))
                await side.writer.drain()
                await asyncio.sleep(0)

    async def scenario() -> None:
        async with calling(dripping) as (_, channel):
            answers = await asyncio.gather(*(beat(channel) for _ in range(3)))
            assert {bytes(answer.body) for answer in answers} == {answer_of(0)[9:]}

    run(scenario())


@pytest.mark.parametrize(
    "garbage",
    [
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", id="another protocol"),
        pytest.param(struct.pack(">i", -5) + b"12345678", id="negative size"),
        pytest.param(struct.pack(">i", 2) + b"ab", id="no room for a correlation id"),
        pytest.param(struct.pack(">i", 1_000_001), id="giant"),
        pytest.param(struct.pack(">ii", 4, 77), id="no header"),
        pytest.param(answer_of(77), id="another correlation id"),
        pytest.param(struct.pack(">ii", 10, 1) + b"\xff" * 6, id="broken header"),
        pytest.param(answer_of(1) + answer_of(2), id="answer nobody asked for"),
        pytest.param(os.urandom(4096), id="noise"),
    ],
)
@pytest.mark.parametrize("negotiated", [True, False])
def test_garbage_ends_the_connection_and_its_calls(
    run: Run, garbage: bytes, negotiated: bool
) -> None:
    async def mad(side: PeerSide) -> None:
        if negotiated:
            await side.negotiate()
        await side.request()
        side.send(garbage)
        await side.ended()

    async def scenario() -> None:
        settings = {"response_bytes_max": 1_000_000}
        async with calling(in_turn(mad, good), **settings) as (other, channel):
            if negotiated and garbage.startswith(answer_of(1)):
                # The answer before the superfluous one is an answer.
                assert (await beat(channel)).version == 4
            else:
                with pytest.raises(ChannelError, match=r"Heartbeat to node 2 at 127\.0\.0\.1"):
                    await beat(channel)
            await until(lambda: other.sides[0].writer.is_closing() or other.open == 0)
            assert (await beat(channel)).version == 4
            assert other.connections == 2

    run(scenario())


def test_a_body_that_is_no_message_is_the_calls_error_only(run: Run) -> None:
    async def short(side: PeerSide) -> None:
        await side.negotiate()
        _, _, correlation_id, _ = await side.request()
        side.send(struct.pack(">iib", 5, correlation_id, 0))
        while True:
            await side.answer(GOOD)

    async def scenario() -> None:
        async with calling(short) as (other, channel):
            request = HeartbeatRequest(group_id="g", member_id="m")
            with pytest.raises(ChannelError, match="HeartbeatResponse v4 is truncated"):
                await channel.call(ApiKey.HEARTBEAT, request, timeout_ms=10_000)
            assert await channel.call(ApiKey.HEARTBEAT, request, timeout_ms=10_000) == GOOD
            assert other.connections == 1

    run(scenario())


def test_silence_ends_with_the_calls_time_and_takes_the_connection_along(run: Run) -> None:
    async def scenario() -> None:
        clock = HandClock()
        async with calling(in_turn(_hearing_only, good), clock) as (other, channel):
            first = asyncio.ensure_future(beat(channel, 1_000))
            second = asyncio.ensure_future(beat(channel, 5_000))
            # One alarm watches over both, and that of connecting is gone.
            await until(lambda: clock.pending == [1_000])
            clock.advance(999)
            await settle()
            assert not first.done()
            clock.advance(1)
            with pytest.raises(CallTimedOut, match="not answered within 1000 ms"):
                await first
            # It stands behind the one that got no answer.
            with pytest.raises(ChannelError, match="Heartbeat was not answered") as error:
                await second
            assert not isinstance(error.value, CallTimedOut)
            third = asyncio.ensure_future(beat(channel))
            await settle()
            clock.advance(2)
            assert (await third).version == 4
            assert other.connections == 2

    run(scenario())


def test_each_call_has_its_own_time_in_whatever_order_they_were_made(run: Run) -> None:
    async def scenario() -> None:
        clock = HandClock()
        async with calling(_hearing_only, clock, calls_in_flight_max=1) as (_, channel):
            calls = [asyncio.ensure_future(beat(channel, ms)) for ms in (5_000, 300, 800)]
            await until(lambda: clock.pending == [300])
            for passed, index in ((300, 1), (500, 2), (4_200, 0)):
                clock.advance(passed - 1)
                await settle()
                assert not calls[index].done()
                clock.advance(1)
                with pytest.raises(CallTimedOut):
                    await calls[index]

    run(scenario())


def test_a_connection_is_closed_when_it_was_idle_for_its_whole_time(run: Run) -> None:
    async def scenario() -> None:
        clock = HandClock()
        async with calling(good, clock, connections_max_idle_ms=1_000) as (other, channel):
            for _ in range(3):
                # Each call begins the time anew.
                await beat(channel)
                clock.advance(999)
                await settle()
                assert other.open == 1
            clock.advance(1)
            await until(lambda: other.open == 0)
            assert not channel.connected
            call = asyncio.ensure_future(beat(channel))
            await settle()
            clock.advance(2)
            assert (await call).version == 4
            assert other.connections == 2

    run(scenario())


def test_a_connection_with_a_call_under_way_is_not_idle(run: Run) -> None:
    async def scenario() -> None:
        clock = HandClock()
        async with calling(_hearing_only, clock, connections_max_idle_ms=100) as (other, channel):
            call = asyncio.ensure_future(beat(channel, 5_000))
            await until(lambda: other.open == 1 and clock.pending == [5_000])
            clock.advance(4_999)
            await settle()
            assert (other.open, call.done()) == (1, False)
            clock.advance(1)
            with pytest.raises(CallTimedOut):
                await call

    run(scenario())


async def _hearing_only(side: PeerSide) -> None:
    await side.negotiate()
    while True:
        await side.request()


def test_a_cancelled_call_that_is_never_answered_ends_the_connection_too(run: Run) -> None:
    async def scenario() -> None:
        clock, heard = HandClock(), asyncio.Event()

        async def hearing(side: PeerSide) -> None:
            await side.negotiate()
            await side.request()
            heard.set()
            await side.ended()

        async with calling(in_turn(hearing, good), clock) as (other, channel):
            call = asyncio.ensure_future(beat(channel, 1_000))
            # A call that is cancelled before it was sent leaves the connection as it is.
            await until(heard.is_set)
            call.cancel()
            await settle()
            assert other.open == 1
            clock.advance(1_000)
            await until(lambda: other.open == 0)
            await settle()

    run(scenario())


def test_a_peer_that_accepts_and_says_nothing(run: Run) -> None:
    async def deaf(side: PeerSide) -> None:
        await side.request()
        await side.ended()

    async def scenario() -> None:
        clock = HandClock()
        settings = {"socket_connection_setup_timeout_ms": 400}
        async with calling(in_turn(deaf, good), clock, **settings) as (other, channel):
            call = asyncio.ensure_future(beat(channel, 5_000))
            await until(lambda: other.open == 1)
            clock.advance(400)
            with pytest.raises(ChannelError, match="not connected within 400 ms"):
                await call
            again = asyncio.ensure_future(beat(channel, 5_000))
            await settle()
            clock.advance(2)
            assert (await again).version == 4

    run(scenario())


def test_a_peer_that_is_slow_to_connect_is_given_more_time_with_each_failure(run: Run) -> None:
    async def deaf(side: PeerSide) -> None:
        await side.request()
        await side.ended()

    async def scenario() -> None:
        clock = HandClock()
        settings = {
            "reconnect_backoff_ms": 0,
            "reconnect_backoff_max_ms": 0,
            "socket_connection_setup_timeout_ms": 100,
            "socket_connection_setup_timeout_max_ms": 1_000,
        }
        timeouts = []
        async with calling(deaf, clock, **settings) as (other, channel):
            for _ in range(7):
                call = asyncio.ensure_future(beat(channel, 60_000))
                await until(lambda: other.open == 1)
                clock.advance(1_000)
                with pytest.raises(ChannelError) as failed:
                    await call
                timeouts.append(int(str(failed.value).split()[-2]))
                await until(lambda: other.open == 0)
        assert timeouts[0] == 100
        assert 320 <= timeouts[3] <= 480
        assert timeouts[-1] <= 1_000

    run(scenario())


def test_a_call_does_not_wait_for_a_connection_longer_than_its_time(run: Run) -> None:
    async def deaf(side: PeerSide) -> None:
        await side.request()
        await side.ended()

    async def scenario() -> None:
        clock = HandClock()
        async with calling(deaf, clock) as (other, channel):
            call = asyncio.ensure_future(beat(channel, 30))
            await until(lambda: other.open == 1)
            clock.advance(30)
            with pytest.raises(CallTimedOut, match="could not be sent within 30 ms"):
                await call
            # The attempt goes on for who comes next.
            assert other.open == 1

    run(scenario())


def test_an_older_peer_is_asked_again_in_a_version_it_knows(run: Run) -> None:
    asked: list[tuple[ApiKey, int]] = []

    async def old(side: PeerSide) -> None:
        api, version, correlation_id, _ = await side.request()
        asked.append((api.key, version))
        refusal = api_versions(
            {ApiKey.API_VERSIONS: (0, 2)}, error_code=ErrorCode.UNSUPPORTED_VERSION
        )
        side.send(encode_response_frame(api, 0, correlation_id, refusal))
        known = api_versions({ApiKey.API_VERSIONS: (0, 2), ApiKey.HEARTBEAT: (0, 1)})
        for response in (known, GOOD):
            api, version = await side.answer(response)
            asked.append((api.key, version))
        await side.ended()

    async def scenario() -> None:
        async with calling(old) as (_, channel):
            assert (await beat(channel)).version == 1
            assert asked == [
                (ApiKey.API_VERSIONS, 4),
                (ApiKey.API_VERSIONS, 2),
                (ApiKey.HEARTBEAT, 1),
            ]

    run(scenario())


@pytest.mark.parametrize(
    "response",
    [
        pytest.param(
            api_versions({ApiKey.API_VERSIONS: (9, 9)}, error_code=ErrorCode.UNSUPPORTED_VERSION),
            id="too new",
        ),
        pytest.param(
            api_versions({ApiKey.API_VERSIONS: (4, 4)}, error_code=ErrorCode.UNSUPPORTED_VERSION),
            id="contradicts itself",
        ),
        pytest.param(api_versions({}, error_code=ErrorCode.INVALID_REQUEST), id="refused"),
    ],
)
def test_no_version_of_api_versions_fits(run: Run, response: Any) -> None:
    async def odd(side: PeerSide) -> None:
        api, _, correlation_id, _ = await side.request()
        side.send(encode_response_frame(api, 0, correlation_id, response))
        await side.ended()

    async def scenario() -> None:
        async with calling(odd) as (_, channel):
            with pytest.raises(ChannelError, match=r"Heartbeat to node 2 .*ApiVersions v4"):
                await beat(channel)

    run(scenario())


def test_versions_that_do_not_meet_are_named(run: Run) -> None:
    async def newer(side: PeerSide) -> None:
        await side.answer(api_versions({ApiKey.HEARTBEAT: (7, 9)}))
        await side.ended()

    async def scenario() -> None:
        async with calling(newer) as (_, channel):
            expected = "node 2 at .* supports versions 7 to 9 of Heartbeat only, .* 0 to 4 are"
            with pytest.raises(UnsupportedVersion, match=expected):
                await beat(channel)

    run(scenario())
