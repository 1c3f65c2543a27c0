"""What is read, what is refused, and where."""

from __future__ import annotations

import time

import pytest

from moldau.data.protobuf import ProtobufLanguage
from moldau.data.protobuf.lexer import TEXT_SIZE_MAX
from moldau.data.protobuf.model import Text
from moldau.data.protobuf.option_parser import DEPTH_MAX
from moldau.data.protobuf.parser import parse_text
from moldau.data.schema_language import ResolvedReference, SchemaError

LANGUAGE = ProtobufLanguage()
PROTO3 = 'syntax = "proto3";\n'


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("this is not valid protobuf", ":1:1: unexpected label: this"),
        (PROTO3 + "message M {\n  int32 a = 8.01;\n}", ":3:13: expected an integer but was '8.01'"),
        (PROTO3 + "message M {", ":2:12: expected a field or a declaration but was the end"),
        (PROTO3 + "message M { int32 a = 1 }", ":2:25: expected ';' but was '}'"),
        (PROTO3 + "message M { required int32 a = 1; }", ":2:13: 'required' label forbidden"),
        ("message M {\n\n\t int32 a = 1; }", ":3:3: unexpected label: int32"),
        ('syntax = "proto4";', ":1:10: unexpected syntax: proto4"),
        ('package a; syntax = "proto3";', ":1:12: 'syntax' element must be the first"),
        (PROTO3 + 'syntax = "proto3";', ":2:1: too many syntax definitions"),
        (PROTO3 + "message M { map<float, int32> a = 1; }", ":2:17: map key must be non-byte"),
        (
            PROTO3 + "message M { repeated map<int32, int32> a = 1; }",
            "'map' type cannot have label",
        ),
        (PROTO3 + "message M { oneof o { repeated int32 a = 1; } }", ":2:23: fields of a oneof"),
        (PROTO3 + "message M { oneof o { map<int32, int32> a = 1; } }", "cannot be in a oneof"),
        (PROTO3 + "message A {} message A {}", ":2:14: A is already defined"),
        (PROTO3 + "service S { rpc R(A) return (A); }", ":2:22: expected 'returns'"),
        (PROTO3 + "/* never", ":2:1: unterminated comment"),
        (PROTO3 + 'import "never\n";', ":2:8: unterminated string"),
        (PROTO3 + "import 5;", "expected the path of a file in quotes but was '5'"),
        (PROTO3 + r'import "\q";', ":2:8: invalid escape sequence"),
        (PROTO3 + "message M { int32 ä = 1; }", ":2:19: unexpected character 'ä'"),
        (
            PROTO3 + "message M { int32 a = 99999999999; }",
            "expected an integer but was 99999999999",
        ),
        (PROTO3 + "message M { int32 a = 1 [x = ]; }", ":2:30: expected a value but was ']'"),
        (PROTO3 + "message M { int32 a = 1 []; }", ":2:26: expected the name of an option"),
        (PROTO3 + "option a = { b c };", ":2:16: expected ':' but was 'c'"),
        (PROTO3 + "enum E { A = 1; B }", "expected '=' but was '}'"),
        ("\ud800", "not valid Unicode"),
        ("edition = 'next';", "unexpected edition: next"),
    ],
)
def test_a_text_that_is_refused(text: str, error: str) -> None:
    with pytest.raises(SchemaError) as raised:
        LANGUAGE.parse(text)
    assert error in str(raised.value)
    assert str(raised.value).startswith("Could not parse Protobuf - ")


def test_a_type_that_nobody_declares() -> None:
    with pytest.raises(SchemaError, match="Could not resolve type: Missing"):
        LANGUAGE.parse(PROTO3 + "message M { Missing m = 1; }")
    with pytest.raises(SchemaError, match=r"Could not resolve type: other\.Missing"):
        LANGUAGE.parse(PROTO3 + "message M { map<string, other.Missing> m = 1; }")


