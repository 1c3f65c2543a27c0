"""A schema as the registry and serializers use it."""

from __future__ import annotations

import base64

import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2

from moldau.data.protobuf import (
    MessageIndexError,
    ProtobufLanguage,
    ProtobufSchema,
    decode_path,
    encode_path,
    printer,
    well_known,
)
from moldau.data.protobuf.metadata import field_meta
from moldau.data.schema_language import ParsedSchema, ResolvedReference, SchemaError, SchemaLanguage

LANGUAGE = ProtobufLanguage()
NESTED = """
syntax = "proto3"; package a.b;
enum First { ZERO = 0; }
message Outer { enum E { Z = 0; } message In { message Deep {} } message Second { int32 x = 1; }
  map<string, Second> by_name = 1; }
message Other { message In {} }
"""


def test_it_is_a_schema_language() -> None:
    language: SchemaLanguage = LANGUAGE
    schema: ParsedSchema = language.parse(NESTED)
    assert (language.schema_type, schema.schema_type) == ("PROTOBUF", "PROTOBUF")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (NESTED, "a.b.Outer"),
        ("enum E { A = 0; }", "E"),
        ("enum E { A = 0; } message M {}", "M"),
        ("package x;", None),
        ('import public "google/protobuf/timestamp.proto";', "google.protobuf.Timestamp"),
        ('import "google/protobuf/timestamp.proto";', None),
    ],
)
def test_the_name_is_that_of_the_first_message(text: str, name: str | None) -> None:
    assert LANGUAGE.parse(text).name == name


@pytest.mark.parametrize(
    ("name", "path", "encoded"),
    [
        ("a.b.Outer", (0,), b"\x00"),
        ("a.b.Other", (1,), b"\x02\x02"),
        ("a.b.Outer.In", (0, 0), b"\x04\x00\x00"),
        ("a.b.Outer.In.Deep", (0, 0, 0), b"\x06\x00\x00\x00"),
        ("a.b.Outer.Second", (0, 1), b"\x04\x00\x02"),
        ("a.b.Other.In", (1, 0), b"\x04\x02\x00"),
    ],
)
def test_message_indexes(name: str, path: tuple[int, ...], encoded: bytes) -> None:
    schema = LANGUAGE.parse(NESTED)
    assert schema.message_indexes(name) == path
    assert schema.message_name(path) == name
    assert encode_path(path) == encoded
    assert decode_path(b"??" + encoded + b"rest", 2) == (path, 2 + len(encoded))


def test_the_indexes_of_the_serialized_form_are_those_of_the_text() -> None:
    schema = LANGUAGE.parse(NESTED)
    again = LANGUAGE.parse(schema.formatted("serialized"))
    assert again.message_name((0, 1)) == schema.message_name((0, 1)) == "a.b.Outer.Second"
    assert again.message_name((0, 2)) == "a.b.Outer.ByNameEntry"


def test_a_large_index_takes_more_bytes() -> None:
    assert decode_path(encode_path((300, 70000))) == ((300, 70000), 6)


@pytest.mark.parametrize("path", [(2,), (0, 7), (0, 0, 0, 0), (-1,)])
def test_an_index_that_leads_nowhere(path: tuple[int, ...]) -> None:
    with pytest.raises(MessageIndexError, match="Invalid message indexes"):
        LANGUAGE.parse(NESTED).message_name(path)


@pytest.mark.parametrize("name", ["a.b.Missing", "Outer", "a.b.Outer.E", "c.Outer"])
def test_a_name_without_an_index(name: str) -> None:
    with pytest.raises(MessageIndexError):
        LANGUAGE.parse(NESTED).message_indexes(name)


@pytest.mark.parametrize(
    "data", [b"", b"\x02", b"\x80", b"\xff" * 6, b"\x01", b"\x02\x01", b"\xfe\xff\xff\xff\x0f"]
)
def test_bytes_that_are_no_path(data: bytes) -> None:
    with pytest.raises(MessageIndexError):
        decode_path(data)


def test_messages_are_written_and_read() -> None:
    outer = LANGUAGE.parse(NESTED).message_class()
    message = outer(by_name={"k": {"x": 5}})
    assert outer.FromString(message.SerializeToString()).by_name["k"].x == 5


def test_two_versions_of_a_message_live_side_by_side() -> None:
    old = LANGUAGE.parse("message M { optional int32 a = 1; }").message_class()
    new = LANGUAGE.parse("message M { optional string b = 2; }").message_class()
    assert not new.FromString(old(a=1).SerializeToString()).HasField("b")


def test_references_and_their_references() -> None:
    references = [
        ResolvedReference("c.proto", 'syntax = "proto3"; package c; message C { int32 x = 1; }'),
        ResolvedReference(
            "b.proto",
            'syntax = "proto3"; package b; import public "c.proto"; message B { c.C c = 1; }',
        ),
    ]
    text = 'syntax = "proto3"; import "b.proto"; message A { b.B b = 1; c.C c = 2; }'
    schema = LANGUAGE.parse(text, references)
    message = schema.message_class()(b={"c": {"x": 1}}, c={"x": 2})
    assert schema.message_class("b.B")(c={"x": 1}) == message.b
    with pytest.raises(SchemaError, match=r"no message b\.Missing"):
        schema.message_class("b.Missing")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('syntax = "proto3"; message M { int32 a = 1; string b = 1; }', "number"),
        ('syntax = "proto3"; message M { int32 a = 1; string a = 2; }', "duplicate|already"),
        ('syntax = "proto3"; enum E { A = 1; }', "zero"),
        ("message M { optional int32 a = 1 [default = 5000000000]; }", "out of the range of int32"),
        ("message M { optional int32 a = 1 [packed = maybe]; }", "Option packed"),
    ],
)
def test_what_protoc_would_refuse_is_refused_when_it_is_used(text: str, error: str) -> None:
    schema = LANGUAGE.parse(text)
    assert LANGUAGE.parse(schema.canonical_text).canonical_text == schema.canonical_text
    with pytest.raises(SchemaError, match=error):
        schema.message_class()


