"""The Elasticsearch sink against Elasticsearch."""

from __future__ import annotations

import datetime
import itertools
from decimal import Decimal
from typing import Any

import pytest

from moldau.connect.api import ConnectError, DataError, Header, RetriableError
from moldau.data import builders, logical
from moldau.data.struct import Struct
from moldau.testing.connect import SinkDriver
from support.elasticsearch import Elasticsearch

SINK = "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector"
_numbers = itertools.count(1)


@pytest.fixture
def topic() -> str:
    return f"Orders-{next(_numbers)}"


def sink_for(
    server: Elasticsearch, topic: str, *, reports: bool = True, **config: str
) -> SinkDriver:
    keys = {name.replace("_", "."): value for name, value in config.items()}
    given = {"connection.url": server.url, "topics": topic, **keys}
    return SinkDriver(SINK, given, reports=reports)


def test_records_become_documents_by_key_and_newer_ones_stay(
    elasticsearch: Elasticsearch, topic: str
) -> None:
    with sink_for(elasticsearch, topic, schema_ignore="true") as sink:
        first = sink.record(topic, {"item": "tea"}, key="1")
        second = sink.record(topic, {"item": "cup"}, key="1")
        sink.put([first, second, sink.record(topic, {"item": "pot"}, key=2)])
        sink.put([first])  # Comes again, late: the newer document stays.
        assert sink.commit() == {(topic, 0): 3}
        assert sink.errant == []
    index = topic.lower()
    assert elasticsearch.documents(index) == {"1": {"item": "cup"}, "2": {"item": "pot"}}


def test_a_mapping_is_made_of_the_schema(elasticsearch: Elasticsearch, topic: str) -> None:
    schema = builders.struct(
        {
            "name": builders.STRING,
            "size": builders.INT32,
            "price": logical.decimal(2),
            "at": logical.TIMESTAMP,
            "tags": builders.array(builders.STRING),
            "from": builders.struct({"city": builders.STRING}),
        }
    )
    values = {
        "name": "tea",
        "size": 3,
        "price": Decimal("1.25"),
        "at": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        "tags": ["a", "b"],
        "from": Struct(schema.fields[5].schema, {"city": "Prague"}),
    }
    with sink_for(elasticsearch, topic, key_ignore="true") as sink:
        sink.send(topic, Struct(schema, values), value_schema=schema)
    index = topic.lower()
    mapping = elasticsearch.ask("GET", f"/{index}/_mapping")[index]["mappings"]["_doc"]
    types = {name: each.get("type") for name, each in mapping["properties"].items()}
    assert types == {
        "name": "text", "size": "integer", "price": "double", "at": "date", "tags": "text",
        "from": None,
    }  # fmt: skip
    (document,) = elasticsearch.documents(index).values()
    assert document["at"] == 1767225600000
    assert document["from"] == {"city": "Prague"}
    assert f"{topic}+0+0" in elasticsearch.documents(index)


def test_a_schema_that_the_mapping_does_not_fit(elasticsearch: Elasticsearch, topic: str) -> None:
    """The mapping stays, and each document shows whether it can be stored."""
    numbers = builders.struct({"n": builders.INT32})
    texts = builders.struct({"n": builders.STRING, "more": builders.STRING})
    with sink_for(elasticsearch, topic) as sink:
        sink.send(topic, Struct(numbers, {"n": 1}), value_schema=numbers, key="1")
        for key, text in (("2", "2"), ("3", "three")):
            value = Struct(texts, {"n": text, "more": "x"})
            sink.send(topic, value, value_schema=texts, key=key)
        assert [record.key for record, _ in sink.errant] == ["3"]
    assert set(elasticsearch.documents(topic.lower())) == {"1", "2"}


@pytest.mark.parametrize(("behavior", "left"), [("delete", {}), ("ignore", {"1": {"n": 1}})])
def test_records_without_a_value(
    elasticsearch: Elasticsearch, topic: str, behavior: str, left: dict[str, Any]
) -> None:
    config = {"behavior_on_null_values": behavior, "schema_ignore": "true"}
    with sink_for(elasticsearch, topic, **config) as sink:
        sink.send(topic, {"n": 1}, key="1")
        sink.send(topic, None, key="1")
        sink.send(topic, None, key="never there")
        assert sink.errant == []
    assert elasticsearch.documents(topic.lower()) == left


