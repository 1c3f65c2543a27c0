"""What an authorizer and the audit log cost: the same requests with and without them, in turns.

The machine's speed changes within seconds, so each round asks all servers for the same, in changing
order. A ratio is the median of those of single rounds: values are that times the best of none.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Final

from bench import workloads
from bench.servers import Server

ROUNDS: Final = 31
PARTITIONS: Final = 100
TOPIC: Final = "latency"
MANY: Final = "many"

#: What is measured of each server: by name, a text and a unit.
FIGURES: Final = {
    "produce_us": ("synchronous produce p50", "us"),
    "produce_cpu_us": ("broker CPU, small produce", "us"),
    "fetch_us": ("fetch of one record p50", "us"),
    "fetch_cpu_us": ("broker CPU, small fetch", "us"),
    "many_cpu_us": (f"broker CPU, fetch of {PARTITIONS} partitions", "us"),
}

Ratios = Mapping[str, Mapping[str, tuple[float, float]]]


def prepare(server: Server) -> None:
    server.create_topic(TOPIC)
    server.create_topic(MANY, PARTITIONS)


def measure(
    measured: Mapping[str, Server], *, none: str, scale: float, rounds: int = ROUNDS
) -> Ratios:
    """By server and figure: its value, and that of the server `none`."""
    count = max(300, int(1_000 * scale))
    found: dict[str, dict[str, list[float]]] = {name: {} for name in measured}
    for server in measured.values():
        _round(server, 2 * count)
    names = list(measured)
    for number in range(rounds):
        for name in names if number % 2 else reversed(names):
            for figure, value in _round(measured[name], count).items():
                found[name].setdefault(figure, []).append(value)
    return {
        name: {figure: _compare(values, found[none][figure]) for figure, values in by.items()}
        for name, by in found.items()
    }


def _compare(values: list[float], others: list[float]) -> tuple[float, float]:
    # A thread of Java's that does nothing takes no time.
    pairs = [(value, other) for value, other in zip(values, others, strict=True) if other]
    ratio = median([value / other for value, other in pairs] or [1.0])
    return min(others) * ratio, min(others)


def _round(server: Server, count: int) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, frame in (
        ("produce", workloads.produce_frame(TOPIC)),
        ("fetch", workloads.fetch_frame(TOPIC, 1)),
        ("many", workloads.fetch_frame(MANY, PARTITIONS)),
    ):
        requests = count // 4 if name == "many" else count
        before = server.main_thread_seconds()
        found[f"{name}_us"] = workloads.round_trips(server, frame, count=requests).p50_us
        found[f"{name}_cpu_us"] = 1e6 * (server.main_thread_seconds() - before) / requests
    return found
