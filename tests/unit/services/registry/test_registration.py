"""What registering decides: ids, versions, and what is refused."""

from __future__ import annotations

import hashlib
import json
import uuid
from dataclasses import replace
from typing import Any

import pytest

from moldau.services.registry.machine.errors import RegistryError
from support.registry.machine import MemoryRegistry


def record(name: str, *fields: str, **more: Any) -> str:
    found = [{"name": each, "type": "string", "default": ""} for each in fields]
    return json.dumps({"type": "record", "name": name, "fields": found, **more})


@pytest.fixture
def registry() -> MemoryRegistry:
    return MemoryRegistry()


def refusal(action: Any) -> tuple[int, int]:
    with pytest.raises(RegistryError) as caught:
        action()
    return caught.value.status, caught.value.code


def test_equal_schemas_share_an_id_and_others_do_not(registry: MemoryRegistry) -> None:
    one = registry.register("a", record("A", "x"))
    again = registry.register("a", json.dumps(json.loads(record("A", "x")), indent=4))
    elsewhere = registry.register("b", record("A", "x"))
    other = registry.register("a", record("A", "x", "y"))
    assert [(each.id, each.version) for each in (one, again, elsewhere, other)] == [
        (1, 1),
        (1, 1),
        (1, 1),
        (2, 2),
    ]


def test_contexts_count_their_own_ids(registry: MemoryRegistry) -> None:
    assert registry.register("a", record("A")).id == 1
    assert registry.register(":.c:a", record("B")).id == 1
    assert registry.register(":.c:b", record("A")).id == 2
    assert registry.registry.state.contexts == [".c"]


def test_the_guid_is_that_of_confluents_registry(registry: MemoryRegistry) -> None:
    # The MD5 of the stored text as a UUID, as Confluent's Schema.updateHash makes it.
    stored = registry.register("a", '{"type": "string"}')
    digest = hashlib.md5(b'"string"').digest()
    assert stored.guid == str(uuid.UUID(bytes=digest))
    assert registry.registry.queries.by_guid(stored.guid) == replace(stored, timestamp_ms=1_000)


def test_versions_go_on_after_a_soft_delete_and_begin_again_after_a_permanent_one(
    registry: MemoryRegistry,
) -> None:
    registry.register("a", record("A", "x"))
    assert registry.delete("a") == [1]
    assert registry.register("a", record("A", "x", "y")).version == 2
    assert registry.delete("a") == [2]
    assert registry.delete("a", permanent=True) == [1, 2]
    assert registry.register("a", record("A", "z")).version == 1


def test_a_deleted_version_that_is_registered_again_makes_room(registry: MemoryRegistry) -> None:
    first = registry.register("a", record("A", "x"))
    registry.delete("a")
    again = registry.register("a", record("A", "x"))
    assert (again.id, again.version) == (first.id, 2)
    assert [each.version for each in registry.registry.state.versions("a", deleted=True)] == [2]


def test_an_id_is_never_given_out_again_even_after_compaction(registry: MemoryRegistry) -> None:
    registry.register("a", record("A"))
    registry.register("b", record("B"))
    registry.delete("b")
    registry.delete("b", permanent=True)
    for each in (registry, registry.restarted()):
        assert each.register("c", record("C")).id == 3


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param({"schema": "{"}, (422, 42201), id="not a schema"),
        pytest.param({"schema": ""}, (422, 42201), id="empty"),
        pytest.param({"schema": "x", "schemaType": "XML"}, (422, 42201), id="unknown type"),
        pytest.param(
            {
                "schema": '"string"',
                "references": [{"name": "x", "subject": "none", "version": 1}],
            },
            (422, 42201),
            id="a reference to nothing",
        ),
        pytest.param(
            {"schema": '"string"', "references": [{"name": "x"}]}, (422, 42201), id="no reference"
        ),
        pytest.param({"schema": '"string"', "id": 7}, (422, 42205), id="an id outside IMPORT"),
        pytest.param({"schema": '"string"', "version": 7}, (422, 42201), id="a version ahead"),
        pytest.param({"schema": '"string"', "references": 1}, (400, 400), id="no array"),
    ],
)
def test_what_is_refused(
    registry: MemoryRegistry, body: dict[str, Any], expected: tuple[int, int]
) -> None:
    assert refusal(lambda: registry.register("a", **body)) == expected
    assert registry.log == []


@pytest.mark.parametrize(
    ("level", "accepted"),
    [("BACKWARD", False), ("FORWARD", True), ("FULL", False), ("NONE", True)],
)
def test_the_level_of_the_subject_decides(
    registry: MemoryRegistry, level: str, accepted: bool
) -> None:
    registry.configure("a", compatibility=level)
    registry.register("a", record("A", "x"))
    required = '{"type":"record","name":"A","fields":[{"name":"n","type":"int"}]}'
    if accepted:
        assert registry.register("a", required).version == 2
    else:
        assert refusal(lambda: registry.register("a", required)) == (409, 409)


