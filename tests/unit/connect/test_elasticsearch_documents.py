"""Documents and mappings of the Elasticsearch sink, for records with a schema."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moldau.connect.api.records import SinkRecord
from moldau.connect.connectors.elasticsearch.machine.documents import Rules, action, mapping
from moldau.data.schema import Field, Schema, Type

STOCK = Schema(
    type=Type.MAP, key_schema=Schema(type=Type.STRING), value_schema=Schema(type=Type.INT32)
)
ITEM = Schema(type=Type.STRUCT, fields=(Field("stock", 0, STOCK),))


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
    ("compact_maps", "stock", "mapped"),
    [
        pytest.param(True, {"B": 3}, {"type": "object"}, id="an object"),
        pytest.param(
            False,
            [{"key": "B", "value": 3}],
            {"properties": {"key": mapping(STOCK.keys), "value": mapping(STOCK.items)}},
            id="a list of entries",
        ),
    ],
)
def test_a_map_is(compact_maps: bool, stock: Any, mapped: Any) -> None:
    record = SinkRecord("items", 0, value_schema=ITEM, value={"stock": {"B": 3}}, offset=5)
    made = action(rules(compact_maps=compact_maps), record, "items")
    assert made is not None
    assert json.loads(made.lines.splitlines()[1]) == {"stock": stock}
    assert mapping(ITEM, compact_maps=compact_maps) == {"properties": {"stock": mapped}}
