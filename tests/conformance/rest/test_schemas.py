"""Avro, JSON Schema and Protobuf over both APIs, with a registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.client import Consumer, Producer
from moldau.serde import AvroDeserializer, AvroSerializer, ProtobufDeserializer
from support.http_service import running
from support.processes import BrokerProcess
from support.registry.stage import RegistryStage, registry_on
from support.rest import V2, Proxy, proxy_of

AVRO_V1 = "application/vnd.kafka.avro.v1+json"
AVRO_V2 = "application/vnd.kafka.avro.v2+json"
USER = '{"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}]}'
UNION = (
    '{"type": "record", "name": "U", "fields": [{"name": "a", "type": ["null", "string"]}, '
    '{"name": "b", "type": "bytes"}]}'
)
PROTO = 'syntax = "proto3"; message First { string a = 1; } message Second { int64 n = 1; }'
JSON_SCHEMA = '{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}'


@pytest.fixture(scope="module")
def registry(broker: BrokerProcess) -> Iterator[RegistryStage]:
    with registry_on(broker.bootstrap) as found:
        yield found


@pytest.fixture(scope="module")
def proxy(broker: BrokerProcess, registry: RegistryStage) -> Iterator[Proxy]:
    url = registry.running.url
    with running(lambda: proxy_of(broker.bootstrap, schema_registry_url=url)) as service:
        yield Proxy(service, broker)


def test_the_tutorials_post_to_avrotest(proxy: Proxy, registry: RegistryStage) -> None:
    """With the content type of v1: the schema's text first, then the id that was answered."""
    topic = proxy.topic()
    first = proxy.ask(
        "POST",
        f"/topics/{topic}",
        {"value_schema": USER, "records": [{"value": {"name": "testUser"}}]},
        content_type=AVRO_V1,
    )
    schema_id = first["value_schema_id"]
    assert first == {
        "offsets": [{"partition": 0, "offset": 0, "error_code": None, "error": None}],
        "key_schema_id": None,
        "value_schema_id": schema_id,
    }
    second = proxy.ask(
        "POST",
        f"/topics/{topic}",
        {"value_schema_id": schema_id, "records": [{"value": {"name": "testUser2"}}]},
        content_type=AVRO_V1,
    )
    assert second["offsets"][0]["offset"] == 1
    assert second["value_schema_id"] == schema_id
    assert registry.client.ask("GET", f"/subjects/{topic}-value/versions").json == [1]
    with Consumer(
        bootstrap_servers=proxy.bootstrap,
        auto_offset_reset="earliest",
        value_deserializer=AvroDeserializer(registry=registry.running.url),
    ) as consumer:
        consumer.assign([(topic, 0)])
        found: list[Any] = []
        while len(found) < 2:
            found += [each.value for each in consumer.poll(30.0)]
    assert found == [{"name": "testUser"}, {"name": "testUser2"}]


def read(proxy: Proxy, topic: str, format: str) -> list[dict[str, Any]]:
    made = proxy.v2(
        "POST",
        f"/consumers/group-{topic}-{format}",
        {"format": format, "auto.offset.reset": "earliest", "fetch.min.bytes": 1,
         "consumer.request.timeout.ms": 30000},
    )  # fmt: skip
    path = made["base_uri"].removeprefix(proxy.url)
    proxy.v2("POST", f"{path}/subscription", {"topics": [topic]}, status=204)
    found: list[dict[str, Any]] = proxy.ask(
        "GET", f"{path}/records", accept=f"application/vnd.kafka.{format}.v2+json"
    )
    proxy.v2("DELETE", path, status=204)
    return found


