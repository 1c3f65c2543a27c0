"""Data contracts: rules run as confluent-kafka's do, and each side reads what the other wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    Rule,
    RuleKind,
    RuleMode,
    RuleParams,
    RuleSet,
)
from confluent_kafka.schema_registry import Schema as TheirSchema
from confluent_kafka.schema_registry import SchemaRegistryClient as TheirClient
from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirAvroReader
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirAvroWriter
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer as TheirProtobufReader
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer as TheirProtobufWriter
from confluent_kafka.schema_registry.rules.cel.cel_executor import CelExecutor
from confluent_kafka.schema_registry.rules.cel.cel_field_executor import CelFieldExecutor
from confluent_kafka.schema_registry.rules.encryption.encrypt_executor import (
    EncryptionExecutor,
    FieldEncryptionExecutor,
)
from confluent_kafka.schema_registry.rules.encryption.localkms.local_driver import LocalKmsDriver
from confluent_kafka.schema_registry.rules.jsonata.jsonata_executor import JsonataExecutor
from confluent_kafka.serialization import MessageField, SerializationContext
from confluent_kafka.serialization import SerializationError as TheirError

from moldau.client import Consumer
from moldau.client.errors import SerializationError
from moldau.data.protobuf import ProtobufLanguage
from moldau.serde import (
    AvroDeserializer,
    AvroSerializer,
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    Schema,
)
from moldau.testing import Broker
from support.registry.stage import RegistryStage, registry_on

SECRET = "my secret"
LATEST = {"auto.register.schemas": False, "use.latest.version": True}
USER = json.dumps(
    {
        "type": "record",
        "name": "User",
        "namespace": "com.acme",
        "fields": [
            {"name": "name", "type": "string", "confluent:tags": ["PII"]},
            {"name": "email", "type": ["null", "string"], "default": None},
            {"name": "age", "type": "int"},
            {"name": "blob", "type": "bytes", "confluent:tags": ["PII"]},
        ],
    }
)
ADA = {"name": "ada", "email": "ada@example.com", "age": 36, "blob": b"\x00\x01"}
JSON_USER = json.dumps(
    {
        "type": "object",
        "title": "User",
        "properties": {
            "name": {"type": "string", "confluent:tags": ["PII"]},
            "age": {"type": "integer"},
            "inner": {"$ref": "#/definitions/Inner"},
        },
        "definitions": {
            "Inner": {
                "type": "object",
                "properties": {"x": {"type": "string", "confluent:tags": ["PII"]}},
            }
        },
    }
)
PROTO_USER = """\
syntax = "proto3";
package com.acme;
import "confluent/meta.proto";
message User {
  string name = 1 [(confluent.field_meta).tags = "PII"];
  int32 age = 2;
  repeated string aliases = 3 [(confluent.field_meta).tags = "PII"];
}
"""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as found:
        yield found


@pytest.fixture(scope="module")
def stage(broker: Broker) -> Iterator[RegistryStage]:
    for each in (CelExecutor, CelFieldExecutor, JsonataExecutor):
        each.register()
    EncryptionExecutor.register()
    FieldEncryptionExecutor.register()
    LocalKmsDriver.register()
    with registry_on(broker.bootstrap_servers) as found:
        yield found


@pytest.fixture
def theirs(stage: RegistryStage) -> TheirClient:
    return TheirClient({"url": stage.running.url})


def rule(type: str, expr: str | None = None, **more: Any) -> Rule:
    values: dict[str, Any] = {
        "name": f"rule-{type}".lower(),
        "doc": None,
        "kind": RuleKind.TRANSFORM,
        "mode": RuleMode.WRITEREAD,
        "type": type,
        "tags": None,
        "params": None,
        "expr": expr,
        "on_success": None,
        "on_failure": None,
        "disabled": False,
        **more,
    }
    return Rule(**values)


def register(
    theirs: TheirClient,
    topic: str,
    text: str,
    *rules: Rule,
    type: str = "AVRO",
    migration: list[Rule] | None = None,
    encoding: list[Rule] | None = None,
) -> None:
    rule_set = RuleSet(migration or [], list(rules), encoding)
    schema = TheirSchema(text, type, [], None, rule_set)
    theirs.register_schema(f"{topic}-value", schema)


def context(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def their_writer(theirs: TheirClient) -> Any:
    return TheirAvroWriter(theirs, None, conf=LATEST, rule_conf={"secret": SECRET})


def their_reader(theirs: TheirClient, latest: bool = False) -> Any:
    conf = {"use.latest.version": latest}
    return TheirAvroReader(theirs, conf=conf, rule_conf={"secret": SECRET})


def ours(stage: RegistryStage, **config: Any) -> dict[str, Any]:
    return {
        "registry": stage.running.url,
        "config": {**LATEST, "rule.executors._default_.param.secret": SECRET, **config},
    }


def both_ways(
    stage: RegistryStage, theirs: TheirClient, topic: str, data: Any, expected: Any
) -> bytes:
    """What each side writes, both read as expected; the bytes that ours wrote."""
    written = AvroSerializer(**ours(stage)).serialize(topic, data)
    assert written is not None
    other = their_writer(theirs)(dict(data), context(topic))
    for each in (written, other):
        assert AvroDeserializer(**ours(stage)).deserialize(topic, each) == expected
        assert their_reader(theirs, latest=True)(each, context(topic)) == expected
    return written


def test_a_condition_refuses_on_both_sides(stage: RegistryStage, theirs: TheirClient) -> None:
    check = rule("CEL", "message.age >= 18", kind=RuleKind.CONDITION, mode=RuleMode.WRITE)
    register(theirs, "condition", USER, check)
    both_ways(stage, theirs, "condition", ADA, ADA)
    young = {**ADA, "age": 3}
    with pytest.raises(TheirError):
        their_writer(theirs)(dict(young), context("condition"))
    with pytest.raises(SerializationError, match=r"Rule expr failed: message\.age >= 18"):
        AvroSerializer(**ours(stage)).serialize("condition", young)


@pytest.mark.parametrize(
    ("expr", "kind", "expected"),
    [
        ("name == 'name' ; value + '!'", RuleKind.TRANSFORM, {**ADA, "name": "ada!"}),
        ("typeName == 'STRING' ; value + '!'", RuleKind.TRANSFORM,
         {**ADA, "name": "ada!", "email": "ada@example.com!"}),
        ("name == 'email' ; value.isEmail()", RuleKind.CONDITION, ADA),
        ("name == 'age' ; value > 1", RuleKind.CONDITION, ADA),
    ],
)  # fmt: skip
def test_rules_on_fields(
    stage: RegistryStage, theirs: TheirClient, expr: str, kind: RuleKind, expected: Any
) -> None:
    topic = f"fields-{abs(hash(expr))}"
    register(theirs, topic, USER, rule("CEL_FIELD", expr, kind=kind, mode=RuleMode.WRITE))
    both_ways(stage, theirs, topic, ADA, expected)


def test_a_transform_of_the_whole_message(stage: RegistryStage, theirs: TheirClient) -> None:
    expr = "{'name': message.name + '?', 'email': message.email, 'age': message.age + 1, " \
        "'blob': message.blob}"  # fmt: skip
    register(theirs, "whole", USER, rule("CEL", expr, mode=RuleMode.WRITE))
    both_ways(stage, theirs, "whole", ADA, {**ADA, "name": "ada?", "age": 37})


@pytest.mark.parametrize("algorithm", ["AES128_GCM", "AES256_GCM", "AES256_SIV"])
@pytest.mark.parametrize("expires", [False, True])
def test_encrypted_fields(
    stage: RegistryStage, theirs: TheirClient, algorithm: str, expires: bool
) -> None:
    topic = f"encrypted-{algorithm}-{expires}"
    params = {
        "encrypt.kek.name": f"kek-{topic}",
        "encrypt.kms.type": "local-kms",
        "encrypt.kms.key.id": "mykey",
        "encrypt.dek.algorithm": algorithm,
    }
    if expires:
        params["encrypt.dek.expiry.days"] = "1"
    encrypt = rule("ENCRYPT", tags=["PII"], params=RuleParams(params), on_failure="ERROR,NONE")
    register(theirs, topic, USER, encrypt)
    before = dict(ADA)
    written = both_ways(stage, theirs, topic, ADA, ADA)
    assert before == ADA
    assert b"\x06ada" not in written
    # Without the secret the rule fails on reading, and the action is NONE: it stays encrypted.
    config = {"registry": stage.running.url, "config": {"use.latest.version": True}}
    blind = AvroDeserializer(**config).deserialize(topic, written)
    assert blind["age"] == 36
    assert blind["name"] != "ada"


def test_keys_that_are_not_shared_are_left_alone_on_demand(
    stage: RegistryStage, theirs: TheirClient
) -> None:
    params = {
        "encrypt.kek.name": "kek-passed",
        "encrypt.kms.type": "local-kms",
        "encrypt.kms.key.id": "mykey",
    }
    register(theirs, "passed", USER, rule("ENCRYPT", tags=["PII"], params=RuleParams(params)))
    setting = {"rule.executors._default_.param.encrypt.nonshared.kek.passthrough": "true"}
    written = AvroSerializer(**ours(stage, **setting)).serialize("passed", ADA)
    read = AvroDeserializer(**ours(stage, **setting)).deserialize("passed", written)
    assert read["age"] == 36
    assert read["name"] != "ada"
    assert AvroDeserializer(**ours(stage)).deserialize("passed", written) == ADA


def test_a_rule_with_a_key_alone_gets_a_kek(stage: RegistryStage, theirs: TheirClient) -> None:
    """As Confluent's registry names it."""
    params = {"encrypt.kms.key.id": "arn:aws:kms:x:1:key/2", "encrypt.dek.algorithm": "AES256_SIV"}
    register(theirs, "named", USER, rule("ENCRYPT", tags=["PII"], params=RuleParams(params)))
    found = stage.client.get("/subjects/named-value/versions/latest").json["ruleSet"]
    assert found["domainRules"][0]["params"] == {
        **params,
        "encrypt.kek.name": "aws-kms-x-1-key-2",
        "encrypt.kms.type": "aws-kms",
    }


