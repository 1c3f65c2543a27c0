"""What tests of the consumer share: topics, records put there by another client, reading back."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import Producer

from moldau.client.consumer import Consumer
from support.either import create_and_wait
from support.processes import BrokerProcess
from support.raw import RawConnection

SECONDS_MAX = 60.0

_numbers = itertools.count(1)


def new_topic(
    broker: BrokerProcess, partitions: int = 1, config: Mapping[str, str] | None = None
) -> str:
    """A topic of its own for a test."""
    name = f"consumed-{next(_numbers)}"
    with RawConnection(broker.port) as to:
        create_and_wait(to, name, partitions, config)
    return name


def new_group() -> str:
    return f"consumers-{next(_numbers)}"


def put(
    bootstrap: str,
    topic: str,
    values: Iterable[bytes],
    *,
    partition: int = 0,
    timestamps: Sequence[int] | None = None,
    **settings: Any,
) -> None:
    """Records in one partition, acknowledged when this returns."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "log_level": 0, "linger.ms": 0}
        | {key.replace("_", "."): value for key, value in settings.items()}
    )
    for index, value in enumerate(values):
        producer.produce(
            topic,
            value,
            key=b"key-%d" % index,
            partition=partition,
            timestamp=timestamps[index] if timestamps else 0,
        )
    assert producer.flush(SECONDS_MAX) == 0


def numbers(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


def read(consumer: Consumer, count: int) -> list[Any]:
    """So many records, as they come; no more may come with them."""
    found: list[Any] = []
    deadline = time.monotonic() + SECONDS_MAX
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} records came"
        found.extend(consumer.poll(0.5))
    assert len(found) == count
    return found


def poll_until(consumer: Consumer, condition: Callable[[], Any], what: str) -> list[Any]:
    """Poll until something is so; what came meanwhile."""
    found: list[Any] = []
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, f"not so: {what}"
        found.extend(consumer.poll(0.1))
    return found


def values(records: Iterable[Any]) -> list[Any]:
    return [record.value for record in records]
