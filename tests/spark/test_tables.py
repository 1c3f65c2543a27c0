"""Tables as sinks and sources of queries.

One stream goes from a topic through a table of every kind and back into a topic, in two runs of the
same queries: so each kind is written and read as a stream, and each goes on where it had stopped.
Between the runs Spark is made to forget that the last batches were committed, as it does when the
driver dies at that moment.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Producer
from moldau.spark import tables
from spark.running import committed, finished
from support.postgres import Postgres, postgres_missing, running_postgres

SCHEMA = "id BIGINT, name STRING, amount DECIMAL(10,2), at TIMESTAMP"
NOW = {"availableNow": True}
Hop = tuple[str, dict[str, Any], dict[str, Any]]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    if reason := postgres_missing():
        pytest.skip(reason)
    with running_postgres() as cluster:
        yield cluster


@pytest.fixture
def hops(tmp_path: Path, request: pytest.FixtureRequest) -> list[Hop]:
    """Kind, sink and streaming source of each table on the way."""
    growing = {"mode": "incrementing", "incrementing.column.name": "id"}
    places = {kind: {kind: str(tmp_path / kind)} for kind in ("json", "csv", "parquet", "delta")}
    iceberg = {"iceberg": str(tmp_path / "warehouse"), "table": "shop.orders"}
    url = f"jdbc:sqlite:{tmp_path / 'shop.db'}"
    if postgres_missing() is None:
        cluster = request.getfixturevalue("postgres")
        url = cluster.url(cluster.database())
    database = {"jdbc": url, "table": "orders"}
    return [
        ("json", places["json"], {**places["json"], "schema": SCHEMA}),
        ("csv", {**places["csv"], "header": True}, {**places["csv"], "header": True}),
        ("parquet", {**places["parquet"], "partitionBy": ["name"]}, places["parquet"]),
        ("delta", {**places["delta"], "partitionBy": ["name"]}, places["delta"]),
        ("iceberg", iceberg, iceberg),
        ("jdbc", {**database, "upsert": ["id"]}, {**database, **growing}),
    ]


def send(bootstrap: str, topic: str, ids: range) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in ids:
            order = {
                "id": number,
                "name": f"n{number % 2}",
                "amount": f"{number}.25",
                "at": f"2026-01-01T00:00:{number:02d}.500000Z",
            }
            producer.send(topic, json.dumps(order))


def orders(spark: Any, bootstrap: str, topic: str) -> Any:
    """The topic's records with their columns, as a stream."""
    from pyspark.sql.functions import col, from_json

    source = spark.readStream.format("moldau").option("kafka.bootstrap.servers", bootstrap)
    rows = source.option("subscribe", topic).option("startingOffsets", "earliest").load()
    return rows.select(from_json(col("value").cast("string"), SCHEMA).alias("o")).select("o.*")


def run_sink(frame: Any, kind: str, options: dict[str, Any], **more: Any) -> None:
    """All that there is, into a table."""
    finished(lambda: [tables.start_sink(frame, kind, options, trigger=NOW, **more)])


def forget_last_commit(checkpoint: str) -> None:
    """As if the driver had died after the sink's commit: Spark runs the batch again."""
    commits = Path(checkpoint) / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    (commits / str(last)).unlink()


