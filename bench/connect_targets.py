"""The flows of `bench.connect` to other systems: PostgreSQL, S3, and the changes of a table.

A standalone worker in a process of its own copies records of about `size` bytes: a topic to a
table (JDBC sink, insert), a topic to objects (S3 sink, JSON and Parquet), and the changes of a
table to a topic (change data capture). Values are JSON with schemas.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.connect import Flow, Results, cpu_s, worker
from moldau.client import Consumer, Producer
from moldau.testing import Broker

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.minio import Minio, minio_missing, running_minio
from support.postgres import Postgres, postgres_missing, running_postgres

JSON = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
}
SCHEMA = {
    "type": "struct",
    "name": "Order",
    "fields": [
        {"field": "id", "type": "int64"},
        {"field": "name", "type": "string"},
        {"field": "price", "type": "double"},
        {"field": "note", "type": "string", "optional": True},
    ],
}


def fill(broker: Broker, topic: str, count: int, size: int) -> None:
    broker.create_topic(topic, 1)
    head = f'{{"schema":{json.dumps(SCHEMA)},"payload":'.encode()
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in range(count):
            row = {"id": number, "name": f"n{number}", "price": number / 7, "note": "x" * size}
            producer.send(topic, head + json.dumps(row).encode() + b"}")
        producer.flush()


def measure(
    broker: Broker, folder: Path, config: dict[str, str], count: int, size: int,
    arrived: Callable[[], int],
) -> Flow:  # fmt: skip
    with worker("moldau", broker.bootstrap_servers, folder, config) as (process, start_s):
        while not arrived():
            time.sleep(0.005)
        first, before, cpu_before = time.perf_counter(), arrived(), cpu_s(process)
        while arrived() < count:
            time.sleep(0.02)
        took_s, cpu = time.perf_counter() - first, cpu_s(process) - cpu_before
        return Flow(count - before, size, start_s, max(took_s, 0.001), max(cpu, 0.01))


def to_postgres(broker: Broker, folder: Path, database: Postgres, count: int, size: int) -> Flow:
    with database.connect(autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE orders (id BIGINT, name TEXT, price DOUBLE PRECISION, note TEXT)"
        )
        config = {
            "name": "table", "connector.class": "JdbcSink", "topics": "orders", **JSON,
            "connection.url": database.url("postgres"), "batch.size": "3000",
            "consumer.override.max.poll.records": "3000",
        }  # fmt: skip

        def arrived() -> int:
            found: Any = connection.execute("SELECT count(*) FROM orders").fetchone()
            return int(found[0])

        return measure(broker, folder, config, count, size, arrived)


def to_s3(broker: Broker, folder: Path, storage: Minio, count: int, size: int, kind: str) -> Flow:
    from pyarrow import fs

    bucket, files = storage.bucket(), storage.files()
    flush = 2000
    config = {
        "name": f"objects-{kind}", "connector.class": "S3Sink", "topics": "orders", **JSON,
        "format.class": kind, "flush.size": str(flush), **storage.config(bucket),
        "consumer.override.max.poll.records": "5000",
    }  # fmt: skip

    def arrived() -> int:
        found = files.get_file_info(fs.FileSelector(bucket, recursive=True))
        return flush * sum(each.type == fs.FileType.File for each in found)

    return measure(broker, folder, config, count // flush * flush, size, arrived)


def from_postgres(broker: Broker, folder: Path, database: Postgres, count: int, size: int) -> Flow:
    broker.create_topic("bench.public.changes", 1)
    with database.connect(autocommit=True) as connection:
        connection.execute("CREATE TABLE changes (id BIGINT PRIMARY KEY, name TEXT, note TEXT)")
        connection.execute("SELECT pg_create_logical_replication_slot('bench', 'pgoutput')")
        connection.execute("CREATE PUBLICATION bench FOR ALL TABLES")
        connection.execute(
            "INSERT INTO changes SELECT n, 'n' || n, repeat('x', %s) "
            "FROM generate_series(1, %s) n", (size, count),
        )  # fmt: skip
    config = {
        "name": "changes", "connector.class": "PostgresCdc", "database.hostname": "127.0.0.1",
        "database.port": str(database.port), "database.user": "moldau",
        "database.dbname": "postgres", "topic.prefix": "bench", "slot.name": "bench",
        "publication.name": "bench", "snapshot.mode": "never", "poll.interval.ms": "10", **JSON,
    }  # fmt: skip
    at = ("bench.public.changes", 0)
    with Consumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
        return measure(broker, folder, config, count, size, lambda: consumer.end_offsets([at])[at])


def all_targets(broker: Broker, folder: Path, count: int, size: int, results: Results) -> None:
    """Those whose servers are here; the others are named."""
    fill(broker, "orders", count, size)
    if why := postgres_missing():
        print(f"PostgreSQL is left out: {why}")
    else:
        with running_postgres() as database:
            found = to_postgres(broker, folder, database, count, size)
            results.flow("topic to PostgreSQL", "moldau", found)
            found = from_postgres(broker, folder, database, count, size)
            results.flow("change data capture", "moldau", found)
    if why := minio_missing():
        print(f"S3 is left out: {why}")
    else:
        with running_minio() as storage:
            for kind in ("JsonFormat", "ParquetFormat"):
                found = to_s3(broker, folder, storage, count, size, kind)
                results.flow(f"topic to S3, {kind}", "moldau", found)
