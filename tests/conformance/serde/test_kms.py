"""Key management services, interchangeable with confluent-kafka's drivers.

HashiCorp Vault's transit engine and AWS KMS are stood in for by servers with their interfaces.
"""

from __future__ import annotations

import base64
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from confluent_kafka.schema_registry import Rule, RuleKind, RuleMode, RuleParams, RuleSet
from confluent_kafka.schema_registry import Schema as TheirSchema
from confluent_kafka.schema_registry import SchemaRegistryClient as TheirClient
from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirReader
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirWriter
from confluent_kafka.schema_registry.rules.encryption.awskms.aws_driver import AwsKmsDriver
from confluent_kafka.schema_registry.rules.encryption.dek_registry.dek_registry_client import (
    DekRegistryClient,
)
from confluent_kafka.schema_registry.rules.encryption.encrypt_executor import (
    EncryptionExecutor,
    FieldEncryptionExecutor,
)
from confluent_kafka.schema_registry.rules.encryption.hcvault.hcvault_driver import HcVaultKmsDriver
from confluent_kafka.serialization import MessageField, SerializationContext

from moldau.client.errors import SerializationError
from moldau.serde import AvroDeserializer, AvroSerializer
from moldau.serde.rules.kms import kms_for
from moldau.testing import Broker
from support.registry.stage import RegistryStage, registry_on

USER = json.dumps(
    {
        "type": "record",
        "name": "User",
        "fields": [{"name": "name", "type": "string", "confluent:tags": ["PII"]}],
    }
)
LATEST = {"auto.register.schemas": False, "use.latest.version": True}
ADA = {"name": "ada"}
ARN = "arn:aws:kms:eu-central-1:111122223333:key/1234"
PARAM = "rule.executors._default_.param."


