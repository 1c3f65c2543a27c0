"""Pipelines on Spark, from their definitions to what they leave behind."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from moldau.pipelines import Parquet, Pipeline, PipelineError, Python, RowStep, Sql, Topic, build
from moldau.pipelines.machine.explaining import explain
from moldau.testing import Broker
from spark.running import committed, finished
from support.processes import ROOT

EXAMPLES = ROOT / "examples" / "pipelines"
SCHEMA = "id STRING NOT NULL, amount DOUBLE, currency STRING, at TIMESTAMP"
KINDS = ("parquet", "json", "csv", "delta", "iceberg", "jdbc")
# Spark reads and writes the others itself.
FEW_KINDS = ("parquet", "delta", "iceberg", "jdbc")


@pytest.fixture(scope="module")
def shop() -> Iterator[Broker]:
    """A broker whose topics are named as in the examples."""
    with Broker() as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The examples in a folder of their own, where they also write."""
    return Path(shutil.copytree(EXAMPLES, tmp_path / "pipelines"))


def load(folder: Path, name: str, **changes: Any) -> Pipeline:
    """An example that ends when it has read what there is."""
    fields = Pipeline.load(folder / f"{name}.yaml").to_json()
    return Pipeline.from_json({**fields, "trigger": "available now", **changes})


def run(spark: Any, broker: Broker, checkpoint: str, *pipelines: Pipeline) -> list[str]:
    """Runs one after the other to its end; the names of their queries."""
    return [
        name
        for pipeline in pipelines
        for name in run_one(spark, broker, f"{checkpoint}/{pipeline.name}", pipeline)
    ]


def run_one(spark: Any, broker: Broker, checkpoint: str, pipeline: Pipeline) -> list[str]:
    bootstrap = broker.bootstrap_servers
    queries = finished(
        lambda: build.start(spark, pipeline, bootstrap=bootstrap, checkpoint=checkpoint)
    )
    return [query.name for query in queries]


def produce(broker: Broker, topic: str, *texts: str, key: str | None = None) -> None:
    if topic not in broker.topics:
        broker.create_topic(topic)
    broker.produce(topic, *texts, key=key)


def order(number: int, amount: float, *, currency: str = "EUR", minute: int = 0) -> str:
    at = f"2026-01-01T10:{minute:02}:{number % 60:02}Z"
    return json.dumps({"id": f"o{number}", "amount": amount, "currency": currency, "at": at})


def values(broker: Broker, topic: str) -> list[Any]:
    found = committed(broker.bootstrap_servers, topic)
    return [json.loads(record.value or b"null") for record in found]


def letters(broker: Broker, topic: str) -> list[tuple[bytes | None, dict[str, str]]]:
    """Dead letters: the value, and the reasons by their name without the prefix."""
    return [
        (
            record.value,
            {
                key.removeprefix("__connect.errors."): (value or b"").decode()
                for key, value in record.headers
            },
        )
        for record in committed(broker.bootstrap_servers, topic)
    ]


def rows(kind: str, folder: Path, spark: Any) -> set[tuple[str, float]]:
    """What a table holds, read without the pipelines."""
    data = folder / "data"
    if kind == "jdbc":
        with sqlite3.connect(data / "orders.db") as database:
            return set(database.execute("SELECT id, amount FROM orders"))
    if kind == "delta":
        from deltalake import DeltaTable

        table = DeltaTable(data / "delta").to_pyarrow_table()
    elif kind == "iceberg":
        from pyiceberg.catalog import load_catalog

        uri = f"sqlite:///{data}/iceberg/catalog.db"
        catalog = load_catalog("moldau", type="sql", uri=uri)
        table = catalog.load_table("shop.orders").scan().to_arrow()
    else:
        reader = spark.read.schema("id STRING, amount DOUBLE").option("header", "true")
        table = reader.format(kind).load(str(data / kind)).toArrow()
    return {(row["id"], row["amount"]) for row in table.select(["id", "amount"]).to_pylist()}


@pytest.mark.long("a query for each kind; test_tables_kinds writes and reads each")
@pytest.mark.slow("a query for each kind of table")
@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param(FEW_KINDS, id="few"),
        pytest.param(KINDS, id="all", marks=pytest.mark.long("every kind; a few show the same")),
    ],
)
def test_examples_of_kinds_of_tables_write_and_read(
    spark: Any, folder: Path, checkpoint: str, kinds: tuple[str, ...]
) -> None:
    """From kind to kind, so that each example's source or sink is in one query or another."""
    with Broker() as shop:
        produce(shop, "orders", order(1, 50.0), order(2, 150.0), "no order", order(3, 250.0))
        go_through(spark, shop, folder, checkpoint, kinds)
        found = sorted(values(shop, "from-jdbc"), key=lambda row: str(row["id"]))
    assert found == [{"id": "o2", "amount": 150.0}, {"id": "o3", "amount": 250.0}]