def test_a_descriptor_in_base64_is_a_schema() -> None:
    serialized = base64.b64encode(timestamp_pb2.DESCRIPTOR.serialized_pb).decode()
    schema = LANGUAGE.parse(serialized)
    assert schema.name == "google.protobuf.Timestamp"
    assert schema.canonical_text.startswith('syntax = "proto3";\npackage google.protobuf;\n')
    assert '  int64 seconds = 1 [json_name = "seconds"];\n' in schema.canonical_text


def test_the_serialized_form_has_the_metadata_of_fields() -> None:
    text = """syntax = "proto3"; import "confluent/meta.proto";
        message M { string a = 1 [(confluent.field_meta) = { tags: ["PII"], params: [
          { key: "scale", value: "2" }, { key: "a", value: "b" } ] }]; }"""
    again = LANGUAGE.parse(LANGUAGE.parse(text).formatted("serialized"))
    assert again.canonical_text == (
        'syntax = "proto3";\n\nimport "confluent/meta.proto";\n\nmessage M {\n'
        "  string a = 1 [(confluent.field_meta) = {\n"
        '    params: [\n      {\n        key: "a",\n        value: "b"\n      },\n'
        '      {\n        value: "2",\n        key: "scale"\n      }\n    ],\n'
        '    tags: [\n      "PII"\n    ]\n  }];\n}\n'
    )


def test_a_reference_may_be_a_well_known_file() -> None:
    """Whoever uses Confluent's options imports their file, or not; the file may be a reference."""
    meta = LANGUAGE.parse('import public "confluent/meta.proto";')
    option = '[(confluent.field_meta).tags = "PII"]'
    references = [
        ResolvedReference("without.proto", f"message W {{ optional int32 a = 1 {option}; }}"),
        ResolvedReference(
            "confluent/meta.proto", printer.canonical(well_known.file(well_known.META))
        ),
    ]
    text = f"""import "without.proto"; import "confluent/meta.proto";
        message M {{ optional W w = 1 {option}; }}"""
    assert meta.name == "confluent.Meta"
    descriptor = LANGUAGE.parse(text, references).message_class("M").DESCRIPTOR
    outer = descriptor.fields_by_name["w"]
    for field in (outer, outer.message_type.fields_by_name["a"]):
        assert list(field_meta(field).tags) == ["PII"]


@pytest.mark.parametrize("text", ["aGVsbG8=", "AAAA", "message M {"])
def test_base64_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(SchemaError, match="Could not parse Protobuf - Syntax error"):
        LANGUAGE.parse(text)


@pytest.mark.parametrize("name", ["A {} message B", "a-b", "", "é", "M\n"])
def test_a_descriptor_with_a_name_that_no_text_has(name: str) -> None:
    """It is refused, or is what its text says, but never something in between."""
    proto = descriptor_pb2.FileDescriptorProto(message_type=[{"name": name}])
    text = base64.b64encode(proto.SerializeToString()).decode()
    try:
        schema = LANGUAGE.parse(text)
    except SchemaError:
        return
    assert LANGUAGE.parse(schema.canonical_text).file == schema.file
    assert schema.message_class() is not None


@pytest.mark.parametrize("name", sorted(well_known.NAMES))
def test_a_well_known_file_can_be_imported(name: str) -> None:
    file = well_known.file(name)
    declared = next(iter(file.types))
    text = (
        f'syntax = "proto3"; import "{name}"; message M {{ {file.package}.{declared.name} x = 1; }}'
    )
    field = LANGUAGE.parse(text).message_class("M").DESCRIPTOR.fields_by_name["x"]
    found = field.message_type or field.enum_type
    assert found.full_name == f"{file.package}.{declared.name}"
    assert found.file.name == name


@pytest.mark.parametrize(
    "name", sorted(name for name in well_known.NAMES if name.startswith("google/type/"))
)
def test_googles_types_are_those_of_its_package(name: str) -> None:
    module = pytest.importorskip(name.removesuffix(".proto").replace("/", ".") + "_pb2")
    expected = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(expected)
    ours = descriptor_pb2.FileDescriptorProto.FromString(well_known.descriptor(name))
    for message in (*ours.message_type, *(n for m in ours.message_type for n in m.nested_type)):
        for field in message.field:
            field.ClearField("json_name")
    assert (list(ours.message_type), list(ours.enum_type)) == (
        list(expected.message_type),
        list(expected.enum_type),
    )


def test_fields_of_the_top_level() -> None:
    schema: ProtobufSchema = LANGUAGE.parse(
        "message M { optional int32 a = 1; oneof o { int32 b = 2; } message N { "
        "optional int32 c = 1; } }",
        reserved_fields=("x",),
    )
    assert [schema.has_top_level_field(name) for name in "abc"] == [True, True, False]
    assert schema.reserved_fields == {"x"}