def test_an_import_that_nobody_has_is_accepted_as_in_confluents_registry() -> None:
    schema = LANGUAGE.parse(PROTO3 + 'import "nobody/has.proto"; message M {}')
    assert 'import "nobody/has.proto";' in schema.canonical_text
    assert schema.message_class("M")() is not None


@pytest.mark.parametrize(
    ("literal", "data"),
    [
        (r'"\a\b\f\n\r\t\v\\\'\"\?"', b"\a\b\f\n\r\t\v\\'\"?"),
        (r'"\1\12\1234"', b"\1\n\1234"),
        (r"'\x1\X41\xfF'", b"\x01A\xff"),
        (r'"\u00e4\U0001F600"', "ä😀".encode()),
        ('"a" \'b\'\n"c"', b"abc"),
        ('"ä"', "ä".encode()),
        ('"it\'s"', b"it's"),
    ],
)
def test_quoted_literals(literal: str, data: bytes) -> None:
    option = parse_text(f"option x = {literal};").options[0]
    assert option.value == Text(data)


# Hostile texts: refused or read, in bounded time.


def nested_messages(depth: int) -> str:
    return PROTO3 + "message M { " * depth + "}" * depth


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(nested_messages(DEPTH_MAX + 1), id="messages"),
        pytest.param(nested_messages(100_000), id="many messages"),
        pytest.param("option a = " + "{ a: " * 50_000, id="aggregates"),
        pytest.param("option a = { a: " + "[" * 50_000, id="lists"),
        pytest.param("option a = { a < " + "a < " * 50_000, id="aggregates in angle brackets"),
        pytest.param("option " + "a.(b)." * 50_000 + "c = 1;", id="parts of a name"),
        pytest.param("message M { " + "optional group G = 1 { " * 10_000, id="groups"),
        pytest.param("x" * (TEXT_SIZE_MAX + 1), id="length"),
    ],
)
def test_what_is_too_deep_or_too_long_is_refused(text: str) -> None:
    begin = time.process_time()
    with pytest.raises(SchemaError):
        LANGUAGE.parse(text)
    assert time.process_time() - begin < 5


def test_the_deepest_message_that_is_read_can_be_used() -> None:
    schema = LANGUAGE.parse(nested_messages(DEPTH_MAX))
    name = ".".join("M" * DEPTH_MAX)
    assert schema.message_class(name).DESCRIPTOR.full_name == name
    assert schema.message_name(schema.message_indexes(name)) == name


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(";" * 500_000, id="nothing, often"),
        pytest.param(PROTO3 + "message M { " + "reserved 1;" * 40_000 + "}", id="reserved"),
        pytest.param('import "' + "\\a" * 200_000 + '";', id="escapes"),
        pytest.param("//" + "/*" * 200_000, id="comments"),
        pytest.param("option x = 1" + "0" * 200_000 + ";", id="digits"),
        pytest.param("option x = 1e999999999;", id="an exponent"),
        pytest.param(
            PROTO3
            + "message M { "
            + "".join(f"int32 f{i} = {i + 1};" for i in range(20_000))
            + "}",
            id="fields",
        ),
    ],
)
def test_a_large_text_is_read_in_bounded_time(text: str) -> None:
    begin = time.process_time()
    LANGUAGE.parse(text).normalized()
    assert time.process_time() - begin < 10


def test_files_that_import_one_another_are_refused() -> None:
    references = [
        ResolvedReference("a.proto", 'import "b.proto"; message A {}'),
        ResolvedReference("b.proto", 'import "a.proto"; message B {}'),
    ]
    schema = LANGUAGE.parse('import "a.proto"; message M {}', references)
    with pytest.raises(SchemaError, match="imports itself"):
        schema.message_class()


def test_words_of_later_editions_are_names_before_them() -> None:
    text = PROTO3 + "message export { export message = 1; local enum = 2; } message local {}"
    fields = LANGUAGE.parse(text).message_class("export").DESCRIPTOR.fields_by_name
    assert fields["message"].message_type.full_name == "export"
    assert fields["enum"].message_type.full_name == "local"