def go_through(
    spark: Any, shop: Broker, folder: Path, checkpoint: str, kinds: tuple[str, ...]
) -> None:
    run(spark, shop, checkpoint, load(folder, "orders-to-parquet"))
    numbered = "SELECT CAST(substr(id, 2) AS INT) AS number, id, amount FROM input"
    for before, kind in pairwise(kinds):
        fields = {
            "name": f"{before}-to-{kind}",
            "source": load(folder, f"{before}-to-topic").to_json()["source"],
            "steps": [{"sql": numbered if kind == "jdbc" else "SELECT id, amount FROM input"}],
            "sink": load(folder, f"orders-to-{kind}").to_json()["sink"],
            "trigger": "available now",
            "base": str(folder),
        }
        run(spark, shop, checkpoint, Pipeline.from_json(fields))
    expected = {("o1", 50.0), ("o2", 150.0), ("o3", 250.0)}
    assert {kind: rows(kind, folder, spark) for kind in kinds} == dict.fromkeys(kinds, expected)
    run(spark, shop, checkpoint, load(folder, "jdbc-to-topic"))


@pytest.mark.slow("steps of every kind, with Python workers")
def test_bad_records_take_their_own_way_through_steps_of_every_kind(
    spark: Any, shop: Broker, folder: Path, checkpoint: str, topic: str
) -> None:
    produce(shop, topic, order(1, 200.0), "{", order(2, 9000.0, currency="CZK"), key="k")
    produce(shop, topic, order(3, 500.0, currency="USD"), order(4, 5.0), key="usd")
    source = {"topic": topic, "schema": SCHEMA, "startingOffsets": "earliest"}
    assert run(spark, shop, checkpoint, load(folder, "big-orders", source=source)) == ["big-orders"]
    assert {row["id"]: row["gross"] for row in values(shop, "big-orders")} == {
        "o1": pytest.approx(242.0),
        "o2": pytest.approx(435.6),
    }
    found = {
        reasons["offset"]: (value, reasons)
        for value, reasons in letters(shop, "orders-dead-letter")
    }
    assert found.keys() == {"1", "3"}
    value, reasons = found["1"]
    assert value == b"{"
    assert reasons["topic"] == topic
    assert reasons["partition"] == "0"
    assert reasons["connector.name"] == "big-orders"
    assert reasons["stage"] == "VALUE_CONVERTER"
    assert reasons["exception.message"] == "the value is not a JSON object: {"
    value, reasons = found["3"]
    assert json.loads(value or b"")["id"] == "o3"
    assert reasons["stage"] == "TRANSFORMATION"
    assert reasons["class.name"] == "steps.py:in_euro"
    assert reasons["exception.class.name"] == "KeyError"
    assert 'steps.py", line 10, in in_euro' in reasons["exception.stacktrace"]


