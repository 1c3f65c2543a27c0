"""What SQL costs: `python -m bench.sql [--records 100000] [--rows filter] [--no-server] [--spark]`.

Queries as tasks in this process, without a broker: rows per CPU second from the bytes of an input
record to the bytes of all that it writes, beside the same topology written in `moldau.streams`.
Then a server with a broker: pull queries per second and their p99, and the time from a statement to
the first row of a push query. With `--spark`, Spark SQL runs the same queries over the same bytes,
as a batch on one core. What was measured replaces the same part of `results/sql.json`, with the
load of the machine at the time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from moldau.client import ConsumerRecord

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

RESULTS = Path(__file__).parent / "results"
ROUNDS = 3
COMMIT_EVERY = 10_000
KEYS = 1_000
PULLS = 1_000
SOURCES = """
    CREATE STREAM orders (id STRING KEY, name STRING, amount INT, price DOUBLE)
        WITH (kafka_topic='left', value_format='{format}', partitions=1);
    CREATE TABLE cities (id STRING PRIMARY KEY, city STRING)
        WITH (kafka_topic='right', value_format='{format}', partitions=1);
"""
AVRO_ORDERS = {"NAME": "string", "AMOUNT": "int", "PRICE": "double"}
AVRO_CITIES = {"CITY": "string"}


class AvroSerde:
    """What a program would write: a schema's id, then Avro."""

    def __init__(self, schema_id: int, fields: dict[str, str]) -> None:
        from moldau.data.avro.encoding import AvroDecoder, AvroEncoder
        from moldau.data.avro.language import AvroLanguage

        shown = [{"name": name, "type": ["null", kind]} for name, kind in fields.items()]
        text = json.dumps({"type": "record", "name": "r", "fields": shown})
        root = AvroLanguage().parse(text, strict=False).root
        self._encode = AvroEncoder(root, logical_types=False).encode
        self._decode = AvroDecoder(root, logical_types=False).decode
        self._prefix = b"\0" + schema_id.to_bytes(4, "big")

    def serialize(self, topic: str, value: Any) -> bytes | None:
        return None if value is None else self._prefix + self._encode(value)

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        return None if data is None else self._decode(data[5:])


@dataclass(frozen=True, slots=True)
class Serdes:
    """Those of a streams program, by what they are for."""

    orders: Any
    cities: Any
    out: Callable[[dict[str, str]], Any]


def _filter(builder: Any, serdes: Serdes) -> None:
    stream = builder.stream("left", key_serde="string", value_serde=serdes.orders)
    kept = stream.filter(lambda key, value: value["AMOUNT"] > 50)
    kept.to("out", key_serde="string", value_serde=serdes.out(AVRO_ORDERS))


def _projection(builder: Any, serdes: Serdes) -> None:
    stream = builder.stream("left", key_serde="string", value_serde=serdes.orders)
    made = stream.map_values(
        lambda value: {"NAME": value["NAME"].upper(), "TWICE": value["AMOUNT"] * 2}
    )
    made.to("out", key_serde="string",
            value_serde=serdes.out({"NAME": "string", "TWICE": "int"}))  # fmt: skip


def _windowed(builder: Any, serdes: Serdes) -> None:
    from moldau.streams import Materialized, TimeWindows

    stream = builder.stream("left", key_serde="string", value_serde=serdes.orders)
    fields = {"C": "long", "TOTAL": "int"}
    table = (
        stream.group_by_key()
        .windowed_by(TimeWindows(size=5_000, grace=1_000))
        .aggregate(
            lambda: {"C": 0, "TOTAL": 0},
            lambda key, value, total: {
                "C": total["C"] + 1,
                "TOTAL": total["TOTAL"] + value["AMOUNT"],
            },
            store=Materialized(name="sums", value_serde=serdes.out(fields)),
        )
    )
    table.to_stream().to("out", value_serde=serdes.out(fields))


def _join(builder: Any, serdes: Serdes) -> None:
    table = builder.table("right", key_serde="string", value_serde=serdes.cities, store="rows")
    stream = builder.stream("left", key_serde="string", value_serde=serdes.orders)
    joined = stream.join(table, lambda one, two: {"AMOUNT": one["AMOUNT"], "CITY": two["CITY"]})
    joined.to("out", key_serde="string",
              value_serde=serdes.out({"AMOUNT": "int", "CITY": "string"}))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    query: str
    program: Callable[[Any, Serdes], None]


ROWS = [
    Row("filter", "CREATE STREAM o AS SELECT * FROM orders WHERE amount > 50;", _filter),
    Row(
        "projection",
        "CREATE STREAM o AS SELECT id, UCASE(name) AS name, amount * 2 AS twice FROM orders;",
        _projection,
    ),
    Row(
        "windowed aggregation",
        "CREATE TABLE o AS SELECT id, COUNT(*) AS c, SUM(amount) AS total FROM orders "
        "WINDOW TUMBLING (SIZE 5 SECONDS, GRACE PERIOD 1 SECOND) GROUP BY id;",
        _windowed,
    ),
    Row(
        "stream-table join",
        "CREATE STREAM o AS SELECT o.id AS id, o.amount AS amount, c.city AS city FROM orders o "
        "JOIN cities c ON o.id = c.id;",
        _join,
    ),
]


