"""What a transaction costs beside the same records without one, with confluent-kafka."""

from __future__ import annotations

import statistics
import time
import uuid

from confluent_kafka import Producer

from bench.servers import Server

SECONDS_MAX = 60.0


def producer(server: Server, **settings: object) -> Producer:
    return Producer(
        {
            "bootstrap.servers": server.bootstrap,
            "log_level": 3,
            "linger.ms": 0,
            "enable.idempotence": True,
            "queue.buffering.max.messages": 1_000_000,
            **settings,
        }
    )


def plain_ms(server: Server, topic: str, *, records: int, rounds: int) -> float:
    """Milliseconds, median: `records` sent and acknowledged, without a transaction."""
    sender = producer(server)
    times = []
    for _ in range(rounds + 1):
        started = time.perf_counter()
        _send(sender, topic, records)
        if sender.flush(SECONDS_MAX):
            raise RuntimeError(f"{server.name} did not acknowledge all")
        times.append(time.perf_counter() - started)
    # The first round connects and learns where the partition is.
    return 1000 * statistics.median(times[1:])


def transaction_ms(server: Server, topic: str, *, records: int, rounds: int) -> float:
    """The same in a transaction, from its begin to its commit."""
    sender = producer(server, **{"transactional.id": f"bench-{uuid.uuid4()}"})
    sender.init_transactions(SECONDS_MAX)
    times = []
    for _ in range(rounds + 1):
        started = time.perf_counter()
        sender.begin_transaction()
        _send(sender, topic, records)
        sender.commit_transaction(SECONDS_MAX)
        times.append(time.perf_counter() - started)
    return 1000 * statistics.median(times[1:])


def _send(sender: Producer, topic: str, count: int) -> None:
    values = [{"value": bytes(100)}] * count
    queued = 0
    while queued < count:
        queued += sender.produce_batch(topic, values[queued:], partition=0)
        sender.poll(0)
