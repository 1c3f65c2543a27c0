"""Converters with a Schema Registry: values there and back, and read by Confluent's own client."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from moldau.connect.api import DataError
from moldau.connect.built_in import PluginKind
from moldau.connect.plugins import Plugins
from moldau.data import logical
from moldau.data.builders import (
    BOOLEAN,
    FLOAT64,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    array,
    map_of,
    struct,
)
from moldau.data.struct import Struct
from moldau.services.registry.app import SchemaRegistry
from moldau.services.registry.config import RegistryConfig
from support.http_service import Running, running
from support.processes import BrokerProcess

INNER = struct({"city": STRING, "code": INT32}, name="Place")
SCHEMA = struct(
    {
        "id": INT64,
        "name": OPTIONAL_STRING,
        "price": FLOAT64,
        "paid": BOOLEAN,
        "tags": array(STRING),
        "counts": map_of(STRING, INT32),
        "place": INNER,
        "at": logical.TIMESTAMP,
        "amount": logical.decimal(2),
    },
    name="Order",
)
VALUE = Struct(
    SCHEMA,
    {
        "id": 2**40,
        "price": 1.5,
        "paid": True,
        "tags": ["a", "b"],
        "counts": {"x": 1},
        "place": Struct(INNER, {"city": "Brno", "code": 602}),
        "at": datetime.datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=datetime.UTC),
        "amount": Decimal("12.50"),
    },
)


@pytest.fixture(scope="module")
def registry(broker: BrokerProcess) -> Iterator[Running]:
    config = RegistryConfig.of(
        {"kafkastore.bootstrap.servers": broker.bootstrap, "listeners": "http://127.0.0.1:0"}
    )
    with running(lambda: SchemaRegistry(config)) as found:
        yield found


def converter(name: str, registry: Running, **settings: str) -> Any:
    made = Plugins().find(name, [PluginKind.CONVERTER])()
    given = {key.replace("_", "."): value for key, value in settings.items()}
    made.configure({"schema.registry.url": registry.url, **given}, is_key=False)
    return made


@pytest.mark.parametrize(
    "name",
    [
        "io.confluent.connect.avro.AvroConverter",
        "io.confluent.connect.json.JsonSchemaConverter",
        "io.confluent.connect.protobuf.ProtobufConverter",
    ],
)
def test_a_struct_comes_back(registry: Running, name: str) -> None:
    topic = name.rpartition(".")[2]
    # Protobuf has no null otherwise: an empty text stands for it.
    settings = {"optional_for_nullables": "true"} if "Protobuf" in name else {}
    data = converter(name, registry, **settings).from_connect_data(topic, SCHEMA, VALUE)
    assert data[0] == 0
    # Another converter, which has to ask the registry.
    found = converter(name, registry, **settings).to_connect_data(topic, data)
    assert found.value.as_dict() == VALUE.as_dict()
    assert found.schema.name in ("Order", "com.acme.Order")
    assert converter(name, registry).from_connect_data(topic, SCHEMA, None) is None
    assert converter(name, registry).to_connect_data(topic, None).value is None
    with pytest.raises(DataError):
        converter(name, registry).to_connect_data(topic, b"rubbish")


def test_confluents_client_reads_it(registry: Running) -> None:
    data = converter("AvroConverter", registry).from_connect_data("seen", SCHEMA, VALUE)
    client = SchemaRegistryClient({"url": registry.url})
    read = AvroDeserializer(client)(data, SerializationContext("seen", MessageField.VALUE))
    assert (read["id"], read["place"]["city"], read["amount"]) == (2**40, "Brno", Decimal("12.50"))
    assert "seen-value" in client.get_subjects()


def test_a_primitive_and_a_schema_that_is_not_registered(registry: Running) -> None:
    data = converter("AvroConverter", registry).from_connect_data("plain", STRING, "x")
    assert converter("AvroConverter", registry).to_connect_data("plain", data).value == "x"
    strict = converter("AvroConverter", registry, auto_register_schemas="false")
    with pytest.raises(DataError, match="Schema Registry"):
        strict.from_connect_data("unknown", STRING, "x")
