"""Topics in Spark: our connector beside Spark's own, on the same broker and in the same server.

One Connect server runs all queries, warm: every query runs once before it counts, and the two
connectors take turns, so that a disturbance hits both. CPU is that of the server and of its Python
workers, not of the broker. What Spark itself takes for Arrow batches out of a Python source and
into a Python sink is measured with a source that has its batches ready and a sink that drops them:
that is the limit for ours, which the official connector, inside the virtual machine, does not have.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import psutil
import pyarrow
from confluent_kafka import Consumer, Producer
from pyspark import cloudpickle
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)

from bench.servers import Server
from moldau.spark import client_cache
from moldau.spark.columns.writing import ColumnWriter

PARTITIONS = 2
OURS, OFFICIAL, LIMIT = "moldau", "kafka", "limit"
WORKLOADS = ("noop", "topic", "parquet")
SCHEMA = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, "
    "timestampType int"
)
_BATCH_ROWS = 10_000
_LATENCY_HZ = 50
_WARM_BATCHES = 8
_WARM_SECONDS_MAX = 120.0


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one query over many rows."""

    rows_per_second: float
    #: Seconds of the server and its Python workers.
    cpu_per_million: float


@dataclass(frozen=True, slots=True)
class Latency:
    p50_ms: float
    p99_ms: float
    #: Of Spark's progress, medians of the batches with rows.
    phases_ms: Mapping[str, float]
    #: Of the server and its Python workers, for each batch.
    cpu_ms: float


@dataclass(frozen=True, slots=True)
class Spark:
    """A running Connect server, a session with it, and how long they took."""

    session: Any
    pid: int
    formats: tuple[str, ...]
    start_seconds: float
    first_query_seconds: float

    def cpu_seconds(self) -> dict[tuple[int, float], float]:
        """Of the server and of every process below it, by id and time of its start."""
        server = psutil.Process(self.pid)
        found = {}
        for process in (server, *server.children(recursive=True)):
            try:
                times = process.cpu_times()
                found[process.pid, process.create_time()] = times.user + times.system
            except psutil.NoSuchProcess:
                continue
        return found


def cpu_between(
    before: dict[tuple[int, float], float], after: dict[tuple[int, float], float]
) -> float:
    """Seconds used meanwhile. Spark ends workers that were idle for a minute: what such a one had
    used before must not be taken off."""
    return sum(seconds - before.get(key, 0.0) for key, seconds in after.items())


@contextmanager
def running() -> Iterator[Spark]:
    """A Connect server with both connectors, where Spark's own can be had."""
    from moldau.spark import ConnectServer, session

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault(
        "MOLDAU_CACHE", str(Path(__file__).resolve().parent.parent / ".cache" / "spark")
    )
    folder = tempfile.mkdtemp(prefix="bench-spark-")
    conf = {
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.eventLog.enabled": "false",
        "spark.sql.shuffle.partitions": str(PARTITIONS),
    }
    server = ConnectServer(folder, master=f"local[{PARTITIONS}]", conf=conf, connector="kafka")
    started = time.perf_counter()
    server.start()
    start_seconds = time.perf_counter() - started
    made: Any = None
    try:
        made = session(server.session_url)
        started = time.perf_counter()
        made.range(1).collect()
        first_seconds = time.perf_counter() - started
        # Workers cannot import this package, so its classes travel as a whole.
        cloudpickle.register_pickle_by_value(sys.modules[__name__])
        made.dataSource.register(ReadySource)
        formats = tuple(dict.fromkeys((OURS, server.state.connector)))
        yield Spark(made, server.pid, formats, start_seconds, first_seconds)
    finally:
        # While its server answers: at exit Spark's client would look for the server.
        if made is not None:
            made.stop()
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


# Rows.


