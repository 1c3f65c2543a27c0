"""What metrics cost on the hot path, in instructions: `python -m bench.metrics_cost`.

A broker's connection, dispatcher, handlers and log handle the same Produce and Fetch requests with
and without metrics under callgrind, which counts instructions: unlike times they do not depend on
what else the machine does. The event loop and the kernel are left out, so the share of metrics is
an upper bound. Needs valgrind.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import tempfile
from dataclasses import replace
from functools import reduce
from pathlib import Path

from moldau.broker.network.machine.frames import BufferPool

ROOT = Path(__file__).resolve().parents[1]
REQUESTS = 300
#: Everything inside this function of the interpreter is counted: the loop below, and no import.
COUNTED = "functools_reduce"


def work(kind: str, measured: bool, batch_size: int) -> None:
    """Handle requests; runs under callgrind."""
    import time

    from moldau.broker.handlers.fetch import FetchHandler
    from moldau.broker.handlers.produce import ProduceHandler
    from moldau.broker.metrics.node import NodeMetrics
    from moldau.broker.network.connection import Connection
    from moldau.broker.network.context import ConnectionInfo
    from moldau.broker.network.dispatcher import Dispatcher
    from moldau.broker.network.routes import Route
    from moldau.metrics import Registry
    from moldau.wire.apis import API_BY_KEY, ApiKey
    from moldau.wire.framing import encode_request_frame
    from moldau.wire.message import Message
    from moldau.wire.messages import FetchRequest, ProduceRequest
    from support.hosting import Host, alone, batch_of

    metrics = NodeMetrics(Registry(time.monotonic)) if measured else None
    folder = Path(tempfile.mkdtemp(prefix="metrics-cost-"))
    host = Host(folder, replication=replace(alone(), metrics=metrics))
    topic_id = host.create_topic("orders")
    produce = ProduceHandler(host.replicas, loop=host.loop, clock=host.loop.clock)
    fetch = FetchHandler(host.replicas, loop=host.loop, clock=host.loop.clock, random_id=lambda: 1)
    dispatcher = Dispatcher(
        {
            ApiKey.PRODUCE: Route(produce.handle, raw=True, pipelined=True),
            ApiKey.FETCH: Route(fetch.handle, raw=True),
        },
        metrics=None if metrics is None else metrics.requests,
    )
    records = batch_of(*[bytes(100)] * (batch_size // 110 or 1))
    data = ProduceRequest.PartitionProduceData(index=0, records=records)
    produced = ProduceRequest(
        acks=1,
        timeout_ms=1000,
        topic_data=[
            ProduceRequest.TopicProduceData(name="orders", topic_id=topic_id, partition_data=[data])
        ],
    )
    fetched = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[
            FetchRequest.FetchTopic(
                topic="orders",
                topic_id=topic_id,
                partitions=[
                    FetchRequest.FetchPartition(
                        partition=0, fetch_offset=0, partition_max_bytes=1 << 20
                    )
                ],
            )
        ],
    )

    def frame_of(key: ApiKey, request: Message) -> bytes:
        api = API_BY_KEY[key]
        whole = encode_request_frame(api, api.max_version, 1, "client", request)
        return bytes(whole)[4:]

    produce_frame = frame_of(ApiKey.PRODUCE, produced)
    fetch_frame = frame_of(ApiKey.FETCH, fetched)
    frame = produce_frame if kind == "produce" else fetch_frame

    client, served = socket.socketpair()
    served.setblocking(False)
    connection = Connection(
        _Hosting(), served, ConnectionInfo(), dispatcher, request_bytes_max=1 << 20
    )

    def exchange(sent: bytes) -> int:
        client.sendall(len(sent).to_bytes(4, "big") + sent)
        connection._on_readable()
        return len(client.recv(1 << 20))

    # Everything that is made with the first request is made before.
    exchange(produce_frame)
    exchange(frame)
    exchange(frame)
    reduce(lambda total, _: total + exchange(frame), range(REQUESTS), 0)


class _Loop:
    """The part of an event loop that a connection uses before it waits for anything."""

    def add_reader(self, *_: object) -> None: ...

    def remove_reader(self, *_: object) -> None: ...


class _Hosting:
    def __init__(self) -> None:
        self.loop = _Loop()
        self.receive_buffer = memoryview(bytearray(1 << 20))
        self.pool = BufferPool(None)
        self.tick = 0


def instructions(kind: str, measured: bool, batch_size: int) -> float:
    """Per request."""
    command = [
        "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
        f"--toggle-collect={COUNTED}", sys.executable, "-m", "bench.metrics_cost",
        "work", kind, str(int(measured)), str(batch_size),
    ]  # fmt: skip
    environment = {
        "PYTHONHASHSEED": "0", "PYTHONPATH": f"{ROOT}/tests:{ROOT}", "PATH": "/usr/bin:/bin",
    }  # fmt: skip
    ended = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False
    )
    found = re.search(r"Collected : (\d+)", ended.stderr)
    if found is None or int(found[1]) == 0:
        raise SystemExit(f"callgrind counted nothing:\n{ended.stderr[-3000:]}")
    return int(found[1]) / REQUESTS


def main() -> None:
    if len(sys.argv) > 1:
        work(sys.argv[2], sys.argv[3] == "1", int(sys.argv[4]))
        return
    print("request            without metrics   with metrics   metrics")
    for kind, batch_size in (
        ("produce", 100), ("produce", 16_000), ("fetch", 16_000),
    ):  # fmt: skip
        without = instructions(kind, False, batch_size)
        counted = instructions(kind, True, batch_size)
        share = (counted - without) / counted
        name = f"{kind}, {batch_size} B"
        print(f"{name:<18} {without:>16,.0f} {counted:>14,.0f} {share:>9.1%}", flush=True)


if __name__ == "__main__":
    main()
