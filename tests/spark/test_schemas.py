"""Typed columns with schemas of a registry: all three languages, new versions, dead letters."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from moldau.client import Admin, Consumer, NewTopic, Producer
from moldau.pipelines import Pipeline, Sql, Topic, build
from moldau.serde import (
    AvroDeserializer,
    AvroSerializer,
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    SchemaRegistryClient,
)
from spark.running import committed, finished
from support.registry.stage import RegistryStage, registry_on
from support.repeats import mostly_long
from support.waiting import eventually

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
        {"name": "counts", "type": {"type": "map", "values": "int"}, "default": {}},
    ],
}
ORDER_2 = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": ""}]}  # type: ignore[misc]
AT = datetime.datetime(2026, 11, 17, 12, 0, tzinfo=datetime.UTC)
VALUE = {
    "id": 1,
    "customer": "ada",
    "at": AT,
    "day": datetime.date(2026, 11, 17),
    "price": Decimal("12.50"),
    "tags": ["a", "b"],
    "counts": {"x": 1},
}
PROTO = 'syntax = "proto3"; message Reading { string sensor = 1; int64 n = 2; }'
AVRO_READING = json.dumps(
    {
        "type": "record",
        "name": "Reading",
        "fields": [{"name": "sensor", "type": "string"}, {"name": "n", "type": "long"}],
    }
)
JSON_SCHEMA = json.dumps(
    {
        "type": "object",
        "title": "Reading",
        "properties": {"sensor": {"type": "string"}, "n": {"type": "integer"}},
    }
)


@pytest.fixture(scope="module")
def registry(bootstrap: str) -> Iterator[RegistryStage]:
    with registry_on(bootstrap) as found:
        yield found


@pytest.fixture
def url(registry: RegistryStage) -> str:
    return registry.running.url


@pytest.fixture
def options(bootstrap: str, topic: str, url: str) -> dict[str, str]:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 1)])
    return {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "schema.registry.url": url,
    }


def send(bootstrap: str, topic: str, serializer: Any, *values: Any) -> None:
    with Producer(bootstrap_servers=bootstrap, value_serializer=serializer) as producer:
        for value in values:
            producer.send(topic, value).result(30)


def test_avro_becomes_typed_columns(
    spark: Any, options: dict[str, str], bootstrap: str, topic: str, url: str
) -> None:
    serializer = AvroSerializer(json.dumps(ORDER), registry=url)
    send(bootstrap, topic, serializer, VALUE, {**VALUE, "id": 2, "customer": None}, None)
    frame = spark.read.format("moldau").options(**options, valueFormat="avro").load()
    assert frame.schema["value"].dataType.simpleString() == (
        "struct<id:bigint,customer:string,at:timestamp,day:date,price:decimal(9,2),"
        "tags:array<string>,counts:map<string,int>>"
    )
    rows = frame.orderBy("offset").select("value.*").collect()
    first = rows[0].asDict()
    assert first["at"].replace(tzinfo=datetime.UTC) == AT
    assert {**first, "at": None} == {**VALUE, "at": None}
    assert rows[1]["customer"] is None
    assert rows[2]["id"] is None


def test_json_schema_and_protobuf(
    spark: Any, options: dict[str, str], bootstrap: str, topic: str, url: str
) -> None:
    reading = {"sensor": "t", "n": 7}
    for name, serializer in (
        ("json-schema", JsonSchemaSerializer(JSON_SCHEMA, registry=url)),
        ("protobuf", ProtobufSerializer(PROTO, registry=url)),
    ):
        own = f"{topic}-{name}"
        send(bootstrap, own, serializer, reading)
        given = {**options, "subscribe": own, "valueFormat": name}
        frame = spark.read.format("moldau").options(**given).load()
        assert [row.asDict() for row in frame.select("value.*").collect()] == [reading], name


IN_HEADER = {"value.schema.id.serializer": "HeaderSchemaIdSerializer"}


@pytest.mark.parametrize(
    "name", mostly_long(["avro", "json-schema", "protobuf"], "another language of schemas")
)
def test_ids_of_schemas_in_headers(
    spark: Any, options: dict[str, str], bootstrap: str, topic: str, url: str, name: str
) -> None:
    """Both forms are read side by side; a sink writes the one that it is asked for."""
    make: Any
    read: Any
    make, text, read = {
        "avro": (AvroSerializer, AVRO_READING, AvroDeserializer),
        "json-schema": (JsonSchemaSerializer, JSON_SCHEMA, JsonSchemaDeserializer),
        "protobuf": (ProtobufSerializer, PROTO, ProtobufDeserializer),
    }[name]
    first, second = {"sensor": "t", "n": 7}, {"sensor": "u", "n": 8}
    send(bootstrap, topic, make(text, registry=url), first)
    send(bootstrap, topic, make(text, registry=url, config=IN_HEADER), second, None)
    frame = spark.read.format("moldau").options(**options, valueFormat=name).load()
    assert "headers" not in frame.columns
    rows = frame.orderBy("offset").select("value.*").collect()
    assert [row.asDict() for row in rows] == [first, second, {"sensor": None, "n": None}]

    out = f"{topic}-out"
    given = {"kafka.bootstrap.servers": bootstrap, "topic": out, "schema.registry.url": url}
    frame.select("value").write.format("moldau").options(
        **given, **IN_HEADER, valueFormat=name
    ).mode("append").save()
    written = committed(bootstrap, out)
    assert [[key for key, _ in each.headers] for each in written] == [
        [] if each.value is None else ["__value_schema_id"] for each in written
    ]
    reader = read(registry=url)
    found = [reader.deserialize(out, each.value, each.headers) for each in written]
    expected = (
        [first, second]
        if name != "protobuf"
        else [{**each, "n": str(each["n"])} for each in (first, second)]
    )
    assert [each for each in found if each is not None] == expected


def test_headers_that_are_there_stay(spark: Any, bootstrap: str, topic: str, url: str) -> None:
    frame = spark.sql(
        "SELECT struct(1L AS id) AS value, array(struct('h' AS key, X'01' AS value)) AS headers"
    )
    given = {"kafka.bootstrap.servers": bootstrap, "topic": topic, "schema.registry.url": url}
    given |= {**IN_HEADER, "valueFormat": "avro"}
    frame.write.format("moldau").options(**given).mode("append").save()
    (record,) = committed(bootstrap, topic)
    assert [key for key, _ in record.headers] == ["h", "__value_schema_id"]
    with pytest.raises(Exception, match="need 'includeHeaders'"):
        frame.write.format("moldau").options(**given, includeHeaders="false").mode("append").save()
    with pytest.raises(Exception, match="use PrefixSchemaIdSerializer or"):
        frame.write.format("moldau").options(
            **{**given, "value.schema.id.serializer": "Other"}
        ).mode("append").save()


def test_a_stream_follows_a_schema_change_without_a_restart(
    spark: Any, options: dict[str, str], bootstrap: str, topic: str, url: str, checkpoint: str
) -> None:
    """Records that do not decode go to the dead-letter topic; the rest is written as Avro again."""
    first = AvroSerializer(json.dumps(ORDER), registry=url)
    send(bootstrap, topic, first, VALUE)
    out, dead = f"{topic}-out", f"{topic}-dead"
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(out, 1), NewTopic(dead, 1)])
    source = (
        spark.readStream.format("moldau")
        .options(**options, valueFormat="avro", deadLetterTopic=dead)
        .load()
        .selectExpr("struct(value.id as id, value.customer as customer) as value")
    )
    query = (
        source.writeStream.format("moldau")
        .options(
            **{
                "kafka.bootstrap.servers": bootstrap,
                "topic": out,
                "valueFormat": "avro",
                "schema.registry.url": url,
                "checkpointLocation": checkpoint,
            }
        )
        .start()
    )
    settings = {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}
    try:
        with (
            Consumer(
                settings,
                isolation_level="read_committed",
                value_deserializer=AvroDeserializer(registry=url),
            ) as consumer,
            Consumer(settings) as letters,
        ):
            consumer.assign([(out, 0)])
            letters.assign([(dead, 0)])
            found: list[Any] = []

            def has(count: int) -> bool:
                found.extend(each.value for each in consumer.poll(1.0))
                assert query.exception() is None
                return len(found) >= count

            eventually(lambda: has(1), what="the first record", seconds_max=300)
            second = AvroSerializer(json.dumps(ORDER_2), registry=url)
            send(bootstrap, topic, second, {**VALUE, "id": 2, "note": "new"})
            send(bootstrap, topic, None, b"no schema")
            send(bootstrap, topic, second, {**VALUE, "id": 3, "note": "new"})
            eventually(lambda: has(3), what="the records of version 2", seconds_max=300)
            assert found == [{"id": each, "customer": "ada"} for each in (1, 2, 3)]
            got: list[Any] = []
            eventually(lambda: bool(got.extend(letters.poll(1.0)) or got), what="the dead letter")
    finally:
        query.stop()
    (letter,) = got
    headers = dict(letter.headers)
    assert letter.value == b"no schema"
    assert headers["__connect.errors.topic"] == topic.encode()
    assert headers["__connect.errors.offset"] == b"2"
    assert headers["__connect.errors.stage"] == b"VALUE_CONVERTER"
    with SchemaRegistryClient(url) as client:
        assert client.versions(f"{out}-value") == [1]


def test_a_pipeline_between_formats(
    spark: Any, bootstrap: str, topic: str, url: str, checkpoint: str
) -> None:
    """Avro in, with what does not decode as dead letters; Protobuf out."""
    out, dead = f"{topic}-out", f"{topic}-dead"
    send(bootstrap, topic, AvroSerializer(json.dumps(ORDER), registry=url), VALUE)
    send(bootstrap, topic, None, b"no schema")
    in_header = AvroSerializer(json.dumps(ORDER), registry=url, config=IN_HEADER)
    send(bootstrap, topic, in_header, {**VALUE, "id": 2})
    registry = {"schema.registry.url": url}
    pipeline = Pipeline(
        name="formats",
        source=Topic(topic, format="avro", options=registry, startingOffsets="earliest"),
        steps=[Sql("SELECT id, customer FROM input")],
        sink=Topic(out, format="protobuf", options={**registry, **IN_HEADER}),
        dead_letter=dead,
        trigger="available now",
    )
    finished(lambda: build.start(spark, pipeline, bootstrap=bootstrap, checkpoint=checkpoint))
    reader = ProtobufDeserializer(registry=url)
    read = [reader.deserialize(out, each.value, each.headers) for each in committed(bootstrap, out)]
    assert read == [{"id": each, "customer": "ada"} for each in ("1", "2")]
    assert [key for key, _ in committed(bootstrap, out)[0].headers] == ["__value_schema_id"]
    assert [each.value for each in committed(bootstrap, dead)] == [b"no schema"]


def test_columns_of_any_frame(spark: Any, url: str, topic: str, registry: RegistryStage) -> None:
    from moldau.spark.schemas.functions import from_registry, to_registry

    subject = f"{topic}-value"
    frame = spark.createDataFrame([(1, "a"), (2, None)], "id long, name string")
    written = frame.selectExpr("struct(id, name) as it")
    data = [
        row["data"]
        for row in written.select(
            to_registry("it", url, subject, schema=PROTO_ROW, schema_type="PROTOBUF").alias("data")
        ).collect()
    ]
    reader = ProtobufDeserializer(registry=url)
    assert reader.deserialize(topic, bytes(data[0])) == {"id": "1", "name": "a"}
    again = spark.createDataFrame([(bytes(each),) for each in data] + [(b"x",)], "data binary")
    decoded = again.select(from_registry("data", url, subject, mode="PERMISSIVE").alias("it"))
    assert [row["id"] for row in decoded.select("it.id").collect()] == [1, 2, None]
    both = written.select(to_registry("it", url, subject, id_in_header=True).alias("both")).select(
        "both.data", "both.headers"
    )
    named = both.select(from_registry("data", url, subject, headers="headers").alias("it"))
    assert [row["id"] for row in named.select("it.id").collect()] == [1, 2]
    assert reader.deserialize(topic, *_first(both)) == {"id": "1", "name": "a"}
    with pytest.raises(Exception, match="does not decode"):
        again.select(from_registry("data", url, subject).alias("it")).collect()


def _first(frame: Any) -> tuple[bytes, list[tuple[str, bytes]]]:
    row = frame.collect()[0]
    return bytes(row["data"]), [(each["key"], bytes(each["value"])) for each in row["headers"]]


PROTO_ROW = 'syntax = "proto3"; message Row { int64 id = 1; optional string name = 2; }'


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"valueFormat": "xml"}, "use avro, json-schema or protobuf"),
        ({"valueFormat": "avro", "schema.registry.url": ""}, "must be specified"),
        ({"valueFormat": "avro", "valueSubject": "nowhere"}, "subject nowhere cannot be had"),
        ({"valueSubject": "x"}, "needs 'valueFormat'"),
    ],
)
def test_what_is_wrong_is_said_when_the_frame_is_made(
    spark: Any, options: dict[str, str], given: dict[str, str], reason: str
) -> None:
    with pytest.raises(Exception, match=reason):
        _ = spark.read.format("moldau").options(**{**options, **given}).load().schema


def test_a_record_that_does_not_decode_fails_the_query_without_a_dead_letter_topic(
    spark: Any, options: dict[str, str], bootstrap: str, topic: str, url: str
) -> None:
    send(bootstrap, topic, AvroSerializer('"string"', registry=url), "x")
    send(bootstrap, topic, None, b"bad")
    frame = spark.read.format("moldau").options(**options, valueFormat="avro").load()
    with pytest.raises(Exception, match=r"offset 1 does not decode"):
        frame.collect()
