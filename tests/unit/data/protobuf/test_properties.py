"""Rules that hold for every file."""

from __future__ import annotations

import base64
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.data.protobuf import ProtobufLanguage, decode_path, encode_path
from moldau.data.protobuf.lexer import TokenKind, Tokens
from moldau.data.protobuf.model import (
    SCALARS,
    Aggregate,
    Enum,
    EnumValue,
    Field,
    Items,
    Label,
    Message,
    OneOf,
    Option,
    ProtoFile,
    Range,
    Reserved,
    Text,
    Value,
    Word,
    WordKind,
)
from moldau.data.protobuf.parser import parse_text
from moldau.data.protobuf.printer import canonical, quoted
from moldau.data.schema_language import SchemaError
from support.examples import examples
from support.proto_corpus import TEXTS

LANGUAGE = ProtobufLanguage()
_MARKS = ("", "{", "}", ";", '"', "\\", "[", "=", "-", "1", ".", "<")

names = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name not in ("true", "false")
)
type_names = st.from_regex(r"[A-Z][A-Za-z0-9]{0,5}", fullmatch=True)
values: st.SearchStrategy[Value] = st.recursive(
    st.one_of(
        st.binary(max_size=12).map(Text),
        st.text(max_size=12).filter(lambda text: text.isprintable()).map(Text.of),
        st.integers(-(2**70), 2**70).map(lambda number: Word(WordKind.NUMBER, str(number))),
        st.floats(allow_nan=False, allow_infinity=False).map(
            lambda number: Word(WordKind.NUMBER, repr(number))
        ),
        names.map(lambda name: Word(WordKind.ENUM, name)),
        st.sampled_from(["true", "false"]).map(lambda word: Word(WordKind.BOOLEAN, word)),
    ),
    lambda inner: st.one_of(
        st.dictionaries(st.one_of(names, names.map("[x.{}]".format)), inner, max_size=3).map(
            lambda fields: Aggregate(tuple(fields.items()))
        ),
        # A list in a list is no value, and a list of one is its element in normal form.
        st.lists(inner.filter(lambda value: not isinstance(value, Items)), max_size=3).map(
            lambda items: Items(tuple(items))
        ),
    ),
    max_leaves=5,
)


@st.composite
def options(draw: Any) -> Option:
    value: Value | Option = draw(values)
    for name in draw(st.lists(names, max_size=2)):
        value = Option(name, value)
        value = Option(f"custom.{draw(names)}", value, custom=True)
    return value if isinstance(value, Option) else Option(draw(names), value)


@st.composite
def fields(draw: Any, number: int, labels: Any) -> Field:
    scalar = draw(st.sampled_from(sorted(SCALARS)))
    is_map = draw(st.booleans()) and None in labels
    return Field(
        None if is_map else draw(st.sampled_from(labels)),
        f"map<string, {scalar}>" if is_map else scalar,
        f"f{number}",
        number,
        None,
        draw(st.none() | st.text(max_size=5)),
        tuple(
            option
            for option in draw(st.lists(options(), max_size=2))
            if option.custom or option.name not in ("default", "json_name")
        ),
    )


@st.composite
def messages(draw: Any, depth: int = 0) -> Message:
    count = draw(st.integers(0, 4))
    inner = st.lists(type_names, unique=True, max_size=2) if depth < 2 else st.just([])
    nested: list[Message | Enum] = []
    for name in draw(inner):
        message = draw(messages(depth + 1))
        nested.append(Message(name, **{part: getattr(message, part) for part in _PARTS}))
    in_oneof = draw(st.integers(0, 2))
    return Message(
        "M",
        fields=tuple(
            draw(fields(number + 1, [None, Label.OPTIONAL, Label.REPEATED]))
            for number in range(count)
        ),
        oneofs=(
            OneOf(
                "choice",
                tuple(
                    Field(None, "int32", f"o{number}", 100 + number) for number in range(in_oneof)
                ),
                options=(draw(options()),),
            ),
        )
        if in_oneof
        else (),
        types=(*nested, Enum("Last", (EnumValue("ZERO", 0), EnumValue("ONE", -5)))),
        reserved=(Reserved((draw(st.integers(200, 300)), Range(400, 500), draw(names))),),
        options=tuple(draw(st.lists(options(), max_size=2))),
    )


_PARTS = ("fields", "oneofs", "types", "reserved", "options")
files = st.builds(
    lambda package, message, opts: ProtoFile(
        syntax="proto3", package=package, types=(message,), options=tuple(opts)
    ),
    st.sampled_from(["", "a", "a.b_c.d"]),
    messages(),
    st.lists(options(), max_size=2),
)


@given(files)
@settings(deadline=None, max_examples=40)
def test_the_canonical_text_of_a_file_is_the_file(file: ProtoFile) -> None:
    text = canonical(file)
    assert parse_text(text) == file
    normal = LANGUAGE.parse(text).normalized()
    assert normal.normalized().canonical_text == normal.canonical_text
    assert normal.differences(LANGUAGE.parse(text)) == []


@given(st.binary())
def test_a_quoted_string_is_its_bytes(data: bytes) -> None:
    tokens = Tokens(quoted(data))
    token = tokens.take()
    assert token.kind is TokenKind.STRING
    assert tokens.bytes_of(token) == data


@given(st.data())
@settings(deadline=None, max_examples=examples(300))
def test_a_damaged_text_is_read_or_refused(data: Any) -> None:
    """Whatever is cut out, doubled or replaced: nothing but SchemaError is raised."""
    text = data.draw(st.sampled_from(sorted(TEXTS.values())))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 30)))
        put = data.draw(st.sampled_from([*_MARKS, text[start:end] * 2]))
        text = text[:start] + put + text[end:]
    try:
        schema = LANGUAGE.parse(text)
        _ = schema.canonical_text, schema.normalized(), schema.name
        _ = schema.compiled
    except SchemaError:
        pass


@given(st.binary(max_size=60))
@settings(deadline=None, max_examples=examples(300))
def test_any_bytes_in_base64_are_read_or_refused(data: bytes) -> None:
    try:
        schema = LANGUAGE.parse(base64.b64encode(data).decode())
        _ = schema.canonical_text, schema.normalized()
        _ = schema.compiled
    except SchemaError:
        pass


@given(st.data())
@settings(deadline=None, max_examples=examples(200))
def test_a_damaged_descriptor_is_read_or_refused(data: Any) -> None:
    """Bytes are changed anywhere: in names, numbers, lengths."""
    name = data.draw(st.sampled_from(["scopes.proto", "enums.proto", "groups.proto", "maps.proto"]))
    serialized = bytearray(base64.b64decode(LANGUAGE.parse(TEXTS[name]).formatted("serialized")))
    for _ in range(data.draw(st.integers(1, 4))):
        serialized[data.draw(st.integers(0, len(serialized) - 1))] = data.draw(st.integers(0, 255))
    try:
        schema = LANGUAGE.parse(base64.b64encode(serialized).decode())
        assert LANGUAGE.parse(schema.canonical_text).canonical_text == schema.canonical_text
        _ = schema.compiled
    except SchemaError:
        pass


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=10))
def test_a_path_is_read_as_it_was_written(path: list[int]) -> None:
    encoded = encode_path(path)
    assert decode_path(encoded) == (tuple(path), len(encoded))