class Service(BaseHTTPRequestHandler):
    """Turns bytes round: enough to see that they went through here."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        target = self.headers.get("X-Amz-Target")
        answer: dict[str, Any]
        if target is None and self.headers.get("X-Vault-Token") != "root":
            return self._answer(403, {"errors": ["permission denied"]})
        if target == "TrentService.Encrypt":
            answer = {"KeyId": body["KeyId"], "CiphertextBlob": turned(body["Plaintext"])}
        elif target == "TrentService.Decrypt":
            answer = {"KeyId": body["KeyId"], "Plaintext": turned(body["CiphertextBlob"])}
        elif self.path == "/v1/transit/encrypt/k":
            answer = {"data": {"ciphertext": "vault:v1:" + turned(body["plaintext"])}}
        elif self.path == "/v1/transit/decrypt/k":
            sealed = body["ciphertext"].removeprefix("vault:v1:")
            answer = {"data": {"plaintext": turned(sealed)}}
        else:
            return self._answer(404, {"errors": [self.path]})
        return self._answer(200, answer)

    do_PUT = do_POST

    def _answer(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        return


def turned(text: str) -> str:
    return base64.b64encode(base64.b64decode(text)[::-1]).decode()


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def stage() -> Iterator[RegistryStage]:
    # Both: another file of tests may have configured them for its own registry.
    EncryptionExecutor.register()
    FieldEncryptionExecutor.register()
    HcVaultKmsDriver.register()
    AwsKmsDriver.register()
    with Broker() as broker, registry_on(broker.bootstrap_servers) as found:
        yield found


def register(theirs: TheirClient, topic: str, kms_type: str, key_id: str) -> None:
    params = {
        "encrypt.kek.name": f"kek-{topic}",
        "encrypt.kms.type": kms_type,
        "encrypt.kms.key.id": key_id,
    }
    encrypt = Rule(
        "seal", None, RuleKind.TRANSFORM, RuleMode.WRITEREAD, "ENCRYPT", ["PII"],
        RuleParams(params), None, None, None, False,
    )  # fmt: skip
    schema = TheirSchema(USER, "AVRO", [], None, RuleSet([], [encrypt]))
    theirs.register_schema(f"{topic}-value", schema)


@pytest.mark.parametrize("kms_type", ["hcvault", "aws-kms"])
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_either_reads_keys_that_the_other_made(
    stage: RegistryStage,
    service: str,
    kms_type: str,
    first: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = f"{kms_type}-{first}"
    if kms_type == "hcvault":
        key_id, params = f"{service}/transit/keys/k", {"token.id": "root"}
    else:
        monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", service)
        key_id, params = ARN, {"access.key.id": "a", "secret.access.key": "b"}
    theirs = TheirClient({"url": stage.running.url})
    register(theirs, topic, kms_type, key_id)
    config = {**LATEST, **{PARAM + name: value for name, value in params.items()}}
    url = stage.running.url
    context = SerializationContext(topic, MessageField.VALUE)
    own = AvroSerializer(registry=url, config=config)
    other = TheirWriter(theirs, None, conf=LATEST, rule_conf=params)
    written = [
        own.serialize(topic, {"name": "ada"}) if each == "ours" else other({"name": "ada"}, context)
        for each in (["ours", "theirs"] if first == "ours" else ["theirs", "ours"])
    ]
    for data in written:
        assert data is not None
        assert b"ada" not in data
        read = AvroDeserializer(registry=url, config=config).deserialize(topic, data)
        assert read == {"name": "ada"}
        assert TheirReader(theirs, rule_conf=params)(data, context) == {"name": "ada"}


@pytest.mark.parametrize("first", ["ours", "theirs"])
@pytest.mark.parametrize("named_by", ["kek", "settings"])
def test_another_key_serves_if_the_first_cannot_be_used(
    stage: RegistryStage, service: str, first: str, named_by: str
) -> None:
    topic = f"alternates-{first}-{named_by}"
    gone, others = (
        f"{service}/transit/keys/gone",
        f"{service}/transit/keys/lost, {service}/transit/keys/k",
    )
    alternates = {"encrypt.alternate.kms.key.ids": others}
    theirs = TheirClient({"url": stage.running.url})
    DekRegistryClient({"url": stage.running.url}).register_kek(
        f"kek-{topic}", "hcvault", gone, kms_props=alternates if named_by == "kek" else None
    )
    register(theirs, topic, "hcvault", gone)
    params = {"token.id": "root", **(alternates if named_by == "settings" else {})}
    config = {**LATEST, **{PARAM + name: value for name, value in params.items()}}
    context = SerializationContext(topic, MessageField.VALUE)
    writers: list[Any] = [
        lambda: AvroSerializer(registry=stage.running.url, config=config).serialize(topic, ADA),
        lambda: TheirWriter(theirs, None, conf=LATEST, rule_conf=params)(dict(ADA), context),
    ]
    for data in [write() for write in (writers if first == "ours" else writers[::-1])]:
        assert b"ada" not in data
        own = AvroDeserializer(registry=stage.running.url, config=config)
        assert own.deserialize(topic, data) == ADA
        assert TheirReader(theirs, rule_conf=params)(data, context) == ADA


def test_all_keys_that_cannot_be_used_are_named(service: str) -> None:
    first, second = f"{service}/transit/keys/gone", f"{service}/transit/keys/lost"
    params = {"token.id": "root", "encrypt.alternate.kms.key.ids": second}
    with pytest.raises(SerializationError, match=r"gone: .*; .*lost: "):
        kms_for("hcvault", first, params).encrypt(b"x")


def test_a_refusal_of_the_service_is_said(stage: RegistryStage, service: str) -> None:
    theirs = TheirClient({"url": stage.running.url})
    register(theirs, "refused", "hcvault", f"{service}/transit/keys/k")
    config = {**LATEST, f"{PARAM}token.id": "wrong"}
    serializer = AvroSerializer(registry=stage.running.url, config=config)
    with pytest.raises(SerializationError, match="hcvault refuses kek kek-refused"):
        serializer.serialize("refused", {"name": "ada"})


@pytest.mark.parametrize(
    ("kms_type", "key_id", "library"),
    [
        ("aws-kms", ARN, "boto3"),
        ("azure-kms", "https://v.vault.azure.net/keys/k/1", "azure.identity"),
        ("gcp-kms", "projects/p/locations/l/keyRings/r/cryptoKeys/k", "google.cloud.kms"),
        ("hcvault", "http://h:1/transit/keys/k", "hvac"),
    ],
)
def test_a_missing_library_is_named(
    kms_type: str, key_id: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    if library == "google.cloud.kms":
        import google.cloud

        monkeypatch.delattr(google.cloud, "kms", raising=False)
    with pytest.raises(SerializationError, match=rf"keys of {kms_type} need .*install"):
        kms_for(kms_type, key_id, {})


@pytest.mark.parametrize(
    ("kms_type", "key_id", "reason"),
    [
        ("aws-kms", "nope", "is not the ARN of a key"),
        ("hcvault", "http://h:1/k", "is not of the form"),
        ("nope", "x", "is none of aws-kms, azure-kms, gcp-kms, hcvault, local-kms"),
        ("local-kms", "x", "needs its secret"),
    ],
)
def test_wrong_keys_are_refused(kms_type: str, key_id: str, reason: str) -> None:
    with pytest.raises(SerializationError, match=reason):
        kms_for(kms_type, key_id, {})