@pytest.mark.long("every kind in one chain; each kind has short tests")
def test_a_topic_goes_through_every_kind_of_table_and_back_each_record_once(
    spark: Any, bootstrap: str, topic: str, tmp_path: Path, hops: list[Hop]
) -> None:
    def run() -> None:
        frame = orders(spark, bootstrap, topic)
        for number, (kind, sink, source) in enumerate(hops):
            checkpoint = str(tmp_path / f"checkpoint-{number}")
            run_sink(frame, kind, sink, query_name=f"to-{kind}-{number}", checkpoint=checkpoint)
            frame = tables.read(spark, kind, source, True)
        writer = frame.selectExpr("to_json(struct(*)) AS value").writeStream.format("moldau")
        writer = (
            writer.option("kafka.bootstrap.servers", bootstrap)
            .option("topic", f"{topic}-back")
            .option("checkpointLocation", str(tmp_path / "checkpoint-back"))
            .trigger(availableNow=True)
        )
        finished(lambda: [writer.start()])

    send(bootstrap, topic, range(3))
    run()
    for number, _ in enumerate(hops):
        forget_last_commit(str(tmp_path / f"checkpoint-{number}"))
    send(bootstrap, topic, range(3, 5))
    run()
    rows = [json.loads(record.value) for record in committed(bootstrap, f"{topic}-back")]
    found = sorted(rows, key=lambda row: int(row["id"]))
    assert [row["id"] for row in found] == [0, 1, 2, 3, 4]
    assert [row["name"] for row in found] == ["n0", "n1", "n0", "n1", "n0"]
    assert [float(row["amount"]) for row in found] == [0.25, 1.25, 2.25, 3.25, 4.25]
    assert all(row["at"].startswith(f"2026-01-01T00:00:0{row['id']}.500") for row in found)


@pytest.mark.slow("several runs of a query, each with its own batch")
def test_results_that_change_are_upserted(spark: Any, tmp_path: Path, checkpoint: str) -> None:
    folder, url = str(tmp_path / "in"), f"jdbc:sqlite:{tmp_path / 'totals.db'}"

    def run(numbers: Any) -> None:
        numbers.selectExpr("id", "concat('n', id % 2) AS name").write.mode("append").parquet(folder)
        one_by_one = {"parquet": folder, "maxFilesPerTrigger": 1}
        source = tables.read(spark, "parquet", one_by_one, True)
        run_sink(
            source.groupBy("name").count(),
            "jdbc",
            {"jdbc": url, "table": "totals", "upsert": ["name"]},
            query_name="totals",
            checkpoint=checkpoint,
            output_mode="update",
        )

    run(spark.range(3))
    run(spark.range(3, 5))
    frame = tables.read(spark, "jdbc", {"jdbc": url, "table": "totals"}, False)
    assert {row["name"]: row["count"] for row in frame.collect()} == {"n0": 3, "n1": 2}


def test_batch_writes_can_be_repeated_and_tables_are_read_in_parts(
    spark: Any, tmp_path: Path
) -> None:
    frame = spark.range(10).selectExpr("id", "CAST(id AS STRING) AS name")
    options = {"jdbc": f"jdbc:sqlite:{tmp_path / 'numbers.db'}", "table": "numbers"}
    writer = frame.write.format(tables.register(spark, "jdbc")).mode("append").options(**options)
    for _ in range(2):
        # Delta's names for a write that counts once however often it is tried.
        writer.option("txnAppId", "nightly").option("txnVersion", "7").save()
    parts = {"partitionColumn": "id", "lowerBound": 0, "upperBound": 10, "numPartitions": 3}
    cut = tables.read(spark, "jdbc", {**options, **parts}, False)
    assert sorted(row["id"] for row in cut.collect()) == list(range(10))


def test_a_stream_of_files_without_columns_says_what_is_missing(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(tables.OptionError, match="schema:"):
        tables.read(spark, "json", {"json": str(tmp_path / "empty")}, True)


def test_other_databases_are_written_by_their_driver(
    spark: Any, tmp_path: Path, checkpoint: str
) -> None:
    # Derby and its driver come with Spark.
    address = {
        "jdbc": f"jdbc:derby:;databaseName={tmp_path / 'derby'};create=true",
        "driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
        "table": "numbers",
    }
    spark.range(3).write.parquet(str(tmp_path / "in"))
    source = tables.read(spark, "parquet", {"parquet": str(tmp_path / "in")}, True)
    with pytest.raises(tables.OptionError, match="PostgreSQL, MariaDB and SQLite only"):
        tables.start_sink(
            source,
            "jdbc",
            {**address, "upsert": ["id"]},
            query_name="refused",
            trigger=NOW,
            checkpoint=checkpoint,
        )
    run_sink(source, "jdbc", address, query_name="numbers", checkpoint=checkpoint)
    found = tables.read(spark, "jdbc", address, False).collect()
    assert sorted(row["id"] for row in found) == [0, 1, 2]