def fill(server: Server, topic: str, *, size: int, count: int) -> None:
    """`count` records of `size` bytes, with keys, spread over the partitions."""
    server.create_topic(topic, PARTITIONS)
    batch = ready_batch(size, _BATCH_ROWS).select(["key", "value"])
    with ColumnWriter({"bootstrap.servers": server.bootstrap}, default_topic=topic) as writer:
        for _ in range(count // _BATCH_ROWS):
            writer.write(batch)
        writer.flush()
    # The producer is kept for the next writer, which may have another broker.
    client_cache.close_idle()


def ready_batch(size: int, count: int) -> pyarrow.RecordBatch:
    """What a reader of topics gives; no two values are alike."""
    noise = os.urandom(size + count)
    return pyarrow.RecordBatch.from_arrays(
        [
            pyarrow.array([b"%08d" % index for index in range(count)], pyarrow.binary()),
            pyarrow.array([noise[row : row + size] for row in range(count)], pyarrow.binary()),
            pyarrow.repeat("topic", count),
            pyarrow.repeat(pyarrow.scalar(0, pyarrow.int32()), count),
            pyarrow.array(range(count), pyarrow.int64()),
            pyarrow.repeat(pyarrow.scalar(0, pyarrow.timestamp("us", tz="UTC")), count),
            pyarrow.repeat(pyarrow.scalar(0, pyarrow.int32()), count),
        ],
        names=["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"],
    )


class ReadySource(DataSource):  # type: ignore[misc]
    """Gives `count` rows of `size` bytes that cost nothing to make, and drops what it is given."""

    @classmethod
    def name(cls) -> str:
        return "ready"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: Any) -> ReadyReader:
        return ReadyReader(int(self.options["size"]), int(self.options["count"]))

    def writer(self, schema: Any, overwrite: bool) -> DroppingWriter:
        return DroppingWriter()