def test_tags_of_the_metadata(stage: RegistryStage) -> None:
    """Ours alone: confluent-kafka 2.16 fails on any schema that has such tags."""
    change = {"name": "up", "kind": "TRANSFORM", "mode": "WRITE", "type": "CEL_FIELD"}
    schema = Schema(
        USER,
        metadata={"tags": {"com.acme.*.e*": ["LOUD"], "**.nothing": ["LOUD"]}},
        rule_set={"domainRules": [{**change, "expr": "value + '!'", "tags": ["LOUD"]}]},
    )
    serializer = AvroSerializer(schema, registry=stage.running.url)
    written = serializer.serialize("metadata", ADA)
    read = AvroDeserializer(registry=stage.running.url).deserialize("metadata", written)
    assert read == {**ADA, "email": "ada@example.com!"}


@pytest.mark.parametrize(
    ("type", "pattern"), [("JSON", "$.inner.*"), ("PROTOBUF", "com.acme.User.aliases")]
)
def test_tags_of_the_metadata_in_other_formats(
    stage: RegistryStage, type: str, pattern: str
) -> None:
    change = {"name": "up", "kind": "TRANSFORM", "mode": "WRITE", "type": "CEL_FIELD"}
    rules = {"domainRules": [{**change, "expr": "value + '!'", "tags": ["LOUD"]}]}
    metadata = {"tags": {pattern: ["LOUD"]}}
    topic = f"metadata-{type}"
    if type == "JSON":
        schema = Schema(JSON_USER, type, metadata=metadata, rule_set=rules)
        data: Any = {"name": "ada", "age": 1, "inner": {"x": "y"}}
        written = JsonSchemaSerializer(schema, registry=stage.running.url).serialize(topic, data)
        read = JsonSchemaDeserializer(registry=stage.running.url).deserialize(topic, written)
        assert read == {**data, "inner": {"x": "y!"}}
        return
    schema = Schema(PROTO_USER, type, metadata=metadata, rule_set=rules)
    data = {"name": "ada", "age": 1, "aliases": ["a", "b"]}
    written = ProtobufSerializer(schema, registry=stage.running.url).serialize(topic, data)
    read = ProtobufDeserializer(registry=stage.running.url).deserialize(topic, written)
    assert read == {**data, "aliases": ["a!", "b!"]}