def test_upserts_merge_fields(elasticsearch: Elasticsearch, topic: str) -> None:
    config = {"write_method": "upsert", "schema_ignore": "true"}
    with sink_for(elasticsearch, topic, **config) as sink:
        sink.send(topic, {"a": 1, "b": 1}, key="k")
        sink.send(topic, {"b": 2}, key="k")
    assert elasticsearch.documents(topic.lower()) == {"k": {"a": 1, "b": 2}}


def test_a_document_that_is_refused_is_reported_and_the_others_are_there(
    elasticsearch: Elasticsearch, topic: str
) -> None:
    records = [({"n": "no number"}, "2"), ({"n": 3}, "3"), ("no object", "4")]
    with sink_for(elasticsearch, topic, schema_ignore="true") as sink:
        sink.send(topic, {"n": 1}, key="1")  # Now n is a number.
        sink.put([sink.record(topic, value, key=key) for value, key in records])
        assert sorted(record.key for record, _ in sink.errant) == ["2", "4"]
        reasons = {record.key: str(error) for record, error in sink.errant}
        assert "mapper_parsing_exception" in reasons["2"]
    assert set(elasticsearch.documents(topic.lower())) == {"1", "3"}
    with sink_for(elasticsearch, topic, schema_ignore="true", reports=False) as sink:
        with pytest.raises(ConnectError, match="refused the document"):
            sink.send(topic, {"n": "no number"}, key="5")
        with pytest.raises(DataError, match=r"key\.ignore"):
            sink.send(topic, {"n": 1})
    ignored = {"behavior_on_malformed_documents": "ignore", "schema_ignore": "true"}
    with sink_for(elasticsearch, topic, **ignored, reports=False) as sink:
        sink.send(topic, {"n": "no number"}, key="6")


def test_versions_from_a_header(elasticsearch: Elasticsearch, topic: str) -> None:
    config = {"external_version_header": "version", "schema_ignore": "true"}
    with sink_for(elasticsearch, topic, **config) as sink:
        sink.send(topic, {"n": 2}, key="k", headers=[Header("version", 7)])
        sink.send(topic, {"n": 1}, key="k", headers=[Header("version", 5)])
    assert elasticsearch.documents(topic.lower()) == {"k": {"n": 2}}


def test_a_server_that_is_away_is_tried_again_and_another_address_is_used(
    elasticsearch: Elasticsearch, topic: str
) -> None:
    config = {"connection.url": "http://127.0.0.1:1", "topics": topic, "schema.ignore": "true"}
    with SinkDriver(SINK, config) as sink, pytest.raises(RetriableError, match="does not answer"):
        sink.send(topic, {"n": 1}, key="k")
    config["connection.url"] += f",{elasticsearch.url}"
    with SinkDriver(SINK, config) as sink:
        sink.send(topic, {"n": 1}, key="k")
    assert elasticsearch.documents(topic.lower()) == {"k": {"n": 1}}


@pytest.mark.parametrize(
    ("compact", "stored", "mapped"),
    [
        ("true", {"a": 1, "b": 2}, {"a": "integer", "b": "integer"}),
        (
            "false",
            [{"key": "a", "value": 1}, {"key": "b", "value": 2}],
            {"key": "text", "value": "integer"},
        ),
    ],
)
def test_maps_are_objects_or_lists_of_entries(
    elasticsearch: Elasticsearch, topic: str, compact: str, stored: Any, mapped: dict[str, str]
) -> None:
    schema = builders.struct({"sizes": builders.map_of(builders.STRING, builders.INT32)})
    with sink_for(elasticsearch, topic, key_ignore="true", compact_map_entries=compact) as sink:
        sink.send(topic, Struct(schema, {"sizes": {"a": 1, "b": 2}}), value_schema=schema)
        assert sink.errant == []
    index = topic.lower()
    assert list(elasticsearch.documents(index).values()) == [{"sizes": stored}]
    mapping = elasticsearch.ask("GET", f"/{index}/_mapping")[index]["mappings"]["_doc"]
    fields = mapping["properties"]["sizes"]["properties"]
    # Elasticsearch itself takes the numbers of an object for long.
    found = {name: each["type"].replace("long", "integer") for name, each in fields.items()}
    assert found == mapped
