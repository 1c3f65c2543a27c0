"""A whole broker over a disk that loses its power, in virtual time, asked by request frames."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from random import Random
from typing import Any
from uuid import UUID

from moldau.broker.app import Node
from moldau.broker.config import BrokerConfig
from moldau.broker.environment import Environment
from moldau.broker.metadata.formatting import format_storage
from moldau.broker.network.context import ConnectionInfo
from moldau.broker.network.interface import FrameReceiver
from moldau.broker.network.settings import NetworkSettings
from moldau.clock import Alarm
from moldau.sim.background import SimBackground
from moldau.sim.disk import Platter, Stopped
from moldau.sim.loop import VirtualLoop
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.framing import decode_response, encode_request_frame
from moldau.wire.message import Message

START_MS = 1_700_000_000_000
PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/data",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


class _Network:
    """Implements `Network` for those who hand in frames themselves."""

    def __init__(self) -> None:
        self.addresses = {"PLAINTEXT": ("127.0.0.1", 9092), "CONTROLLER": ("127.0.0.1", 9093)}
        self.receiver: FrameReceiver | None = None

    async def bind(self) -> None:
        """Nothing is taken."""

    async def start(
        self, receiver: FrameReceiver, listeners: Collection[str] | None = None
    ) -> None:
        # Clients talk to the broker, which comes last.
        self.receiver = receiver

    def update_address_rates(self, default: float | None, limits: Mapping[str, float]) -> None: ...

    def update_settings(self, settings: NetworkSettings) -> None:
        """Nothing depends on them."""

    async def stop(self, grace_s: float) -> None:
        self.receiver = None


class _Clock:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return START_MS + self.elapsed_ms()

    def elapsed_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Alarm:
        return self._loop.call_later(delay_ms / 1000, callback)


class PoweredBroker:
    def __init__(self, seed: int, properties: Mapping[str, str] | None = None) -> None:
        self.random = Random(seed)
        self._clock = _Clock(asyncio.get_running_loop())
        self.platter = Platter(self._clock.now_ms, self.random)
        self._config = BrokerConfig.from_properties(PROPERTIES | dict(properties or {}))
        self.node: Node
        self._network: _Network
        format_storage(
            self._config,
            "MkU3OEVBNTcwNTJENDM2Qg",
            standalone=True,
            random_uuid=lambda: UUID(bytes=self.random.randbytes(16), version=4),
            disk=self.platter.start(),
            now_ms=START_MS,
        )
        self.platter.disk.sync_dir("/")
        self.platter.disk.sync_dir("/data")

    async def start(self) -> None:
        disk = self.platter.start()
        self._network = _Network()
        self.node = Node(
            self._config,
            replace(
                Environment.real(self._config),
                disk=disk,
                background=SimBackground(asyncio.get_running_loop(), self.random, disk),
                network=self._network,
                clock=self._clock,
                random=self.random,
                random_bytes=self.random.randbytes,
                host_name=lambda: "localhost",
                close=lambda: None,
            ),
            on_failure=self._fail,
        )
        await self.node.start()

    def _fail(self, error: BaseException) -> None:
        raise AssertionError(f"the broker gave up: {error}") from error

    async def restart(self, *, power_lost: bool) -> None:
        """The process is gone in the middle of whatever it did."""
        if power_lost:
            self.platter.lose_power()
        else:
            self.platter.stop()
        assert self.node.broker is not None
        self.node.broker.coordinators.close()
        await self.start()

    async def call(self, key: ApiKey, version: int, request: Message) -> Any:
        api = API_BY_KEY[key]
        frame = encode_request_frame(api, version, 1, "sim", request)
        receiver = self._network.receiver
        assert receiver is not None
        reply = receiver.dispatch(ConnectionInfo(), memoryview(frame)[4:])
        if asyncio.iscoroutine(reply) or isinstance(reply, asyncio.Future):
            reply = await reply
        assert reply is not None
        parts = [reply] if isinstance(reply, bytes) else reply
        return decode_response(api, version, b"".join(parts)[4:])[1]  # type: ignore[arg-type]


def run_powered(scenario: Callable[[], Any]) -> None:
    loop = VirtualLoop()
    try:
        loop.run(scenario())
    finally:
        loop.close()
    errors = [each for each in loop.errors if not isinstance(each, Stopped)]
    assert not errors, errors
