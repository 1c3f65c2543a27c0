"""The figures of docs/guides: codecs and the settings of producers and consumers, measured here.

    python -m bench.guides [--records N] [--write]

Prints tables; --write also stores bench/results/guides.json and docs/guides/codecs.svg. The client
and one broker share the machine, so CPU time is what to compare: it hardly depends on other
load, unlike records per second. Rounds of all variants take turns, and the median counts.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from moldau.client import Consumer, Producer, TopicPartition
from moldau.testing import Broker

ROOT = Path(__file__).parents[1]
ROUNDS = 3
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
Row = dict[str, Any]


def records(count: int) -> list[bytes]:
    """Orders as JSON, about 200 bytes each: what compresses like real data."""
    random.seed(42)
    cities = ("Prague", "Budweis", "Pilsen", "Linz", "Vienna", "Passau")
    return [
        json.dumps(
            {
                "id": f"order-{number:08}",
                "customer": f"customer-{random.randint(1, 5000)}",
                "city": random.choice(cities),
                "items": [random.randint(1, 999) for _ in range(6)],
                "total": round(random.random() * 500, 2),
                "at": 1_773_316_800_000 + number * 37,
                "state": random.choice(("CREATED", "PAID", "SENT")),
            }
        ).encode()
        for number in range(count)
    ]


class Cost:
    """CPU time of this process and of the broker, and wall time, of a block."""

    def __init__(self, broker: Broker) -> None:
        self._processes = psutil.Process(), psutil.Process(broker.nodes[1].pid)

    def __enter__(self) -> Cost:
        self._before = self._now()
        return self

    def __exit__(self, *_: object) -> None:
        after = self._now()
        self.client, self.broker, self.wall = (
            later - earlier for later, earlier in zip(after, self._before, strict=True)
        )

    def _now(self) -> tuple[float, float, float]:
        mine, its = (each.cpu_times() for each in self._processes)
        return mine.user + mine.system, its.user + its.system, time.perf_counter()


def produce(broker: Broker, topic: str, values: list[bytes], **settings: Any) -> Cost:
    with (
        Producer(bootstrap_servers=broker.bootstrap_servers, **settings) as producer,
        Cost(broker) as cost,
    ):
        for value in values:
            producer.send(topic, value)
        producer.flush()
    return cost


def consume(broker: Broker, topic: str, count: int, **settings: Any) -> Cost:
    partition = TopicPartition(topic, 0)
    with (
        Consumer(bootstrap_servers=broker.bootstrap_servers, **settings) as consumer,
        Cost(broker) as cost,
    ):
        consumer.assign([partition])
        consumer.seek(partition, 0)
        seen = 0
        while seen < count:
            seen += len(consumer.poll(5.0))
    return cost


def codecs(broker: Broker, values: list[bytes]) -> list[Row]:
    raw = sum(map(len, values))

    def measure(codec: str) -> Row:
        topic = fresh(broker)
        sent = produce(
            broker, topic, values, compression_type=codec, linger_ms=20, batch_size=131_072
        )
        read = consume(broker, topic, len(values))
        size = sum(path.stat().st_size for path in broker.nodes[1].folder.rglob(f"{topic}-0/*.log"))
        return {
            "codec": codec,
            "size, % of raw": 100 * size / raw,
            "producer CPU, µs/record": 1e6 * sent.client / len(values),
            "broker CPU, µs/record": 1e6 * sent.broker / len(values),
            "consumer CPU, µs/record": 1e6 * read.client / len(values),
        }

    return in_turns(measure, [(codec,) for codec in CODECS])


def producers(broker: Broker, values: list[bytes]) -> list[Row]:
    def measure(linger: int, batch: int, acks: str) -> Row:
        cost = produce(broker, fresh(broker), values, linger_ms=linger, batch_size=batch, acks=acks)
        return {
            "linger.ms": linger,
            "batch.size": batch,
            "acks": acks,
            "records/s": len(values) / cost.wall,
            "producer CPU, µs/record": 1e6 * cost.client / len(values),
            "broker CPU, µs/record": 1e6 * cost.broker / len(values),
        }

    variants = [
        (0, 16_384, "all"),
        (5, 16_384, "all"),
        (20, 131_072, "all"),
        (50, 1_000_000, "all"),
        (20, 131_072, "1"),
    ]
    return in_turns(measure, variants)


def consumers(broker: Broker, values: list[bytes]) -> list[Row]:
    topic = fresh(broker)
    produce(broker, topic, values, linger_ms=20, batch_size=131_072)

    def measure(fetch_bytes: int, poll: int) -> Row:
        settings = {"max_partition_fetch_bytes": fetch_bytes, "max_poll_records": poll}
        cost = consume(broker, topic, len(values), **settings)
        return {
            "max.partition.fetch.bytes": fetch_bytes,
            "max.poll.records": poll,
            "records/s": len(values) / cost.wall,
            "consumer CPU, µs/record": 1e6 * cost.client / len(values),
            "broker CPU, µs/record": 1e6 * cost.broker / len(values),
        }

    return in_turns(measure, [(65_536, 50), (65_536, 500), (1_048_576, 500), (1_048_576, 5000)])


_numbers = iter(range(1_000_000))


def fresh(broker: Broker) -> str:
    name = f"guides-{next(_numbers)}"
    broker.create_topic(name)
    return name


def in_turns(measure: Callable[..., Row], variants: list[tuple[Any, ...]]) -> list[Row]:
    rounds = [[measure(*each) for each in variants] for _ in range(ROUNDS)]
    return [median(list(rows)) for rows in zip(*rounds, strict=True)]


def median(rows: list[Row]) -> Row:
    return {
        name: statistics.median(row[name] for row in rows) if isinstance(value, float) else value
        for name, value in rows[0].items()
    }


def table(rows: list[Row]) -> Iterator[str]:
    yield "| " + " | ".join(rows[0]) + " |"
    yield "|" + "|".join("--:" for _ in rows[0]) + "|"
    for row in rows:
        yield "| " + " | ".join(map(shown, row.values())) + " |"


def shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def chart(rows: list[Row]) -> str:
    """Bars: the size on disk, and the CPU that a record costs producer, broker and consumer."""
    colours = {"producer": "#3b6ea5", "broker": "#8fb8de", "consumer": "#e0a458"}
    sums = [sum(row[f"{who} CPU, µs/record"] for who in colours) for row in rows]
    widest = max(sums)
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 270" font-family="sans-serif" '
        'font-size="13">',
        '<rect width="760" height="270" fill="white"/>',
        '<text x="80" y="22" font-weight="bold">size on disk, % of raw</text>',
        '<text x="420" y="22" font-weight="bold">CPU, µs per record</text>',
    ]
    for number, row in enumerate(rows):
        y = 40 + number * 40
        width = 2.2 * row["size, % of raw"]
        lines += [
            f'<text x="70" y="{y + 18}" text-anchor="end">{row["codec"]}</text>',
            f'<rect x="80" y="{y}" width="{width:.0f}" height="26" fill="#6b8f71"/>',
            f'<text x="{86 + width:.0f}" y="{y + 18}">{row["size, % of raw"]:.0f}</text>',
        ]
        x = 420.0
        for who, colour in colours.items():
            part = 260 * row[f"{who} CPU, µs/record"] / widest
            lines.append(
                f'<rect x="{x:.0f}" y="{y}" width="{part:.0f}" height="26" fill="{colour}"/>'
            )
            x += part
        lines.append(f'<text x="{x + 6:.0f}" y="{y + 18}">{sums[number]:.1f}</text>')
    for number, (who, colour) in enumerate(colours.items()):
        x = 420 + number * 100
        lines += [
            f'<rect x="{x}" y="245" width="14" height="14" fill="{colour}"/>',
            f'<text x="{x + 20}" y="257">{who}</text>',
        ]
    return "\n".join((*lines, "</svg>")) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    values = records(given.records)
    with Broker() as broker:
        found = {
            "codecs": codecs(broker, values),
            "producers": producers(broker, values),
            "consumers": consumers(broker, values),
        }
    for name, rows in found.items():
        print(f"\n{name}\n")
        print("\n".join(table(rows)))
    if given.write:
        (ROOT / "bench/results/guides.json").write_text(json.dumps(found, indent=2) + "\n")
        (ROOT / "docs/guides").mkdir(exist_ok=True)
        (ROOT / "docs/guides/codecs.svg").write_text(chart(found["codecs"]))


if __name__ == "__main__":
    main()
