"""Whole ways through a real worker and a real broker: from a database to an index and a cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Consumer
from moldau.connect.plugins import Plugins
from support.connect_workers import WorkerUnderTest, distributed_worker
from support.elasticsearch import Elasticsearch
from support.postgres import Postgres
from support.redis import RedisServer
from support.waiting import eventually

JSON = "org.apache.kafka.connect.json.JsonConverter"
FLAT = {
    # Of Debezium's envelope only the row after a change, and of the key only the id.
    "transforms": "after,id",
    "transforms.after.type": "org.apache.kafka.connect.transforms.ExtractField$Value",
    "transforms.after.field": "after",
    "transforms.id.type": "org.apache.kafka.connect.transforms.ExtractField$Key",
    "transforms.id.field": "id",
}


@pytest.fixture
def worker(moldau_session_broker: Any) -> Iterator[WorkerUnderTest]:
    # pytest rewrites modules of plug-ins as they are imported, which Python 3.11 cannot do in
    # several threads at once.
    for name in ("PostgresCdc", "ElasticsearchSink", "RedisSink"):
        Plugins().connector(name)
    settings = {
        "key_converter": JSON,
        "value_converter": JSON,
        "exactly_once_source_support": "enabled",
    }
    servers = moldau_session_broker.bootstrap_servers
    with distributed_worker(servers, "flows", **settings) as found:
        yield found


def test_changes_of_a_database_reach_an_index_and_a_cache(
    worker: WorkerUnderTest,
    postgres: Postgres,
    elasticsearch: Elasticsearch,
    redis_server: RedisServer,
) -> None:
    name, cache = postgres.database(), redis_server.client()
    with postgres.connect(name, autocommit=True) as database:
        database.execute("CREATE TABLE items (id INT PRIMARY KEY, name TEXT, stock INT)")
        database.execute("INSERT INTO items VALUES (1, 'tea', 5), (2, 'cup', 7)")
        connectors = {
            "changes": {
                "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
                "database.hostname": "127.0.0.1",
                "database.port": str(postgres.port),
                "database.user": "moldau",
                "database.dbname": name,
                "topic.prefix": "shop",
                "slot.name": "flows",
                "slot.drop.on.stop": "true",
                "poll.interval.ms": "50",
                "tombstones.on.delete": "true",
                "transaction.boundary": "connector",
            },
            "index": {
                "connector.class": "ElasticsearchSink",
                "topics": "shop.public.items",
                "connection.url": elasticsearch.url,
                "behavior.on.null.values": "delete",
                **FLAT,
            },
            "cache": {
                "connector.class": "RedisSink",
                "topics": "shop.public.items",
                "redis.uri": redis_server.uri,
                "redis.command": "HSET",
                "redis.key": "item",
                **FLAT,
            },
        }
        for each, config in connectors.items():
            made = worker.call("PUT", f"/connectors/{each}/config", config)
            assert made.status == 201, made.body
        for each in connectors:
            worker.wait_for(each, "RUNNING", "RUNNING")
        database.execute("UPDATE items SET stock = 4 WHERE id = 1")
        database.execute("INSERT INTO items VALUES (3, 'pot', 1)")
        database.execute("DELETE FROM items WHERE id = 2")
        expected = {
            "1": {"id": 1, "name": "tea", "stock": 4},
            "3": {"id": 3, "name": "pot", "stock": 1},
        }
        index = "shop.public.items"
        eventually(
            lambda: elasticsearch.documents(index) == expected,
            what="the index has the table",
            seconds_max=60.0,
        )
        eventually(
            lambda: set(cache.keys("item:*")) == {"item:1", "item:3"}, what="the cache has it, too"
        )
        assert cache.hgetall("item:1") == {"id": "1", "name": "tea", "stock": "4"}
        for each in connectors:
            assert worker.call("DELETE", f"/connectors/{each}").status == 204


ORDERS = Path(__file__).parents[3] / "examples" / "orders"


@pytest.mark.slow("the demo of the orders example runs, with all its services")
def test_the_orders_example_is_searched(
    worker: WorkerUnderTest,
    elasticsearch: Elasticsearch,
    moldau_session_broker: Any,
    tmp_path: Path,
) -> None:
    """A document for each order, in its final state, with the connector of the example."""
    servers = moldau_session_broker.bootstrap_servers
    search = json.loads((ORDERS / "connectors" / "orders-search.json").read_text())
    search["config"]["connection.url"] = elasticsearch.url
    words = ["--without-spark", "--plain", "--folder", str(tmp_path), "--seconds", "3"]
    words += ["--bootstrap-server", servers]
    demo = subprocess.run(
        [sys.executable, "-m", "orders.demo", *words],
        env={**os.environ, "PYTHONPATH": str(ORDERS / "src")},
        cwd=ORDERS,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert demo.returncode == 0, demo.stdout + demo.stderr
    orders = newest_values(servers, "orders")
    assert len(orders) > 50
    assert worker.call("POST", "/connectors", search).status == 201
    eventually(
        lambda: elasticsearch.documents("orders") == orders,
        what="the index has every order as it is now",
        seconds_max=60.0,
    )
    query = {"query": {"match": {"state": "VALIDATED"}}, "size": 0}
    found = elasticsearch.ask("POST", "/orders/_search", query)["hits"]["total"]
    assert found == sum(each["state"] == "VALIDATED" for each in orders.values()) > 0
    assert worker.call("DELETE", "/connectors/orders-search").status == 204


def newest_values(servers: str, topic: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    settings = {"bootstrap.servers": servers, "isolation.level": "read_committed"}
    with Consumer({**settings, "auto.offset.reset": "earliest"}) as consumer:
        partitions = [(topic, each.partition) for each in consumer.partitions_for(topic)]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(each) < end for each, end in ends.items()):
            for record in consumer.poll(1.0):
                assert record.key is not None
                found[record.key.decode()] = json.loads(record.value or b"null")
    return found
