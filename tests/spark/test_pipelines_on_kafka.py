"""The way out: a declared pipeline runs against Apache Kafka, and only the address is another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Consumer, Producer
from moldau.pipelines import Pipeline, build
from support.processes import apache_kafka, kafka_missing

DEFINITION = """
name: big-orders
source: {topic: orders, format: json, schema: "id STRING, amount DOUBLE", startingOffsets: earliest}
steps:
  - sql: SELECT id, amount FROM input WHERE amount > 100
sink: {topic: big-orders, format: json, key: id}
dead_letter: orders-dead-letter
trigger: available now
"""


def committed(bootstrap: str, topic: str, count: int) -> list[Any]:
    settings = {"auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    found: list[Any] = []
    with Consumer(settings, bootstrap_servers=bootstrap, group_id=f"{topic}-readers") as consumer:
        consumer.subscribe([topic])
        for record in consumer:
            found.append(record)
            if len(found) == count:
                return found
    return found


def test_a_pipeline_runs_against_apache_kafka(spark: Any, checkpoint: str, tmp_path: Path) -> None:
    missing = kafka_missing()
    if missing:
        pytest.skip(missing)
    file = tmp_path / "big-orders.yaml"
    file.write_text(DEFINITION)
    pipeline = Pipeline.load(file)
    with apache_kafka(tmp_path / "kafka") as kafka:
        address = kafka.bootstrap
        for amounts in ((50, 150), (250,)):
            # Runs again from its checkpoint: what was written is not written a second time.
            with Producer(bootstrap_servers=address) as producer:
                for amount in amounts:
                    producer.send("orders", json.dumps({"id": f"o{amount}", "amount": amount}))
                    producer.send("orders", f"junk {amount}")
            for query in build.start(spark, pipeline, bootstrap=address, checkpoint=checkpoint):
                assert query.awaitTermination(120), f"{query.name} does not end"
        good = committed(address, "big-orders", 2)
        assert [(record.key, json.loads(record.value)["amount"]) for record in good] == [
            (b"o150", 150.0),
            (b"o250", 250.0),
        ]
        bad = committed(address, "orders-dead-letter", 3)
        assert [record.value for record in bad] == [b"junk 50", b"junk 150", b"junk 250"]
        assert dict(bad[0].headers)["__connect.errors.topic"] == b"orders"
