"""What TLS costs: the same work over SSL and PLAINTEXT, with the same clients."""

from __future__ import annotations

import contextlib
import ssl
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from bench import workloads
from bench.servers import Server

ROUNDS = 3
HANDSHAKE_SECONDS = 3.0

#: What the fields of `Figures` are: name, unit, aim.
FIGURES = {
    "produce_mb_s": ("produce 1 KB, 128 KB batches", "MB/s", ">= 1.0 of Kafka"),
    "produce_cpu": ("broker CPU, produce", "s/GB", ""),
    "fetch_mb_s": ("raw fetch, 1 MB answers", "MB/s", ">= 1.0 of Kafka"),
    "fetch_cpu": ("broker CPU, raw fetch", "s/GB", ""),
    "consume_mb_s": ("consume 1 KB", "MB/s", ">= 1.0 of Kafka"),
    "p50_us": ("synchronous produce p50", "us", ""),
    "p99_us": ("synchronous produce p99", "us", ""),
    "handshakes_s": ("handshakes, one after the other", "1/s", ""),
    "handshake_cpu_us": ("broker CPU of a handshake", "us", ""),
}


@dataclass(frozen=True, slots=True)
class Figures:
    produce_mb_s: float
    produce_cpu: float
    fetch_mb_s: float
    fetch_cpu: float
    consume_mb_s: float
    p50_us: float
    p99_us: float
    handshakes_s: float | None
    handshake_cpu_us: float | None


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


def measure(server: Server, scale: float) -> Figures:
    """The best of some rounds of each."""
    frame = workloads.produce_frame("latency")
    for topic in ("tls", "latency"):
        server.create_topic(topic)
    size = int(scale * 1e9)

    def produce(total_bytes: int) -> workloads.Throughput:
        return workloads.produce(
            server, "tls", message_size=1000, batch_size=131_072, total_bytes=total_bytes
        )

    produce(size // 10)
    workloads.raw_fetch(server, "tls", total_bytes=size // 2)
    workloads.round_trips(server, frame, count=2_000)
    produced = min((produce(size) for _ in range(ROUNDS)), key=lambda each: each.seconds)
    fetched = min(
        (workloads.raw_fetch(server, "tls", total_bytes=2 * size) for _ in range(ROUNDS)),
        key=lambda each: each.seconds,
    )
    consumed = min(
        (
            workloads.consume(server, "tls", message_size=1000, count=produced.messages)
            for _ in range(ROUNDS)
        ),
        key=lambda each: each.seconds,
    )
    trips = min(
        (workloads.round_trips(server, frame, count=3_000) for _ in range(ROUNDS)),
        key=lambda each: each.p50_us,
    )
    handshakes = None if server.ca is None else count_handshakes(server)
    return Figures(
        produced.mb_per_second,
        produced.cpu_seconds_per_gb,
        fetched.mb_per_second,
        fetched.cpu_seconds_per_gb,
        consumed.mb_per_second,
        trips.p50_us,
        trips.p99_us,
        handshakes and handshakes[0],
        handshakes and handshakes[1],
    )


def count_handshakes(server: Server) -> tuple[float, float]:
    """Full handshakes per second by one client, and microseconds of the broker's CPU of each."""
    count = 0
    cpu_before, started = server.cpu_seconds(), time.perf_counter()
    while (seconds := time.perf_counter() - started) < HANDSHAKE_SECONDS:
        connection = server.connect()
        count += 1
        # Closed without waiting, as by a client that goes away.
        with contextlib.suppress(ssl.SSLError, OSError):
            connection.close()
    cpu = server.cpu_seconds() - cpu_before
    return count / seconds, cpu / count * 1e6
