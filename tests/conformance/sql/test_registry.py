"""SQL with schemas of a registry that refer to others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, NewTopic, Producer
from moldau.serde import AvroSerializer, ProtobufSerializer, Schema, SchemaRegistryClient
from moldau.serde.values import SchemaReference
from support.processes import BrokerProcess
from support.registry.stage import RegistryStage, registry_on
from support.sql_server import SqlServer, sql_server

EARLIEST = {"auto.offset.reset": "earliest"}
EVENT = 'syntax = "proto3"; message Event { int64 AT = 1; }'
LOGISTICS = """\
syntax = "proto3";
import "event.proto";
message Logistics { Event EVENT = 1; }
"""
MONEY = '{"type": "record", "name": "Money", "fields": [{"name": "CENTS", "type": "long"}]}'
SALE = '{"type": "record", "name": "Sale", "fields": [{"name": "PRICE", "type": "Money"}]}'


@pytest.fixture(scope="module")
def registry(broker: BrokerProcess) -> Iterator[RegistryStage]:
    with registry_on(broker.bootstrap) as found:
        yield found


@pytest.fixture(scope="module")
def with_registry(
    broker: BrokerProcess, registry: RegistryStage, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SqlServer]:
    state: Path = tmp_path_factory.mktemp("state")
    with sql_server(
        broker.bootstrap,
        ksql_service_id="refs_",
        ksql_streams_state_dir=str(state),
        ksql_schema_registry_url=registry.running.url,
    ) as found:
        yield found


@pytest.mark.parametrize(
    ("kind", "inner", "outer", "name", "value", "shown"),
    [
        ("PROTOBUF", EVENT, LOGISTICS, "event.proto", {"EVENT": {"AT": 7}}, {"AT": 7}),
        ("AVRO", MONEY, SALE, "Money", {"PRICE": {"CENTS": 5}}, {"CENTS": 5}),
    ],
)
def test_references_are_followed(
    with_registry: SqlServer,
    registry: RegistryStage,
    broker: BrokerProcess,
    kind: str,
    inner: str,
    outer: str,
    name: str,
    value: Any,
    shown: Any,
) -> None:
    """In what is read, and in a schema that is registered again for what is written."""
    topic, url = f"refs-{kind}", registry.running.url
    with SchemaRegistryClient(url) as client:
        client.register(f"{kind}-inner", Schema(inner, kind))
        schema = Schema(outer, kind, (SchemaReference(name, f"{kind}-inner", 1),))
        schema_id = client.register(f"{topic}-value", schema)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 1)])
    serializer: Any = {"AVRO": AvroSerializer, "PROTOBUF": ProtobufSerializer}[kind]
    with Producer(
        bootstrap_servers=broker.bootstrap, value_serializer=serializer(schema, registry=url)
    ) as producer:
        producer.send(topic, value).result(30)
    with_registry.execute(
        f"CREATE STREAM s_{kind} WITH (kafka_topic='{topic}', value_format='{kind}');"
        f"CREATE STREAM o_{kind} WITH (value_schema_id={schema_id}, kafka_topic='{topic}-out', "
        f"value_format='{kind}') AS SELECT * FROM s_{kind};",
        EARLIEST,
    )
    for source in (f"s_{kind}", f"o_{kind}"):
        found = with_registry.query(f"SELECT * FROM {source} EMIT CHANGES LIMIT 1;", EARLIEST)
        assert found[1]["row"]["columns"] == [shown], source
    with SchemaRegistryClient(url) as client:
        assert client.latest(f"{topic}-out-value").schema.references == schema.references
