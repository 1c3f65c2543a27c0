"""Serdes with a real Schema Registry in a topology."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.serde import SchemaRegistryClient
from moldau.streams import StreamsBuilder, TopologyTestDriver
from moldau.streams.schemas import avro_serde, json_schema_serde, protobuf_serde
from moldau.testing import Broker
from support.registry.stage import registry_on

AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "city", "type": "string"}],
    }
)
JSON = json.dumps(
    {
        "type": "object",
        "title": "Order",
        "properties": {"id": {"type": "integer"}, "city": {"type": "string"}},
    }
)
PROTOBUF = 'syntax = "proto3"; message Order { int64 id = 1; string city = 2; }'


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    with Broker() as broker, registry_on(broker.bootstrap_servers) as stage:
        yield stage.running.url


@pytest.mark.parametrize(
    ("make", "schema"),
    [(avro_serde, AVRO), (json_schema_serde, JSON), (protobuf_serde, PROTOBUF)],
    ids=["avro", "json", "protobuf"],
)
def test_values_with_schemas(make: Any, schema: str, registry: str) -> None:
    orders, name = make(schema, registry=registry), make.__name__
    builder = StreamsBuilder()
    stream = builder.stream(f"{name}-orders", key_serde="string", value_serde=orders)
    moved = stream.map_values(lambda order: {**order, "city": order["city"].upper()})
    table = moved.to_table(store="latest")
    table.to_stream().to(f"{name}-moved", key_serde="string", value_serde=orders)
    with TopologyTestDriver(
        builder.build(),
        application_id=name,
        default_key_serde="string",
        default_value_serde=orders,
    ) as driver:
        driver.input_topic(f"{name}-orders").pipe_input("o", {"id": 7, "city": "brno"})
        (found,) = driver.output_topic(f"{name}-moved").read_records()
        assert found.value["city"] == "BRNO"
        assert int(found.value["id"]) == 7
        assert driver.state_store("latest").get("o").value == found.value
    with SchemaRegistryClient(registry) as client:
        subjects = client.subjects(prefix=name)
    topics = ("latest-changelog", "moved", "orders")
    assert sorted(subjects) == [f"{name}-{topic}-value" for topic in topics]
    orders.close()
