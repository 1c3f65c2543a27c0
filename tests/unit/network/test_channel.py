"""Calls to another node: the real channel, on real sockets, to the real dispatcher."""

from __future__ import annotations

import asyncio
import gc
import itertools
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from moldau.broker.handlers.api_versions import ApiVersionsHandler, FeatureLevels
from moldau.broker.network.context import RequestContext
from moldau.broker.network.dispatcher import Dispatcher
from moldau.broker.network.routes import Route
from moldau.broker.network.server import SocketNetwork
from moldau.clock import LoopClock
from moldau.peers.channel import ChannelError, Transport, UnsupportedVersion
from moldau.peers.machine.backoff import ExponentialBackoff
from moldau.peers.node_channel import NodeChannel, response_bytes_max
from moldau.peers.node_connection import NodeConnection
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.framing import encode_response_frame
from moldau.wire.messages import (
    FetchRequest,
    FetchResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    InitProducerIdRequest,
    MetadataRequest,
    MetadataResponse,
)
from support.channels import HandClock, NoJitter, listen, settle, transport, until

Run = Callable[[Coroutine[Any, Any, None]], None]


class Node:
    """A server that answers Heartbeat with the generation it was asked with, as throttle time."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked: list[int] = []
        self.contexts: list[RequestContext] = []
        self.records = b""
        routes = {
            ApiKey.HEARTBEAT: Route(self._heartbeat, max_version=3),
            ApiKey.METADATA: Route(self._metadata),
            ApiKey.FETCH: Route(self._fetch, raw=True),
        }
        versions = ApiVersionsHandler(routes, lambda: FeatureLevels({}, {}, -1))
        routes[ApiKey.API_VERSIONS] = Route(versions.handle)
        self._dispatcher = Dispatcher(routes)
        self.network: SocketNetwork

    async def start(self, port: int = 0) -> None:
        self.network = await listen(self._dispatcher, port=port)

    @property
    def port(self) -> int:
        return self.network.addresses["PLAINTEXT"][1]

    async def stop(self) -> None:
        await self.network.stop(0.1)
        await self._dispatcher.stop()

    async def _heartbeat(
        self, context: RequestContext, request: HeartbeatRequest
    ) -> HeartbeatResponse:
        self.asked.append(request.generation_id)
        self.contexts.append(context)
        await self.gate.wait()
        return HeartbeatResponse(throttle_time_ms=request.generation_id)

    def _metadata(self, context: RequestContext, request: MetadataRequest) -> MetadataResponse:
        return MetadataResponse(cluster_id="x" * 100)

    def _fetch(self, context: RequestContext, frame: memoryview, position: int) -> bytes:
        partition = FetchResponse.PartitionData(records=self.records)
        topic = FetchResponse.FetchableTopicResponse(partitions=[partition])
        return encode_response_frame(
            API_BY_KEY[ApiKey.FETCH],
            context.api_version,
            context.correlation_id,
            FetchResponse(responses=[topic]),
        )


@asynccontextmanager
async def node_and_channel(**settings: int) -> AsyncIterator[tuple[Node, NodeChannel]]:
    node = Node()
    await node.start()
    channels = transport(LoopClock(), **settings)
    channel = channels.channel(2, "127.0.0.1", node.port, "PLAINTEXT")
    try:
        async with asyncio.timeout(60):
            yield node, channel
    finally:
        channels.close()
        await until(lambda: node.network.connection_count == 0)
        await node.stop()
        await settle()
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


def heartbeat(number: int) -> HeartbeatRequest:
    return HeartbeatRequest(group_id="g", generation_id=number, member_id="m")


async def beat(channel: NodeChannel, number: int, timeout_ms: int = 10_000) -> int:
    response = await channel.call(ApiKey.HEARTBEAT, heartbeat(number), timeout_ms=timeout_ms)
    assert isinstance(response, HeartbeatResponse)
    return response.throttle_time_ms


def test_a_call_gives_the_response(run: Run) -> None:
    async def scenario() -> None:
        async with node_and_channel() as (node, channel):
            assert node.network.connection_count == 0  # nothing before it is needed
            assert await beat(channel, 7) == 7
            context = node.contexts[0]
            assert (context.client_id, context.api_version) == ("node-1", 3)
            assert context.connection.client_software_name == "moldau"

    run(scenario())


def test_one_connection_carries_all_calls_in_order(run: Run) -> None:
    async def scenario() -> None:
        async with node_and_channel(calls_in_flight_max=4) as (node, channel):
            numbers = list(range(40))
            assert await asyncio.gather(*(beat(channel, number) for number in numbers)) == numbers
            assert node.asked == numbers
            assert len({context.connection_id for context in node.contexts}) == 1

    run(scenario())


class Watch:
    """An observer whose clock stands still until it is put forward."""

    def __init__(self) -> None:
        self.time_ms = 0
        self.latencies_ms: list[int] = []

    def now_ms(self) -> int:
        return self.time_ms

    def connection_opened(self, node_id: int) -> None: ...

    def connection_closed(self, node_id: int) -> None: ...

    def request_sent(self, node_id: int, size: int) -> None: ...

    def response_received(self, node_id: int, size: int, latency_ms: int) -> None:
        self.latencies_ms.append(latency_ms)


class SlowWrites:
    """A transport whose process loses its core for 7 ms just after each write."""

    def __init__(self, transport: asyncio.WriteTransport, watch: Watch) -> None:
        self._transport = transport
        self._watch = watch

    def write(self, data: bytes) -> None:
        self._transport.write(data)
        self._watch.time_ms += 7

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class SlowConnection(NodeConnection):
    watch: Watch

    def connection_made(self, transport: Any) -> None:
        super().connection_made(SlowWrites(transport, self.watch))  # type: ignore[arg-type]


def test_a_latency_begins_before_the_peer_can_have_the_request(run: Run) -> None:
    async def scenario() -> None:
        node, watch = Node(), Watch()
        await node.start()
        connection = SlowConnection(
            "the node",
            client_id="c",
            response_bytes_max=10_000,
            on_progress=lambda: None,
            on_lost=lambda connection: None,
            observer=watch,
        )
        connection.watch = watch
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: connection, "127.0.0.1", node.port)
        await connection.negotiate("1")
        assert watch.latencies_ms == [7]
        connection.lose("the test is over")
        await node.stop()

    run(scenario())


def test_no_more_than_the_limit_are_sent_ahead(run: Run) -> None:
    async def scenario() -> None:
        async with node_and_channel(calls_in_flight_max=2, calls_waiting_max=3) as (node, channel):
            assert await beat(channel, 0) == 0
            node.gate.clear()
            calls = [asyncio.ensure_future(beat(channel, number)) for number in range(1, 6)]
            await until(lambda: node.asked == [0, 1])
            with pytest.raises(ChannelError, match="3 calls wait already"):
                await beat(channel, 6)
            node.gate.set()
            assert await asyncio.gather(*calls) == [1, 2, 3, 4, 5]

    run(scenario())


@pytest.mark.parametrize("size", [0, 10, 70_000, 5_000_000])
def test_a_raw_response_is_the_whole_body_and_the_callers_own(run: Run, size: int) -> None:
    async def scenario() -> None:
        async with node_and_channel() as (node, channel):
            node.records = bytes(range(256)) * (size // 256) + b"end"
            request = FetchRequest(max_wait_ms=0, min_bytes=0)
            first = await channel.call_raw(ApiKey.FETCH, request, timeout_ms=10_000)
            kept = bytes(first.body)
            node.records = b"other" * (size // 5 + 1)
            again = await channel.call(ApiKey.FETCH, request, timeout_ms=10_000)
            assert isinstance(again, FetchResponse)
            assert again.responses[0].partitions[0].records == node.records
            assert first.version == API_BY_KEY[ApiKey.FETCH].max_version
            assert first.body == kept
            assert b"end" in kept[-16:]

    run(scenario())


def test_a_version_may_be_held_down(run: Run) -> None:
    async def scenario() -> None:
        async with node_and_channel() as (node, channel):
            await channel.call(ApiKey.HEARTBEAT, heartbeat(1), timeout_ms=10_000, max_version=1)
            assert node.contexts[-1].api_version == 1

    run(scenario())


def test_what_the_peer_does_not_serve_is_named_and_harms_nothing(run: Run) -> None:
    async def scenario() -> None:
        async with node_and_channel() as (node, channel):
            expected = r"node 2 at .* does not support InitProducerId"
            with pytest.raises(UnsupportedVersion, match=expected):
                await channel.call(
                    ApiKey.INIT_PRODUCER_ID, InitProducerIdRequest(), timeout_ms=10_000
                )
            assert await beat(channel, 3) == 3
            assert node.network.connection_count == 1

    run(scenario())


def test_a_request_that_the_version_cannot_express_is_not_sent(run: Run) -> None:
    async def scenario() -> None:
        async with node_and_channel() as (node, channel):
            request = HeartbeatRequest(group_id="g", member_id="m", group_instance_id="i")
            with pytest.raises(UnsupportedVersion, match="Heartbeat in version 2 at most"):
                await channel.call(ApiKey.HEARTBEAT, request, timeout_ms=10_000, max_version=2)
            assert node.asked == []
            assert await beat(channel, 3) == 3

    run(scenario())


def test_a_peer_that_comes_back_is_found_again(run: Run) -> None:
    async def scenario() -> None:
        async with node_and_channel(reconnect_backoff_ms=1) as (node, channel):
            assert await beat(channel, 1) == 1
            port = node.port
            await node.stop()
            with pytest.raises(ChannelError, match="node 2"):
                await beat(channel, 2)
            await node.start(port)
            assert await beat(channel, 3) == 3

    run(scenario())


def test_close_fails_what_waits_and_what_comes(run: Run) -> None:
    async def scenario() -> None:
        async with node_and_channel(calls_in_flight_max=1) as (node, channel):
            node.gate.clear()
            calls = [asyncio.ensure_future(beat(channel, number)) for number in range(3)]
            await until(lambda: node.asked == [0])
            channel.close()
            channel.close()
            for result in await asyncio.gather(*calls, return_exceptions=True):
                assert isinstance(result, ChannelError)
                assert "closed" in str(result)
            with pytest.raises(ChannelError, match="the channel is closed"):
                await beat(channel, 4)
            node.gate.set()

    run(scenario())


def test_close_while_connecting_leaves_nothing(run: Run) -> None:
    async def scenario() -> None:
        for rounds in range(12):
            async with node_and_channel() as (_node, channel):
                call = asyncio.ensure_future(beat(channel, 1))
                await settle(rounds)
                channel.close()
                (result,) = await asyncio.gather(call, return_exceptions=True)
                assert result == 1 or isinstance(result, ChannelError)
        gc.collect()

    run(scenario())


def test_a_cancelled_call_leaves_the_others_their_answers(run: Run) -> None:
    async def scenario() -> None:
        async with node_and_channel(calls_in_flight_max=2) as (node, channel):
            assert await beat(channel, 0) == 0
            node.gate.clear()
            calls = [asyncio.ensure_future(beat(channel, number)) for number in range(1, 5)]
            await until(lambda: node.asked == [0, 1])
            for index in (0, 2):  # one was sent, one was not
                calls[index].cancel()
            await settle()
            node.gate.set()
            assert await calls[1] == 2
            assert await calls[3] == 4
            assert node.asked == [0, 1, 2, 4]

    run(scenario())


def test_an_unknown_host_is_an_error_of_the_call(run: Run) -> None:
    async def scenario() -> None:
        channels: Transport = transport(LoopClock())
        for host in ("no-such-host.invalid", "a..b", "x" * 70):
            channel = channels.channel(3, host, 9092, "PLAINTEXT")
            with pytest.raises(ChannelError, match="Heartbeat to node 3"):
                await channel.call(ApiKey.HEARTBEAT, heartbeat(1), timeout_ms=10_000)
            channel.close()

    run(scenario())


def test_a_refused_connection_is_tried_again_after_growing_pauses(run: Run) -> None:
    async def scenario() -> None:
        clock = HandClock()
        tries: list[int] = []

        async def refuse(factory: object, host: str, port: int) -> None:
            tries.append(clock.elapsed)
            raise ConnectionRefusedError(111, "refused")

        channels = transport(clock, refuse, reconnect_backoff_ms=50, reconnect_backoff_max_ms=300)
        channel = channels.channel(2, "127.0.0.1", 1, "PLAINTEXT")
        for _ in range(6):
            call = asyncio.ensure_future(beat(channel, 1))
            await settle()
            while not call.done():
                clock.advance(1)
                await settle(3)
            with pytest.raises(ChannelError, match=r"node 2 at 127\.0\.0\.1:1 .*refused"):
                await call
        gaps = [after - before for before, after in itertools.pairwise(tries)]
        assert gaps == [50, 100, 200, 300, 300]
        channels.close()
        assert clock.pending == []

    run(scenario())


def test_a_call_in_the_pause_ends_with_its_own_time(run: Run) -> None:
    async def scenario() -> None:
        clock = HandClock()

        async def refuse(factory: object, host: str, port: int) -> None:
            raise ConnectionRefusedError(111, "refused")

        channels = transport(clock, refuse, reconnect_backoff_ms=500)
        channel = channels.channel(2, "127.0.0.1", 1, "PLAINTEXT")
        with pytest.raises(ChannelError):
            await beat(channel, 1)
        call = asyncio.ensure_future(beat(channel, 1, timeout_ms=20))
        await settle()
        clock.advance(19)
        await settle()
        assert not call.done()
        clock.advance(1)
        with pytest.raises(ChannelError, match="could not be sent within 20 ms"):
            await call
        channels.close()
        await settle()
        assert clock.pending == []

    run(scenario())


def test_a_connection_that_worked_makes_the_next_pause_short_again(run: Run) -> None:
    async def scenario() -> None:
        clock = HandClock()
        node = Node()
        await node.start()
        refusing = 3
        tries: list[int] = []

        async def connect(factory: Any, host: str, port: int) -> None:
            nonlocal refusing
            tries.append(clock.elapsed)
            refusing -= 1
            if refusing >= 0:
                raise ConnectionRefusedError(111, "refused")
            await asyncio.get_running_loop().create_connection(factory, host, port)

        channels = transport(clock, connect, reconnect_backoff_ms=50)
        channel = channels.channel(2, "127.0.0.1", node.port, "PLAINTEXT")

        async def attempt() -> int:
            call = asyncio.ensure_future(beat(channel, 1))
            tried = len(tries)
            await settle()
            while len(tries) == tried and not call.done():
                clock.advance(1)
                await settle(3)
            return await call

        for _ in range(3):
            with pytest.raises(ChannelError):
                await attempt()
        assert await attempt() == 1
        port = node.port
        await node.stop()
        await until(lambda: channel._connection is None)
        await node.start(port)
        lost = clock.elapsed
        assert await attempt() == 1
        assert tries[-1] - lost == 50
        channels.close()
        await node.stop()

    run(scenario())


def test_a_connection_that_comes_too_late_is_closed(run: Run) -> None:
    class Late(asyncio.WriteTransport):
        aborted = False

        def abort(self) -> None:
            self.aborted = True

    async def scenario() -> None:
        made: list[Any] = []

        async def hang(factory: Any, host: str, port: int) -> None:
            made.append(factory())
            await asyncio.Event().wait()

        channels = transport(HandClock(), hang)
        channel = channels.channel(2, "127.0.0.1", 1, "PLAINTEXT")
        call = asyncio.ensure_future(beat(channel, 1))
        await settle()
        channel.close()
        with pytest.raises(ChannelError, match="the channel was closed"):
            await call
        await settle()
        late = Late()
        made[0].connection_made(late)
        assert late.aborted

    run(scenario())


def test_the_backoff_grows_to_its_limit_and_spreads() -> None:
    backoff = ExponentialBackoff(50, 1_000)
    assert [backoff.delay_ms(n, NoJitter()) for n in (1, 2, 3, 4, 5, 6, 100)] == [
        50, 100, 200, 400, 800, 1_000, 1_000
    ]  # fmt: skip

    class Edge(NoJitter):
        def __init__(self, top: bool) -> None:
            self.top = top

        def randrange(self, stop: int, /) -> int:
            return stop - 1 if self.top else 0

    assert [backoff.delay_ms(2, Edge(top)) for top in (False, True)] == [80, 120]
    assert backoff.delay_ms(9, Edge(True)) == 1_000


def test_a_response_may_hold_the_largest_batch_and_more() -> None:
    assert response_bytes_max(100) == 200
    assert response_bytes_max(2**31 - 1) == 2**31 - 1
