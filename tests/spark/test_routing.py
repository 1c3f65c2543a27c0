"""One pipeline, several topics and tables: what each gets, and that nothing is written twice."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

from moldau.client import Producer
from moldau.pipelines import Code, Pipeline, RowStep, build
from moldau.pipelines.machine.explaining import explain
from moldau.testing import Broker
from spark.running import committed, finished, patiently
from support.processes import ROOT

EXAMPLES = ROOT / "examples" / "pipelines"
TOPIC = "orders-of-countries"


@pytest.fixture(scope="module")
def orders(broker: Broker) -> list[dict[str, Any]]:
    """What the examples read, and a record that is no order."""
    chance = random.Random(3)
    made = [
        {
            "id": f"o{number}",
            "amount": float(chance.randrange(200)),
            "country": chance.choice(["CZ", "DE", "FR", None]),
        }
        for number in range(80)
    ]
    broker.create_topic(TOPIC, partitions=2)
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        for number, order in enumerate(made):
            producer.send(TOPIC, value=json.dumps(order).encode(), partition=number % 2)
        producer.send(TOPIC, value=b"no order", partition=0)
    return made


def example(name: str, folder: Path) -> Pipeline:
    fields = Pipeline.load(EXAMPLES / f"{name}.yaml").to_json()
    return Pipeline.from_json({**fields, "trigger": "available now", "base": str(folder)})


def run(spark: Any, broker: Broker, checkpoint: str, pipeline: Pipeline) -> list[Any]:
    bootstrap = broker.bootstrap_servers
    return finished(
        lambda: build.start(spark, pipeline, bootstrap=bootstrap, checkpoint=checkpoint)
    )


def values(broker: Broker, topic: str) -> list[str]:
    found = committed(broker.bootstrap_servers, topic)
    return sorted(json.dumps(json.loads(one.value or b"null"), sort_keys=True) for one in found)


def written(rows: list[dict[str, Any]]) -> list[str]:
    """As JSON without nulls, as a topic gets them."""
    shown = [{key: value for key, value in row.items() if value is not None} for row in rows]
    return sorted(json.dumps(row, sort_keys=True) for row in shown)


def test_each_row_goes_to_the_topic_of_its_route(
    spark: Any, broker: Broker, checkpoint: str, orders: list[dict[str, Any]], tmp_path: Path
) -> None:
    run(spark, broker, checkpoint, example("orders-by-country", tmp_path))
    for topic, country in (("orders-cz", "CZ"), ("orders-de", "DE"), ("orders-elsewhere", None)):
        expected = written([order for order in orders if order["country"] == country])
        assert values(broker, topic) == expected, topic
    letters = committed(broker.bootstrap_servers, "orders-by-country-dead-letter")
    french = [json.loads(one.value or b"") for one in letters if one.value != b"no order"]
    assert written(french) == written([order for order in orders if order["country"] == "FR"])
    reasons = {
        value for one in letters for key, value in one.headers if key.endswith("exception.message")
    }
    assert b"route: topic 'orders-fr' is not in the sink's topics" in reasons
    assert len(letters) == len(french) + 1


@pytest.mark.slow("a query with several sinks runs twice")
def test_several_sinks_get_one_read_and_a_repeated_batch_once(
    spark: Any, broker: Broker, checkpoint: str, orders: list[dict[str, Any]], tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    seen = tmp_path / "seen"
    step = RowStep(Code.of(noted), args={"path": str(seen)})
    fields = example("orders-everywhere", tmp_path).to_json()
    pipeline = Pipeline.from_json({**fields, "steps": [step.to_json()]})
    run(spark, broker, checkpoint, pipeline)
    # Each record has been read and sent through the steps once, for all sinks.
    assert sorted(seen.read_text().split()) == sorted(one["id"] for one in orders)
    expect_everything(broker, orders, tmp_path)
    # As after a crash between the write and Spark's own note of it.
    shutil.rmtree(Path(checkpoint, "query", "commits"))
    run(spark, broker, checkpoint, pipeline)
    expect_everything(broker, orders, tmp_path)


@pytest.mark.long("starts and stops a query many times")
def test_several_sinks_stay_exact_while_the_query_is_stopped_at_any_moment(
    spark: Any, broker: Broker, checkpoint: str, topic: str, tmp_path: Path
) -> None:
    chance = random.Random(17)
    (tmp_path / "data").mkdir()
    fields = example("orders-everywhere", tmp_path).to_json()
    fields["source"]["topic"] = topic
    for name in ("big", "all"):
        fields["sinks"][name]["topic"] = f"{topic}-{name}"
    fields["dead_letter"] = f"{topic}-bad"
    broker.create_topic(topic, partitions=2)
    bootstrap = broker.bootstrap_servers
    orders: list[dict[str, Any]] = []
    running = Pipeline.from_json({**fields, "trigger": "0 seconds"})
    for _ in range(12):
        more = [
            {"id": f"o{len(orders) + n}", "amount": float(chance.randrange(200)), "country": "CZ"}
            for n in range(30)
        ]
        with Producer({"bootstrap.servers": bootstrap}) as producer:
            for number, order in enumerate([*more, "no order"]):
                text = json.dumps(order).encode() if isinstance(order, dict) else b"no order"
                producer.send(topic, value=text, partition=number % 2)
        orders += more
        (query,) = patiently(
            lambda: build.start(spark, running, bootstrap=bootstrap, checkpoint=checkpoint)
        )
        query.awaitTermination(chance.uniform(0.2, 6.0))
        query.stop()
    run(spark, broker, checkpoint, Pipeline.from_json(fields))
    big = [{"id": one["id"], "amount": one["amount"]} for one in orders if one["amount"] > 100]
    assert values(broker, f"{topic}-big") == written(big)
    assert values(broker, f"{topic}-all") == written(orders)
    archive = pq.ParquetDataset(tmp_path / "data" / "orders-everywhere").read().to_pylist()
    assert written(archive) == written(orders)
    with sqlite3.connect(tmp_path / "data" / "orders-everywhere.db") as database:
        found = database.execute("SELECT id, amount, country FROM orders").fetchall()
    assert sorted(found) == sorted(tuple(one.values()) for one in orders)
    assert len(committed(bootstrap, f"{topic}-bad")) == 12


def noted(row: dict[str, Any], path: str) -> dict[str, Any]:
    with open(path, "a") as file:
        file.write(f"{row['id']}\n")
    return row


def expect_everything(broker: Broker, orders: list[dict[str, Any]], folder: Path) -> None:
    big = [{"id": one["id"], "amount": one["amount"]} for one in orders if one["amount"] > 100]
    assert values(broker, "big-orders-of-countries") == written(big)
    assert values(broker, "all-orders-of-countries") == written(orders)
    archive = pq.ParquetDataset(folder / "data" / "orders-everywhere").read().to_pylist()
    assert written(archive) == written(orders)
    with sqlite3.connect(folder / "data" / "orders-everywhere.db") as database:
        found = database.execute("SELECT id, amount, country FROM orders").fetchall()
    assert sorted(found) == sorted(tuple(one.values()) for one in orders if one["country"])
    (letter,) = committed(broker.bootstrap_servers, "orders-everywhere-dead-letter")
    assert letter.value == b"no order"


OTHER_FAILURE = pytest.mark.long("another failure, told in the same way")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            {"sinks": {"a": {"topic": "TOPIC-a"}, "b": {"topic": "TOPIC-b"}}},
            "bad record TOPIC-0 at offset 1: the value is not a JSON object: no order",
            id="a bad record for several sinks",
        ),
        pytest.param(
            {"sink": {"topic": "TOPIC-a", "route": "concat('x ', id)"}},
            "bad record TOPIC-0 at offset 0: route: topic 'x o1' cannot be a topic's name",
            id="a route that is no topic",
            marks=OTHER_FAILURE,
        ),
        pytest.param(
            {
                "steps": [{"lookup": {"topic": "TOPIC-none", "key": "id", "schema": "a INT"}}],
                "sink": {"topic": "TOPIC-a"},
                "errors": "ignore",
            },
            "there is no topic 'TOPIC-none' to look up in",
            id="a lookup in no topic",
            marks=OTHER_FAILURE,
        ),
    ],
)
def test_failures_are_told_in_the_users_terms(
    spark: Any,
    broker: Broker,
    checkpoint: str,
    topic: str,
    changes: dict[str, Any],
    expected: str,
) -> None:
    broker.create_topic(topic)
    broker.produce(topic, json.dumps({"id": "o1"}), "no order")
    fields = {
        "name": "p",
        "source": {"topic": topic, "schema": "id STRING", "startingOffsets": "earliest"},
        "trigger": "available now",
        **json.loads(json.dumps(changes).replace("TOPIC", topic)),
    }
    pipeline = Pipeline.from_json(fields)
    with pytest.raises(StreamingQueryException) as failure:
        run(spark, broker, checkpoint, pipeline)
    assert expected.replace("TOPIC", topic) in explain(failure.value, pipeline).message
