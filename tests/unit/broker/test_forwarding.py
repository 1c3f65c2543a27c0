"""A client asks a broker, the active controller answers: over real sockets, through failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from moldau.broker.controller_channel import (
    ControllerChannel,
    ControllerNode,
    ControllerUnavailable,
)
from moldau.broker.forwarding import (
    FORWARDING_TIMEOUT_MS_MAX,
    ForwardingManager,
    forwarding_timeout_ms,
)
from moldau.broker.handlers.api_versions import ApiVersionsHandler, FeatureLevels
from moldau.broker.handlers.envelope import EnvelopeHandler
from moldau.broker.network.context import RequestContext
from moldau.broker.network.dispatcher import Dispatcher
from moldau.broker.network.interface import InvalidRequest
from moldau.broker.network.routes import Route
from moldau.broker.network.server import SocketNetwork
from moldau.clock import LoopClock
from moldau.peers.channel import ChannelError, UnsupportedVersion
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    EnvelopeResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from support.channels import HandClock, listen, settle, transport, until

Answer = Callable[[RequestContext, Any], Any]


class Controller:
    """A node's controller listener: it answers as `answer` says, and notes who asked."""

    def __init__(self, node_id: int, answer: Answer) -> None:
        self.node_id = node_id
        self.answer = answer
        self.asked: list[RequestContext] = []
        routes = {
            ApiKey.CREATE_TOPICS: Route(self._handle, max_version=6),
            ApiKey.UPDATE_FEATURES: Route(self._handle),
            ApiKey.DESCRIBE_QUORUM: Route(self._handle),
        }
        envelope = EnvelopeHandler(
            lambda connection, frame: self._requests.dispatch(connection, frame)
        )
        routes[ApiKey.ENVELOPE] = Route(envelope.handle)
        versions = ApiVersionsHandler(
            routes, lambda: FeatureLevels({}, {}, -1), broker_listener=False
        )
        routes[ApiKey.API_VERSIONS] = Route(versions.handle)
        self._requests = Dispatcher(routes)
        self.network: SocketNetwork

    async def start(self) -> None:
        self.network = await listen(self._requests, name="CONTROLLER")

    async def stop(self) -> None:
        await self.network.stop(0)
        await self._requests.stop()

    @property
    def node(self) -> ControllerNode:
        host, port = self.network.addresses["CONTROLLER"]
        return ControllerNode(self.node_id, host, port, "CONTROLLER")

    async def _handle(self, context: RequestContext, request: Message) -> Message:
        self.asked.append(context)
        response = self.answer(context, request)
        if asyncio.iscoroutine(response):
            response = await response
        assert isinstance(response, Message)
        return response


class Stage:
    """A broker with two controllers; `active` is whom it takes for the active one."""

    def __init__(self, clock: Any) -> None:
        self.one = Controller(1, created)
        self.two = Controller(2, created)
        self.active: Controller | None = self.one
        self.lookups = 0
        self._transport = transport(clock, reconnect_backoff_ms=1, reconnect_backoff_max_ms=5)
        self.channel = ControllerChannel(
            self._transport, self._find, clock, request_timeout_ms=30_000
        )
        self.forwarding = ForwardingManager(self.channel)

    def _find(self) -> ControllerNode | None:
        self.lookups += 1
        return None if self.active is None else self.active.node

    def close(self) -> None:
        self.channel.close()
        self._transport.close()


@asynccontextmanager
async def stage(clock: Any = None) -> AsyncIterator[Stage]:
    it = Stage(clock or LoopClock())
    await it.one.start()
    await it.two.start()
    try:
        async with asyncio.timeout(60):
            yield it
    finally:
        it.close()
        await it.one.stop()
        await it.two.stop()
        await settle()
        assert len(asyncio.all_tasks()) == 1


def created(context: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    result = CreateTopicsResponse.CreatableTopicResult
    return CreateTopicsResponse(topics=[result(name=topic.name) for topic in request.topics])


def refused(code: ErrorCode) -> Answer:
    def answer(context: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
        result = CreateTopicsResponse.CreatableTopicResult
        return CreateTopicsResponse(
            topics=[result(name=topic.name, error_code=code) for topic in request.topics]
        )

    return answer


def failing(error: Exception) -> Answer:
    def answer(context: RequestContext, request: Message) -> Message:
        raise error

    return answer


def request(*names: str, timeout_ms: int = 5_000) -> CreateTopicsRequest:
    topics = [CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1) for name in names]
    return CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms)


def context(key: ApiKey = ApiKey.CREATE_TOPICS, version: int = 5) -> RequestContext:
    return RequestContext(
        key,
        version,
        correlation_id=77,
        client_id="an app",
        principal="User:alice",
        client_host="fe80::1%eth0",
    )


def errors(response: Message) -> list[int]:
    assert isinstance(response, CreateTopicsResponse)
    return [topic.error_code for topic in response.topics]