def records(
    topic: str, count: int, write: Callable[[int], bytes]
) -> list[ConsumerRecord[bytes, bytes]]:
    return [
        ConsumerRecord(
            topic, 0, number, number * 60_000 // count,
            key=b"%08d" % (number * 7_919 % KEYS), value=write(number),
        )
        for number in range(count)
    ]  # fmt: skip


def order(number: int) -> dict[str, Any]:
    return {"NAME": f"customer {number % 97}", "AMOUNT": number % 101, "PRICE": number / 8}


def rate(topology: Any, lefts: list[Any], rights: list[Any], config: dict[str, Any]) -> float:
    """Records per CPU second."""
    from moldau.streams.machine.task import Task, TaskSettings

    assembly = topology.assembly
    written: list[Any] = []
    task = Task(
        assembly.nodes.values(), assembly.stores, TaskSettings(application_id="bench"),
        written.append,
    )  # fmt: skip
    task.initialize()
    if any("right" in getattr(each, "topics", ()) for each in assembly.nodes.values()) or config:
        task.process_records("right", 0, rights)
    started = time.process_time()
    for start in range(0, len(lefts), COMMIT_EVERY):
        task.process_records("left", 0, lefts[start : start + COMMIT_EVERY])
        task.punctuate_stream_time()
        task.prepare_commit()
        task.committed({})
        written.clear()
    taken = time.process_time() - started
    task.close()
    return len(lefts) / taken


