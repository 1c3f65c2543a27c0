"""The MQTT proxy: `python -m bench.mqtt [--seconds 5] [--clients 20] [--idle 5000]`.

A broker, the proxy (`moldau mqtt start`) and the load each run in a process of their own. The load
sends packets that were made beforehand and only counts acknowledgements, so that it costs little.

One table, which is also stored in bench/results/*.json: messages a second, messages per second of
the proxy's CPU (what counts on a machine with neighbours: the aim is 20,000 QoS-1 messages a second
on one core), the latency of single messages, and what idle devices cost. The load average of the
machine is stored with it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import quantiles

import psutil

from bench.services import service
from moldau.services.mqtt.machine import encoding
from moldau.services.mqtt.machine.packets import V4, Connect, Subscribe, SubscribeRequest
from moldau.testing import Broker

AIM = 20_000
WINDOW = 100
RESULTS = Path(__file__).parent / "results"


@dataclass(slots=True)
class Row:
    """What was measured; None where it says nothing."""

    what: str
    per_second: float | None = None
    per_cpu_second: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None
    kib_each: float | None = None
    core_percent: float | None = None

    def cells(self) -> tuple[str, ...]:
        return (
            self.what,
            "" if self.per_second is None else f"{self.per_second:,.0f}",
            "" if self.per_cpu_second is None else f"{self.per_cpu_second:,.0f}",
            "" if self.p50_ms is None else f"{self.p50_ms:.2f} / {self.p99_ms:.2f}",
            "" if self.kib_each is None else f"{self.kib_each:.1f}",
            "" if self.core_percent is None else f"{self.core_percent:.1f} %",
        )


HEADS = ("", "a second", "per CPU second", "p50 / p99 ms", "KiB each", "of a core")


class Device(asyncio.Protocol):
    """Publishes with a window of unacknowledged messages, or counts what it receives."""

    def __init__(self, name: str, filter_text: str = "", qos: int = 1) -> None:
        self.name = name
        self.filter = filter_text
        self.qos = qos
        self.ready = asyncio.get_running_loop().create_future()
        self.count = 0
        self.until = 0.0
        self.packets: list[bytes] = []
        self.sent = 0
        self._data = b""
        #: When the last PUBACK or message came.
        self.last_s = 0.0
        self.came = asyncio.Event()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self._write(encoding.connect(Connect(V4, self.name, True, 600)))

    def _write(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)

    def begin(self, until: float, topic: str, size: int) -> None:
        self.until = until
        payload = b"x" * size
        self.packets = [
            encoding.publish(V4, topic, payload, qos=1, packet_id=number + 1)
            for number in range(WINDOW)
        ]
        self._write(b"".join(self.packets))
        self.sent = WINDOW

    def one(self, topic: str, size: int) -> None:
        self._write(encoding.publish(V4, topic, b"x" * size, qos=1, packet_id=1))

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        self.last_s = time.perf_counter()
        self.came.set()
        data = self._data + data
        at = 0
        out: list[bytes] = []
        while len(data) - at >= 2:
            length, start = data[at + 1], at + 2
            if length >= 0x80:
                if len(data) - at < 3:
                    break
                length, start = length & 0x7F | data[at + 2] << 7, at + 3
            if start + length > len(data):
                break
            self._packet(data[at] >> 4, data[start : start + length], out)
            at = start + length
        self._data = data[at:]
        if out:
            self._write(b"".join(out))

    def _packet(self, kind: int, body: bytes, out: list[bytes]) -> None:
        if kind == 4:
            self.count += 1
            if time.perf_counter() < self.until:
                out.append(self.packets[int.from_bytes(body, "big") - 1])
                self.sent += 1
        elif kind == 3:
            self.count += 1
            if self.qos:
                at = 2 + int.from_bytes(body[:2], "big")
                out.append(b"\x40\x02" + body[at : at + 2])
        elif kind == 2 and self.filter:
            request = SubscribeRequest(self.filter, self.qos)
            self._write(encoding.subscribe(V4, Subscribe(1, (request,))))
        elif kind in (2, 9) and not self.ready.done():
            self.ready.set_result(None)


async def connected(port: int, *devices: Device) -> None:
    loop = asyncio.get_running_loop()
    for device in devices:
        await loop.create_connection(lambda device=device: device, "127.0.0.1", port)  # type: ignore[misc]
    await asyncio.gather(*(device.ready for device in devices))


async def until_true(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.05)


@contextmanager
def cpu_of(process: psutil.Process) -> Iterator[list[float]]:
    found: list[float] = []
    before, began = sum(process.cpu_times()[:2]), time.perf_counter()
    yield found
    found += [sum(process.cpu_times()[:2]) - before, time.perf_counter() - began]


def rate(what: str, count: int, cpu: list[float]) -> Row:
    cpu_s, wall_s = cpu
    return Row(
        what,
        per_second=count / wall_s,
        per_cpu_second=count / max(cpu_s, 1e-9),
        core_percent=100 * cpu_s / wall_s,
    )


async def publish(port: int, proxy: psutil.Process, clients: int, seconds: float, size: int) -> Row:
    devices = [Device(f"bench-{number}") for number in range(clients)]
    await connected(port, *devices)
    with cpu_of(proxy) as cpu:
        until = time.perf_counter() + seconds
        for number, device in enumerate(devices):
            device.begin(until, f"bench/{number}/temperature", size)
        await until_true(lambda: all(device.count >= device.sent for device in devices))
    for device in devices:
        device.close()
    total = sum(device.count for device in devices)
    return rate(f"publish, QoS 1, {size} B, {clients} devices", total, cpu)


async def latency(port: int, size: int, count: int) -> list[Row]:
    """One message at a time: until its PUBACK, and until a subscriber has it."""
    topic = "latency/a"
    reader, writer = Device("latency-reader", "latency/#"), Device("latency-writer")
    await connected(port, reader, writer)
    acknowledged, delivered = [], []
    for number in range(count + 20):
        began = time.perf_counter()
        writer.one(topic, size)
        for device in (writer, reader):
            while device.count <= number:
                device.came.clear()
                await device.came.wait()
        if number >= 20:
            # The first messages create the topic and let everything warm up.
            acknowledged.append(1000 * (writer.last_s - began))
            delivered.append(1000 * (reader.last_s - began))
    reader.close()
    writer.close()
    rows = []
    for what, times in (("PUBACK", acknowledged), ("a subscriber has it", delivered)):
        cuts = quantiles(times, n=100)
        rows.append(Row(f"QoS 1 until {what}", p50_ms=cuts[49], p99_ms=cuts[98]))
    return rows


async def fan_out(
    port: int, proxy: psutil.Process, subscribers: int, qos: int, seconds: float, size: int
) -> Row:
    topic = f"fan{qos}"
    readers = [Device(f"reader-{qos}-{n}", f"{topic}/#", qos) for n in range(subscribers)]
    writer = Device(f"writer-{qos}")
    await connected(port, *readers, writer)
    with cpu_of(proxy) as cpu:
        writer.begin(time.perf_counter() + seconds, f"{topic}/a", size)
        await until_true(
            lambda: (
                writer.count >= writer.sent
                and all(each.count >= writer.sent or not each.qos for each in readers)
            )
        )
    total = sum(device.count for device in readers)
    for device in (*readers, writer):
        device.close()
    return rate(f"deliver to {subscribers} subscribers, QoS {qos}", total, cpu)


async def idle(port: int, proxy: psutil.Process, count: int) -> Row:
    devices = [Device(f"idle-{n}", f"idle/{n}/commands") for n in range(count)]
    memory = proxy.memory_info().rss
    began = time.perf_counter()
    for start in range(0, count, 200):
        await connected(port, *devices[start : start + 200])
    took_s = time.perf_counter() - began
    each = (proxy.memory_info().rss - memory) / count
    with cpu_of(proxy) as cpu:
        await asyncio.sleep(5)
    for device in devices:
        device.close()
    return Row(
        f"{count:,} idle devices, subscribed; connected in {took_s:.1f} s",
        per_second=count / took_s,
        kib_each=each / 1024,
        core_percent=100 * cpu[0] / cpu[1],
    )


def show(rows: list[Row]) -> None:
    table = [HEADS, *(row.cells() for row in rows)]
    widths = [max(len(cells[column]) for cells in table) for column in range(len(HEADS))]
    for cells in table:
        first, *others = (
            f"{cell:<{width}}" if column == 0 else f"{cell:>{width}}"
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        print("  ".join((first, *others)))


def store(rows: list[Row]) -> Path:
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"{time.strftime('%Y%m%d-%H%M%S')}-mqtt.json"
    content = {"load": os.getloadavg(), "aim": AIM, "rows": [asdict(row) for row in rows]}
    file.write_text(json.dumps(content, indent=1) + "\n")
    return file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--messages", type=int, default=500, help="for the latency")
    parser.add_argument("--idle", type=int, default=5000)
    arguments = parser.parse_args()
    with Broker() as broker:
        broker.create_topic("bench", 6)
        with service("mqtt", broker.bootstrap_servers) as (_, port, proxy):
            run = asyncio.run
            seconds, size = arguments.seconds, arguments.size
            clients = arguments.clients
            run(publish(port, proxy, clients, 1, size))
            rows = [
                run(publish(port, proxy, clients, seconds, size)),
                *run(latency(port, size, arguments.messages)),
                run(fan_out(port, proxy, 10, 0, seconds, size)),
                run(fan_out(port, proxy, 10, 1, seconds, size)),
            ]
            if arguments.idle:
                rows.append(run(idle(port, proxy, arguments.idle)))
    show(rows)
    print(f"aim: {AIM:,} QoS-1 messages a second on one core")
    print(f"load average: {os.getloadavg()[0]:.1f}; stored in {store(rows)}")


if __name__ == "__main__":
    main()
