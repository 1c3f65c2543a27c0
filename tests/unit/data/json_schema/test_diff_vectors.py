"""The differences between schemas, against the lists of Confluent's registry."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moldau.data.json_schema import JsonSchemaLanguage
from moldau.data.json_schema.diff.difference import COMPATIBLE_LENIENT, COMPATIBLE_STRICT
from moldau.data.json_schema.diff.schema_diff import compare_schemas
from support.shared_vectors import text

FILES = ("diff", "diff-2020-12", "diff-combined", "diff-combined-2020-12")
CASES = [
    pytest.param(case, id=f"{name} {index} {case['description']}")
    for name in FILES
    for index, case in enumerate(json.loads(text(f"schema-registry/diff/jsonschema-{name}.json")))
]


@pytest.mark.parametrize("case", CASES)
def test_differences_are_those_of_confluent(case: dict[str, Any]) -> None:
    language = JsonSchemaLanguage()
    original = language.parse(json.dumps(case["original_schema"]))
    update = language.parse(json.dumps(case["update_schema"]))

    found = compare_schemas(original.model, update.model)

    assert [f"{each.type.name} {each.path}" for each in found] == case["changes"]
    assert all(each.type in COMPATIBLE_STRICT for each in found) == case["compatible"]
    lenient = case.get("compatible_lenient", case["compatible"])
    assert all(each.type in COMPATIBLE_LENIENT for each in found) == lenient
    assert (update.incompatibilities(original) == []) == case["compatible"]
