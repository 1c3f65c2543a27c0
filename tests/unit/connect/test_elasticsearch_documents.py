"""Records as actions of a bulk request."""

from __future__ import annotations

import dataclasses
import datetime
import json
from decimal import Decimal
from typing import Any

import pytest

from moldau.connect.api import DataError, SinkRecord
from moldau.connect.connectors.elasticsearch.machine.documents import Rules, action, mapping
from moldau.data import builders, logical
from moldau.data.schema import Schema
from moldau.data.struct import Struct

SIZES = builders.map_of(builders.STRING, builders.INT32)
SCHEMA = builders.struct(
    {"sizes": SIZES, "more": builders.array(SIZES), "none": SIZES.as_optional()}
)


def rules(*, compact_maps: bool) -> Rules:
    return Rules(
        key_ignored_for=frozenset(),
        key_ignore=True,
        schema_ignored_for=frozenset(),
        schema_ignore=False,
        upsert=False,
        null_values="fail",
        type_name=None,
        version_header=None,
        compact_maps=compact_maps,
    )


@pytest.mark.parametrize(
    ("compact_maps", "document"),
    [
        pytest.param(True, {"sizes": {"a": 1}, "more": [{"b": 2}], "none": None}, id="objects"),
        pytest.param(
            False,
            {
                "sizes": [{"key": "a", "value": 1}],
                "more": [[{"key": "b", "value": 2}]],
                "none": None,
            },
            id="lists of entries",
        ),
    ],
)
def test_maps(compact_maps: bool, document: dict[str, Any]) -> None:
    value = Struct(SCHEMA, {"sizes": {"a": 1}, "more": [{"b": 2}]})
    record = SinkRecord("t", 0, value=value, value_schema=SCHEMA, offset=7)
    made = action(rules(compact_maps=compact_maps), record, "t")
    assert made is not None
    assert json.loads(made.lines.splitlines()[1]) == document


def test_the_mapping_of_maps_is_of_what_they_are_written_as() -> None:
    schema = builders.struct({"sizes": SIZES})
    assert mapping(schema) == {"properties": {"sizes": {"type": "object"}}}
    text = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
    entry = {"properties": {"key": text, "value": {"type": "integer"}}}
    assert mapping(schema, compact_maps=False) == {"properties": {"sizes": entry}}


def test_maps_with_other_keys_than_texts_and_times_of_day() -> None:
    schema = builders.struct(
        {"counts": builders.map_of(builders.INT32, builders.STRING), "clock": logical.TIME}
    )
    value = Struct(schema, {"counts": {1: "a"}, "clock": datetime.time(0, 0, 1, 500_000)})
    made = action(
        rules(compact_maps=True), SinkRecord("t", 0, 7, value=value, value_schema=schema), "t"
    )
    assert made is not None
    assert json.loads(made.lines.splitlines()[1]) == {
        "counts": [{"key": 1, "value": "a"}],
        "clock": 1500,
    }


def test_defaults_are_values_for_null() -> None:
    schema = builders.struct(
        {
            "n": builders.with_default(builders.INT32, 3),
            "p": builders.with_default(logical.decimal(2), Decimal("1.50")),
            "text": builders.with_default(builders.STRING, "x"),
        }
    )
    found = mapping(schema)["properties"]
    assert found["n"] == {"type": "integer", "null_value": 3}
    assert found["p"] == {"type": "double", "null_value": 1.5}
    assert "null_value" not in found["text"]


@pytest.mark.parametrize(
    ("schema", "key"), [(builders.FLOAT64, 1.5), (builders.BOOLEAN, True), (builders.STRING, "")]
)
def test_keys_that_are_no_ids(schema: Schema, key: Any) -> None:
    record = SinkRecord("t", 0, 7, key=key, key_schema=schema, value={"a": 1})
    with pytest.raises(DataError, match="document id"):
        action(dataclasses.replace(rules(compact_maps=True), key_ignore=False), record, "t")
