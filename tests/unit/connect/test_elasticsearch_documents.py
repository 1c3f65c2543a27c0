"""Records as actions of a bulk request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moldau.connect.api import SinkRecord
from moldau.connect.connectors.elasticsearch.machine.documents import Rules, action, mapping
from moldau.data import builders
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
