"""What `moldau metrics` shows: numbers with units, changes between two readings, charts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from moldau.metrics.parsing import Line

__all__ = ["Row", "chart", "overview", "rates", "shortened"]

_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
_UNITS: Final = ("", "k", "M", "G", "T", "P")


class Row(NamedTuple):
    what: str
    value: str


def shortened(value: float, unit: str = "") -> str:
    """A number in at most a few characters: 1.2 M, 340 k/s."""
    size = abs(value)
    for prefix in _UNITS:
        if size < 1000 or prefix == _UNITS[-1]:
            digits = 0 if size >= 100 or value == int(value) else 1 if size >= 10 else 2
            text = f"{value:.{digits}f}"
            return f"{text} {prefix}{unit}".rstrip()
        value /= 1000
        size /= 1000
    return str(value)


def rates(before: Mapping[str, Line], now: Mapping[str, Line], seconds: float) -> dict[str, float]:
    """Per second, of everything that counts up; what started again counts from 0."""
    found: dict[str, float] = {}
    for text, line in now.items():
        if not line.name.endswith(("_total", "_count", "_sum")):
            continue
        known = before.get(text)
        grown = line.value - (known.value if known is not None else 0.0)
        found[text] = max(grown if known is not None else 0.0, 0.0) / max(seconds, 1e-9)
    return found


def overview(now: Mapping[str, Line], per_second: Mapping[str, float]) -> list[Row]:
    """A broker on one screen."""
    topics, requests = "kafka_server_brokertopicmetrics", "kafka_network_requestmetrics"

    def value(name: str) -> float:
        return now[name].value if name in now else 0.0

    def quantile(request: str) -> str:
        name = f'{requests}_totaltimems{{request="{request}",quantile="0.99"}}'
        return f"{shortened(value(name))} ms" if name in now else "-"

    rows = [
        Row("bytes in", shortened(per_second.get(f"{topics}_bytesin_total", 0), "B/s")),
        Row("bytes out", shortened(per_second.get(f"{topics}_bytesout_total", 0), "B/s")),
        Row("records in", shortened(per_second.get(f"{topics}_messagesin_total", 0), "/s")),
        Row("Produce, p99", quantile("Produce")),
        Row("FetchConsumer, p99", quantile("FetchConsumer")),
        Row("event loop idle", f"{value('process_event_loop_idle_ratio'):.0%}"),
        Row("partitions", shortened(value("kafka_server_replicamanager_partitioncount"))),
        Row("  led here", shortened(value("kafka_server_replicamanager_leadercount"))),
        Row(
            "  under-replicated",
            shortened(value("kafka_server_replicamanager_underreplicatedpartitions")),
        ),
        Row("active controller", shortened(value(
            "kafka_controller_kafkacontroller_activecontrollercount"))),
        Row("connections", shortened(sum(
            line.value for line in now.values()
            if line.name == "kafka_server_socket_server_metrics_connection_count"))),
        Row("memory", shortened(value("process_resident_memory_bytes"), "B")),
        Row("CPU", f"{per_second.get('process_cpu_seconds_total', 0):.0%}"),
    ]  # fmt: skip
    busiest = sorted(
        (
            (rate, now[text].label("request"))
            for text, rate in per_second.items()
            if rate and now[text].name == f"{requests}_requests_total"
        ),
        reverse=True,
    )
    rows += [Row(f"  {request}", shortened(rate, "/s")) for rate, request in busiest[:8]]
    return rows


def chart(values: Sequence[float], *, width: int = 60, height: int = 8) -> list[str]:
    """A line of bars, the newest at the right, with the largest value at the top left."""
    shown = list(values)[-width:]
    top = max(shown, default=0.0) or 1.0
    lines = []
    for row in range(height, 0, -1):
        label = shortened(top * row / height) if row in (height, 1) else ""
        cells = "".join(_cell(value / top * height - (row - 1)) for value in shown)
        lines.append(f"{label:>9} │{cells}")
    lines.append(f"{'':>9} └{'─' * len(shown)}")
    return lines


def _cell(filled: float) -> str:
    return _BLOCKS[max(0, min(8, round(filled * 8)))]


def select(lines: Iterable[Line], pattern: str) -> list[Line]:
    """Those whose text contains all words of the pattern."""
    words = pattern.lower().split()
    return [line for line in lines if all(word in line.text.lower() for word in words)]
