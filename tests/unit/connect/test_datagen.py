"""The Datagen source: every quick start gives values of its schema, the same for the same seed."""

from __future__ import annotations

import json
import random
import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.connect.api import ConfigError, ConnectError, SourceRecord
from moldau.connect.connectors.datagen.machine.patterns import text_maker
from moldau.connect.connectors.datagen.machine.quickstarts import QUICKSTARTS
from moldau.data import builders
from moldau.data.struct import validate_value
from moldau.testing.connect import SourceDriver, config_errors

CONNECTOR = "io.confluent.kafka.connect.datagen.DatagenConnector"


def records(count: int, **config: str) -> list[SourceRecord]:
    keys = {name.replace("_", "."): value for name, value in config.items()}
    given = {"kafka.topic": "t", "max.interval": "0", "iterations": str(count), **keys}
    with SourceDriver(CONNECTOR, given) as source:
        return source.poll_until(count)


@pytest.mark.parametrize("name", sorted(QUICKSTARTS))
def test_every_quick_start_gives_values_of_its_schema(name: str) -> None:
    found = records(20, quickstart=name, random_seed="1")
    for record in found:
        assert record.value_schema is not None
        validate_value(record.value_schema, record.value)
    again = records(20, quickstart=name, random_seed="1")
    assert [each.value for each in again] == [each.value for each in found]


def test_a_well_known_quick_start() -> None:
    first, second = records(2, quickstart="PAGEVIEWS")
    assert [field.name for field in first.value.schema.fields] == ["viewtime", "userid", "pageid"]
    assert (first.value["viewtime"], second.value["viewtime"]) == (1, 11)
    assert re.fullmatch(r"User_[1-9]", first.value["userid"])
    assert first.key == first.value["viewtime"]
    assert first.value_schema is not None
    assert first.value_schema.name == "ksql.pageviews"


def test_records_have_headers_and_a_task_fails_after_its_last() -> None:
    config = {"kafka.topic": "t", "max.interval": "0", "quickstart": "purchases", "iterations": "5"}
    with SourceDriver(CONNECTOR, config) as source:
        source.poll_until(5)
        with pytest.raises(ConnectError, match="generated the configured 5 number of messages"):
            source.poll()
        source.commit()
    own = {"schema.string": '{"type": "record", "name": "R", "fields": []}'}
    assert "schema.string" in config_errors(CONNECTOR, {"kafka.topic": "t", **own})
    del config["iterations"]
    with SourceDriver(CONNECTOR, {**config, "iterations": "0", "max.interval": "1"}) as source:
        source.poll_until(2)
        source.commit()
        source.restart()
        (record,) = source.poll_until(1)
    headers = {each.key: (each.value, each.schema) for each in record.headers}
    assert headers == {
        "task.generation": (1, builders.INT64),
        "task.id": (0, builders.INT64),
        "current.iteration": (2, builders.INT64),
    }
    assert record.source_offset == {"task.generation": 2, "current.iteration": 3}
    assert (record.value["id"], record.key) == (2, 2)
    price = record.value["price_per_unit"]
    assert isinstance(price, Decimal)
    assert Decimal(10) <= price < Decimal(50)


def test_a_schema_of_ones_own_continues_after_a_restart() -> None:
    schema = {
        "type": "record", "name": "R",
        "fields": [
            {"name": "n", "type": {"type": "int", "arg.properties": {
                "iteration": {"start": 10, "step": 5, "restart": 25}}}},
            {"name": "on", "type": {"type": "boolean", "arg.properties": {"odds": 1.0}}},
            {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["RED"]}},
            {"name": "note", "type": ["null", "string"]},
        ],
    }  # fmt: skip
    config = {
        "kafka.topic": "t", "max.interval": "1", "schema.string": json.dumps(schema),
        "schema.keyfield": "n",
    }  # fmt: skip
    with SourceDriver(CONNECTOR, config) as source:
        assert [each.key for each in source.poll_until(2)] == [10, 15]
        source.commit()
        source.restart()
        (third,) = source.poll_until(1)
        assert (third.key, third.value["on"], third.value["color"]) == (20, True, "RED")
        assert [each.key for each in source.poll_until(1)] == [10]


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({}, "quickstart"),
        ({"quickstart": "nosuch"}, "quickstart"),
        ({"quickstart": "users", "schema.string": "{}"}, "quickstart"),
        ({"schema.string": "{"}, "schema.string"),
        ({"schema.filename": "/no/such/file"}, "schema.filename"),
        ({"quickstart": "users", "schema.keyfield": "nosuch"}, "schema.keyfield"),
    ],
)
def test_wrong_settings_are_named(config: dict[str, str], key: str) -> None:
    assert set(config_errors(CONNECTOR, {"kafka.topic": "t", **config})) == {key}


@given(st.integers(0, 1000))
def test_texts_match_their_pattern(seed: int) -> None:
    for pattern in (r"a(b|cd)+[x-z]{2,4}\d?", r"[^a-z]{3}", r"\w{5}\.(com|org)", "User_[1-9]{0,1}"):
        assert re.fullmatch(pattern, text_maker(pattern)(random.Random(seed)))


@pytest.mark.parametrize("pattern", ["a(b", "a)", "[a-", "x{2", "x{a}"])
def test_wrong_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match="regex"):
        text_maker(pattern)
