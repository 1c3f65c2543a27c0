"""The way out: a declared pipeline runs against Apache Kafka, and only the address is another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Producer
from moldau.pipelines import Pipeline, build
from spark.running import committed, finished
from support.processes import BrokerProcess

DEFINITION = """
name: big-orders
source: {topic: orders, format: json, schema: "id STRING, amount DOUBLE", startingOffsets: earliest}
steps:
  - sql: SELECT id, amount FROM input WHERE amount > 100
sink: {topic: big-orders, format: json, key: id}
dead_letter: orders-dead-letter
trigger: available now
"""


@pytest.mark.long("starts Apache Kafka")
def test_a_pipeline_runs_against_apache_kafka(
    spark: Any, kafka: BrokerProcess, checkpoint: str, tmp_path: Path
) -> None:
    file = tmp_path / "big-orders.yaml"
    file.write_text(DEFINITION)
    pipeline = Pipeline.load(file)
    address = kafka.bootstrap
    for amounts in ((50, 150), (250,)):
        # Runs again from its checkpoint: what was written is not written a second time.
        with Producer(bootstrap_servers=address) as producer:
            for amount in amounts:
                producer.send("orders", json.dumps({"id": f"o{amount}", "amount": amount}))
                producer.send("orders", f"junk {amount}")
        finished(lambda: build.start(spark, pipeline, bootstrap=address, checkpoint=checkpoint))
    good = committed(address, "big-orders")
    assert [(record.key, json.loads(record.value)["amount"]) for record in good] == [
        (b"o150", 150.0),
        (b"o250", 250.0),
    ]
    bad = committed(address, "orders-dead-letter")
    assert [record.value for record in bad] == [b"junk 50", b"junk 150", b"junk 250"]
    assert dict(bad[0].headers)["__connect.errors.topic"] == b"orders"
