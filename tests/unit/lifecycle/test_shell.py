"""The lifecycle as it runs: against a controller that a test plays, and against the real one."""

from __future__ import annotations

import asyncio
import gc
import random
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from moldau.broker.lifecycle.machine.events import BrokerState
from moldau.broker.lifecycle.machine.lifecycle import BrokerLifecycle, Identity
from moldau.broker.lifecycle.shell import BrokerLifecycleManager, LifecycleFailed
from moldau.broker.metadata.formatting import default_bootstrap_records
from moldau.broker.metadata.machine.activation import activate
from moldau.broker.metadata.machine.broker_lifecycle import process_heartbeat
from moldau.broker.metadata.machine.brokers import register_broker
from moldau.broker.metadata.machine.controller import Controller
from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.features import SUPPORTED_FEATURES
from moldau.broker.metadata.machine.model import Endpoint
from moldau.broker.metadata.machine.topics import create_topics
from moldau.broker.metadata.machine.view import ControllerConfig
from moldau.peers.channel import ChannelError
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    CreateTopicsRequest,
    VoteResponse,
)
from support.channels import HandClock, settle

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
SESSION_MS = 9_000
INTERVAL_MS = 2_000


class PlayedController:
    """Answers are put in by the test; what was sent is kept."""

    def __init__(self) -> None:
        self.sent: list[tuple[ApiKey, Any]] = []
        self.timeouts: list[int] = []
        self._waiting: list[asyncio.Future[Message]] = []

    async def call(self, key: ApiKey, request: Message, *, timeout_ms: int) -> Message:
        self.sent.append((key, request))
        self.timeouts.append(timeout_ms)
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        return await answer

    async def answer(self, response: Message | Exception) -> None:
        (waiting,) = self._waiting
        self._waiting.clear()
        if isinstance(response, Exception):
            waiting.set_exception(response)
        else:
            waiting.set_result(response)
        await settle()

    @property
    def keys(self) -> list[ApiKey]:
        return [key for key, _ in self.sent]


class RealController:
    """The controller's own decisions, written at once; several brokers may call it."""

    def __init__(self, clock: HandClock) -> None:
        self._clock = clock
        rules: Any = AnyConfig()
        config = ControllerConfig(node_id=1, cluster_id=CLUSTER_ID)
        self.controller = Controller(config, rules, random.Random(3))
        self.apply(activate(self.controller, default_bootstrap_records()))
        self.controller.lead(clock.elapsed_ms())
        self.away = False

    def apply(self, decision: Decision[Any]) -> Any:
        self.controller.replay(decision.records, base_offset=self.controller.next_offset)
        return decision.response

    def pass_time(self) -> None:
        """What the controller does by itself: fence who is silent."""
        now_ms = self._clock.elapsed_ms()
        while (decision := self.controller.on_time(now_ms)) is not None:
            self.apply(decision)

    async def call(self, key: ApiKey, request: Message, *, timeout_ms: int) -> Message:
        await asyncio.sleep(0)
        if self.away:
            raise ChannelError("node 1 is away")
        now_ms = self._clock.elapsed_ms()
        try:
            if isinstance(request, BrokerRegistrationRequest):
                return self._answered(
                    register_broker(self.controller, request, now_ms=now_ms, api_version=4)
                )
            assert isinstance(request, BrokerHeartbeatRequest)
            return self._answered(process_heartbeat(self.controller, request, now_ms=now_ms))
        except ApiError as error:
            if key is ApiKey.BROKER_REGISTRATION:
                return BrokerRegistrationResponse(error_code=error.code)
            return BrokerHeartbeatResponse(error_code=error.code)

    def _answered(self, decision: Decision[Any]) -> Message:
        response = self.apply(decision)
        assert isinstance(response, Message)
        return response


class AnyConfig:
    """Takes every configuration and has none of its own."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *values, **named: []


class Node:
    """One broker's lifecycle and what came of it."""

    def __init__(self, controller: Any, clock: HandClock, *, broker_id: int, run: int) -> None:
        self.offset = 0
        self.failures: list[BaseException] = []
        identity = Identity(
            broker_id=broker_id,
            cluster_id=CLUSTER_ID,
            incarnation_id=UUID(int=1_000 * broker_id + run),
            endpoints=(Endpoint(name="PLAINTEXT", host=f"host{broker_id}", port=9092),),
            features={
                name: (each.min_version, each.max_version)
                for name, each in SUPPORTED_FEATURES.items()
            },
            log_dirs=(UUID(int=100_000 * broker_id),),
        )
        self.manager = BrokerLifecycleManager(
            BrokerLifecycle(
                identity, heartbeat_interval_ms=INTERVAL_MS, registration_timeout_ms=60_000
            ),
            controller,
            clock,
            session_timeout_ms=SESSION_MS,
            metadata_offset=lambda: self.offset,
            on_failure=self.failures.append,
        )


