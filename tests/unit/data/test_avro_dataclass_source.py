"""`moldau schemas generate`: the source compiles, and its classes go through Avro and back."""

from __future__ import annotations

import datetime
import decimal
import json
import sys
from types import ModuleType
from typing import Any

from moldau.data.avro.dataclass_source import dataclass_source
from moldau.data.avro.encoding import AvroDecoder, AvroEncoder
from moldau.data.avro.language import AvroLanguage

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "com.acme",
    "doc": 'An "order".',
    "fields": [
        {"name": "id", "type": "long", "doc": "its number"},
        {"name": "class", "type": "string", "default": "A"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            "default": "\u0001",
        },
        {
            "name": "state",
            "type": {"type": "enum", "name": "State", "symbols": ["NEW", "None"]},
            "default": "NEW",
        },
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Line",
                    "fields": [{"name": "sku", "type": "string"}],
                },
            },
            "default": [],
        },
        {"name": "by", "type": {"type": "map", "values": "Line"}, "default": {}},
        {"name": "next", "type": ["null", "Order"], "default": None},
        {
            "name": "either",
            "type": [
                "null",
                "Line",
                {"type": "record", "name": "Other", "fields": [{"name": "n", "type": "int"}]},
            ],
            "default": None,
        },
    ],
}


def made(schema: Any) -> Any:
    module = ModuleType("made_from_avro")
    sys.modules[module.__name__] = module
    exec(
        compile(dataclass_source([AvroLanguage().parse(schema).root]), "<made>", "exec"),
        module.__dict__,
    )
    return module


def test_classes_go_through_bytes_and_back() -> None:
    found = made(json.dumps(ORDER))
    order = found.Order(
        id=7,
        class_="B",
        day=datetime.date(2026, 11, 17),
        state=found.State.None_,
        lines=[found.Line(sku="a")],
        by={"x": found.Line(sku="b")},
        next=found.Order(id=8, day=datetime.date(1970, 1, 1)),
        either=found.Other(n=1),
    )
    root = AvroLanguage().parse(found.Order.SCHEMA).root
    data = AvroEncoder(root).encode(order.to_dict())
    assert found.Order.from_dict(AvroDecoder(root).decode(data)) == order
    assert order.next.price == decimal.Decimal("0.01")
    assert order.next.state is found.State.NEW
    assert found.Order.__doc__ == "An 'order'."


def test_two_types_of_one_simple_name_have_their_full_names() -> None:
    inner = {"type": "record", "name": "b.R", "fields": []}
    source = dataclass_source(
        [
            AvroLanguage()
            .parse(
                json.dumps(
                    {"type": "record", "name": "a.R", "fields": [{"name": "x", "type": inner}]}
                )
            )
            .root
        ]
    )
    assert "class a_R:" in source
    assert "class b_R:" in source
