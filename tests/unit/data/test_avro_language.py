"""Avro schemas as the registry sees them: what is refused, and in which form they are kept."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from moldau.data.avro.language import AvroLanguage, AvroSchema
from moldau.data.avro.parser import NESTING_MAX
from moldau.data.compatibility import CompatibilityLevel, PreviousSchema, incompatibilities
from moldau.data.schema_language import ParsedSchema, ResolvedReference, SchemaError, SchemaLanguage


def parse(node: Any, *references: Any, strict: bool = True) -> AvroSchema:
    text = node if isinstance(node, str) else json.dumps(node)
    given = [
        ResolvedReference(str(index), json.dumps(each)) for index, each in enumerate(references)
    ]
    return AvroLanguage().parse(text, given, strict=strict)


def record(name: str, *fields: tuple[str, Any], **attributes: Any) -> dict[str, Any]:
    listed = [{"name": each, "type": type_} for each, type_ in fields]
    return {"type": "record", "name": name, "fields": listed, **attributes}


def test_it_is_a_language_of_the_registry() -> None:
    language: SchemaLanguage = AvroLanguage()
    schema: ParsedSchema = language.parse('"string"')
    assert (language.schema_type, schema.schema_type, schema.name) == ("AVRO", "AVRO", None)
    assert language.parse(json.dumps(record("a.B"))).name == "a.B"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{nope", "not JSON"),
        ("", "not JSON"),
        ("NaN", "NaN is not JSON"),
        ('"int" 5', "not JSON"),
        ("5", "Schema not yet supported: 5"),
        ("null", "Schema not yet supported: null"),
        ("{}", "No type"),
        ('{"type":{"type":"int"}}', "No type"),
        ('"nope"', "Undefined schema: nope"),
        ('{"type":"record","fields":[]}', "No name in schema"),
        ('{"type":"record","name":"R"}', "Record has no fields"),
        ('{"type":"record","name":"R","fields":[5]}', "No field name"),
        ('{"type":"record","name":"R","fields":[{"name":"a"}]}', "No field type"),
        ('{"type":"record","name":"int","fields":[]}', "named after primitives: int"),
        ('{"type":"record","name":"1R","fields":[]}', "Illegal initial character: 1R"),
        ('{"type":"record","name":"R-S","fields":[]}', "Illegal character in: R-S"),
        ('{"type":"record","name":"","fields":[]}', "Empty name"),
        ('{"type":"record","name":"R","namespace":"a-b","fields":[]}', 'Namespace part "a-b"'),
        ('{"type":"record","name":"R","aliases":"S","fields":[]}', "aliases not an array"),
        ('{"type":"record","name":"R","aliases":[1],"fields":[]}', "alias not a string"),
        ('{"type":"enum","name":"E"}', "Enum has no symbols"),
        ('{"type":"enum","name":"E","symbols":["a","a"]}', "Duplicate enum symbol: a"),
        ('{"type":"enum","name":"E","symbols":[1]}', "Null name"),
        ('{"type":"enum","name":"E","symbols":["a"],"default":"b"}', "not in the enum symbol set"),
        ('{"type":"fixed","name":"F"}', "Invalid or no size"),
        ('{"type":"fixed","name":"F","size":-1}', "Invalid or no size"),
        ('{"type":"fixed","name":"F","size":true}', "Invalid or no size"),
        ('{"type":"array"}', "Array has no items type"),
        ('{"type":"map"}', "Map has no values type"),
        ('["int",["null"]]', "Nested union"),
        ('["int",{"type":"int"}]', "Duplicate in union:int"),
        ('[{"type":"array","items":"int"},{"type":"array","items":"long"}]', "union:array"),
    ],
)
def test_what_is_no_schema_is_refused(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        parse(text)


def test_a_field_may_be_there_once() -> None:
    with pytest.raises(SchemaError, match=r"Duplicate field a in record x\.R"):
        parse(record("x.R", ("a", "int"), ("a", "long")))


def test_a_type_may_be_defined_again_only_if_it_is_the_same() -> None:
    inner = record("I", ("a", "int"))
    assert parse(record("R", ("x", inner), ("y", inner | {"doc": "again"}))).name == "R"
    with pytest.raises(SchemaError, match="Can't redefine: I"):
        parse(record("R", ("x", inner), ("y", record("I", ("a", "long")))))


@pytest.mark.parametrize(
    ("type_", "default"),
    [
        ("int", "1"),
        ("int", 2**31),
        ("int", 1.0),
        ("long", 2**63),
        ("string", 1),
        ("null", 0),
        ("boolean", 1),
        ("double", True),
        (["null", "int"], "x"),
        ({"type": "array", "items": "int"}, [None]),
        ({"type": "map", "values": "int"}, {"a": "b"}),
        (record("I", ("a", "int")), {}),
    ],
)
def test_a_default_of_another_type_is_refused_in_a_new_schema_only(
    type_: Any, default: Any
) -> None:
    field = {"name": "f", "type": type_, "default": default}
    schema = {"type": "record", "name": "R", "fields": [field]}
    with pytest.raises(SchemaError, match="Invalid default for field f: "):
        parse(schema)
    assert parse(schema, strict=False).canonical_text


@pytest.mark.parametrize(
    ("type_", "default"),
    [
        (["null", "int"], 5),  # any branch, not only the first
        ("float", "NaN"),
        ("double", 1),
        (record("I", ("a", "int")), {"a": 1}),
    ],
)
def test_a_default_that_fits_is_kept(type_: Any, default: Any) -> None:
    field = {"name": "f", "type": type_, "default": default}
    schema = parse({"type": "record", "name": "R", "fields": [field]})
    assert json.loads(schema.canonical_text)["fields"][0]["default"] == default


def test_the_canonical_text_is_as_avro_prints_it() -> None:
    given = """ /* a comment, which Avro allows */
    {"fields": [
       {"type": {"type": "int"}, "z": 1, "name": "a", "order": "descending", "doc": "d",
        "aliases": ["b"], "default": 1},
       {"name": "b", "type": "acme.Color"},
       {"name": "c", "type": {"name": "int", "type": "fixed", "size": 2}},
       {"name": "d", "type": ["null", "acme.int", {"type": "long", "logicalType": "date"}],
        "default": null},
       {"name": "e", "type": "double", "default": 1e10},
       {"name": "f", "type": {"name": "None", "namespace": "", "type": "record", "fields": []}},
       {"name": "g", "type": {"type":"enum","name":"Color","symbols":["R"],"default":"R","x":[1]}}
     ],
     "doc": "caf\u00e9", "aliases": ["Old", "other.Old"], "p": {"b": 1, "a": 2.50},
     "name": "R", "namespace": "acme", "type": "record"}"""
    assert parse(given).canonical_text == (
        '{"type":"record","name":"R","namespace":"acme","doc":"café","fields":['
        '{"name":"a","type":"int","doc":"d","default":1,"order":"descending","aliases":["b"],'
        '"z":1},'
        '{"name":"b","type":{"type":"enum","name":"Color","symbols":["R"],"default":"R",'
        '"x":[1]}},'
        '{"name":"c","type":{"type":"fixed","name":"int","size":2}},'
        '{"name":"d","type":["null","acme.int",{"type":"long","logicalType":"date"}],'
        '"default":null},'
        '{"name":"e","type":"double","default":1.0E10},'
        '{"name":"f","type":{"type":"record","name":"None","namespace":"","fields":[]}},'
        '{"name":"g","type":"Color"}'
        '],"p":{"b":1,"a":2.5},"aliases":["Old","other.Old"]}'
    )


def test_references_are_named_in_the_canonical_text_and_written_out_when_resolved() -> None:
    inner = record("a.Inner", ("x", "int"))
    schema = parse(record("a.Outer", ("i", "Inner")), inner)
    assert json.loads(schema.canonical_text)["fields"] == [{"name": "i", "type": "Inner"}]
    resolved = json.loads(schema.formatted("resolved"))
    assert resolved["fields"][0]["type"]["fields"] == [{"name": "x", "type": "int"}]
    assert schema.formatted("") == schema.formatted("serialized") == schema.canonical_text


def test_a_broken_reference_is_named() -> None:
    with pytest.raises(SchemaError, match="In the reference 0: No type"):
        parse("int", {})


def test_normalized_schemas_are_equal_however_they_were_written() -> None:
    one = {
        "type": "record",
        "name": "R",
        "namespace": "a",
        "doc": "",
        "aliases": ["z", "b"],
        "z": {"y": 1, "x": 2},
        "c": 1,
        "fields": [
            {"name": "d", "type": "double", "default": 1, "order": "ascending"},
            {
                "name": "e",
                "type": {"type": "bytes", "precision": 4, "scale": 0, "logicalType": "decimal"},
            },
        ],
    }
    other = {
        "c": 1,
        "z": {"x": 2, "y": 1},
        "type": "record",
        "name": "a.R",
        "aliases": ["a.b", "a.z"],
        "fields": [
            {"name": "d", "type": {"type": "double"}, "default": 1.0},
            {
                "name": "e",
                "type": {"type": "bytes", "logicalType": "decimal", "scale": 0, "precision": 4},
            },
        ],
    }
    assert parse(one).canonical_text != parse(other).canonical_text
    normalized = parse(one).normalized()
    assert normalized.canonical_text == parse(other).normalized().canonical_text
    assert normalized.canonical_text == (
        '{"type":"record","name":"R","namespace":"a","fields":['
        '{"name":"d","type":"double","default":1.0},'
        '{"name":"e","type":{"type":"bytes","logicalType":"decimal","precision":4,"scale":0}}'
        '],"c":1,"z":{"x":2,"y":1},"aliases":["b","z"]}'
    )
    assert normalized.normalized().canonical_text == normalized.canonical_text


def test_normalizing_keeps_references_and_namespaces() -> None:
    inner = record("Inner", ("x", "int"))
    schema = parse(record("a.Outer", ("i", "Inner"), ("j", record("J") | {"namespace": ""})), inner)
    assert schema.normalized().canonical_text == schema.canonical_text


def test_a_registrys_sentences_name_both_schemas() -> None:
    old, new = parse(record("R")), parse(record("R", ("a", "int")))
    assert new.incompatibilities(old) == [
        "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'a' at path "
        "'/fields/0' in the new schema has no default value and is missing in the old schema', "
        "additionalInfo:'a'}"
    ]
    assert old.incompatibilities(new) == []
    assert incompatibilities(CompatibilityLevel.BACKWARD, new, [PreviousSchema(old, 3)])[1:] == [
        "{oldSchemaVersion: 3}",
        '{oldSchema: \'{"type":"record","name":"R","fields":[]}\'}',
    ]


def test_full_lists_the_forward_direction_first_and_the_old_schema_once() -> None:
    old, new = parse(record("R", ("b", "int"))), parse(record("R", ("a", "int")))
    found = incompatibilities(CompatibilityLevel.FULL, new, [PreviousSchema(old, 1)])
    assert ["in the old schema has" in each for each in found] == [True, False, False, False]
    assert found[2:] == ["{oldSchemaVersion: 1}", f"{{oldSchema: '{old.canonical_text}'}}"]


def test_a_field_that_two_fields_could_be_is_an_error_of_the_check() -> None:
    reader = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "a", "type": "int", "aliases": ["b"]}],
    }
    writer = record("R", ("a", "int"), ("b", "int"))
    (found,) = parse(reader).incompatibilities(parse(writer))
    assert found.startswith(
        "Unexpected exception during compatibility check: Reader record field a type:INT pos:0 "
        "matches multiple fields"
    )


def chain(size: int, leaf: str, *, width: int = 2) -> list[Any]:
    """Flat, but each record holds the next one `width` times."""
    records = [
        record(f"R{index}", *((f"f{each}", f"R{index + 1}") for each in range(width)))
        for index in range(size)
    ]
    return [*records, record(f"R{size}", ("x", leaf))]


def test_types_that_are_shared_do_not_multiply_the_work() -> None:
    size = NESTING_MAX - 10
    started = time.perf_counter()
    reader, writer = parse(chain(size, "int")), parse(chain(size, "string"))
    found = writer.incompatibilities(reader)
    reader.normalized()
    assert 0 < len(found) <= 1000
    assert time.perf_counter() - started < 5


def test_defaults_of_defaults_do_not_multiply_the_work() -> None:
    records = chain(NESTING_MAX - 10, "int")
    for each in records[:-1]:
        for field in each["fields"]:
            field["default"] = {}
    records[-1]["fields"][0]["default"] = 0
    assert parse(records)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"type":"array","items":' * 5_000 + '"int"' + "}" * 5_000,
        json.dumps(chain(NESTING_MAX + 10, "int", width=1)),
        json.dumps(
            {"type": "record", "name": "R", "fields": [{"name": "r", "type": "R", "default": {}}]}
        ),
    ],
    ids=["brackets", "arrays", "names", "a default inside of itself"],
)
def test_a_schema_without_bottom_is_refused(text: str) -> None:
    with pytest.raises(SchemaError, match=r"nested (too|more)"):
        parse(text)


def test_a_recursive_schema_is_compared_with_another() -> None:
    def tree(leaf: str) -> AvroSchema:
        children = {"type": "array", "items": "Tree"}
        return parse(record("Tree", ("leaf", leaf), ("children", children)))

    assert tree("long").incompatibilities(tree("int")) == []
    (found,) = tree("int").incompatibilities(tree("long"))
    assert "path '/fields/0/type'" in found


def test_half_of_a_character_is_refused() -> None:
    with pytest.raises(SchemaError, match="surrogate"):
        parse('{"type":"string","x":"\\ud800"}')
