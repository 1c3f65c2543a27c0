"""Producing through the REST Proxy: `python -m bench.rest [--seconds 5] [--connections 4]`.

A broker, the proxy (`moldau rest start`) and the load each run in a process of their own. The load
sends requests that were made beforehand over a few connections, so that it costs little. Printed:
records a second, records per second of the proxy's CPU (what counts on a machine with neighbours),
and the latency of requests. The same is in a JSON file under bench/results.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import re
import time

import psutil

from bench.services import service, store
from moldau.testing import Broker

AIM = 100_000


def request_of(path: str, content_type: str, body: bytes) -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


def batch(format: str, records: int, size: int) -> bytes:
    if format == "binary":
        value: object = base64.b64encode(b"x" * size).decode()
    else:
        value = {"id": 12345, "name": "x" * max(0, size - 30), "ok": True}
    return json.dumps({"records": [{"value": value}] * records}).encode()


async def load(
    host: str, port: int, request: bytes, seconds: float, connections: int
) -> list[float]:
    """The time of each request that was answered."""
    times: list[float] = []
    until = time.perf_counter() + seconds

    async def client() -> None:
        reader, writer = await asyncio.open_connection(host, port, limit=2**22)
        while (began := time.perf_counter()) < until:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(head.decode())
            length = int(re.search(rb"content-length: (\d+)", head)[1])  # type: ignore[index]
            body = await reader.readexactly(length)
            if b'"error_code":5' in body:
                raise RuntimeError(body[:500].decode())
            times.append(time.perf_counter() - began)
        writer.close()

    await asyncio.gather(*(client() for _ in range(connections)))
    return times


def measure(what: str, run: tuple[str, int, psutil.Process], request: bytes, records: int,
            options: argparse.Namespace) -> dict[str, object]:  # fmt: skip
    host, port, process = run
    asyncio.run(load(host, port, request, 1.0, options.connections))
    before, began = process.cpu_times(), time.perf_counter()
    times = sorted(asyncio.run(load(host, port, request, options.seconds, options.connections)))
    after, elapsed = process.cpu_times(), time.perf_counter() - began
    cpu = after.user + after.system - before.user - before.system
    sent = len(times) * records
    p50, p99 = times[len(times) // 2] * 1000, times[int(len(times) * 0.99)] * 1000
    # The aim is about batches of v2.
    aim = f"   aim {AIM:,}" if what.startswith("v2") else ""
    print(
        f"{what:<28}{sent / elapsed:>10,.0f} records/s{sent / cpu:>12,.0f} per CPU s"
        f"{p50:>8.1f} ms p50{p99:>8.1f} ms p99{aim}"
    )
    return {
        "what": what,
        "records_per_second": sent / elapsed,
        "records_per_cpu_second": sent / cpu,
        "p50_ms": p50,
        "p99_ms": p99,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--size", type=int, default=100)
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    with Broker() as broker:
        broker.create_topic("bench", 6)
        with service("rest", broker.bootstrap_servers) as run:
            for format in ("binary", "json"):
                body = batch(format, options.records, options.size)
                request = request_of(
                    "/topics/bench", f"application/vnd.kafka.{format}.v2+json", body
                )
                what = f"v2 {format}, {options.records} x {options.size} B"
                rows.append(measure(what, run, request, options.records, options))
            cluster = broker.cluster_id
            path = f"/v3/clusters/{cluster}/topics/bench/records"
            one = json.dumps({"value": {"type": "STRING", "data": "x" * options.size}}).encode()
            for what, records in (("v3 concatenated", options.records), ("v3 one by one", 1)):
                request = request_of(path, "application/json", one * records)
                rows.append(measure(what, run, request, records, options))
    store("rest", rows)


if __name__ == "__main__":
    main()
