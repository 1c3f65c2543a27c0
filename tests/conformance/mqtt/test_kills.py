"""Devices that reconnect while proxies and the broker are killed: nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from moldau.client import Consumer
from moldau.services.mqtt.machine import encoding
from moldau.services.mqtt.machine.packets import V4, V5, Connect
from support.http_service import running
from support.mqtt import ProxyProcess, new_name, port_of, proxy_of
from support.mqtt_raw import Raw
from support.processes import BrokerProcess
from support.waiting import eventually

#: A busy machine is slow, and loses nothing all the same.
_PATIENCE_S = 300.0


class Fleet:
    """Devices that publish with QoS 1, hang up now and then, and remember what was acknowledged."""

    def __init__(self, topic: str, count: int, ports: list[int]) -> None:
        self._topic = topic
        self._count = count
        self._ports = ports
        self._numbers = itertools.count(1)
        self.acknowledged: set[int] = set()
        self.stopping = False

    async def run(self, disturb: Callable[[Fleet], object]) -> None:
        devices = [asyncio.create_task(self._device(number)) for number in range(self._count)]
        try:
            await asyncio.to_thread(disturb, self)
        finally:
            self.stopping = True
            await asyncio.wait(devices, timeout=60)
            for each in devices:
                each.cancel()

    async def _device(self, number: int) -> None:
        chance = random.Random(number)
        while not self.stopping:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
                async with asyncio.timeout(20):
                    await self._connection(number, chance)
            await asyncio.sleep(chance.uniform(0.02, 0.2))

    async def _connection(self, number: int, chance: random.Random) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", chance.choice(self._ports))
        try:
            writer.write(encoding.connect(Connect(V4, f"{self._topic}-{number}", True, 60)))
            if (await reader.readexactly(4))[3]:
                return
            for _ in range(chance.randrange(1, 20)):
                if self.stopping:
                    return
                value = next(self._numbers)
                writer.write(
                    encoding.publish(
                        V4, f"{self._topic}/{number}", str(value).encode(), qos=1, packet_id=7
                    )
                )
                if await reader.readexactly(4) == b"\x40\x02\x00\x07":
                    self.acknowledged.add(value)
        finally:
            writer.close()


def fleet_survives(
    broker: BrokerProcess, tmp_path: Path, *, devices: int, rounds: int, kill_broker: bool
) -> None:
    topic = new_name("fleet")
    with (
        ProxyProcess(broker.bootstrap, tmp_path) as one,
        ProxyProcess(broker.bootstrap, tmp_path) as two,
    ):
        fleet = Fleet(topic, devices, [one.port, two.port])

        def wait_for_more(what: Fleet, count: int) -> None:
            goal = len(what.acknowledged) + count
            eventually(
                lambda: len(what.acknowledged) >= goal,
                what=f"{count} more messages",
                seconds_max=_PATIENCE_S,
            )

        def disturb(what: Fleet) -> None:
            for number in range(rounds):
                wait_for_more(what, devices * 3)
                victim = (one, two)[number % 2]
                victim.kill()
                if kill_broker:
                    broker.kill()
                    broker.start()
                victim.start()
            wait_for_more(what, devices * 3)

        asyncio.run(fleet.run(disturb))
    missing = set(fleet.acknowledged)
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": topic}
    with Consumer(settings, auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])

        def none_is_missing() -> bool:
            missing.difference_update(int(each.value) for each in consumer.poll(0.5))
            return not missing

        eventually(
            none_is_missing,
            what="every acknowledged message is in the log",
            seconds_max=_PATIENCE_S,
        )


@pytest.mark.long("devices while processes die; test_sessions kills a proxy at each step")
def test_a_hundred_devices_while_proxies_and_the_broker_are_killed(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    fleet_survives(broker, tmp_path, devices=100, rounds=2, kill_broker=True)


def test_a_connect_that_takes_its_time_is_not_given_up(broker: BrokerProcess) -> None:
    """`connect.timeout.ms` is for clients that send nothing, not for those that wait."""
    with running(lambda: proxy_of(broker.bootstrap, connect_timeout_ms="200")) as service:
        port = port_of(service.url)
        with Raw(port) as silent, Raw(port) as waiting:
            os.kill(broker.pid, signal.SIGSTOP)
            try:
                waiting.send(encoding.connect(Connect(V5, new_name("patient"), True, 60)))
                assert silent.ended()
                began_s = time.monotonic()
                eventually(lambda: time.monotonic() > began_s + 1, what="five times the timeout")
            finally:
                os.kill(broker.pid, signal.SIGCONT)
            assert waiting.connack()[0] == 0


@pytest.mark.timeout(1800)
@pytest.mark.long("the same with a thousand devices")
def test_a_thousand_devices_while_proxies_and_the_broker_are_killed(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    fleet_survives(broker, tmp_path, devices=1000, rounds=4, kill_broker=True)