def queries(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    from moldau.sql.engine.engine import KsqlEngine
    from moldau.sql.engine.ports import MemoryTopics
    from moldau.sql.formats import format_for
    from moldau.sql.functions.registry import built_in
    from moldau.sql.testing.registry import MemoryRegistry
    from moldau.streams import StreamsBuilder

    table = Table("query, one task, one core", "format", "SQL rows/s", "streams rows/s", "ratio")
    found = {}
    for row in ROWS:
        for format_name in ("JSON", "AVRO"):
            name = f"{row.name}, {format_name}"
            if options.rows not in name:
                continue
            engine = KsqlEngine(
                functions=built_in(), formats=format_for, topics=MemoryTopics(),
                registry=MemoryRegistry(),
            )  # fmt: skip
            engine.execute_script(SOURCES.format(format=format_name) + row.query)
            (query,) = engine.queries.values()
            lefts, rights = _inputs(engine, options.records)
            is_join = {"right": True} if row.program is _join else {}
            avro = format_name == "AVRO"
            serdes = Serdes(
                AvroSerde(1, AVRO_ORDERS) if avro else "json",
                AvroSerde(2, AVRO_CITIES) if avro else "json",
                (lambda fields: AvroSerde(3, fields)) if avro else (lambda fields: "json"),
            )
            builder = StreamsBuilder()
            row.program(builder, serdes)
            program = builder.build()
            ours: list[float] = []
            theirs: list[float] = []
            for _ in range(ROUNDS):
                ours.append(rate(query.built.topology, lefts, rights, is_join))
                theirs.append(rate(program, lefts, rights, is_join))
            ratio = max(ours) / max(theirs)
            found[name] = {"sql": round(max(ours)), "streams": round(max(theirs)),
                           **_conditions(options.records)}  # fmt: skip
            table.add_row(row.name, format_name, f"{max(ours):,.0f}", f"{max(theirs):,.0f}",
                          f"{ratio:.2f}")  # fmt: skip
    console.print(table)
    return found


def _inputs(engine: Any, count: int) -> tuple[list[Any], list[Any]]:
    def writer(name: str, row: Callable[[int], tuple[Any, ...]]) -> Callable[[int], bytes]:
        source = engine.metastore.source(name)
        info = source.value_format
        serde = engine.serdes.value(info.format, source.schema, info.features)
        return lambda number: serde.serialize(source.topic, row(number))

    lefts = records("left", count, writer("ORDERS", lambda n: tuple(order(n).values())))
    rights = records("right", KEYS, writer("CITIES", lambda n: (f"city {n % 13}",)))
    return lefts, rights


def server(console: Console) -> dict[str, float]:
    """Pull queries and the first row of a push query, over HTTP."""
    from moldau import sql
    from support.processes import moldau
    from support.sql_server import sql_process

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = stack.enter_context(moldau(folder, ["group.initial.rebalance.delay.ms=0"]))
        found = stack.enter_context(sql_process(broker.bootstrap, folder / "server"))
        connection = stack.enter_context(
            sql.connect(found.url, properties={"auto.offset.reset": "earliest"})
        )
        connection.execute(SOURCES.format(format="JSON"))
        connection.execute(
            "CREATE TABLE totals AS SELECT id, SUM(amount) AS total FROM orders GROUP BY id;"
        )
        insert = "INSERT INTO orders (id, name, amount) VALUES (?, ?, ?)"
        connection.cursor().executemany(insert, [(f"k{i}", "n", i) for i in range(100)])
        # The table has all rows before they are asked for.
        connection.execute("SELECT * FROM totals EMIT CHANGES LIMIT 100").fetchall()
        firsts = []
        for _ in range(5):
            started = time.perf_counter()
            with connection.execute("SELECT * FROM orders EMIT CHANGES") as cursor:
                cursor.fetchone()
            firsts.append(time.perf_counter() - started)
        times = _pulls(connection, PULLS, threads=1)
        many = time.perf_counter()
        _pulls(connection, PULLS, threads=4)
        many = PULLS / (time.perf_counter() - many)
    times.sort()
    numbers = {
        "pull queries per second, one client": round(PULLS / sum(times), 1),
        "pull queries per second, four clients": round(many, 1),
        "pull query p50 ms": round(times[len(times) // 2] * 1000, 2),
        "pull query p99 ms": round(times[int(len(times) * 0.99)] * 1000, 2),
        "statement to first row ms": round(statistics.median(firsts) * 1000, 1),
    }
    table = Table("server", "")
    for name, value in numbers.items():
        table.add_row(name, f"{value:,}")
    console.print(table)
    return numbers


def spark(options: argparse.Namespace, console: Console) -> dict[str, int]:
    """Rows per second of wall time; the bytes are in memory, and results go nowhere."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f

    session = (
        SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1").getOrCreate()
    )  # fmt: skip
    session.sparkContext.setLogLevel("ERROR")
    count = options.records

    def table(rows: list[Any], schema: str) -> Any:
        made = (
            session.createDataFrame(rows, "key STRING, value STRING, ms LONG").coalesce(1).cache()
        )
        made.count()
        parsed = made.select("key", "ms", f.from_json("value", schema).alias("v"))
        return parsed.select("key", f.timestamp_millis("ms").alias("time"), "v.*")

    orders = table(
        [
            (f"{n * 7_919 % KEYS:08d}", json.dumps(order(n)), n * 60_000 // count)
            for n in range(count)
        ],
        "NAME STRING, AMOUNT INT, PRICE DOUBLE",
    )
    cities = table(
        [(f"{n * 7_919 % KEYS:08d}", json.dumps({"CITY": f"city {n % 13}"}), 0)
         for n in range(KEYS)],
        "CITY STRING",
    )  # fmt: skip
    sums = orders.groupBy("key", f.window("time", "5 seconds"))
    frames = {
        "filter": (orders.where("AMOUNT > 50"), ("NAME", "AMOUNT", "PRICE")),
        "projection": (
            orders.selectExpr("key", "upper(NAME) AS NAME", "AMOUNT * 2 AS TWICE"),
            ("NAME", "TWICE"),
        ),
        "windowed aggregation": (
            sums.agg(f.count("*").alias("C"), f.sum("AMOUNT").alias("TOTAL")),
            ("C", "TOTAL"),
        ),
        "stream-table join": (orders.join(cities.drop("time"), "key"), ("AMOUNT", "CITY")),
    }
    found = {}
    shown = Table("Spark SQL, one core, a batch", "rows/s")
    for name, (frame, columns) in frames.items():
        written = frame.select("key", f.to_json(f.struct(*columns)))
        times = []
        for _ in range(ROUNDS):
            started = time.perf_counter()
            written.write.format("noop").mode("overwrite").save()
            times.append(time.perf_counter() - started)
        found[name] = round(count / min(times))
        shown.add_row(name, f"{found[name]:,}")
    console.print(shown)
    session.stop()
    return found


def _pulls(connection: Any, count: int, *, threads: int) -> list[float]:
    times: list[float] = []

    def run() -> None:
        cursor = connection.cursor()
        for index in range(count // threads):
            started = time.perf_counter()
            key = f"k{index % 100}"
            (row,) = cursor.execute("SELECT * FROM totals WHERE id = ?", [key]).fetchall()
            times.append(time.perf_counter() - started)
            if row[0] != key:
                raise SystemExit(f"a wrong row: {row}")

    workers = [threading.Thread(target=run) for _ in range(threads)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--rows", default="", help="only rows whose name contains this")
    parser.add_argument("--no-server", action="store_true", help="only queries in this process")
    parser.add_argument("--spark", action="store_true", help="Spark SQL as well")
    options = parser.parse_args()
    console = Console()
    path = RESULTS / "sql.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    rows = queries(options, console)
    found["rows per CPU second"] = {**found.get("rows per CPU second", {}), **rows}
    conditions = found.setdefault("conditions", {})
    if not options.no_server:
        found["server"] = server(console)
        conditions["server"] = _conditions(PULLS)
    if options.spark:
        name = "Spark SQL rows per second, JSON"
        found[name] = spark(options, console)
        conditions[name] = _conditions(options.records)
    path.write_text(json.dumps(found, indent=2) + "\n")


def _conditions(count: int) -> dict[str, Any]:
    """When something was measured, with how many records or requests, and what else ran."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "count": count,
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }


if __name__ == "__main__":
    main()
