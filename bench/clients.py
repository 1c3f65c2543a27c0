"""Python's Kafka clients side by side: one process after the other, against the same broker.

Every client has the same batch size, linger and portion of a poll, sends the same records without
waiting for each, and reads every value that it is given. Run as a module it is the process of one
client: it prints one line of JSON with what it did.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from bench.servers import Server, environment

BATCH_BYTES = 131_072
LINGER_MS = 5
POLL_RECORDS = 10_000
WARM_UP_RECORDS = 2_000
SECONDS_MAX = 240

OURS = ("moldau", "moldau-asyncio")
OTHERS = ("confluent-kafka", "kafka-python", "aiokafka")
CLIENTS = OURS + OTHERS
# Of each of them this much is aimed at: as fast as the C library nearly, and much faster than
# what is written in Python.
AIMS = {"confluent-kafka": 0.6, "kafka-python": 3.0, "aiokafka": 3.0}


@dataclass(frozen=True, slots=True)
class Figures:
    """What a client did: `caller_s` is the CPU time of the thread that calls it."""

    records: int
    seconds: float
    cpu_s: float
    caller_s: float

    @property
    def per_second(self) -> float:
        return self.records / self.seconds

    @property
    def cpu_us(self) -> float:
        return self.cpu_s / self.records * 1e6

    @property
    def caller_us(self) -> float:
        return self.caller_s / self.records * 1e6


def run_client(
    server: Server, client: str, way: str, *, topic: str, size: int, records: int
) -> Figures:
    """One client, one way (`produce` or `consume`), in a process of its own."""
    words = [client, way, server.bootstrap, topic, str(size), str(records)]
    ended = subprocess.run(
        [sys.executable, "-m", "bench.clients", *words],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        env=environment(),
        check=False,
    )
    if ended.returncode != 0:
        raise RuntimeError(f"{client} {way}: {ended.stderr[-2000:]}")
    return Figures(**json.loads(ended.stdout.splitlines()[-1]))


def measure(
    server: Server, size: int, records: int, rounds: int, clients: tuple[str, ...] = CLIENTS
) -> dict[tuple[str, str], Figures]:
    """The best of some rounds, by client and way; the clients take turns."""
    best: dict[tuple[str, str], Figures] = {}
    topic = f"clients-{size}"
    server.create_topic(topic)
    run_client(server, "confluent-kafka", "produce", topic=topic, size=size, records=records)
    for turn in range(rounds):
        for client in clients:
            sink = f"clients-{size}-{client}-{turn}"
            server.create_topic(sink)
            for way, where in (("produce", sink), ("consume", topic)):
                figures = run_client(server, client, way, topic=where, size=size, records=records)
                before = best.get((client, way))
                if before is None or figures.per_second > before.per_second:
                    best[client, way] = figures
    return best


@dataclass(frozen=True, slots=True)
class Parts:
    """Microseconds per record of what is compiled, alone and in one thread."""

    append_us: float
    build_us: float
    decode_us: float


def parts_of(size: int) -> Parts:
    """A batch grown, built and read again, over and over; the best of the rounds."""
    from moldau.client._batch_builder import BatchBuilder
    from moldau.client._fetch_reader import FetchReader

    value = b"x" * size
    now_ms = time.time_ns() // 1_000_000
    best = [float("inf")] * 3
    for _ in range(200):
        builder = BatchBuilder(BATCH_BYTES)
        append = builder.append
        moments = [time.thread_time_ns()]
        while append(now_ms, None, value) >= 0:
            pass
        moments.append(time.thread_time_ns())
        batch = builder.build()
        moments.append(time.thread_time_ns())
        records = FetchReader(batch, "t", 0, 0).next(POLL_RECORDS)
        moments.append(time.thread_time_ns())
        spent = [(end - start) / 1e3 / len(records) for start, end in pairwise(moments)]
        best = [min(pair) for pair in zip(best, spent, strict=True)]
    return Parts(*best)


class Watch:
    """Time and CPU time between two moments."""

    def __init__(self) -> None:
        self._at = time.perf_counter()
        self._cpu = time.process_time()
        self._caller = time.thread_time()

    def figures(self, records: int) -> Figures:
        return Figures(
            records,
            time.perf_counter() - self._at,
            time.process_time() - self._cpu,
            time.thread_time() - self._caller,
        )


# The clients. Each makes itself ready, then begins the watch.


def produce_moldau(bootstrap: str, topic: str, value: bytes, records: int) -> Figures:
    from moldau.client.producer import Producer

    with Producer(bootstrap_servers=bootstrap, batch_size=BATCH_BYTES, linger_ms=LINGER_MS) as it:
        send = it.send
        for _ in range(WARM_UP_RECORDS):
            send(topic, value)
        it.flush()
        watch = Watch()
        for _ in range(records):
            send(topic, value)
        it.flush()
        return watch.figures(records)


def consume_moldau(bootstrap: str, topic: str, size: int, records: int) -> Figures:
    from moldau.client.consumer import Consumer
    from moldau.client.topics import TopicPartition

    with Consumer(
        bootstrap_servers=bootstrap, max_poll_records=POLL_RECORDS, enable_auto_commit=False
    ) as it:
        it.assign([TopicPartition(topic, 0)])
        it.seek(TopicPartition(topic, 0), 0)

        def portions() -> Iterator[list[bytes]]:
            while True:
                yield [record.value for record in it.poll(1.0)]

        return _read(portions(), size, records)


def produce_moldau_asyncio(bootstrap: str, topic: str, value: bytes, records: int) -> Figures:
    from moldau.client.producer import AsyncProducer

    async def run() -> Figures:
        async with AsyncProducer(
            bootstrap_servers=bootstrap, batch_size=BATCH_BYTES, linger_ms=LINGER_MS
        ) as it:
            send = it.send
            for _ in range(WARM_UP_RECORDS):
                await send(topic, value)
            await it.flush()
            watch = Watch()
            for _ in range(records):
                await send(topic, value)
            await it.flush()
            return watch.figures(records)

    return asyncio.run(run())


def consume_moldau_asyncio(bootstrap: str, topic: str, size: int, records: int) -> Figures:
    from moldau.client.consumer import AsyncConsumer
    from moldau.client.topics import TopicPartition

    async def run() -> Figures:
        async with AsyncConsumer(
            bootstrap_servers=bootstrap, max_poll_records=POLL_RECORDS, enable_auto_commit=False
        ) as it:
            it.assign([TopicPartition(topic, 0)])
            it.seek(TopicPartition(topic, 0), 0)

            async def portion() -> list[bytes]:
                return [record.value for record in await it.poll(1.0)]

            return await _read_async(portion, size, records)

    return asyncio.run(run())


def produce_confluent_kafka(bootstrap: str, topic: str, value: bytes, records: int) -> Figures:
    from confluent_kafka import Producer

    it = Producer(
        {
            "bootstrap.servers": bootstrap,
            "batch.size": BATCH_BYTES,
            "linger.ms": LINGER_MS,
            "queue.buffering.max.messages": 2_000_000,
            "queue.buffering.max.kbytes": 1_000_000,
            "log_level": 3,
        }
    )
    produce, poll = it.produce, it.poll
    for _ in range(WARM_UP_RECORDS):
        produce(topic, value)
    it.flush()
    watch = Watch()
    for index in range(records):
        while True:
            try:
                produce(topic, value)
                break
            except BufferError:
                poll(0.01)
        if index % 1_000 == 0:
            poll(0)
    it.flush()
    return watch.figures(records)


def consume_confluent_kafka(bootstrap: str, topic: str, size: int, records: int) -> Figures:
    from confluent_kafka import Consumer, TopicPartition

    it = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "clients",
            "enable.auto.commit": False,
            "log_level": 3,
        }
    )
    it.assign([TopicPartition(topic, 0, 0)])

    def portions() -> Iterator[list[Any]]:
        while True:
            yield [message.value() for message in it.consume(POLL_RECORDS, 0.1)]

    figures = _read(portions(), size, records)
    it.close()
    return figures


def produce_kafka_python(bootstrap: str, topic: str, value: bytes, records: int) -> Figures:
    from kafka import KafkaProducer

    it = KafkaProducer(
        bootstrap_servers=bootstrap, batch_size=BATCH_BYTES, linger_ms=LINGER_MS, acks="all"
    )
    for _ in range(WARM_UP_RECORDS):
        it.send(topic, value)
    it.flush()
    watch = Watch()
    for _ in range(records):
        it.send(topic, value)
    it.flush()
    figures = watch.figures(records)
    it.close()
    return figures


def consume_kafka_python(bootstrap: str, topic: str, size: int, records: int) -> Figures:
    from kafka import KafkaConsumer, TopicPartition

    it = KafkaConsumer(
        bootstrap_servers=bootstrap, max_poll_records=POLL_RECORDS, enable_auto_commit=False
    )
    it.assign([TopicPartition(topic, 0)])
    it.seek(TopicPartition(topic, 0), 0)

    def portions() -> Iterator[list[bytes]]:
        while True:
            found = it.poll(timeout_ms=1_000)
            yield [record.value for each in found.values() for record in each]

    figures = _read(portions(), size, records)
    it.close()
    return figures


def produce_aiokafka(bootstrap: str, topic: str, value: bytes, records: int) -> Figures:
    from aiokafka import AIOKafkaProducer

    async def run() -> Figures:
        it = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            max_batch_size=BATCH_BYTES,
            linger_ms=LINGER_MS,
            acks="all",
        )
        await it.start()
        for _ in range(WARM_UP_RECORDS):
            await it.send(topic, value)
        await it.flush()
        watch = Watch()
        for _ in range(records):
            await it.send(topic, value)
        await it.flush()
        figures = watch.figures(records)
        await it.stop()
        return figures

    return asyncio.run(run())


def consume_aiokafka(bootstrap: str, topic: str, size: int, records: int) -> Figures:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def run() -> Figures:
        it = AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
        await it.start()
        it.assign([TopicPartition(topic, 0)])
        it.seek(TopicPartition(topic, 0), 0)

        async def portion() -> list[bytes]:
            found = await it.getmany(timeout_ms=1_000, max_records=POLL_RECORDS)
            return [record.value for each in found.values() for record in each]

        figures = await _read_async(portion, size, records)
        await it.stop()
        return figures

    return asyncio.run(run())


def _read(portions: Iterator[list[Any]], size: int, records: int) -> Figures:
    """Read until `records` have come after the first portion, which is not counted."""
    while not next(portions):
        pass
    watch = Watch()
    count = 0
    for values in portions:
        if any(len(value) != size for value in values):
            raise RuntimeError("a value is not what was sent")
        count += len(values)
        if count >= records - POLL_RECORDS:
            return watch.figures(count)
    raise RuntimeError("the records ended")


async def _read_async(portion: Callable[[], Any], size: int, records: int) -> Figures:
    while not await portion():
        pass
    watch = Watch()
    count = 0
    while count < records - POLL_RECORDS:
        values = await portion()
        if any(len(value) != size for value in values):
            raise RuntimeError("a value is not what was sent")
        count += len(values)
    return watch.figures(count)


def main(words: list[str]) -> int:
    client, way, bootstrap, topic, size, records = words
    function = globals()[f"{way}_{client.replace('-', '_')}"]
    if way == "produce":
        figures = function(bootstrap, topic, b"x" * int(size), int(records))
    else:
        figures = function(bootstrap, topic, int(size), int(records))
    print(json.dumps({name: getattr(figures, name) for name in Figures.__slots__}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