def test_encrypted_fields_of_json_schema_and_protobuf(
    stage: RegistryStage, theirs: TheirClient
) -> None:
    """Each side reads what the other wrote."""
    rule_conf = {"secret": SECRET}
    for type, text in (("JSON", JSON_USER), ("PROTOBUF", PROTO_USER)):
        params = {
            "encrypt.kek.name": f"kek-{type}",
            "encrypt.kms.type": "local-kms",
            "encrypt.kms.key.id": "mykey",
        }
        encrypt = rule("ENCRYPT", tags=["PII"], params=RuleParams(params))
        register(theirs, f"sealed-{type}", text, encrypt, type=type)
    data: Any = {"name": "ada", "age": 1, "inner": {"x": "y"}}
    topic = "sealed-JSON"
    written = JsonSchemaSerializer(**ours(stage)).serialize(topic, data)
    other = JSONSerializer(JSON_USER, theirs, conf=LATEST, rule_conf=rule_conf)(
        json.loads(json.dumps(data)), context(topic)
    )
    reader = JSONDeserializer(None, schema_registry_client=theirs, rule_conf=rule_conf)
    for each in (written, other):
        assert each is not None
        assert b"ada" not in each
        assert b'"y"' not in each
        assert JsonSchemaDeserializer(**ours(stage)).deserialize(topic, each) == data
        assert reader(each, context(topic)) == data

    topic = "sealed-PROTOBUF"
    data = {"name": "ada", "age": 1, "aliases": ["bee", "cee"]}
    made = ProtobufLanguage().parse(PROTO_USER).message_class("com.acme.User")
    conf = {**LATEST, "use.deprecated.format": False}
    written = ProtobufSerializer(**ours(stage)).serialize(topic, data)
    other = TheirProtobufWriter(made, theirs, conf=conf, rule_conf=rule_conf)(
        made(**data), context(topic)
    )
    # A client that has registered the text itself takes it for a descriptor.
    fresh = TheirClient({"url": stage.running.url})
    plain = {"use.deprecated.format": False}
    their = TheirProtobufReader(made, plain, fresh, rule_conf=rule_conf)
    for each in (written, other):
        assert each is not None
        assert b"ada" not in each
        assert b"bee" not in each
        assert ProtobufDeserializer(**ours(stage)).deserialize(topic, each) == data
        assert their(each, context(topic)) == made(**data)