def test_a_group_is_compared_with_itself_only(registry: MemoryRegistry) -> None:
    registry.configure("a", compatibilityGroup="major")

    def major(number: str) -> dict[str, Any]:
        return {"metadata": {"properties": {"major": number}}}

    registry.register("a", record("A", "x"), **major("1"))
    breaking = '{"type":"record","name":"A","fields":[{"name":"n","type":"int"}]}'
    assert refusal(lambda: registry.register("a", breaking, **major("1"))) == (409, 409)
    assert registry.register("a", breaking, **major("2")).version == 2


def test_what_is_left_out_comes_from_the_version_before_and_the_config(
    registry: MemoryRegistry,
) -> None:
    registry.configure(
        "a",
        defaultMetadata={"properties": {"owner": "nobody", "level": "1"}},
        overrideMetadata={"properties": {"level": "9"}},
    )
    registry.register("a", record("A"), metadata={"properties": {"owner": "me"}})
    second = registry.register("a", record("A", "x"))
    assert second.schema.metadata is not None
    assert dict(second.schema.metadata.properties) == {"owner": "me", "level": "9"}


def test_import_mode_takes_ids_and_versions_as_they_come(registry: MemoryRegistry) -> None:
    registry.set_mode(None, "IMPORT")
    stored = registry.register("a", record("A"), id=100, version=5)
    assert (stored.id, stored.version) == (100, 5)
    other = record("B")
    assert refusal(lambda: registry.register("b", other, id=100)) == (422, 42205)
    registry.set_mode(None, "READWRITE")
    assert registry.register("a", record("A", "x")).id == 101


def test_import_mode_wants_an_empty_registry_unless_forced(registry: MemoryRegistry) -> None:
    registry.register("a", record("A"))
    assert refusal(lambda: registry.set_mode(None, "IMPORT")) == (422, 42205)
    registry.set_mode(None, "IMPORT", force=True)


def test_references_are_used_and_protect_what_they_refer_to(registry: MemoryRegistry) -> None:
    registry.register("base", record("Base", "x"))
    user = json.dumps({"type": "record", "name": "User", "fields": [{"name": "b", "type": "Base"}]})
    references = [{"name": "Base", "subject": "base", "version": -1}]
    stored = registry.register("user", user, references=references)
    assert stored.schema.references[0].version == 1
    assert registry.registry.deletion.referring_ids("base", 1, deleted=False) == [stored.id]
    assert refusal(lambda: registry.delete("base")) == (422, 42206)
    registry.delete("user")
    assert registry.delete("base") == [1]


def test_a_schema_with_its_references_put_in_is_found(registry: MemoryRegistry) -> None:
    registry.register("base", record("Base", "x"))
    user = {"type": "record", "name": "User", "fields": [{"name": "b", "type": "Base"}]}
    references = [{"name": "Base", "subject": "base", "version": 1}]
    stored = registry.register("user", json.dumps(user), references=references)
    user["fields"] = [{"name": "b", "type": json.loads(record("Base", "x"))}]
    again = registry.register("user", json.dumps(user))
    assert (again.id, again.version) == (stored.id, stored.version)


@pytest.mark.parametrize("mode", ["READONLY", "READONLY_OVERRIDE"])
def test_nothing_is_written_in_a_read_only_mode(registry: MemoryRegistry, mode: str) -> None:
    registry.register("a", record("A"))
    registry.set_mode("a", mode)
    assert refusal(lambda: registry.register("a", record("A", "x"))) == (422, 42205)
    assert refusal(lambda: registry.delete("a")) == (422, 42205)
    assert refusal(lambda: registry.configure("a", compatibility="NONE")) == (422, 42205)
    registry.set_mode("a", None)
    assert registry.register("a", record("A", "x")).version == 2


@pytest.mark.parametrize(
    ("schema", "more"),
    [
        (record("A", "secret"), {}),
        ('{"type":"object","properties":{"secret":{}}}', {"schemaType": "JSON"}),
        ('syntax = "proto3"; message A { string secret = 1; }', {"schemaType": "PROTOBUF"}),
    ],
)
def test_a_reserved_field_is_kept_free_where_fields_are_validated(
    schema: str, more: dict[str, Any]
) -> None:
    registry = MemoryRegistry(validate_fields=True)
    metadata = {"properties": {"confluent:reserved": "secret, other"}}
    body = {"metadata": metadata, **more}
    assert refusal(lambda: registry.register("a", schema, **body)) == (409, 409)
    assert registry.register("a", schema.replace("secret", "open"), **body).version == 1
    unreserved = {"metadata": {"properties": {}}, **more}
    again = schema.replace("secret", "wide")
    assert refusal(lambda: registry.register("a", again, **unreserved)) == (409, 409)
