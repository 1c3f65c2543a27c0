"""Topics are created automatically: once, without delay for clients, within a bounded time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.broker.config import BrokerConfig
from moldau.broker.controller_channel import ControllerUnavailable
from moldau.broker.topic_creation import (
    ANSWER_MS_MAX,
    KNOWN_MS_MAX,
    REJECTIONS_MAX,
    TopicCreation,
)
from moldau.peers.channel import ChannelError
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import CreateTopicsRequest, CreateTopicsResponse
from tests.support.channels import HandClock

PROPERTIES = {
    "node.id": "1",
    "process.roles": "broker",
    "listeners": "PLAINTEXT://localhost:9092",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "log.dirs": "/tmp/nowhere",
}


class World:
    """A controller that creates topics, and a broker whose metadata may lag behind."""

    def __init__(self, **properties: str) -> None:
        self.requests: list[CreateTopicsRequest] = []
        self.problem: Exception | None = None
        self.codes: dict[str, ErrorCode] = {}
        self.open = asyncio.Event()
        self.open.set()
        self.lags = False
        self.image: Any = SimpleNamespace(topics_by_name={}, topic=lambda name: self.known(name))
        self.clock = HandClock()
        config = BrokerConfig.from_properties(
            PROPERTIES | {name.replace("_", "."): value for name, value in properties.items()}
        )
        self.creation = TopicCreation(self, lambda: self.image, lambda: config, clock=self.clock)

    def known(self, name: str) -> object:
        return self.image.topics_by_name.get(name)

    async def call(self, key: ApiKey, request: Message, *, timeout_ms: int) -> Message:
        assert key is ApiKey.CREATE_TOPICS
        assert isinstance(request, CreateTopicsRequest)
        self.requests.append(request)
        await self.open.wait()
        if self.problem is not None:
            raise self.problem
        names = [topic.name for topic in request.topics]
        codes = {name: self.codes.get(name, ErrorCode.NONE) for name in names}
        if not self.lags:
            self.hear_of(*(name for name in names if codes[name] is ErrorCode.NONE))
        return CreateTopicsResponse(
            topics=[
                CreateTopicsResponse.CreatableTopicResult(name=name, error_code=codes[name])
                for name in names
            ]
        )

    def hear_of(self, *names: str) -> None:
        self.image.topics_by_name.update(dict.fromkeys(names, object()))
        delta: Any = None
        self.creation.apply(delta, self.image)

    @property
    def asked_for(self) -> list[list[str]]:
        return [[topic.name for topic in each.topics] for each in self.requests]

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)


def scenario(test: Callable[[World], Awaitable[None]]) -> Callable[[], None]:
    async def run() -> None:
        await asyncio.wait_for(test(World()), 60)

    def wrapped() -> None:
        asyncio.run(run())

    wrapped.__name__ = test.__name__
    return wrapped


OFFSETS = "__consumer_offsets"


@scenario
async def test_missing_topics_are_created_in_one_request(world: World) -> None:
    errors = world.creation.start(["a", "no/name", "b"])
    assert errors == {"no/name": ErrorCode.INVALID_TOPIC_EXCEPTION}
    await world.settle()
    assert world.asked_for == [["a", "b"]]
    assert world.known("a")
    assert world.known("b")


@scenario
async def test_many_requests_for_a_topic_create_it_once(world: World) -> None:
    world.open.clear()
    for names in (["a"], ["a"], ["a", "b"]):
        assert world.creation.start(names) == {}
        await world.settle()
    world.open.set()
    await world.settle()
    assert world.asked_for == [["a"], ["b"]]


@scenario
async def test_a_coordinator_that_gives_up_does_not_stop_the_creation(world: World) -> None:
    world.open.clear()
    first = asyncio.create_task(world.creation.ensure_internal_topic(OFFSETS))
    second = asyncio.create_task(world.creation.ensure_internal_topic(OFFSETS))
    await world.settle()
    first.cancel()
    await world.settle()
    world.open.set()
    await second
    assert world.asked_for == [[OFFSETS]]


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS])
def test_a_coordinator_waits_until_its_broker_knows_the_topic(code: ErrorCode) -> None:
    async def waits(world: World) -> None:
        world.lags = True
        world.codes = {OFFSETS: code}
        asking = asyncio.create_task(world.creation.ensure_internal_topic(OFFSETS))
        await world.settle()
        world.hear_of("other")
        await world.settle()
        assert not asking.done()
        world.hear_of(OFFSETS)
        await asking

    scenario(waits)()


@scenario
async def test_a_coordinator_waits_for_a_second_at_most(world: World) -> None:
    world.open.clear()
    asking = asyncio.create_task(world.creation.ensure_internal_topic(OFFSETS))
    await world.settle()
    world.clock.advance(ANSWER_MS_MAX)
    with pytest.raises(ApiError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        await asking
    # The first request is still in flight, so there is no second one.
    again = asyncio.create_task(world.creation.ensure_internal_topic(OFFSETS))
    await world.settle()
    world.open.set()
    await again
    assert world.asked_for == [[OFFSETS]]


@scenario
async def test_a_topic_that_never_arrives_can_be_requested_again(world: World) -> None:
    world.lags = True
    world.creation.start(["a"])
    await world.settle()
    world.clock.advance(KNOWN_MS_MAX)
    await world.settle()
    world.lags = False
    world.creation.start(["a"])
    await world.settle()
    assert world.known("a")
    assert world.asked_for == [["a"], ["a"]]


@scenario
async def test_the_next_request_returns_why_the_controller_rejected_a_topic(world: World) -> None:
    world.codes = {"a": ErrorCode.INVALID_REPLICATION_FACTOR}
    assert world.creation.start(["a", "b"]) == {}
    await world.settle()
    world.codes = {}
    assert world.creation.start(["a"]) == {"a": ErrorCode.INVALID_REPLICATION_FACTOR}
    await world.settle()
    assert world.known("a")
    assert world.creation.start(["a"]) == {}


@scenario
async def test_remembered_rejections_are_bounded(world: World) -> None:
    names = [f"t{number}" for number in range(REJECTIONS_MAX + 1)]
    world.codes = dict.fromkeys(names, ErrorCode.POLICY_VIOLATION)
    world.creation.start(names)
    await world.settle()
    world.open.clear()
    assert world.creation.start(names) == dict.fromkeys(names[1:], ErrorCode.POLICY_VIOLATION)


@scenario
async def test_without_a_controller_clients_and_coordinators_try_again(world: World) -> None:
    world.problem = ControllerUnavailable("nobody leads")
    world.creation.start(["a"])
    await world.settle()
    assert world.creation.start(["a"]) == {}
    with pytest.raises(ApiError) as refused:
        await world.creation.ensure_internal_topic(OFFSETS)
    assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (ControllerUnavailable("nobody leads"), ErrorCode.REQUEST_TIMED_OUT),
        (ChannelError("cut"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_who_asks_for_an_exact_topic_hears_why_not(problem: Exception, code: ErrorCode) -> None:
    async def refused(world: World) -> None:
        world.problem = problem
        with pytest.raises(ApiError) as error:
            await world.creation.create_topics(CreateTopicsRequest(topics=[]))
        assert error.value.code is code

    scenario(refused)()


@scenario
async def test_an_internal_topic_is_made_as_this_broker_is_configured(world: World) -> None:
    await world.creation.ensure_internal_topic("__transaction_state")
    (topic,) = world.requests[0].topics
    assert (topic.num_partitions, topic.replication_factor) == (50, 3)
    assert {each.name: each.value for each in topic.configs}["min.insync.replicas"] == "2"
    await world.creation.ensure_internal_topic("__transaction_state")
    assert len(world.requests) == 1


@pytest.mark.parametrize(
    ("properties", "shape"),
    [({}, (-1, -1)), ({"num_partitions": "7", "default_replication_factor": "2"}, (7, 2))],
)
def test_a_new_topics_shape_is_this_brokers_if_it_was_told_one(
    properties: dict[str, str], shape: tuple[int, int]
) -> None:
    async def created() -> None:
        world = World(**properties)
        world.creation.start(["a"])
        await world.settle()
        (topic,) = world.requests[0].topics
        assert (topic.num_partitions, topic.replication_factor) == shape

    asyncio.run(created())


@scenario
async def test_a_stop_leaves_no_coordinator_waiting(world: World) -> None:
    world.open.clear()
    asking = asyncio.create_task(world.creation.ensure_internal_topic(OFFSETS))
    await world.settle()
    await world.creation.stop()
    with pytest.raises(ApiError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        await asking