@pytest.mark.parametrize(
    ("format", "schema", "value", "shown"),
    [
        ("avro", UNION, {"a": {"string": "x"}, "b": "ÿ"}, None),
        ("avro", UNION, {"a": None, "b": ""}, None),
        ("avro", '"string"', "x", None),
        ("jsonschema", JSON_SCHEMA, {"n": 1, "more": [1.5]}, None),
        ("protobuf", PROTO, {"a": "x"}, None),
        ("protobuf", PROTO, {}, {"a": ""}),
    ],
)
def test_v2_writes_and_reads_all_three(
    proxy: Proxy, format: str, schema: str, value: Any, shown: Any
) -> None:
    topic = proxy.topic()
    answer = proxy.ask(
        "POST",
        f"/topics/{topic}",
        {"key_schema": schema, "value_schema": schema, "records": [{"key": value, "value": value}]},
        content_type=f"application/vnd.kafka.{format}.v2+json",
    )
    assert answer["key_schema_id"] == answer["value_schema_id"] > 0
    (record,) = read(proxy, topic, format)
    assert (record["key"], record["value"]) == (shown or value, shown or value)


def v3(proxy: Proxy, topic: str, value: dict[str, Any]) -> dict[str, Any]:
    path = f"{proxy.cluster}/topics/{topic}/records"
    answer: dict[str, Any] = proxy.ask("POST", path, {"value": value})
    return answer


def test_v3_finds_schemas_in_every_way(proxy: Proxy, registry: RegistryStage) -> None:
    topic = proxy.topic()
    user = {"name": "ada"}
    first = v3(proxy, topic, {"type": "AVRO", "schema": USER, "data": user})
    assert first["error_code"] == 200, first
    schema_id = first["value"]["schema_id"]
    expected = {
        "type": "AVRO",
        "size": 9,
        "subject": f"{topic}-value",
        "schema_id": schema_id,
        "schema_version": 1,
    }
    assert first["value"] == expected
    for named in (
        {"schema_id": schema_id},
        {"schema_version": 1},
        {"subject": f"{topic}-value", "schema_version": 1},
        {},
        {"subject": f"{topic}-value"},
        {"subject_name_strategy": "TOPIC_NAME"},
    ):
        assert v3(proxy, topic, {**named, "data": user})["value"] == expected, named
    by_name = v3(
        proxy,
        topic,
        {"type": "AVRO", "schema": USER, "subject_name_strategy": "RECORD_NAME", "data": user},
    )
    assert by_name["value"]["subject"] == "User"
    newer = v3(proxy, topic, {"type": "AVRO", "schema": USER_2, "data": {**user, "age": 1}})
    assert newer["value"]["schema_version"] == 2
    path = f"{proxy.cluster}/topics/{topic}/partitions/-/records?value_format=AVRO"
    values = [each["value"]["data"] for each in proxy.ask("GET", path)["data"]]
    assert values == [user] * 8 + [{"name": "ada", "age": 1}]


USER_2 = json.dumps(
    {
        "type": "record",
        "name": "User",
        "fields": [
            {"name": "name", "type": "string"},
            {"name": "age", "type": "int", "default": 0},
        ],
    }
)


@pytest.mark.parametrize(
    ("value", "code", "part"),
    [
        ({"schema_id": 999_999, "data": 1}, 42207, "Error when fetching schema by id"),
        ({"schema_version": 9, "data": 1}, 42207, "Error when fetching schema by version"),
        ({"data": 1}, 42207, "Error when fetching latest schema version"),
        ({"type": "AVRO", "schema": "{", "data": 1}, 42205, "Error when parsing raw schema"),
        ({"type": "AVRO", "schema": USER, "data": {"name": 1}}, 400, "Bad Request"),
        ({"type": "JSONSCHEMA", "schema": JSON_SCHEMA, "data": {}}, 400, "required property"),
        ({"type": "PROTOBUF", "schema": PROTO, "data": {"x": 1}}, 400, "no field named"),
        ({"schema_id": 1, "schema_version": 1, "data": 1}, 400, "only one of"),
        ({"subject": "s", "subject_name_strategy": "TOPIC_NAME", "data": 1}, 400, "exclude"),
        ({"subject_name_strategy": "NONE", "data": 1}, 400, "is none of"),
        ({"subject_name_strategy": "RECORD_NAME", "data": 1}, 400, "without schema_id or schema"),
    ],
)
def test_v3_refuses_with_confluents_codes(
    proxy: Proxy, value: dict[str, Any], code: int, part: str
) -> None:
    answer = v3(proxy, proxy.topic(), value)
    assert answer["error_code"] == code, answer
    assert part in answer["message"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"records": [{"value": {"name": "a"}}]}, 422, 42202),
        ({"value_schema": USER, "records": [{"key": 1, "value": {"name": "a"}}]}, 422, 42201),
        ({"value_schema": USER, "records": [{"value": {"nam": "a"}}]}, 400, 400),
        ({"value_schema": "nope", "records": [{"value": 1}]}, 422, 42205),
        ({"value_schema_id": 999_999, "records": [{"value": 1}]}, 422, 42207),
    ],
)
def test_v2_refuses_with_confluents_codes(
    proxy: Proxy, body: dict[str, Any], status: int, code: int
) -> None:
    answer = proxy.send("POST", f"/topics/{proxy.topic()}", body, content_type=AVRO_V2)
    assert answer.status_code == status, answer.text
    assert answer.json()["error_code"] == code