def test_the_controller_sees_the_client_and_the_client_the_controllers_answer() -> None:
    async def scenario() -> None:
        async with stage() as it:
            response = await it.forwarding.forward(context(), request("a", "b"))
            assert response == created(context(), request("a", "b"))
            (asked,) = it.one.asked
            assert (asked.principal, asked.client_host, asked.client_id) == (
                "User:alice",
                "fe80::1",
                "an app",
            )
            assert (asked.api_version, asked.correlation_id) == (5, 77)
            assert asked.listener_name == "CONTROLLER"

    asyncio.run(scenario())


def test_an_error_of_the_controller_is_the_clients() -> None:
    async def scenario() -> None:
        async with stage() as it:
            it.one.answer = refused(ErrorCode.TOPIC_ALREADY_EXISTS)
            response = await it.forwarding.forward(context(), request("a"))
            assert errors(response) == [ErrorCode.TOPIC_ALREADY_EXISTS]
            # A refusal of the whole reaches each topic, though CreateTopics has no place for it.
            it.one.answer = failing(ApiError(ErrorCode.POLICY_VIOLATION, "no more topics"))
            response = await it.forwarding.forward(context(), request("a", "b"))
            assert errors(response) == [ErrorCode.POLICY_VIOLATION] * 2
            assert isinstance(response, CreateTopicsResponse)
            assert response.topics[0].error_message == "no more topics"

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(refused(ErrorCode.NOT_CONTROLLER), id="in an answer"),
        pytest.param(failing(ApiError(ErrorCode.NOT_CONTROLLER)), id="instead of an answer"),
    ],
)
def test_who_is_not_the_controller_is_asked_until_the_right_one_is_known(answer: Answer) -> None:
    async def scenario() -> None:
        async with stage() as it:
            it.one.answer = answer
            call = asyncio.ensure_future(it.forwarding.forward(context(), request("a")))
            await until(lambda: len(it.one.asked) > 1)
            it.active = it.two
            assert errors(await call) == [0]
            assert len(it.two.asked) == 1
            await until(lambda: it.one.network.connection_count == 0)

    asyncio.run(scenario())


def test_topics_that_a_former_controller_refuses_are_asked_of_the_next() -> None:
    """CreateTopics has no error for the whole: each topic says that it is not the controller."""

    async def scenario() -> None:
        async with stage() as it:
            it.one.answer = refused(ErrorCode.NOT_CONTROLLER)
            call = asyncio.ensure_future(
                it.channel.call(ApiKey.CREATE_TOPICS, request("a"), timeout_ms=60_000)
            )
            await until(lambda: len(it.one.asked) > 1)
            it.active = it.two
            assert errors(await call) == [0]

    asyncio.run(scenario())


def test_who_is_not_the_controller_is_not_asked_without_pause() -> None:
    class Stale:
        asked = 0

        def channel(self, *node: Any) -> Any:
            return self

        async def call(self, key: ApiKey, request: Message, *, timeout_ms: int) -> Message:
            self.asked += 1
            return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)

        def close(self) -> None:
            pass

    async def scenario() -> None:
        clock, stale = HandClock(), Stale()
        node = ControllerNode(1, "127.0.0.1", 1, "CONTROLLER")
        channel = ControllerChannel(stale, lambda: node, clock, request_timeout_ms=30_000)
        call = asyncio.ensure_future(
            channel.call(ApiKey.ENVELOPE, EnvelopeResponse(), timeout_ms=1_000)
        )
        for _ in range(10):
            await settle()
            clock.advance(100)
        with pytest.raises(ControllerUnavailable, match="node 1 is not the active controller"):
            await call
        assert stale.asked == 10

    asyncio.run(scenario())


def test_a_call_goes_on_as_soon_as_a_controller_is_known() -> None:
    async def scenario() -> None:
        clock = HandClock()
        async with stage(clock) as it:
            it.active = None
            call = asyncio.ensure_future(it.forwarding.forward(context(), request("a")))
            await settle()
            assert clock.pending == [100]
            it.active = it.one
            it.channel.on_controller_changed()
            await until(lambda: len(it.one.asked) > 0)
            assert clock.elapsed_ms() == 1_000
            assert errors(await call) == [0]

    asyncio.run(scenario())