def test_encrypted_payloads(stage: RegistryStage, theirs: TheirClient) -> None:
    params = {
        "encrypt.kek.name": "kek-payload",
        "encrypt.kms.type": "local-kms",
        "encrypt.kms.key.id": "mykey",
    }
    encrypt = rule("ENCRYPT_PAYLOAD", params=RuleParams(params))
    register(theirs, "payload", USER, encoding=[encrypt])
    written = both_ways(stage, theirs, "payload", ADA, ADA)
    assert b"ada" not in written


def test_migrations_lead_from_one_version_to_another(
    stage: RegistryStage, theirs: TheirClient
) -> None:
    topic = "migrated"
    stage.client.ask("PUT", f"/config/{topic}-value", {"compatibility": "NONE"})
    first = '{"type":"record","name":"R","fields":[{"name":"size","type":"int"}]}'
    second = '{"type":"record","name":"R","fields":[{"name":"height","type":"int"}]}'
    register(theirs, topic, first)
    old = AvroSerializer(first, registry=stage.running.url).serialize(topic, {"size": 7})
    up = "$merge([$sift($, function($v, $k) {$k != 'size'}), {'height': $.'size'}])"
    down = "$merge([$sift($, function($v, $k) {$k != 'height'}), {'size': $.'height'}])"
    register(
        theirs,
        topic,
        second,
        migration=[
            rule("JSONATA", up, name="up", mode=RuleMode.UPGRADE),
            rule("JSONATA", down, name="down", mode=RuleMode.DOWNGRADE),
        ],
    )
    assert AvroDeserializer(**ours(stage)).deserialize(topic, old) == {"height": 7}
    assert their_reader(theirs, latest=True)(old, context(topic)) == {"height": 7}


def test_json_schema(stage: RegistryStage, theirs: TheirClient) -> None:
    topic = "json"
    transform = rule("CEL_FIELD", "value + '!'", tags=["PII"], mode=RuleMode.WRITE)
    register(theirs, topic, JSON_USER, transform, type="JSON")
    data = {"name": "ada", "age": 1, "inner": {"x": "y"}}
    expected = {"name": "ada!", "age": 1, "inner": {"x": "y!"}}
    written = JsonSchemaSerializer(**ours(stage)).serialize(topic, data)
    other = JSONSerializer(JSON_USER, theirs, conf=LATEST)(
        json.loads(json.dumps(data)), context(topic)
    )
    assert written == other
    assert JsonSchemaDeserializer(**ours(stage)).deserialize(topic, written) == expected
    reader = JSONDeserializer(None, schema_registry_client=theirs)
    assert reader(written, context(topic)) == expected
    assert data["name"] == "ada"