def moody(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Fails for every other row, each time for others."""
    if random.random() < 0.5:
        raise ValueError("not now")
    return [row, {**row, "amount": -row["amount"]}]


@pytest.mark.slow("a query for each connector, with Python workers")
def test_each_record_is_good_or_bad_never_both(
    spark: Any, shop: Broker, checkpoint: str, topic: str, connectors: Iterable[str]
) -> None:
    numbers = range(60)
    shop.create_topic(topic, 2)
    for partition in (0, 1):
        texts = [order(number, 1.0) for number in numbers if number % 2 == partition]
        shop.produce(topic, *texts, key="customer", partition=partition)
    produce(shop, topic, '{"id": "bad", "amount": "many"}')
    pipelines = [
        Pipeline(
            f"moody-{connector}",
            source=Topic(topic, schema=SCHEMA, startingOffsets="earliest"),
            steps=[
                Sql(
                    "SELECT id, amount * 2 AS amount, _offset AS place FROM input WHERE id <> 'o7'"
                ),
                RowStep(moody),
            ],
            sink=Topic(f"{topic}-{connector}", key="_key", headers={"id": "id"}),
            dead_letter=f"{topic}-{connector}-dead",
            connector=connector,
            trigger="available now",
        )
        for connector in connectors
    ]
    run(spark, shop, checkpoint, *pipelines)
    for connector in connectors:
        good = committed(shop.bootstrap_servers, f"{topic}-{connector}")
        assert {record.key for record in good} == {b"customer"}
        twice = [json.loads(record.value or b"") for record in good]
        assert [dict(record.headers)["id"] for record in good] == [
            row["id"].encode() for row in twice
        ]
        assert {tuple(row) for row in twice} == {("id", "amount", "place")}
        ids = [row["id"] for row in twice if row["amount"] == 2.0]
        assert sorted(ids) == sorted(row["id"] for row in twice if row["amount"] == -2.0)
        bad = letters(shop, f"{topic}-{connector}-dead")
        bad_ids = [json.loads(value or b"")["id"] for value, _ in bad]
        expected = {f"o{number}" for number in numbers if number != 7} | {"bad"}
        assert sorted([*ids, *bad_ids]) == sorted(expected)
        reasons = {reasons["exception.message"] for _, reasons in bad}
        assert reasons == {"not now", "field 'amount' is no DOUBLE: many"}


@pytest.mark.long("one batch after the other; test_relations has windows with late rows")
@pytest.mark.slow("one batch after the other, so that the watermark moves")
def test_revenue_counts_late_orders_until_it_is_too_late(
    spark: Any, shop: Broker, folder: Path, checkpoint: str, topic: str
) -> None:
    source = {
        "topic": topic,
        "schema": SCHEMA,
        "startingOffsets": "earliest",
        "watermark": {"column": "at", "delay": "2 minutes"},
    }
    pipeline = load(folder, "revenue-per-minute", source=source)
    produce(shop, topic, order(1, 10.0, minute=0), order(2, 20.0, minute=1))
    produce(shop, topic, order(3, 5.0, minute=5), order(4, 7.0, minute=1))
    run(spark, shop, checkpoint, pipeline)
    # The watermark is 10:03 now: minute 1 is closed, minute 4 still takes what comes late.
    produce(shop, topic, order(5, 1000.0, minute=1), order(6, 3.0, minute=4), "no order")
    run(spark, shop, checkpoint, pipeline)
    last = {row["minute"][11:16]: row["revenue"] for row in values(shop, "revenue-per-minute")}
    assert last == {"10:00": 10.0, "10:01": 27.0, "10:04": 3.0, "10:05": 5.0}
    assert [value for value, _ in letters(shop, "revenue-dead-letter")] == [b"no order"]


def test_two_topics_are_joined(
    spark: Any, shop: Broker, folder: Path, checkpoint: str, topic: str
) -> None:
    produce(shop, topic, order(1, 10.0), order(2, 20.0))
    paid = {"order_id": "o2", "paid": 20.0, "paid_at": "2026-01-01T10:05:00Z"}
    late = {"order_id": "o1", "paid": 10.0, "paid_at": "2026-01-01T11:00:00Z"}
    produce(shop, "payments", json.dumps(paid), json.dumps(late), "no payment")
    fields = Pipeline.load(folder / "paid-orders.yaml").to_json()
    fields["sources"]["orders"]["topic"] = topic
    run(spark, shop, checkpoint, load(folder, "paid-orders", sources=fields["sources"]))
    (row,) = values(shop, "paid-orders")
    assert (row["id"], row["paid"]) == ("o2", 20.0)


def test_a_table_gets_the_good_and_a_second_query_the_bad(
    spark: Any, shop: Broker, tmp_path: Path, checkpoint: str, topic: str
) -> None:
    produce(shop, topic, "1,a", "2,b,c", "3,d")
    pipeline = Pipeline(
        "to-files",
        source=Topic(topic, format="csv", schema="n INT, name STRING", startingOffsets="earliest"),
        steps=[Python(lambda frame: frame.withColumnRenamed("name", "label"))],
        sink=Parquet("out"),
        dead_letter=f"{topic}-dead",
        trigger="available now",
        base=tmp_path,
    )
    assert run(spark, shop, checkpoint, pipeline) == ["to-files", "to-files.dead-letter"]
    table = spark.read.parquet(str(tmp_path / "out")).toArrow().to_pylist()
    assert sorted(table, key=lambda row: row["n"]) == [
        {"n": 1, "label": "a"},
        {"n": 3, "label": "d"},
    ]
    ((value, reasons),) = letters(shop, f"{topic}-dead")
    assert value == b"2,b,c"
    assert reasons["exception.message"] == "the value is not CSV of n INT, name STRING: 2,b,c"


def test_a_table_that_stays_is_looked_up(spark: Any, tmp_path: Path) -> None:
    spark.sql("SELECT 'c1' AS id, 'Prague' AS city").write.parquet(str(tmp_path / "customers"))
    pipeline = Pipeline(
        "cities",
        sources={
            "orders": Topic("orders", schema="id STRING, customer STRING"),
            "customers": Parquet("customers", streaming=False),
        },
        steps=["SELECT o.id, c.city FROM orders o JOIN customers c ON o.customer = c.id"],
        sink=Topic("cities", key="city"),
        dead_letter="cities-dead",
        base=tmp_path,
    )
    build.check(pipeline, spark)
    plan = build.explain(spark, pipeline)
    assert "Join Inner" in plan
    assert "parquet" in plan


class TestMistakes:
    @pytest.fixture
    def write(self, tmp_path: Path, topic: str) -> Any:
        def write(steps: str, **more: str) -> Pipeline:
            rest = "\n".join(f"{name}: {value}" for name, value in more.items())
            path = tmp_path / "orders.yaml"
            path.write_text(
                f"name: {topic}\nsource:\n  topic: {topic}\n  schema: '{SCHEMA}'\n"
                f"  startingOffsets: earliest\nsink: {{topic: {topic}-out}}\n"
                f"trigger: available now\n{rest}\nsteps:\n{steps}"
            )
            return Pipeline.load(path)

        return write

    @pytest.mark.parametrize(
        ("steps", "expected"),
        [
            (
                "  - sql: |\n      SELECT id,\n        amout\n      FROM input\n",
                r"^orders.yaml:12: .*`amout` cannot be resolved.* \(position 2\)$",
            ),
            ("  - sql: SELECT id FRM input\n", r"^orders.yaml:10: Syntax error at or near 'input'"),
            (
                "  - watermark: {column: when, delay: 1 minute}\n",
                r"^orders.yaml:10: there is no column 'when'",
            ),
            ("  - cast: {amount: DOUBEL}\n", r"^orders.yaml:10: .*DOUBEL"),
        ],
    )
    def test_in_a_definition_are_told_before_it_starts(
        self, spark: Any, write: Any, steps: str, expected: str, capfd: Any
    ) -> None:
        with pytest.raises(PipelineError, match=expected) as caught:
            build.check(write(steps), spark)
        assert "\tat " not in str(caught.value)
        assert "JVM" not in capfd.readouterr().err

    def test_what_spark_lacks_is_named(self, spark: Any) -> None:
        schema = '{"type": "record", "name": "o", "fields": [{"name": "id", "type": "string"}]}'
        source = Topic("orders", format="avro", schema=schema)
        pipeline = Pipeline("avro", source=source, sink=Topic("out"))
        with pytest.raises(PipelineError, match=r"moldau spark start --packages .*spark-avro"):
            build.check(pipeline, spark)

    def test_in_a_record_are_told_with_its_place(
        self, spark: Any, shop: Broker, write: Any, topic: str, checkpoint: str
    ) -> None:
        produce(shop, topic, order(1, 10.0), '{"id": null}')
        assert self.failure(spark, shop, write("  - drop: at\n"), checkpoint) == (
            f"orders.yaml:2: bad record {topic}-0 at offset 1: 'id' is null, but NOT NULL in the "
            "schema (dead_letter: TOPIC sends such records there, errors: ignore leaves them out)"
        )

    def test_in_a_function_are_told_by_its_line(
        self, spark: Any, shop: Broker, write: Any, topic: str, checkpoint: str, tmp_path: Path
    ) -> None:
        produce(shop, topic, order(1, 10.0))
        (tmp_path / "steps.py").write_text(
            "from pyspark.sql.functions import udf\n\n\n"
            "@udf('double')\ndef net(amount):\n    return amount / rates[amount]\n\n\n"
            "def enrich(frame):\n    return frame.withColumn('net', net('amount'))\n"
        )
        pipeline = write("  - python: steps.py:enrich\n")
        assert self.failure(spark, shop, pipeline, checkpoint) == (
            "steps.py:6: in net: NameError: name 'rates' is not defined"
        )

    def failure(self, spark: Any, broker: Broker, pipeline: Pipeline, checkpoint: str) -> str:
        with pytest.raises(Exception, match="STREAM_FAILED") as caught:
            run_one(spark, broker, checkpoint, pipeline)
        return str(explain(caught.value, pipeline))
