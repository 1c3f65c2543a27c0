"""Avro's compatibility, canonical form and fingerprint against Apache Avro's own answers."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from moldau.data.avro.canonical import fingerprint, parsing_canonical_form
from moldau.data.avro.compatibility import incompatibilities
from moldau.data.avro.language import AvroLanguage
from moldau.data.avro.parser import Parser
from moldau.data.compatibility import CompatibilityLevel, PreviousSchema
from moldau.data.compatibility import incompatibilities as level_incompatibilities
from support import shared_vectors

PAIRS = shared_vectors.cases("schema-registry/avro/compatibility.json")
POLICIES = shared_vectors.cases("schema-registry/avro/policies.json")
SCHEMA_TESTS = shared_vectors.text("schema-registry/avro/schema-tests.txt")
SCHEMAS = {name: Parser().parse(json.dumps(node)) for name, node in PAIRS["schemas"].items()}


@pytest.mark.parametrize("reader", SCHEMAS)
def test_a_reader_finds_the_incompatibilities_that_avro_finds(reader: str) -> None:
    for case in PAIRS["cases"]:
        if case["reader"] == reader:
            found = [
                {"type": each.type, "location": each.location, "message": each.message}
                for each in incompatibilities(SCHEMAS[reader], SCHEMAS[case["writer"]])
            ]
            assert found == case["incompatibilities"], case["writer"]
            assert (not found) is case["compatible"]


@pytest.mark.parametrize("case", POLICIES["cases"], ids=lambda case: case["mode"])
def test_a_level_allows_what_the_registry_allows(case: dict[str, Any]) -> None:
    parsed = {
        name: AvroLanguage().parse(json.dumps(node)) for name, node in POLICIES["schemas"].items()
    }
    previous = [
        PreviousSchema(parsed[name], version) for version, name in enumerate(case["previous"], 1)
    ]
    found = level_incompatibilities(CompatibilityLevel(case["mode"]), parsed[case["new"]], previous)
    assert (not found) is case["compatible"], found


def schema_tests() -> list[tuple[str, str, int | None]]:
    """Input, canonical form and fingerprint of each block, a missing fingerprint as None."""
    text = re.sub(r"^//.*$", "", SCHEMA_TESTS, flags=re.MULTILINE)
    parts = re.split(r"^<<(INPUT|canonical|fingerprint)[ \t]*", text, flags=re.MULTILINE)[1:]
    blocks: list[dict[str, str]] = []
    for key, value in zip(parts[::2], parts[1::2], strict=True):
        if key == "INPUT":
            blocks.append({})
        blocks[-1][key] = here_document(key, value)
    return [
        (
            each["INPUT"],
            each["canonical"],
            int(each["fingerprint"]) if "fingerprint" in each else None,
        )
        for each in blocks
    ]


def here_document(key: str, value: str) -> str:
    """What is on the line, or on the lines up to one that repeats the key."""
    first, _, rest = value.partition("\n")
    return first.strip() or rest.partition(f"\n{key}")[0].strip()


@pytest.mark.parametrize(("given", "canonical", "crc"), schema_tests())
def test_the_canonical_form_is_the_specified_one(
    given: str, canonical: str, crc: int | None
) -> None:
    schema = Parser().parse(given)
    assert parsing_canonical_form(schema) == canonical
    if crc is not None:
        assert fingerprint(schema) == crc