def test_describe_quorum_says_it_in_its_own_words() -> None:
    async def scenario() -> None:
        async with stage() as it:
            stale = DescribeQuorumResponse(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
            it.one.answer = lambda context, request: stale
            it.two.answer = lambda context, request: DescribeQuorumResponse()
            asking = context(ApiKey.DESCRIBE_QUORUM, 2)
            call = asyncio.ensure_future(it.forwarding.forward(asking, DescribeQuorumRequest()))
            await until(lambda: len(it.one.asked) > 0)
            it.active = it.two
            assert await call == DescribeQuorumResponse()

    asyncio.run(scenario())


def test_a_controller_that_dies_is_replaced() -> None:
    async def scenario() -> None:
        async with stage() as it:
            hanging = asyncio.Event()

            async def hang(context: RequestContext, request: Message) -> Message:
                await hanging.wait()
                return request

            it.one.answer = hang
            call = asyncio.ensure_future(it.forwarding.forward(context(), request("a")))
            await until(lambda: len(it.one.asked) == 1)
            # Before the end of the first is seen, which may be before `stop` returns.
            it.active = it.two
            await it.one.network.stop(0)
            assert errors(await call) == [0]

    asyncio.run(scenario())


def test_a_controller_that_hangs_is_left_when_another_is_known() -> None:
    async def scenario() -> None:
        async with stage() as it:
            hanging = asyncio.Event()

            async def hang(context: RequestContext, request: Message) -> Message:
                await hanging.wait()
                return request

            it.one.answer = hang
            call = asyncio.ensure_future(it.forwarding.forward(context(), request("a")))
            await until(lambda: len(it.one.asked) == 1)
            it.channel.on_controller_changed()
            await settle()
            assert not call.done()
            it.active = it.two
            it.channel.on_controller_changed()
            assert errors(await call) == [0]

    asyncio.run(scenario())


def test_without_a_controller_every_topic_times_out() -> None:
    async def scenario() -> None:
        clock = HandClock()
        async with stage(clock) as it:
            it.active = None
            call = asyncio.ensure_future(
                it.forwarding.forward(context(), request("a", "b", timeout_ms=250))
            )
            await settle()
            for passed in range(1, 251):
                assert not call.done(), passed
                clock.advance(1)
                await settle(3)
            assert errors(await call) == [ErrorCode.REQUEST_TIMED_OUT] * 2
            # It looked now and then, not all the time.
            assert it.lookups == 3
            assert clock.pending == []

    asyncio.run(scenario())


def test_a_version_that_the_controller_lacks_closes_the_clients_connection() -> None:
    async def scenario() -> None:
        async with stage() as it:
            with pytest.raises(InvalidRequest, match="does not know CreateTopics v7"):
                await it.forwarding.forward(context(version=7), request("a"))

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "envelope",
    [
        EnvelopeResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        EnvelopeResponse(response_data=None),
        EnvelopeResponse(response_data=b""),
        EnvelopeResponse(response_data=b"\0\0\0\1\0"),
        EnvelopeResponse(response_data=b"\0\0\0\x4d\0\xff"),
    ],
)
def test_what_goes_wrong_between_nodes_is_no_business_of_the_client(
    envelope: EnvelopeResponse,
) -> None:
    class Odd:
        async def call(self, key: ApiKey, request: Message, *, timeout_ms: int) -> Message:
            return envelope

    async def scenario() -> None:
        channel: Any = Odd()
        response = await ForwardingManager(channel).forward(context(), request("a"))
        assert errors(response) == [ErrorCode.UNKNOWN_SERVER_ERROR]

    asyncio.run(scenario())


def test_a_bug_of_the_controller_is_an_unknown_error() -> None:
    async def scenario() -> None:
        async with stage() as it:
            it.one.answer = failing(RuntimeError("a bug"))
            response = await it.forwarding.forward(context(), request("a"))
            assert errors(response) == [ErrorCode.UNKNOWN_SERVER_ERROR]
            other = context(ApiKey.UPDATE_FEATURES, 1)
            update = await it.forwarding.forward(other, UpdateFeaturesRequest())
            assert isinstance(update, UpdateFeaturesResponse)
            assert update.error_code == ErrorCode.UNKNOWN_SERVER_ERROR

    asyncio.run(scenario())


def test_a_peer_without_envelopes_is_an_unknown_error() -> None:
    class Old:
        async def call(self, key: ApiKey, request: Message, *, timeout_ms: int) -> Message:
            raise UnsupportedVersion("Envelope is not served by node 9")

    async def scenario() -> None:
        channel: Any = Old()
        response = await ForwardingManager(channel).forward(context(), request("a"))
        assert errors(response) == [ErrorCode.UNKNOWN_SERVER_ERROR]

    asyncio.run(scenario())


def test_the_way_to_the_controller_ends_when_closed() -> None:
    async def scenario() -> None:
        clock = HandClock()
        async with stage(clock) as it:
            it.active = None
            call = asyncio.ensure_future(
                it.channel.call(ApiKey.ENVELOPE, EnvelopeResponse(), timeout_ms=1_000)
            )
            await settle()
            it.channel.close()
            clock.advance(100)
            with pytest.raises(ChannelError, match="closed") as error:
                await call
            assert not isinstance(error.value, ControllerUnavailable)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("asked", "granted"),
    [(100, 100), (0, FORWARDING_TIMEOUT_MS_MAX), (-1, FORWARDING_TIMEOUT_MS_MAX), (10**9, 60_000)],
)
def test_forwarding_is_tried_as_long_as_the_client_waits(asked: int, granted: int) -> None:
    assert forwarding_timeout_ms(request("a", timeout_ms=asked)) == granted
    assert forwarding_timeout_ms(DescribeQuorumRequest()) == FORWARDING_TIMEOUT_MS_MAX