def test_serializers_and_the_proxy_read_one_another(proxy: Proxy, registry: RegistryStage) -> None:
    topic, url = proxy.topic(), registry.running.url
    with Producer(
        bootstrap_servers=proxy.bootstrap, value_serializer=AvroSerializer(USER, registry=url)
    ) as producer:
        producer.send(topic, {"name": "ada"}).result(30)
    assert read(proxy, topic, "avro")[0]["value"] == {"name": "ada"}
    other = proxy.topic()
    proxy.ask(
        "POST",
        f"/topics/{other}",
        {"value_schema": PROTO, "records": [{"value": {"a": "x"}}]},
        content_type="application/vnd.kafka.protobuf.v2+json",
    )
    with Consumer(
        bootstrap_servers=proxy.bootstrap,
        auto_offset_reset="earliest",
        value_deserializer=ProtobufDeserializer(registry=url),
    ) as consumer:
        consumer.assign([(other, 0)])
        assert [each.value for each in consumer.poll(30.0)] == [{"a": "x"}]


def test_rules_of_a_schema_run(proxy: Proxy, registry: RegistryStage) -> None:
    topic = proxy.topic()
    rule = {"name": "short", "kind": "CONDITION", "mode": "WRITE", "type": "CEL",
            "expr": "size(message.name) < 5"}  # fmt: skip
    loud = {"name": "loud", "kind": "TRANSFORM", "mode": "READ", "type": "CEL_FIELD",
            "expr": "value + '!'"}  # fmt: skip
    body = {"schema": USER, "ruleSet": {"domainRules": [rule, loud]}}
    made = registry.client.ask("POST", f"/subjects/{topic}-value/versions", body).json
    schema = {"schema_id": made["id"]}
    assert v3(proxy, topic, {**schema, "data": {"name": "ada"}})["error_code"] == 200
    refused = v3(proxy, topic, {**schema, "data": {"name": "too long"}})
    assert refused["error_code"] == 400
    assert "Rule expr failed" in refused["message"]
    assert read(proxy, topic, "avro")[0]["value"] == {"name": "ada!"}


def test_records_of_another_format_are_refused_in_v2_and_shown_as_binary_in_v3(
    proxy: Proxy,
) -> None:
    topic = proxy.topic()
    proxy.ask(
        "POST",
        f"/topics/{topic}",
        {"records": [{"value": {"plain": 1}}]},
        content_type="application/vnd.kafka.json.v2+json",
    )
    made = proxy.v2(
        "POST",
        f"/consumers/group-{topic}",
        {"format": "avro", "auto.offset.reset": "earliest", "fetch.min.bytes": 1,
         "consumer.request.timeout.ms": 30000},
    )  # fmt: skip
    path = made["base_uri"].removeprefix(proxy.url)
    proxy.v2("POST", f"{path}/subscription", {"topics": [topic]}, status=204)
    refused = proxy.send("GET", f"{path}/records", accept=AVRO_V2)
    assert (refused.status_code, refused.json()["error_code"]) == (408, 40801)
    proxy.v2("DELETE", path, status=204, content_type=V2)
    shown = proxy.ask(
        "GET", f"{proxy.cluster}/topics/{topic}/partitions/-/records?value_format=AVRO"
    )
    assert shown["data"][0]["value"]["type"] == "BINARY"
