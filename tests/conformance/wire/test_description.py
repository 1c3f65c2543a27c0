"""The descriptions under schemas/ against the protocol reference, field by field."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from moldau.wire.errors import ErrorCode
from support.reference import ROOT, load_reference

sys.path.insert(0, str(ROOT / "tools"))

from message_description import (
    OPEN_END,
    Description,
    Field,
    MessageDescription,
    Versions,
    load,
)

# What the reference calls a kind, by ours.
KINDS = {
    "header": "header",
    "data": "data",
    "request": "request",
    "response": "response",
    "metadata": "metadata",
    "remote-log": "metadata",
    **{f"{family}-key": "coordinator-key" for family in ("group", "transaction", "share")},
    **{f"{family}-value": "coordinator-value" for family in ("group", "transaction", "share")},
}
MODULES = {
    "group": "group-coordinator",
    "transaction": "transaction-coordinator",
    "share": "share-coordinator",
    "metadata": "metadata",
    "remote": "storage",
}


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    """The messages of the 4.3 line by name."""
    whole = load_reference("messages.json")
    entries = whole["apiMessages"] + whole["recordAndDataSchemas"]
    return {e["name"]: e for e in entries if not e.get("removed") and e.get("since") != "4.4"}


@pytest.fixture(scope="module")
def description() -> Description:
    return load(ROOT / "schemas")


def test_the_same_messages(description: Description, reference: dict[str, Any]) -> None:
    assert {message.name for message in description.messages()} == reference.keys()


def test_apis(description: Description, reference: dict[str, Any]) -> None:
    requests = [entry for entry in reference.values() if entry["kind"] == "request"]
    assert len(description.apis) == len(requests) == 89
    by_name = {entry["name"]: entry for entry in requests}
    for api in description.apis:
        entry = by_name[api.name + "Request"]
        assert api.number == entry["apiKey"], api.name
        assert list(api.listeners) == entry["listeners"], api.name
        assert api.latest_unstable == entry.get("latestVersionUnstable", False), api.name


def test_messages_field_by_field(description: Description, reference: dict[str, Any]) -> None:
    fields = 0
    for message in description.messages():
        entry = reference[message.name]
        assert as_pair(message.versions) == entry["validVersions"], message.name
        assert as_pair(message.flexible) == entry["flexibleVersions"], message.name
        assert message.type == entry.get("apiKey"), message.name
        assert KINDS[message.kind] == entry["kind"], message.name
        module = MODULES.get(message.kind.split("-")[0])
        assert module is None or module == entry["module"], message.name
        fields += compare_fields(message, message.fields, entry["fields"], message.name)
        shared = {struct["name"]: struct for struct in entry.get("structs", [])}
        ours = {name: struct for name, struct in message.structs.items() if struct.shared}
        assert ours.keys() == shared.keys(), message.name
        for name, struct in ours.items():
            where = f"{message.name}/{name}"
            assert as_pair(struct.versions) == shared[name]["versions"], where
            fields += compare_fields(message, struct.fields, shared[name]["fields"], where)
    assert fields > 2000


def as_pair(versions: Versions | None) -> list[int | None] | None:
    if versions is None:
        return None
    return [versions.low, None if versions.high == OPEN_END else versions.high]


def compare_fields(
    message: MessageDescription, ours: list[Field], theirs: list[dict[str, Any]], where: str
) -> int:
    """Compare, go into nested structs, and count."""
    assert [field.name for field in ours] == [entry["name"] for entry in theirs], where
    count = len(ours)
    for field, entry in zip(ours, theirs, strict=True):
        here = f"{where}.{field.name}"
        assert described(field) == expected(entry), here
        if "fields" in entry:
            struct = message.structs[field.element]
            assert not struct.shared, here
            count += compare_fields(message, struct.fields, entry["fields"], here)
    return count


def described(field: Field) -> dict[str, Any]:
    return {
        "type": field.type,
        "versions": as_pair(field.versions),
        "nullable": as_pair(field.nullable),
        "tag": field.tag,
        "tagged": as_pair(field.tagged),
        "default": field.default,
        "follows flexible": field.follows_flexible,
        "ignorable": field.ignorable,
        "key": field.key,
        "zerocopy": field.zerocopy,
        "entity": field.entity,
    }


def expected(entry: dict[str, Any]) -> dict[str, Any]:
    kind = "[]" + entry["items"] if entry["type"] == "array" else entry["type"]
    # Where no versions are given a tagged field exists wherever it is tagged.
    versions = entry["versions"] or entry["taggedVersions"]
    return {
        "type": kind.replace("struct ", ""),
        "versions": versions,
        "nullable": entry.get("nullable"),
        "tag": entry.get("tag"),
        "tagged": entry.get("taggedVersions"),
        "default": default_text(entry.get("default")),
        "follows flexible": "flexible" not in entry,
        "ignorable": entry.get("ignorable", False),
        "key": entry.get("mapKey", False),
        "zerocopy": entry.get("zeroCopy", False),
        "entity": entry.get("entityType"),
    }


def default_text(value: Any) -> str | None:
    match value:
        case None:
            # Absent or a JSON null (the word is "null"): to Kafka both mean no default.
            return None
        case bool():
            return str(value).lower()
        case "":
            return '""'
        case _:
            return str(value)


def test_error_codes() -> None:
    errors = load_reference("errors.json")["errors"]
    theirs = {
        e["name"]: (e["code"], e["retriable"], e.get("refreshMetadata", False)) for e in errors
    }
    ours = {code.name: (int(code), code.retriable, code.refresh_metadata) for code in ErrorCode}
    assert ours == theirs


def test_control_record_types() -> None:
    types = load_reference("messages.json")["controlRecordTypes"]
    assert len(types) == 7
    description = load(ROOT / "schemas")
    described_names = {message.name for message in description.messages()}
    assert {entry["valueSchema"] for entry in types} <= described_names
