"""Steps that change the shape of rows, each checked against a recomputation in plain Python."""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from moldau.client import Producer
from moldau.pipelines import (
    Cast,
    Deduplicate,
    Explode,
    Flatten,
    Mask,
    Pipeline,
    Topic,
    Watermark,
    build,
)
from moldau.testing import Broker
from spark.running import committed, finished
from support.processes import ROOT

EXAMPLES = ROOT / "examples" / "pipelines"
# Older records might be removed by retention while the test runs.
NOW = int(time.time()) // 60 * 60


def text_of(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def example(name: str, **changes: Any) -> Pipeline:
    """An example that ends when it has read what there is."""
    fields = Pipeline.load(EXAMPLES / f"{name}.yaml").to_json()
    return Pipeline.from_json({**fields, "trigger": "available now", **changes})


def run(spark: Any, broker: Broker, checkpoint: str, pipeline: Pipeline) -> list[str]:
    bootstrap = broker.bootstrap_servers
    queries = finished(
        lambda: build.start(spark, pipeline, bootstrap=bootstrap, checkpoint=checkpoint)
    )
    return [query.name for query in queries]


def produce(broker: Broker, topic: str, rows: Iterable[Any], **headers: str) -> None:
    if topic not in broker.topics:
        broker.create_topic(topic)
    texts = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    pairs = [(name.replace("_", "-"), text.encode()) for name, text in headers.items()]
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        for text in texts:
            producer.send(topic, value=text.encode(), headers=pairs)


def values(broker: Broker, topic: str) -> list[Any]:
    return [json.loads(one.value or b"null") for one in committed(broker.bootstrap_servers, topic)]


def orders(seed: int, count: int) -> list[dict[str, Any]]:
    """Orders with no, some and null items; some come twice."""
    chance = random.Random(seed)
    made = []
    for number in range(count):
        items = [
            {"sku": f"s{chance.randrange(9)}", "count": chance.randrange(1, 5)}
            for _ in range(chance.randrange(4))
        ]
        customer = {"name": f"n{number}", "email": f"{number}@x", "card": "4" * chance.randrange(9)}
        made.append(
            {
                "id": f"o{number}",
                "at": text_of(NOW + chance.randrange(60)),
                "customer": chance.choice([customer, customer, None]),
                "items": chance.choice([items, items, None]),
            }
        )
    made += chance.sample(made, count // 3)
    chance.shuffle(made)
    return made


def item_rows(order: dict[str, Any]) -> list[dict[str, Any]]:
    """What the example makes of one order; a null is not written."""
    customer = order["customer"] or {}
    card = customer.get("card")
    shown = {
        "customer_name": "***" if customer else None,
        "customer_email": hashlib.sha256(f"pepper{customer['email']}".encode()).hexdigest()
        if customer
        else None,
        "customer_card": None
        if card is None
        else "*" * len(card)
        if len(card) <= 4
        else "*" * (len(card) - 4) + card[-4:],
    }
    at = order["at"].replace("000Z", "Z")
    return [
        {
            name: value
            for name, value in {
                "id": order["id"],
                "at": at,
                **shown,
                "line": line,
                "item_sku": item["sku"],
                "item_count": item["count"],
            }.items()
            if value is not None
        }
        for line, item in enumerate(order["items"] or [])
    ]


def in_order(rows: Iterable[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def test_items_of_orders_as_in_the_example(spark: Any, broker: Broker, checkpoint: str) -> None:
    given = orders(seed=7, count=60)
    produce(broker, "orders-with-items", [*given, "no order"], trace="t", shop_id="cellar")
    run(spark, broker, checkpoint, example("order-items"))
    once = {order["id"]: order for order in given}
    expected = [row for order in once.values() for row in item_rows(order)]
    assert in_order(values(broker, "order-items")) == in_order(expected)
    records = committed(broker.bootstrap_servers, "order-items")
    assert {(r.key, *r.headers) for r in records} == {
        (row["id"].encode(), ("trace", b"t"), ("shop-id", b"cellar")) for row in expected
    }
    (letter,) = committed(broker.bootstrap_servers, "order-items-dead-letter")
    assert letter.value == b"no order"


def test_bad_records_pass_steps_once(
    spark: Any, broker: Broker, topic: str, checkpoint: str
) -> None:
    """A map, items kept though there are none, and a row that turned bad with its items."""
    rows = [
        {"id": "1", "prices": {"a": 1.5, "b": 2.5}, "deep": {"x": {"y": 1}}},
        {"id": "2", "prices": {}, "deep": None},
        {"id": "three", "prices": {"a": 1.0, "b": 2.0}, "deep": {"x": {"y": 3}}},
    ]
    produce(broker, topic, rows)
    schema = "id STRING, prices MAP<STRING, DOUBLE>, deep STRUCT<x: STRUCT<y: INT>>"
    pipeline = Pipeline(
        "p",
        source=Topic(topic, schema=schema, startingOffsets="earliest"),
        steps=[
            Cast({"id": "INT"}),
            Explode("prices", into=("currency", "price"), outer=True),
            Flatten(("deep",), separator="/", depth=1),
            Mask({"deep/x.y": {"redact": "0"}}),
        ],
        sink=Topic(f"{topic}-out"),
        trigger="available now",
        dead_letter=f"{topic}-bad",
    )
    run(spark, broker, checkpoint, pipeline)
    assert in_order(values(broker, f"{topic}-out")) == in_order(
        [
            {"id": 1, "deep/x": {"y": 0}, "currency": "a", "price": 1.5},
            {"id": 1, "deep/x": {"y": 0}, "currency": "b", "price": 2.5},
            {"id": 2},
        ]
    )
    (letter,) = committed(broker.bootstrap_servers, f"{topic}-bad")
    assert json.loads(letter.value or b"") == rows[2]


@pytest.mark.long("a query with state starts four times")
@pytest.mark.slow("a query with state starts four times")
def test_duplicates_are_known_after_a_restart(
    spark: Any, broker: Broker, topic: str, checkpoint: str
) -> None:
    """The first of each key counts, as long as the others are at most the delay away."""
    watermark = Watermark("at", "10 minutes")
    pipeline = Pipeline(
        "p",
        source=Topic(topic, schema="id STRING, n INT, at TIMESTAMP", startingOffsets="earliest"),
        steps=[Deduplicate(("id",), watermark=watermark)],
        sink=Topic(f"{topic}-out"),
        trigger="available now",
    )

    def rows(*given: tuple[str, int, int]) -> list[dict[str, Any]]:
        return [{"id": key, "n": n, "at": text_of(NOW + 60 * minute)} for key, n, minute in given]

    produce(broker, topic, rows(("a", 1, 0), ("a", 2, 5), ("b", 3, 1)))
    run(spark, broker, checkpoint, pipeline)
    produce(broker, topic, rows(("a", 4, 9), ("b", 5, 0), ("c", 6, 20), ("c", 7, 12)))
    run(spark, broker, checkpoint, pipeline)
    # The watermark is at minute 10, and what is known of a and b is over at 10 and 11.
    produce(broker, topic, rows(("late", 8, 9), ("c", 9, 11), ("far", 10, 60)))
    run(spark, broker, checkpoint, pipeline)
    produce(broker, topic, rows(("a", 11, 60), ("c", 12, 61), ("far", 13, 59)))
    run(spark, broker, checkpoint, pipeline)
    kept = sorted(row["n"] for row in values(broker, f"{topic}-out"))
    # Of rows in one batch either may be the first.
    assert kept in ([first, 3, c, 10, 11, 12] for first in (1, 2) for c in (6, 7))
