"""Tags within Avro schemas."""

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
