"""Tags within schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moldau.services.registry.machine.errors import RegistryError
from moldau.services.registry.machine.registration import TagRequest
from moldau.services.registry.machine.schemas import Schema
from moldau.services.registry.machine.tags import EntityTags, found_tags, with_tags
from support.registry.machine import MemoryRegistry

TEXT = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long", "confluent:tags": ["KEY"]},
            {
                "name": "by",
                "type": [
                    "null",
                    {
                        "type": "record",
                        "name": "Customer",
                        "confluent:tags": ["PII", "GDPR"],
                        "fields": [{"name": "mail", "type": "string"}],
                    },
                ],
            },
        ],
    }
)


def entity(path: str, kind: str, *tags: str) -> EntityTags:
    return EntityTags(path, kind, tags)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (["KEY"], [("shop.Order.id", "sr_field")]),
        (["GDPR", "x"], [("shop.Customer", "sr_record")]),
        (["*"], [("shop.Order.id", "sr_field"), ("shop.Customer", "sr_record")]),
        (["none"], []),
    ],
)
def test_tags_are_found(wanted: list[str], found: list[tuple[str, str]]) -> None:
    assert [(each.path, each.type) for each in found_tags(Schema(TEXT), wanted)] == found


def test_tags_are_added_and_removed() -> None:
    text = with_tags(
        Schema(TEXT),
        [entity("shop.Customer.mail", "sr_field", "PII"), entity("shop.Order", "sr_record", "A")],
        [entity("shop.Customer", "sr_record", "PII", "GDPR")],
    )
    found = {each.path: each.tags for each in found_tags(Schema(text), ["*"])}
    assert found == {
        "shop.Order": ("A",),
        "shop.Order.id": ("KEY",),
        "shop.Customer.mail": ("PII",),
    }
    with pytest.raises(RegistryError):
        with_tags(Schema(TEXT), [entity("shop.Nobody", "sr_record", "A")], [])


def test_a_version_is_registered_with_other_tags_and_rules() -> None:
    memory = MemoryRegistry()
    rule = {"name": "check", "type": "CEL", "expr": "true"}
    stored = memory.register("a", TEXT, ruleSet={"domainRules": [rule]})
    body: dict[str, Any] = {
        "newVersion": 2,
        "tagsToAdd": [
            {
                "schemaEntity": {"entityPath": ".shop.Order.by", "entityType": "sr_field"},
                "tags": ["PII"],
            }
        ],
        "rulesToRemove": ["check"],
    }
    tagged = memory.act(memory.registry.registration.tag(stored, TagRequest.from_json(body)))
    assert tagged.version == 2
    assert tagged.id != stored.id
    assert [each.path for each in found_tags(tagged.schema, ["PII"])] == [
        "shop.Order.by",
        "shop.Customer",
    ]
    assert tagged.schema.metadata is not None
    assert tagged.schema.metadata.version == "2"
    assert tagged.schema.rule_set is not None
    assert tagged.schema.rule_set.rules == ()


def test_a_registration_can_bring_tags_along() -> None:
    added = [
        {"schemaEntity": {"entityPath": "shop.Order", "entityType": "sr_record"}, "tags": ["T"]}
    ]
    stored = MemoryRegistry().register("a", TEXT, schemaTagsToAdd=added)
    assert [each.path for each in found_tags(stored.schema, ["T"])] == ["shop.Order"]


PROTO = """\
syntax = "proto3";
package com.example;

message Message1 {
  string f1 = 1 [(confluent.field_meta).tags = "OLD", (confluent.field_meta).doc = "d"];
  oneof it {
    string f2 = 2;
  }

  message Inner {
    string g = 1;
  }
}
"""
JSON = json.dumps(
    {
        "type": "object",
        "properties": {
            "list": {
                "type": "array",
                "items": {"type": "object", "properties": {"x": {"type": "string"}}},
            },
            "either": {
                "oneOf": [
                    {"type": "null"},
                    {"type": "object", "properties": {"y": {"type": "string"}}},
                ]
            },
            "no": {"not": {"type": "object", "properties": {"z": {"type": "string"}}}},
            "plain": {"type": "string", "confluent:tags": ["OLD"]},
        },
    }
)


def test_tags_within_protobuf() -> None:
    schema = Schema(PROTO, "PROTOBUF")
    assert [(each.path, each.tags) for each in found_tags(schema, ["*"])] == [
        ("Message1.f1", ("OLD",))
    ]
    text = with_tags(
        schema,
        [
            entity("Message1.f1", "sr_field", "A"),
            entity("Message1.f2", "sr_field", "B"),
            entity("Message1", "sr_record", "C"),
            entity("Message1.Inner.g", "sr_field", "D"),
        ],
        [],
    )
    tagged = Schema(text, "PROTOBUF")
    assert {each.path: each.tags for each in found_tags(tagged, ["*"])} == {
        "Message1": ("C",),
        "Message1.f1": ("OLD", "A"),
        "Message1.f2": ("B",),
        "Message1.Inner.g": ("D",),
    }
    assert 'doc: "d"' in text
    less = with_tags(tagged, [], [entity("Message1.f2", "sr_field", "B")])
    assert "string f2 = 2;" in less
    with pytest.raises(RegistryError, match=r"No matching path 'Message1\.nope'"):
        with_tags(schema, [entity("Message1.nope", "sr_field", "A")], [])


def test_tags_within_json_schema() -> None:
    schema = Schema(JSON, "JSON")
    paths = [
        ("object.list.array.object.x", "sr_field"),
        ("object.list.array.object", "sr_record"),
        ("object.either.oneof.1.object.y", "sr_field"),
        ("object.no.not.object.z", "sr_field"),
        ("object.plain", "sr_field"),
    ]
    text = with_tags(schema, [entity(path, kind, "A") for path, kind in paths], [])
    found = {(each.path, each.type): each.tags for each in found_tags(Schema(text, "JSON"), ["A"])}
    assert found.pop(("object.plain", "sr_field")) == ("OLD", "A")
    assert found == dict.fromkeys(paths[:-1], ("A",))
    assert json.loads(text)["properties"]["list"]["items"]["confluent:tags"] == ["A"]


AVRO_2 = json.loads(TEXT.replace(', "confluent:tags": ["KEY"]', ""))
AVRO_2["fields"][1:] = [{"name": "new", "type": "int", "default": 0}]
JSON_2 = json.dumps({"type": "object", "properties": {"plain": {"type": "string"}}})
PROTO_2 = """syntax = "proto3";
package com.example;

message Message1 {
  string f1 = 1;
  string f3 = 3;
}
"""


@pytest.mark.parametrize(
    ("type", "first", "second", "kept"),
    [
        ("AVRO", TEXT, json.dumps(AVRO_2), [("shop.Order.id", ("KEY",))]),
        ("JSON", JSON, JSON_2, [("object.plain", ("OLD",))]),
        ("PROTOBUF", PROTO, PROTO_2, [("Message1.f1", ("OLD",))]),
    ],
)
def test_tags_are_kept_from_the_version_before(
    type: str, first: str, second: str, kept: list[tuple[str, tuple[str, ...]]]
) -> None:
    """What the new version no longer has is passed over."""
    memory = MemoryRegistry()
    memory.configure("a", compatibility="NONE")
    memory.register("a", first, schemaType=type)
    made = memory.register("a", second, schemaType=type, propagateSchemaTags=True)
    assert made.version == 2
    assert [(each.path, each.tags) for each in found_tags(made.schema, ["*"])] == kept
    without = MemoryRegistry().register("a", second, schemaType=type, propagateSchemaTags=True)
    assert found_tags(without.schema, ["*"]) == []