class ReadyReader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, size: int, count: int) -> None:
        self._size = size
        self._count = count

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(index) for index in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        # As large as the batches of ours.
        rows = min(65_536, 8 * 2**20 // (self._size + 8))
        batch = ready_batch(self._size, rows)
        left = self._count // PARTITIONS
        while left > 0:
            yield batch.slice(0, min(left, rows))
            left -= rows


class DroppingWriter(DataSourceArrowWriter):  # type: ignore[misc]
    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


# Queries.


def _source(spark: Spark, kind: str, server: Server, topic: str, size: int, count: int) -> Any:
    if kind == LIMIT:
        reader = spark.session.read.format("ready").option("size", size).option("count", count)
        return reader.load()
    return (
        spark.session.read.format(kind)
        .option("kafka.bootstrap.servers", server.bootstrap)
        .option("subscribe", topic)
        .load()
    )


def _run(
    spark: Spark, kind: str, workload: str, server: Server, topic: str, shape: tuple[int, int]
) -> None:
    rows = _source(spark, kind, server, topic, *shape)
    if workload == "noop":
        rows.write.format("noop").mode("overwrite").save()
    elif workload == "parquet":
        folder = tempfile.mkdtemp(prefix="bench-parquet-")
        try:
            rows.write.mode("overwrite").parquet(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    else:
        written = rows.select("key", "value").write.mode("append")
        if kind == LIMIT:
            written.format("ready").save()
        else:
            written.format(kind).option("kafka.bootstrap.servers", server.bootstrap).option(
                "topic", f"{topic}-out"
            ).save()


def throughput(
    spark: Spark, server: Server, *, size: int, count: int, rounds: int, with_limit: bool
) -> dict[tuple[str, str], Figures]:
    """Of each workload by each connector; the median of the rounds."""
    topic = f"rows-{size}"
    count -= count % _BATCH_ROWS
    fill(server, topic, size=size, count=count)
    server.create_topic(f"{topic}-out", PARTITIONS)
    kinds = (*spark.formats, LIMIT) if with_limit else spark.formats
    seen: dict[tuple[str, str], list[Figures]] = {}
    for workload in WORKLOADS:
        for number in range(rounds + 1):
            for kind in kinds:
                cpu = spark.cpu_seconds()
                started = time.perf_counter()
                _run(spark, kind, workload, server, topic, (size, count))
                seconds = time.perf_counter() - started
                used = cpu_between(cpu, spark.cpu_seconds())
                figures = Figures(count / seconds, used / count * 1e6)
                if number:
                    # The first round is for warming up.
                    seen.setdefault((workload, kind), []).append(figures)
    return {
        key: Figures(
            statistics.median(each.rows_per_second for each in found),
            statistics.median(each.cpu_per_million for each in found),
        )
        for key, found in seen.items()
    }


# Latency.


def latency(
    spark: Spark,
    server: Server,
    kind: str,
    *,
    seconds: float,
    exactly_once: bool,
    name: str = "latency",
) -> Latency:
    """From a record's timestamp to its appearance in the output topic, committed, through a query
    that copies one topic to another as fast as its micro-batches follow one another."""
    topic = f"{name}-{kind}-{exactly_once}".lower()
    server.create_topic(topic)
    server.create_topic(f"{topic}-out")
    checkpoint = tempfile.mkdtemp(prefix="bench-checkpoint-")
    stream = (
        spark.session.readStream.format(kind)
        .option("kafka.bootstrap.servers", server.bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
        .select("key", "value")
        .writeStream.format(kind)
        .option("kafka.bootstrap.servers", server.bootstrap)
        .option("topic", f"{topic}-out")
        .option("checkpointLocation", checkpoint)
    )
    if kind == OURS:
        stream = stream.option("exactlyOnce", str(exactly_once).lower())
    query = stream.start()
    try:
        found, batches, used = _latency(spark, server, topic, seconds, query)
    except RuntimeError as error:
        raise RuntimeError(f"{error}: {query.exception() or query.status}") from error
    finally:
        query.stop()
        shutil.rmtree(checkpoint, ignore_errors=True)
    cuts = statistics.quantiles(found, n=100)
    phases = {
        phase: statistics.median(each.get(phase, 0.0) for each in batches) for phase in batches[-1]
    }
    return Latency(statistics.median(found), cuts[98], phases, 1000 * used / len(batches))


def _batches_of(query: Any) -> int:
    progress = query.lastProgress
    return 0 if progress is None else int(progress["batchId"])


def _latency(
    spark: Spark, server: Server, topic: str, seconds: float, query: Any
) -> tuple[list[float], list[dict[str, float]], float]:
    """The records' times in milliseconds, the phases of the batches, and seconds of CPU."""
    found: list[float] = []
    with traffic(server, topic) as poll:
        # The query's first batches start processes, one after the other; they do not count.
        if not poll([], _WARM_SECONDS_MAX, until=lambda: _batches_of(query) >= _WARM_BATCHES):
            raise RuntimeError(f"the query from {topic} has made few batches in two minutes")
        before, cpu = _batches_of(query), spark.cpu_seconds()
        poll(found, seconds)
        used = cpu_between(cpu, spark.cpu_seconds())
        batches = [
            dict(each.durationMs)
            for each in query.recentProgress
            if each.batchId > before and each.numInputRows
        ]
        if len(found) < 2 or not batches:
            raise RuntimeError(f"{topic}-out stood still for {seconds} s")
    return found, batches, used


class Poll(Protocol):
    def __call__(
        self, found: list[float], seconds: float, *, until: Callable[[], bool] = ...
    ) -> bool:
        """Add milliseconds from a record's timestamp until it was here, until `until` is true or
        `seconds` are over; whether it became true."""
        ...


@contextmanager
def traffic(server: Server, topic: str) -> Iterator[Poll]:
    """Send records with their time to `topic`; what is yielded reads them from `topic`-out."""
    stop = threading.Event()
    sender = threading.Thread(target=_send_times, args=(server, topic, stop))
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": f"{topic}-reader",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 10,
            "log_level": 3,
        }
    )
    consumer.subscribe([f"{topic}-out"])

    def poll(
        found: list[float], seconds: float, *, until: Callable[[], bool] = lambda: False
    ) -> bool:
        return _poll(consumer, found, time.monotonic() + seconds, until=until)

    sender.start()
    try:
        yield poll
    finally:
        stop.set()
        sender.join()
        consumer.close()


def _poll(
    consumer: Consumer, found: list[float], until_s: float, *, until: Callable[[], bool]
) -> bool:
    while time.monotonic() < until_s:
        message = consumer.poll(0.05)
        if message is not None and not message.error():
            found.append((time.time_ns() // 1000 - json.loads(message.value())["at"]) / 1000)
        elif until():
            return True
    return until()


def _send_times(server: Server, topic: str, stop: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": server.bootstrap, "linger.ms": 0, "log_level": 3})
    while not stop.wait(1 / _LATENCY_HZ):
        producer.produce(topic, json.dumps({"at": time.time_ns() // 1000}).encode())
        producer.poll(0)
    producer.flush(10)


def first_query_seconds(spark: Spark, server: Server, kind: str) -> float:
    """The first query over a topic by this connector in a server that has had none."""
    topic = f"first-{kind}"
    fill(server, topic, size=100, count=_BATCH_ROWS)
    started = time.perf_counter()
    _run(spark, kind, "noop", server, topic, (100, _BATCH_ROWS))
    return time.perf_counter() - started
