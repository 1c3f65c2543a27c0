"""The records of `_schemas`: Confluent's bytes, both ways."""

from __future__ import annotations

import json

import pytest

from moldau.services.registry.machine.configs import Config
from moldau.services.registry.machine.contracts import Metadata
from moldau.services.registry.machine.records import (
    ClearSubject,
    ConfigSet,
    ContextSet,
    DeleteSubject,
    ModeSet,
    Noop,
    Record,
    SchemaSet,
    UnreadableRecord,
    decode,
    encode,
)
from moldau.services.registry.machine.schemas import Reference, Schema, StoredSchema
from support.registry.machine import MemoryRegistry

SCHEMA = Schema(
    '"string"',
    "AVRO",
    (Reference("n", "s", 1),),
    Metadata.make({"f": ["PII"]}.items(), {"owner": "me"}.items(), ["owner"]),
)


@pytest.mark.parametrize(
    ("record", "key"),
    [
        (
            SchemaSet("a", 3, StoredSchema("a", 3, 7, SCHEMA, SCHEMA.guid, timestamp_ms=5)),
            b'{"keytype":"SCHEMA","subject":"a","version":3,"magic":1}',
        ),
        (SchemaSet("a", 3, None), b'{"keytype":"SCHEMA","subject":"a","version":3,"magic":1}'),
        (
            ConfigSet("a", Config(compatibility_level="FULL", normalize=True)),
            b'{"keytype":"CONFIG","subject":"a","magic":0}',
        ),
        (ConfigSet(None, None), b'{"keytype":"CONFIG","magic":0}'),
        (ModeSet("ü", "IMPORT"), '{"keytype":"MODE","subject":"ü","magic":0}'.encode()),
        (DeleteSubject("a", 3), b'{"keytype":"DELETE_SUBJECT","subject":"a","magic":0}'),
        (ClearSubject("a"), b'{"keytype":"CLEAR_SUBJECT","subject":"a","magic":0}'),
        (
            ContextSet(".c"),
            b'{"keytype":"CONTEXT","tenant":"default","context":".c","magic":0}',
        ),
        (Noop({".": 4}, opens_term=True), b'{"keytype":"NOOP","magic":0}'),
    ],
)
def test_a_record_keeps_its_meaning_and_its_key(record: Record, key: bytes) -> None:
    assert encode(record)[0] == key
    assert decode(*encode(record), timestamp_ms=5) == record


def test_what_confluents_registry_has_written_is_read() -> None:
    # As releases from 3 to 8 have left it in a topic.
    topic = [
        ('{"keytype":"NOOP","magic":0}', None),
        (
            '{"keytype":"CONFIG","subject":null,"magic":0}',
            '{"compatibilityLevel":"FULL"}',
        ),
        (
            '{"keytype":"SCHEMA","subject":"old","version":1,"magic":0}',
            '{"subject":"old","version":1,"id":1,"schema":"\\"string\\""}',
        ),
        (
            '{"keytype":"SCHEMA","subject":"new","version":1,"magic":1}',
            '{"subject":"new","version":1,"id":2,"md5":"AAECAwQFBgcICQoLDA0ODw==",'
            '"schemaType":"JSON","schema":"{}","deleted":false,"offset":9,"ts":1}',
        ),
        (
            '{"keytype":"SCHEMA","subject":"gone","version":1,"magic":1}',
            '{"subject":"gone","version":1,"id":3,"schema":"\\"int\\"","deleted":false}',
        ),
        (
            '{"keytype":"DELETE_SUBJECT","subject":"gone","magic":0}',
            '{"subject":"gone","version":1}',
        ),
        ('{"keytype":"MODE","subject":"old","magic":0}', '{"mode":"READONLY"}'),
        ('{"keytype":"SOMETHING_NEW","magic":0}', '{"a":1}'),
    ]
    memory = MemoryRegistry()
    for key, value in topic:
        memory.read(key.encode(), None if value is None else value.encode())
    registry = memory.registry
    assert registry.scopes.config("x").compatibility_level == "FULL"
    assert registry.scopes.mode("old") == "READONLY"
    assert registry.queries.by_id(1, None).schema.text == '"string"'
    assert registry.queries.by_guid("00010203-0405-0607-0809-0a0b0c0d0e0f").subject == "new"
    assert [each.deleted for each in registry.state.versions("gone", deleted=True)] == [True]
    assert registry.state.next_id("x") == 4


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", b"{}"),
        (b"[]", b"{}"),
        (b"\xff", None),
        (b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":9}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"a","version":"x","magic":1}', None),
        (b'{"keytype":"MODE","magic":0}', b"{}"),
        (b'{"keytype":"CONFIG","magic":0}', b'{"compatibilityLevel":"LOUD"}'),
    ],
)
def test_what_nobody_has_written_is_refused(key: bytes, value: bytes | None) -> None:
    with pytest.raises(UnreadableRecord):
        decode(key, value, timestamp_ms=0)


def test_an_id_keeps_its_first_schema() -> None:
    memory = MemoryRegistry()
    for subject, text in (("a", '"string"'), ("b", '"int"')):
        schema = Schema(text)
        memory.append(SchemaSet(subject, 1, StoredSchema(subject, 1, 1, schema, schema.guid)))
    assert memory.registry.queries.by_id(1, None).schema.text == '"string"'
    assert memory.registry.queries.subjects(":*:", _excluded()) == ["a"]


def _excluded() -> object:
    from moldau.services.registry.machine.queries import Deleted

    return Deleted.EXCLUDED


def test_the_value_of_a_schema_has_confluents_fields() -> None:
    stored = StoredSchema("a", 3, 7, SCHEMA, SCHEMA.guid)
    value = json.loads(encode(SchemaSet("a", 3, stored))[1] or b"")
    assert list(value) == [
        "subject",
        "version",
        "id",
        "md5",
        "schemaType",
        "references",
        "metadata",
        "schema",
        "deleted",
    ]
