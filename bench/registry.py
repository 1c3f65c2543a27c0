"""The Schema Registry: `python -m bench.registry [--seconds 3] [--connections 4]`.

A broker, the registry (`moldau registry start`) and the load each run in a process of their own.
The load sends requests that were made beforehand, so that it costs little. Printed: requests a
second, requests per second of the registry's CPU (what counts on a machine with neighbours),
latencies; then how long a registry with many subjects takes to start, and its memory. The same is
in a JSON file under bench/results.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import re
import time
from collections.abc import Iterator

from bench.services import service, store
from moldau.client import Producer
from moldau.services.registry.machine.records import SchemaSet, encode
from moldau.services.registry.machine.schemas import Schema, StoredSchema
from moldau.testing import Broker

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
LOOK_UPS_AIM, START_S_AIM, MEMORY_MB_AIM = 5_000, 3, 250
LOOK_UPS = ("by id", "latest version")


def schema(name: str, fields: int = 20) -> str:
    listed = [
        {"name": f"field{number}", "type": ["null", "string"], "default": None}
        for number in range(fields)
    ]
    return json.dumps({"type": "record", "name": name, "fields": listed})


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: bench\r\nAccept: {MEDIA_TYPE}\r\n\r\n".encode()


def post(path: str, text: str) -> bytes:
    body = json.dumps({"schema": text}).encode()
    return (
        f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: {MEDIA_TYPE}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


async def load(
    host: str, port: int, requests: Iterator[bytes], seconds: float, connections: int
) -> list[float]:
    """The time of each request."""
    times: list[float] = []
    until = time.perf_counter() + seconds

    async def client() -> None:
        reader, writer = await asyncio.open_connection(host, port, limit=2**22)
        while (began := time.perf_counter()) < until:
            writer.write(next(requests))
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(head.decode())
            length = int(re.search(rb"content-length: (\d+)", head)[1])  # type: ignore[index]
            await reader.readexactly(length)
            times.append(time.perf_counter() - began)
        writer.close()

    await asyncio.gather(*(client() for _ in range(connections)))
    return sorted(times)


def work() -> Iterator[tuple[str, Iterator[bytes]]]:
    one = post("/subjects/bench-value/versions", schema("Bench"))
    yield "registered again", itertools.repeat(one)
    yield "by id", itertools.repeat(get("/schemas/ids/1"))
    yield "latest version", itertools.repeat(get("/subjects/bench-value/versions/latest"))
    checked = "/compatibility/subjects/bench-value/versions/latest"
    yield "compatibility", itertools.repeat(post(checked, schema("Bench", fields=21)))
    new = (
        post(f"/subjects/new-{number}-value/versions", schema(f"New{number}"))
        for number in itertools.count()
    )
    yield "registered", new


def fill(bootstrap_servers: str, subjects: int) -> None:
    """A topic as many registrations leave it."""
    with Producer(bootstrap_servers=bootstrap_servers) as producer:
        for number in range(subjects):
            found = Schema(schema(f"R{number}"))
            subject = f"topic-{number}-value"
            stored = StoredSchema(subject, 1, 1_000_000 + number, found, found.guid)
            key, value = encode(SchemaSet(subject, 1, stored))
            producer.send("_schemas", value, key=key, partition=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--subjects", type=int, default=10_000)
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    with Broker() as broker:
        servers = broker.bootstrap_servers
        with service("registry", servers) as (host, port, process):
            print(f"{'':18}  {'/s':>7}  {'/CPU s':>7}  {'p50 ms':>7}  {'p99 ms':>7}")
            for name, requests in work():
                before = sum(process.cpu_times()[:2])
                times = asyncio.run(
                    load(host, port, requests, options.seconds, options.connections)
                )
                used_s = max(sum(process.cpu_times()[:2]) - before, 0.01)
                p50, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
                aim = f"   aim {LOOK_UPS_AIM:,} per CPU s" if name in LOOK_UPS else ""
                print(
                    f"{name:18}  {len(times) / options.seconds:7,.0f}  "
                    f"{len(times) / used_s:7,.0f}  {p50 * 1000:7.1f}  {p99 * 1000:7.1f}{aim}"
                )
                rows.append(
                    {
                        "what": name,
                        "per_second": len(times) / options.seconds,
                        "per_cpu_second": len(times) / used_s,
                        "p50_ms": p50 * 1000,
                        "p99_ms": p99 * 1000,
                    }
                )
        fill(servers, options.subjects)
        began = time.perf_counter()
        with service("registry", servers) as (_, _, process):
            took_s = time.perf_counter() - began
            used_s = sum(process.cpu_times()[:2])
            memory = process.memory_info().rss / 1e6
            print(
                f"start with {options.subjects:,} subjects: {took_s:.1f} s, {used_s:.1f} s CPU, "
                f"{memory:.0f} MB   aim {START_S_AIM} s, under {MEMORY_MB_AIM} MB"
            )
            start = {"took_s": took_s, "cpu_s": used_s, "memory_mb": memory}
            rows.append({"what": f"start with {options.subjects} subjects", **start})
    store("registry", rows)


if __name__ == "__main__":
    main()
