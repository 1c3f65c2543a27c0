"""What TLS costs: the same work over SSL and PLAINTEXT, with the same clients."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench import workloads
from bench.bare import receive_frame
from bench.servers import ROOT, Server

ROUNDS = 4
HANDSHAKE_SECONDS = 3.0
CROWD = 500
#: What Java's compiler has seen before anything counts.
WARM_UP_BYTES = 300_000_000

#: What is measured: name, unit, aim.
FIGURES = {
    "produce_mb_s": ("produce 1 KB, 128 KB batches", "MB/s", ">= 1.0 of Kafka"),
    "produce_cpu": ("broker CPU, produce", "s/GB", ""),
    "raw_produce_mb_s": ("raw produce, 128 KB requests", "MB/s", ">= 1.0 of Kafka"),
    "raw_produce_cpu": ("broker CPU, raw produce", "s/GB", ""),
    "fetch_mb_s": ("raw fetch, 1 MB answers", "MB/s", ">= 1.0 of Kafka"),
    "fetch_cpu": ("broker CPU, raw fetch", "s/GB", ""),
    "consume_mb_s": ("consume 1 KB", "MB/s", ">= 1.0 of Kafka"),
    "p50_us": ("synchronous produce p50", "us", ""),
    "p99_us": ("synchronous produce p99", "us", ""),
    "handshakes_s": ("handshakes, one after the other", "1/s", ""),
    "handshake_cpu_us": ("broker CPU of a handshake", "us", ""),
    "resumed_cpu_us": ("broker CPU of a resumed handshake", "us", ""),
    "crowd_s": (f"{CROWD} clients at once: all connected", "s", ""),
    "crowd_wait_ms": (f"{CROWD} clients at once: longest wait of another", "ms", ""),
}


class Certificates:
    """A certificate that is its own CA, and the settings of a broker that shows it."""

    def __init__(self, folder: Path) -> None:
        key, self.certificate, store = folder / "key.pem", folder / "ca.pem", folder / "store.pem"
        subprocess.run(
            [
                "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "7",
                "-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1",
                "-keyout", str(key), "-out", str(self.certificate),
            ],
            check=True, capture_output=True,
        )  # fmt: skip
        store.write_text(key.read_text() + self.certificate.read_text())
        self.overrides = (
            "listener.security.protocol.map=PLAINTEXT:SSL,CONTROLLER:PLAINTEXT",
            "ssl.keystore.type=PEM",
            f"ssl.keystore.location={store}",
            # Kafka connects to its own listener.
            "ssl.truststore.type=PEM",
            f"ssl.truststore.location={self.certificate}",
        )


def measure(measured: dict[str, Server], scale: float) -> dict[str, dict[str, float]]:
    """By server and figure the best of some rounds, in which the servers take turns."""
    size = int(scale * 1e9)
    for server in measured.values():
        for topic in ("tls", "raw", "latency"):
            server.create_topic(topic)
        _round(server, max(size // 4, WARM_UP_BYTES if server.name == "kafka" else 0))
    found: dict[str, list[dict[str, float]]] = {name: [] for name in measured}
    for _ in range(ROUNDS):
        for name, server in measured.items():
            found[name].append(_round(server, size))
    best = {
        name: {
            figure: (max if figure.endswith("_mb_s") else min)(each[figure] for each in rounds)
            for figure in rounds[0]
        }
        for name, rounds in found.items()
    }
    for name, server in measured.items():
        if server.ca is not None:
            best[name] |= _handshakes(server) | _crowd(server)
    return best


def _round(server: Server, size: int) -> dict[str, float]:
    produced = workloads.produce(
        server, "tls", message_size=1000, batch_size=131_072, total_bytes=size
    )
    raw = workloads.raw_produce(server, "raw", total_bytes=size)
    fetched = workloads.raw_fetch(server, "tls", total_bytes=2 * size)
    consumed = workloads.consume(server, "tls", message_size=1000, count=produced.messages)
    trips = workloads.round_trips(server, workloads.produce_frame("latency"), count=3_000)
    return {
        "produce_mb_s": produced.mb_per_second,
        "produce_cpu": produced.cpu_seconds_per_gb,
        "raw_produce_mb_s": raw.mb_per_second,
        "raw_produce_cpu": raw.cpu_seconds_per_gb,
        "fetch_mb_s": fetched.mb_per_second,
        "fetch_cpu": fetched.cpu_seconds_per_gb,
        "consume_mb_s": consumed.mb_per_second,
        "p50_us": trips.p50_us,
        "p99_us": trips.p99_us,
    }


def _handshakes(server: Server) -> dict[str, float]:
    full, cpu = _count_handshakes(server, server.connect)
    tls = ssl.create_default_context(cafile=server.ca)
    session: ssl.SSLSession | None = None

    def connect() -> ssl.SSLSocket:
        nonlocal session
        plain = socket.create_connection(("127.0.0.1", server.port))
        connection = tls.wrap_socket(plain, server_hostname="127.0.0.1", session=session)
        if session is None:
            # Tickets of TLS 1.3 come after the handshake.
            connection.sendall(workloads.produce_frame("latency"))
            connection.recv(1000)
            session = connection.session
        elif not connection.session_reused:
            raise RuntimeError(f"{server.name} does not resume sessions")
        return connection

    connect().close()
    found = {"handshakes_s": full, "handshake_cpu_us": cpu}
    with contextlib.suppress(RuntimeError):
        found["resumed_cpu_us"] = _count_handshakes(server, connect)[1]
    return found


def _count_handshakes(server: Server, connect: Callable[[], socket.socket]) -> tuple[float, float]:
    """Handshakes per second by one client, and microseconds of the broker's CPU of each."""
    count = 0
    cpu_before, started = server.cpu_seconds(), time.perf_counter()
    while (seconds := time.perf_counter() - started) < HANDSHAKE_SECONDS:
        connection = connect()
        count += 1
        # Closed without waiting, as by a client that goes away.
        with contextlib.suppress(ssl.SSLError, OSError):
            connection.close()
    cpu = server.cpu_seconds() - cpu_before
    return count / seconds, cpu / count * 1e6


def _crowd(server: Server) -> dict[str, float]:
    """Many clients of another process connect at once while one works."""
    frame = workloads.produce_frame("latency")
    buffer = memoryview(bytearray(1 << 16))
    command = [sys.executable, "-m", "bench.tls", str(server.port), str(server.ca), str(CROWD)]
    longest = 0.0
    with (
        server.connect() as connection,
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as crowd,
    ):
        while crowd.poll() is None:
            started = time.perf_counter()
            connection.sendall(frame)
            receive_frame(connection, buffer)
            longest = max(longest, time.perf_counter() - started)
        output, _ = crowd.communicate()
    return {"crowd_s": float(output), "crowd_wait_ms": longest * 1e3}


async def _connect_all(port: int, ca: str, count: int) -> float:
    """Seconds until the last one is connected."""
    tls = ssl.create_default_context(cafile=ca)
    started = time.perf_counter()
    async with asyncio.timeout(120):
        opened = await asyncio.gather(
            *(asyncio.open_connection("127.0.0.1", port, ssl=tls) for _ in range(count))
        )
    seconds = time.perf_counter() - started
    for _, writer in opened:
        writer.transport.abort()
    return seconds


if __name__ == "__main__":
    print(asyncio.run(_connect_all(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))))