def test_protobuf(stage: RegistryStage, theirs: TheirClient) -> None:
    topic = "protobuf"
    transform = rule("CEL_FIELD", "value + '!'", tags=["PII"], mode=RuleMode.WRITE)
    check = rule("CEL", "message.age < 100", kind=RuleKind.CONDITION, mode=RuleMode.WRITE)
    register(theirs, topic, PROTO_USER, transform, check, type="PROTOBUF")
    data = {"name": "ada", "age": 1, "aliases": ["a", "b"]}
    written = ProtobufSerializer(**ours(stage)).serialize(topic, data)
    expected = {"name": "ada!", "age": 1, "aliases": ["a!", "b!"]}
    assert ProtobufDeserializer(**ours(stage)).deserialize(topic, written) == expected
    with pytest.raises(SerializationError):
        ProtobufSerializer(**ours(stage)).serialize(topic, {**data, "age": 100})
    made = ProtobufLanguage().parse(PROTO_USER).message_class("com.acme.User")
    message = made(name="ada", age=1, aliases=["a", "b"])
    ProtobufSerializer(**ours(stage)).serialize(topic, message)
    assert message.name == "ada"
    conf = {**LATEST, "use.deprecated.format": False}
    other = TheirProtobufWriter(made, theirs, conf=conf)(message, context(topic))
    assert ProtobufDeserializer(**ours(stage)).deserialize(topic, other) == expected


def test_dead_letters(broker: Broker, stage: RegistryStage, theirs: TheirClient) -> None:
    params = {
        "encrypt.kek.name": "kek-dead",
        "encrypt.kms.type": "local-kms",
        "encrypt.kms.key.id": "mykey",
    }
    check = rule(
        "CEL",
        "message.age >= 18",
        kind=RuleKind.CONDITION,
        mode=RuleMode.WRITE,
        on_failure="DLQ",
        params=RuleParams({"dlq.topic": "dead"}),
    )
    encrypt = rule("ENCRYPT", tags=["PII"], params=RuleParams(params))
    register(theirs, "letters", USER, check, encrypt)
    config = ours(stage, **{"bootstrap.servers": broker.bootstrap_servers})
    serializer = AvroSerializer(**config)
    with pytest.raises(SerializationError, match="Rule failed: rule-cel"):
        serializer.serialize("letters", {**ADA, "age": 3}, [("h", b"1")])
    with Consumer(
        bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([("dead", 0)])
        (record,) = consumer.poll(30.0)
    assert json.loads(record.value or b"") == {
        "name": "<REDACTED>",
        "email": "ada@example.com",
        "age": 3,
        "blob": "<REDACTED>",
    }
    headers = dict(record.headers)
    assert headers["h"] == b"1"
    assert headers["__rule.name"] == b"rule-cel"
    assert headers["__rule.topic"] == b"letters"
    assert headers["__rule.subject"] == b"letters-value"
    # What comes back from there is not refused by the same rule again.
    replayed = [("__rule.name", b"rule-cel")]
    assert serializer.serialize("letters", {**ADA, "age": 3}, replayed) is not None
    serializer.close()


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (rule("CEL", "message.", kind=RuleKind.CONDITION), "CEL expression"),
        (rule("NOPE", "x"), "Could not find rule executor of type NOPE"),
        (
            rule("CEL", "false", kind=RuleKind.CONDITION, on_failure="NOPE"),
            "rule action of type NOPE",
        ),
        (rule("ENCRYPT", tags=["PII"]), "no kek name found"),
    ],
)
def test_what_cannot_run_is_said(
    stage: RegistryStage, theirs: TheirClient, broken: Rule, reason: str
) -> None:
    topic = f"broken-{abs(hash(reason))}"
    register(theirs, topic, USER, broken)
    with pytest.raises(SerializationError, match=reason):
        AvroSerializer(**ours(stage)).serialize(topic, ADA)


