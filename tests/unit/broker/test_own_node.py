"""What a node relies on when it talks to itself, registers its controller, or waits for news."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from moldau.broker.controller_registration import ControllerRegistrationManager
from moldau.broker.image_waits import ImageWaits
from moldau.broker.local_channel import LoopbackTransport
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.features import LATEST_METADATA_VERSION, METADATA_VERSION
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import ControllerNode, Endpoint
from moldau.broker.network.context import RequestContext
from moldau.broker.network.dispatcher import Dispatcher
from moldau.broker.network.routes import Route
from moldau.peers.channel import CallTimedOut, ChannelError, UnsupportedVersion
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    MetadataRequest,
)
from support.channels import HandClock, settle

OWN, OTHER = UUID(int=1), UUID(int=2)


class Others:
    """A transport that says who was asked for."""

    def channel(self, node_id: int, host: str, port: int, listener_name: str) -> Any:
        return (node_id, host, port, listener_name)


def own_channel(handle: Any) -> Any:
    transport = LoopbackTransport(7, Others())
    channel = transport.channel(7, "here", 1, "CONTROLLER")
    transport.serve("CONTROLLER", Dispatcher({ApiKey.HEARTBEAT: Route(handle)}))
    return channel


def test_other_nodes_are_reached_over_the_network() -> None:
    transport: Any = LoopbackTransport(7, Others())
    assert transport.channel(8, "there", 9093, "CONTROLLER") == (8, "there", 9093, "CONTROLLER")


def test_the_node_itself_answers_as_it_would_others() -> None:
    seen: list[RequestContext] = []

    def answer(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
        seen.append(context)
        return HeartbeatResponse(error_code=request.generation_id)

    async def answer_later(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
        await asyncio.sleep(0)
        raise ApiError(ErrorCode.NOT_CONTROLLER, "another is")

    async def ask(handle: Any) -> Message:
        call = own_channel(handle).call
        response = await call(ApiKey.HEARTBEAT, HeartbeatRequest(generation_id=3), timeout_ms=9_000)
        assert isinstance(response, Message)
        return response

    assert asyncio.run(ask(answer)) == HeartbeatResponse(error_code=3)
    (context,) = seen
    assert context.listener_name == "CONTROLLER"
    assert context.api_version == API_BY_KEY[ApiKey.HEARTBEAT].max_version
    refused = asyncio.run(ask(answer_later))
    assert refused == HeartbeatResponse(error_code=ErrorCode.NOT_CONTROLLER)


def test_calls_to_the_node_itself_fail_as_others_do() -> None:
    async def never(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
        await asyncio.get_running_loop().create_future()
        return HeartbeatResponse()

    async def check() -> None:
        channel = own_channel(never)
        with pytest.raises(CallTimedOut, match="Heartbeat"):
            await channel.call(ApiKey.HEARTBEAT, HeartbeatRequest(), timeout_ms=1)
        with pytest.raises(UnsupportedVersion, match="Metadata"):
            await channel.call(ApiKey.METADATA, MetadataRequest(), timeout_ms=1)
        closed = LoopbackTransport(7, Others()).channel(7, "here", 1, "CONTROLLER")
        with pytest.raises(ChannelError, match="does not serve"):
            await closed.call(ApiKey.HEARTBEAT, HeartbeatRequest(), timeout_ms=1)

    asyncio.run(check())


def image_with(**controllers: UUID) -> MetadataImage:
    image = MetadataImage()
    image.features[METADATA_VERSION] = LATEST_METADATA_VERSION
    for name, incarnation_id in controllers.items():
        node_id = int(name[1:])
        image.controllers[node_id] = ControllerNode(id=node_id, incarnation_id=incarnation_id)
    return image


def test_a_controller_registers_until_the_metadata_have_it() -> None:
    sent: list[ControllerRegistrationRequest] = []
    answers: list[Any] = [
        ChannelError("nobody there"),
        ControllerRegistrationResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR),
        ControllerRegistrationResponse(),
    ]

    class Controller:
        async def call(self, key: ApiKey, request: Message, *, timeout_ms: int) -> Message:
            assert isinstance(request, ControllerRegistrationRequest)
            sent.append(request)
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            assert isinstance(answer, Message)
            return answer

    async def check() -> None:
        clock = HandClock()
        controller: Any = Controller()
        manager = ControllerRegistrationManager(
            node_id=7,
            incarnation_id=OWN,
            endpoints=(Endpoint(name="CONTROLLER", host="here", port=9093, security_protocol=0),),
            controller=controller,
            clock=clock,
        )
        manager.apply(MetadataDelta(), MetadataImage())
        await settle()
        assert sent == []  # a cluster of an older metadata.version knows no such record
        manager.apply(MetadataDelta(), image_with(_7=OTHER))
        await settle()
        while answers:
            clock.advance(500)
            await settle()
        assert [request.incarnation_id for request in sent] == [OWN] * 3
        assert [(each.host, each.port) for each in sent[0].listeners] == [("here", 9093)]
        manager.apply(MetadataDelta(), image_with(_7=OWN))
        clock.advance(10_000)
        await settle()
        assert len(sent) == 3
        answers.append(ControllerRegistrationResponse())
        manager.apply(MetadataDelta(), image_with(_7=OTHER))
        await settle()
        assert len(sent) == 4
        manager.close()
        await settle()
        assert clock.pending == []

    asyncio.run(check())


def test_waiting_for_news_ends_with_them_or_in_time() -> None:
    async def check() -> None:
        clock, image = HandClock(), MetadataImage()
        waits = ImageWaits(lambda: image, clock)

        def known(image: MetadataImage) -> bool:
            return 7 in image.controllers

        first = asyncio.ensure_future(waits.until(known, timeout_ms=100))
        second = asyncio.ensure_future(waits.until(known, timeout_ms=200))
        await settle()
        clock.advance(100)
        waits.apply(MetadataDelta(), image)
        await settle()
        assert (first.done(), second.done()) == (True, False)
        image.controllers[7] = ControllerNode(id=7, incarnation_id=OWN)
        waits.apply(MetadataDelta(), image)
        assert (await first, await second) == (False, True)
        assert await waits.until(known, timeout_ms=0)
        assert clock.pending == []

    asyncio.run(check())
