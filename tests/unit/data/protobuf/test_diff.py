"""Compatibility: the cases of Confluent's registry, its sentences, and bounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moldau.data.protobuf import ProtobufLanguage, ProtobufSchema
from moldau.data.protobuf.java_order import in_order, union_in_order
from moldau.data.schema_language import ResolvedReference, SchemaError

LANGUAGE = ProtobufLanguage()
VECTORS = Path(__file__).parents[5] / "shared" / "vectors" / "schema-registry" / "diff"


def cases() -> list[Any]:
    if not VECTORS.exists():
        return [pytest.param({}, marks=pytest.mark.skip(f"{VECTORS} is missing"))]
    return [
        pytest.param(case, id=f"{file.stem} {index} {case['description']}")
        for file in sorted(VECTORS.glob("protobuf-*.json"))
        for index, case in enumerate(json.loads(file.read_text()))
    ]


def schema_of(case: dict[str, Any], side: str) -> ProtobufSchema:
    references = []
    for dependency in case.get(f"{side}_dependencies", ()):
        text = dependency.get("dependency")
        path = VECTORS / "protos" / dependency["name"]
        # Without a text it is a well-known file, which may be beside the cases.
        if text is None and path.exists():
            text = path.read_text()
        if text is not None:
            references.append(ResolvedReference(dependency["name"], text))
    text = case[f"{side}_schema"]
    if text.endswith(".proto"):
        text = (VECTORS / "protos" / Path(text).name).read_text()
    return LANGUAGE.parse(text, references)


@pytest.mark.parametrize("case", cases())
def test_a_case_of_the_registry(case: dict[str, Any]) -> None:
    original, update = schema_of(case, "original"), schema_of(case, "update")
    found = [f"{each.type.name} {each.path}" for each in update.differences(original)]
    assert found == case["changes"]
    assert (update.incompatibilities(original) == []) == case["compatible"]


def message(fields: str, syntax: str = "proto3") -> ProtobufSchema:
    return LANGUAGE.parse(f'syntax = "{syntax}"; package p; message M {{ {fields} }}')


@pytest.mark.parametrize(
    ("reader", "writer", "sentence"),
    [
        pytest.param(
            message("string a = 1;"),
            message("int32 a = 1;"),
            "FIELD_SCALAR_KIND_CHANGED|The kind of a SCALAR field at path '#/M/1' in the new "
            "schema does not match its kind in the old schema",
            id="another scalar",
        ),
        pytest.param(
            message("M a = 1;"),
            message("int32 a = 1;"),
            "FIELD_KIND_CHANGED|The type of a field at path '#/M/1' in the new schema does not "
            "match the old schema",
            id="another kind",
        ),
        pytest.param(
            message("required int32 a = 1;", "proto2"),
            message("", "proto2"),
            "REQUIRED_FIELD_ADDED|A required field  at path '#/M/1' in the new schema is missing "
            "in the old schema",
            id="required",
        ),
        pytest.param(
            LANGUAGE.parse("package q; message M {}"),
            message(""),
            "PACKAGE_CHANGED|The package at '#/' in the new schema does not match the package in "
            "the old schema",
            id="package",
        ),
        pytest.param(
            LANGUAGE.parse("package p; message N {}"),
            message(""),
            "MESSAGE_REMOVED|The new schema is missing a MESSAGE type at path '#/M' in the old "
            "schema",
            id="message",
        ),
        pytest.param(
            message("oneof o { int32 a = 1; }"),
            message("oneof o { int32 a = 1; int32 b = 2; }"),
            "ONEOF_FIELD_REMOVED|The new schema is missing a oneof field at path '#/M/o/2' in the "
            "old schema",
            id="field of a oneof",
        ),
    ],
)
def test_a_sentence(reader: ProtobufSchema, writer: ProtobufSchema, sentence: str) -> None:
    kind, _, description = sentence.partition("|")
    expected = f'{{errorType:"{kind}", description:"{description}"}}'
    assert reader.incompatibilities(writer) == [expected]
    swapped = reader.incompatibilities(writer, reader_name="old", writer_name="new")
    assert swapped != [expected]
    assert len(swapped) == 1


def test_a_schema_of_another_language_is_incompatible() -> None:
    found = message("").incompatibilities(object())  # type: ignore[arg-type]
    assert found == ["Incompatible because of different schema type"]


def test_what_a_reference_says_is_compared() -> None:
    text = 'syntax = "proto3"; import "r.proto"; message M { map<string, r.R> rs = 1; }'

    def with_reference(field: str) -> ProtobufSchema:
        inner = f'syntax = "proto3"; package r; message R {{ {field} = 1; repeated R more = 2; }}'
        return LANGUAGE.parse(text, [ResolvedReference("r.proto", inner)])

    reader, writer = with_reference("string a"), with_reference("int32 a")
    found = [f"{each.type.name} {each.path}" for each in reader.differences(writer)]
    assert found == ["FIELD_SCALAR_KIND_CHANGED #/R/1", "FIELD_NAMED_TYPE_CHANGED #/M/1"]
    assert with_reference("string a").differences(reader) == []


def test_references_that_lead_everywhere_are_given_up() -> None:
    def diamond(kind: str) -> ProtobufSchema:
        """Each message has two fields of the type of the next: 2**25 ways through."""
        count = 25
        texts = [
            f'syntax = "proto3"; package r{n}; import "{n + 1}.proto"; '
            f"message M {{ r{n + 1}.M a = 1; r{n + 1}.M b = 2; }}"
            for n in range(count)
        ]
        last = f'syntax = "proto3"; package r{count}; message M {{ {kind} x = 1; }}'
        references = [
            ResolvedReference(f"{n}.proto", text) for n, text in enumerate([*texts, last])
        ][::-1]
        return LANGUAGE.parse('import "0.proto"; message T { optional r0.M m = 1; }', references)

    with pytest.raises(SchemaError, match="more than 20000 differences"):
        diamond("int32").incompatibilities(diamond("string"))


def test_a_chain_of_references_that_is_too_long_is_given_up() -> None:
    def chain(kind: str) -> ProtobufSchema:
        count = 2_000
        texts = [f"package r{n}; message M {{ optional r{n + 1}.M a = 1; }}" for n in range(count)]
        texts.append(f"package r{count}; message M {{ optional {kind} x = 1; }}")
        references = [ResolvedReference(f"{n}.proto", text) for n, text in enumerate(texts)]
        return LANGUAGE.parse("message T { optional r0.M m = 1; }", references)

    with pytest.raises(SchemaError, match="too deeply"):
        chain("int32").incompatibilities(chain("string"))


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        # The hash codes are those of Java's documentation: s[0]*31^(n-1) + ... + s[n-1].
        pytest.param(["b", "a", "c"], ["a", "b", "c"], id="97, 98, 99"),
        pytest.param(["Aa", "BB"], ["Aa", "BB"], id="both 2112, in the order they came"),
        pytest.param(["BB", "Aa"], ["BB", "Aa"], id="the other way round"),
        pytest.param([17, 1, 16, 0], [16, 0, 17, 1], id="16 buckets"),
        pytest.param([*range(20, 7, -1)], [*range(8, 21)], id="32 buckets after 12 keys"),
        pytest.param([-1, 0], [-1, 0], id="a negative one: 0xffff0000 after spreading"),
    ],
)
def test_java_order(keys: list[Any], expected: list[Any]) -> None:
    assert in_order(keys) == expected


def test_an_order_that_openjdk_gave() -> None:
    numbers = range(13)
    found = union_in_order([f"Msg{n * 7}" for n in numbers], [f"Other_{n * 3}é" for n in numbers])
    assert ",".join(found) == (
        "Other_33é,Other_21é,Msg70,Other_3é,Msg0,Other_15é,Other_27é,Msg7,Msg21,Msg49,Msg28,"
        "Other_24é,Other_12é,Other_0é,Other_30é,Other_18é,Msg63,Msg42,Other_36é,Other_6é,Msg84,"
        "Msg56,Msg35,Msg77,Other_9é,Msg14"
    )


def test_a_set_begins_with_room_for_the_first_map() -> None:
    # 13 elements need 32 buckets from the start; without them 16 are enough.
    assert union_in_order(range(16, 29), ()) == [*range(16, 29)]
    assert union_in_order((), (16, 0)) == [16, 0]