@asynccontextmanager
async def cleanly(clock: HandClock, *nodes: Node) -> AsyncIterator[None]:
    """Nothing is left of the nodes once they are closed."""
    async with asyncio.timeout(60):
        yield
    for node in nodes:
        node.manager.close()
        node.manager.close()
    await settle()
    assert clock.pending == []
    assert len(asyncio.all_tasks()) == 1
    assert all(node.manager.stopped.done() for node in nodes)


async def pass_time(clock: HandClock, delay_ms: int) -> None:
    await settle()
    clock.advance(delay_ms)
    await settle()


def test_registration_then_heartbeats_in_their_times() -> None:
    async def scenario() -> None:
        clock, controller = HandClock(), PlayedController()
        node = Node(controller, clock, broker_id=2, run=1)
        manager = node.manager
        async with cleanly(clock, node):
            manager.start()
            await pass_time(clock, 0)
            assert controller.keys == [ApiKey.BROKER_REGISTRATION]
            assert controller.timeouts == [SESSION_MS // 2]
            await controller.answer(BrokerRegistrationResponse(broker_epoch=9))
            assert manager.broker_epoch == 9
            node.offset = 8
            await pass_time(clock, 0)
            assert controller.sent[-1][1].current_metadata_offset == 8
            await controller.answer(BrokerHeartbeatResponse(is_caught_up=True))
            assert manager.caught_up.done()
            assert not manager.unfenced.done()
            await pass_time(clock, 10)
            await controller.answer(BrokerHeartbeatResponse(is_caught_up=True))
            # What is ready now does not wait for the next heartbeat.
            manager.set_ready_to_unfence()
            await pass_time(clock, 0)
            assert not controller.sent[-1][1].want_fence
            await controller.answer(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False))
            assert manager.unfenced.done()
            count = len(controller.sent)
            await pass_time(clock, INTERVAL_MS - 1)
            assert len(controller.sent) == count
            await pass_time(clock, 1)
            assert len(controller.sent) == count + 1
            await controller.answer(BrokerHeartbeatResponse(is_fenced=False))

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "answer",
    [
        ChannelError("cut"),
        VoteResponse(),
        BrokerRegistrationResponse(error_code=30_000),
        BrokerRegistrationResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID),
    ],
)
def test_who_cannot_register_fails_with_the_reason(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        clock, controller = HandClock(), PlayedController()
        node = Node(controller, clock, broker_id=2, run=1)
        async with cleanly(clock, node):
            node.manager.start()
            while not node.failures:
                await pass_time(clock, 0)
                await controller.answer(answer)
                await pass_time(clock, INTERVAL_MS)
            assert controller.keys == [ApiKey.BROKER_REGISTRATION] * 30
            (failure,) = node.failures
            assert isinstance(failure, LifecycleFailed)
            assert "initial.broker.registration.timeout.ms" in str(failure)
            assert node.manager.caught_up.cancelled()
            assert node.manager.unfenced.cancelled()
            assert node.manager.state is BrokerState.SHUTTING_DOWN
        assert len(caplog.records) == 1

    asyncio.run(scenario())


def test_closing_gives_up_the_request_under_way() -> None:
    async def scenario() -> None:
        clock, controller = HandClock(), PlayedController()
        node = Node(controller, clock, broker_id=2, run=1)
        async with cleanly(clock, node):
            node.manager.start()
            await pass_time(clock, 0)
            node.manager.close()
            await settle()
            assert node.manager.stopped.done()
            node.manager.set_ready_to_unfence()
            await pass_time(clock, 100_000)
            assert len(controller.sent) == 1
            assert node.failures == []

    asyncio.run(scenario())


def test_a_request_that_is_given_up_before_it_began_leaves_nothing() -> None:
    async def scenario() -> None:
        clock, controller = HandClock(), PlayedController()
        node = Node(controller, clock, broker_id=2, run=1)
        async with cleanly(clock, node):
            node.manager.start()
            # The timer creates the request's task, which does not get its turn.
            clock.advance(0)
            node.manager.close()
            await settle()
            assert controller.sent == []

    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        asyncio.run(scenario())
        gc.collect()
    assert [str(each.message) for each in raised] == []


def test_a_bug_is_a_failure_of_the_broker() -> None:
    async def scenario() -> None:
        clock, controller = HandClock(), PlayedController()
        node = Node(controller, clock, broker_id=2, run=1)
        async with cleanly(clock, node):
            node.manager.start()
            await pass_time(clock, 0)
            await controller.answer(RuntimeError("a bug"))
            assert [str(each) for each in node.failures] == ["a bug"]

    asyncio.run(scenario())


# Against the controller's own decisions.


async def bring_up(clock: HandClock, controller: RealController, node: Node) -> None:
    node.manager.start()
    await pass_time(clock, 0)
    await pass_time(clock, 0)
    # Fenced it stays until its metadata has passed its registration.
    assert node.manager.broker_epoch >= 0
    for _ in range(3):
        await pass_time(clock, 10)
    assert not node.manager.caught_up.done()
    node.offset = controller.controller.next_offset - 1
    await pass_time(clock, 10)
    assert node.manager.caught_up.done()
    node.manager.set_ready_to_unfence()
    for _ in range(3):
        await pass_time(clock, 10)
    assert node.manager.unfenced.done()


def test_brokers_come_up_hand_over_and_go() -> None:
    async def scenario() -> None:
        clock = HandClock()
        controller = RealController(clock)
        one, two = (Node(controller, clock, broker_id=each, run=1) for each in (2, 3))
        async with cleanly(clock, one, two):
            await bring_up(clock, controller, one)
            await bring_up(clock, controller, two)
            image = controller.controller.image
            assert [broker.active for broker in image.brokers.values()] == [True, True]
            _create(controller, "t", replicas=[2, 3])

            one.manager.begin_controlled_shutdown(60_000)
            await pass_time(clock, 0)
            assert image.topics_by_name["t"].partitions[0].leader == 3
            # The other broker has not heard of it yet.
            await pass_time(clock, INTERVAL_MS)
            assert one.manager.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
            two.offset = one.offset = controller.controller.next_offset - 1
            for _ in range(4):
                await pass_time(clock, INTERVAL_MS)
            assert one.manager.state is BrokerState.SHUTTING_DOWN
            assert one.manager.stopped.done()
            assert one.failures == []
            assert image.brokers[2].fenced
            assert two.manager.state is BrokerState.RUNNING

    asyncio.run(scenario())


def test_a_silent_broker_is_fenced_and_comes_back_with_its_next_heartbeat() -> None:
    async def scenario() -> None:
        clock = HandClock()
        controller = RealController(clock)
        node = Node(controller, clock, broker_id=2, run=1)
        async with cleanly(clock, node):
            await bring_up(clock, controller, node)
            controller.away = True
            for _ in range(6):
                await pass_time(clock, INTERVAL_MS)
            controller.pass_time()
            brokers = controller.controller.image.brokers
            assert brokers[2].fenced
            controller.away = False
            node.offset = controller.controller.next_offset
            for _ in range(2):
                await pass_time(clock, INTERVAL_MS)
            assert brokers[2].active
            assert node.manager.state is BrokerState.RUNNING

    asyncio.run(scenario())


def test_a_second_process_with_the_same_id_waits_and_the_first_one_comes_back() -> None:
    async def scenario() -> None:
        clock = HandClock()
        controller = RealController(clock)
        first = Node(controller, clock, broker_id=2, run=1)
        second = Node(controller, clock, broker_id=2, run=2)
        async with cleanly(clock, first, second):
            await bring_up(clock, controller, first)
            epoch = first.manager.broker_epoch
            second.manager.start()
            for _ in range(10):
                await pass_time(clock, INTERVAL_MS)
            assert second.manager.broker_epoch == -1

            # The first is cut off for longer than its session: the second takes its place.
            first_call, first.manager._controller = first.manager._controller, Away()
            for _ in range(8):
                await pass_time(clock, INTERVAL_MS)
            assert second.manager.broker_epoch > epoch
            second.manager.close()
            first.manager._controller = first_call
            for _ in range(8):
                first.offset = controller.controller.next_offset
                await pass_time(clock, INTERVAL_MS)
            assert first.manager.broker_epoch > second.manager.broker_epoch
            assert controller.controller.image.brokers[2].active

    asyncio.run(scenario())


class Away:
    async def call(self, key: ApiKey, request: Message, *, timeout_ms: int) -> Message:
        raise ChannelError("away")


def _create(controller: RealController, name: str, *, replicas: list[int]) -> None:
    assignment = CreateTopicsRequest.CreatableReplicaAssignment(
        partition_index=0, broker_ids=replicas
    )
    topic = CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=-1, replication_factor=-1, assignments=[assignment]
    )
    request = CreateTopicsRequest(topics=[topic])
    (result,) = controller.apply(create_topics(controller.controller, request)).topics
    assert result.error_code == 0, result
