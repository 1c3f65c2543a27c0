"""confluent-kafka's client of the registry, unchanged."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SchemaRegistryError,
    ServerConfig,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.common.schema_registry_client import ConfigCompatibilityLevel
from confluent_kafka.schema_registry.rules.encryption.dek_registry.dek_registry_client import (
    DekRegistryClient,
)
from confluent_kafka.serialization import MessageField, SerializationContext

from moldau.testing import Broker
from support.registry.stage import RegistryStage, registry_on

AVRO = '{"type":"record","name":"User","fields":[{"name":"name","type":"string"}]}'
AVRO_2 = (
    '{"type":"record","name":"User","fields":[{"name":"name","type":"string"},'
    '{"name":"age","type":"int","default":0}]}'
)
BREAKING = '{"type":"record","name":"User","fields":[{"name":"x","type":"int"}]}'
JSON = '{"type":"object","properties":{"name":{"type":"string"}}}'
PROTO = 'syntax = "proto3";\nmessage User {\n  string name = 1;\n}\n'


@pytest.fixture(scope="module")
def stage() -> Iterator[RegistryStage]:
    with Broker() as broker, registry_on(broker.bootstrap_servers) as found:
        yield found


@pytest.fixture
def client(stage: RegistryStage) -> SchemaRegistryClient:
    stage.reset()
    return SchemaRegistryClient({"url": stage.running.url})


@pytest.mark.parametrize(("text", "kind"), [(AVRO, "AVRO"), (JSON, "JSON"), (PROTO, "PROTOBUF")])
def test_a_schema_goes_in_and_comes_out(client: SchemaRegistryClient, text: str, kind: str) -> None:
    schema = Schema(text, kind)
    id = client.register_schema("users-value", schema)
    found = client.get_schema(id)
    assert found.schema_type == kind
    assert "name" in found.schema_str
    looked_up = client.lookup_schema("users-value", schema)
    assert (looked_up.schema_id, looked_up.version) == (id, 1)
    latest = client.get_latest_version("users-value")
    assert (latest.schema_id, latest.version, latest.subject) == (id, 1, "users-value")
    assert client.get_schema_by_guid(latest.guid).schema_type == kind
    assert client.get_subjects() == ["users-value"]


def test_versions_compatibility_and_deletion(client: SchemaRegistryClient) -> None:
    first = client.register_schema("users-value", Schema(AVRO, "AVRO"))
    assert client.test_compatibility("users-value", Schema(AVRO_2, "AVRO"))
    assert not client.test_compatibility("users-value", Schema(BREAKING, "AVRO"))
    with pytest.raises(SchemaRegistryError) as caught:
        client.register_schema("users-value", Schema(BREAKING, "AVRO"))
    assert (caught.value.http_status_code, caught.value.error_code) == (409, 409)
    second = client.register_schema("users-value", Schema(AVRO_2, "AVRO"))
    assert second > first
    assert client.get_versions("users-value") == [1, 2]
    assert client.get_version("users-value", 1).schema_id == first
    assert client.delete_version("users-value", 1) == 1
    assert client.delete_subject("users-value") == [2]
    assert client.delete_subject("users-value", permanent=True) == [1, 2]
    with pytest.raises(SchemaRegistryError) as caught:
        client.get_versions("users-value")
    assert caught.value.error_code == 40401


def test_references(client: SchemaRegistryClient) -> None:
    client.register_schema("user", Schema(AVRO, "AVRO"))
    text = '{"type":"record","name":"Order","fields":[{"name":"by","type":"User"}]}'
    reference = SchemaReference("User", "user", 1)
    id = client.register_schema("order", Schema(text, "AVRO", [reference]))
    assert client.get_schema(id).references == [reference]


def test_settings(client: SchemaRegistryClient) -> None:
    client.set_compatibility(level="FULL")
    assert client.get_compatibility() == "FULL"
    client.set_compatibility("users-value", "NONE")
    assert client.get_compatibility("users-value") == "NONE"
    wanted = ServerConfig(
        compatibility=ConfigCompatibilityLevel.FORWARD, compatibility_group="major"
    )
    client.set_config("users-value", wanted)
    config = client.get_config("users-value")
    assert config.compatibility_group == "major"
    assert config.compatibility_level == ConfigCompatibilityLevel.FORWARD
    client.delete_config("users-value")


def test_its_serializer_registers_and_its_deserializer_finds(client: SchemaRegistryClient) -> None:
    context = SerializationContext("users", MessageField.VALUE)
    data = AvroSerializer(client, AVRO)({"name": "Ann"}, context)
    assert client.get_subjects() == ["users-value"]
    assert AvroDeserializer(client)(data, context) == {"name": "Ann"}


def test_its_client_of_keys(stage: RegistryStage) -> None:
    stage.reset()
    client = DekRegistryClient({"url": stage.running.url})
    kek = client.register_kek("orders", "local-kms", "id", kms_props={"a": "b"}, doc="for orders")
    assert (kek.name, kek.kms_type, kek.kms_key_id) == ("orders", "local-kms", "id")
    assert client.get_kek("orders").doc == "for orders"
    material = base64.b64encode(b"encrypted").decode()
    client.register_dek("orders", "orders-value", material)
    found = client.get_dek("orders", "orders-value")
    assert (found.encrypted_key_material, found.version) == (material, 1)
    with pytest.raises(SchemaRegistryError) as caught:
        client.get_dek("orders", "payments-value")
    assert (caught.value.http_status_code, caught.value.error_code) == (404, 40470)
