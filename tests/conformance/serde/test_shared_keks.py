"""KEKs that are shared with the registry: it asks the KMS, and clients have no access to it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import Rule, RuleKind, RuleMode, RuleParams, RuleSet
from confluent_kafka.schema_registry import Schema as TheirSchema
from confluent_kafka.schema_registry import SchemaRegistryClient as TheirClient
from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirAvroReader
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirAvroWriter
from confluent_kafka.schema_registry.rules.encryption.dek_registry.dek_registry_client import (
    DekRegistryClient,
)
from confluent_kafka.schema_registry.rules.encryption.encrypt_executor import (
    EncryptionExecutor,
    FieldEncryptionExecutor,
)
from confluent_kafka.schema_registry.rules.encryption.localkms.local_driver import LocalKmsDriver
from confluent_kafka.serialization import MessageField, SerializationContext

from moldau.serde import AvroDeserializer, AvroSerializer
from moldau.services.registry.app import SchemaRegistry
from moldau.services.registry.config import RegistryConfig
from moldau.testing import Broker
from support.http_service import running
from support.registry.client import RestClient
from support.registry.stage import RegistryStage

LATEST = {"auto.register.schemas": False, "use.latest.version": True}
USER = json.dumps(
    {
        "type": "record",
        "name": "User",
        "fields": [{"name": "name", "type": "string", "confluent:tags": ["PII"]}],
    }
)
ADA = {"name": "ada"}
KEKS = "/dek-registry/v1/keks"


@pytest.fixture(scope="module")
def stage() -> Iterator[RegistryStage]:
    # Both: another file of tests may have configured them for its own registry.
    EncryptionExecutor.register()
    FieldEncryptionExecutor.register()
    LocalKmsDriver.register()
    with Broker() as broker:
        properties = {
            "kafkastore.bootstrap.servers": broker.bootstrap_servers,
            "listeners": "http://127.0.0.1:0",
            "kafkastore.timeout.ms": "20000",
            "rule.executors._default_.param.secret": "the registry's own",
        }
        with running(lambda: SchemaRegistry(RegistryConfig.of(properties))) as service:
            yield RegistryStage(service, RestClient(service.url))


def encrypted(stage: RegistryStage, topic: str, expiry_days: str | None) -> TheirClient:
    """A subject whose rule encrypts by a shared KEK."""
    stage.client.ask(
        "POST", f"{KEKS}?testSharing=true",
        {"name": f"kek-{topic}", "kmsType": "local-kms", "kmsKeyId": "k", "shared": True},
    )  # fmt: skip
    params = {"encrypt.kek.name": f"kek-{topic}"}
    if expiry_days is not None:
        params["encrypt.dek.expiry.days"] = expiry_days
    rule = Rule(
        "seal", None, RuleKind.TRANSFORM, RuleMode.WRITEREAD, "ENCRYPT", ["PII"],
        RuleParams(params), None, None, None, False,
    )  # fmt: skip
    theirs = TheirClient({"url": stage.running.url})
    schema = TheirSchema(USER, "AVRO", [], None, RuleSet([], [rule], None))
    theirs.register_schema(f"{topic}-value", schema)
    return theirs


@pytest.mark.parametrize("expiry_days", [None, "1"])
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_clients_need_no_access_to_the_kms(
    stage: RegistryStage, first: str, expiry_days: str | None
) -> None:
    """Either may be the first, who has the registry make the DEK."""
    topic = f"shared-{first}-{expiry_days}"
    theirs = encrypted(stage, topic, expiry_days)
    context = SerializationContext(topic, MessageField.VALUE)
    config: dict[str, Any] = {"registry": stage.running.url, "config": LATEST}
    writers: list[Any] = [
        lambda: AvroSerializer(**config).serialize(topic, ADA),
        lambda: TheirAvroWriter(theirs, None, conf=LATEST)(dict(ADA), context),
    ]
    written = [write() for write in (writers if first == "ours" else writers[::-1])]
    for each in written:
        assert b"ada" not in each
        assert AvroDeserializer(**config).deserialize(topic, each) == ADA
        assert TheirAvroReader(theirs, conf={"use.latest.version": True})(each, context) == ADA


def test_deks_are_made_shown_and_encrypted_anew(stage: RegistryStage) -> None:
    client = DekRegistryClient({"url": stage.running.url})
    client.register_kek("plain", "local-kms", "k", shared=True)
    made = client.register_dek("plain", "s", None)
    key = base64.b64decode(made.key_material or "")
    assert (key[:2], len(key)) == (b"\x1a\x20", 34)
    found = stage.client.ask("GET", f"{KEKS}/plain/deks/s").json
    assert found["keyMaterial"] == made.key_material
    assert found["encryptedKeyMaterial"] == made.encrypted_key_material
    again = stage.client.ask("POST", f"{KEKS}/plain/deks?rewrap=true", {"subject": "s"}).json
    assert again["keyMaterial"] == made.key_material
    assert again["encryptedKeyMaterial"] != made.encrypted_key_material
    assert stage.client.ask("POST", f"{KEKS}/plain/test").json["name"] == "plain"
    assert stage.client.ask("POST", f"{KEKS}/plain/deks", {"subject": "s"}).status == 409


def test_a_kms_that_cannot_be_used_is_named(stage: RegistryStage) -> None:
    kek = {"name": "far", "kmsType": "hsm", "kmsKeyId": "k", "shared": True}
    refused = stage.client.ask("POST", f"{KEKS}?testSharing=true", kek)
    assert (refused.status, refused.json["error_code"]) == (500, 50070)
    assert "hsm" in refused.json["message"]
    assert stage.client.ask("POST", KEKS, kek).status == 200
    refused = stage.client.ask("POST", f"{KEKS}/far/deks", {"subject": "s"})
    assert (refused.status, refused.json["error_code"]) == (500, 50070)
    refused = stage.client.ask("POST", f"{KEKS}/far/test")
    assert (refused.status, refused.json["error_code"]) == (500, 50070)