POSITIVE = {"name": "positive", "doc": "must be positive", "expr": "this > 0"}
SHORT = {"name": "short", "expr": "size(this) < 5 ? '' : 'too long: ' + this"}
TOTAL = {"name": "total", "expr": "this.a + this.b < 10"}
CHECKED = {
    "AVRO": json.dumps(
        {
            "type": "record",
            "name": "Checked",
            "confluent:rules": [TOTAL],
            "fields": [
                {"name": "a", "type": "long", "confluent:rules": [POSITIVE]},
                {"name": "b", "type": "long"},
                {
                    "name": "names",
                    "type": {
                        "type": "array",
                        "items": {
                            "type": "record",
                            "name": "Name",
                            "fields": [
                                {
                                    "name": "x",
                                    "type": ["null", "string"],
                                    "confluent:rules": [SHORT],
                                }
                            ],
                        },
                    },
                },
            ],
        }
    ),
    "JSON": json.dumps(
        {
            "type": "object",
            "title": "Checked",
            "confluent:rules": [TOTAL],
            "properties": {
                "a": {"type": "integer", "confluent:rules": [POSITIVE]},
                "b": {"type": "integer"},
                "names": {"type": "array", "items": {"$ref": "#/definitions/Name"}},
            },
            "definitions": {
                "Name": {
                    "type": "object",
                    "properties": {"x": {"type": ["null", "string"], "confluent:rules": [SHORT]}},
                }
            },
        }
    ),
}
PROTO_CHECKED = """\
syntax = "proto3";
package com.acme;
import "confluent/meta.proto";
message Checked {
  option (confluent.message_meta) = { rules: { name: "total", expr: "this.a + this.b < 10" } };
  int64 a = 1 [(confluent.field_meta) = {
    rules: { name: "positive", doc: "must be positive", expr: "this > 0" }
  }];
  int64 b = 2;
  repeated Name names = 3;
  message Name {
    optional string x = 1 [(confluent.field_meta) = {
      rules: { name: "short", expr: "size(this) < 5 ? '' : 'too long: ' + this" }
    }];
  }
}
"""
GOOD = {"a": 1, "b": 2, "names": [{"x": "ada"}, {"x": None}]}
BAD = {"a": -1, "b": 20, "names": [{"x": "ada"}, {"x": "charles"}]}


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("when", ["BEFORE_DOMAIN_RULES", "AFTER_DOMAIN_RULES"])
@pytest.mark.parametrize("type", ["AVRO", "JSON", "PROTOBUF"])
def test_rules_within_a_schema(
    stage: RegistryStage, theirs: TheirClient, type: str, when: str, fast: bool
) -> None:
    """The same violations in the same words, in all three formats."""
    topic = f"inline-{type}-{when}-{fast}"
    checking = {"validation.rules.execution": when, "validation.rules.fail.fast": fast}
    text = CHECKED.get(type, PROTO_CHECKED)
    register(theirs, topic, text, type=type)
    their_bad: Any = json.loads(json.dumps(BAD))
    if type == "AVRO":
        write: Any = AvroSerializer(**ours(stage, **checking))
        other: Any = TheirAvroWriter(theirs, None, conf={**LATEST, **checking})
    elif type == "JSON":
        write = JsonSchemaSerializer(**ours(stage, **checking))
        other = JSONSerializer(None, theirs, conf={**LATEST, **checking})
    else:
        write = ProtobufSerializer(**ours(stage, **checking))
        made = ProtobufLanguage().parse(text).message_class("com.acme.Checked")
        other = TheirProtobufWriter(
            made, theirs, conf={**LATEST, **checking, "use.deprecated.format": False}
        )
        their_bad = made(a=-1, b=20, names=[{"x": "ada"}, {"x": "charles"}])
    good = dict(GOOD) if type != "PROTOBUF" else {**GOOD, "names": [{"x": "ada"}, {}]}
    assert write.serialize(topic, good)
    with pytest.raises(SerializationError) as refused:
        write.serialize(topic, BAD)
    with pytest.raises(TheirError) as theirs_refused:
        other(their_bad, context(topic))
    said = str(refused.value)
    assert said.count("\n  - ") == (1 if fast else 3)
    assert said in str(theirs_refused.value)


def test_without_the_setting_rules_within_a_schema_do_nothing(
    stage: RegistryStage, theirs: TheirClient
) -> None:
    register(theirs, "inline-off", CHECKED["AVRO"])
    assert AvroSerializer(**ours(stage)).serialize("inline-off", BAD)
