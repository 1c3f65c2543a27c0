"""Connect's schemas and values as Protobuf, and back."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.data import logical
from moldau.data.builders import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    OPTIONAL_INT32,
    OPTIONAL_STRING,
    STRING,
    array,
    map_of,
    struct,
)
from moldau.data.errors import DataError, OptionError
from moldau.data.protobuf import ProtobufLanguage, ProtobufSchema
from moldau.data.protobuf.connect import ProtobufData, ProtobufDataOptions
from moldau.data.schema import Schema, Type
from moldau.data.schema_language import SchemaError
from moldau.data.struct import Struct, as_plain
from support.examples import examples

LANGUAGE = ProtobufLanguage()
DATA = ProtobufData()
TAG = "io.confluent.connect.protobuf.Tag"
ENUM = "io.confluent.connect.protobuf.Enum"
UNION = "io.confluent.connect.protobuf.Union."

SHIRT = Schema(
    type=Type.STRING,
    name="shop.Size",
    parameters={ENUM: "Size", f"{ENUM}.SMALL": "0", f"{ENUM}.LARGE": "5"},
)
EVERYTHING = struct(
    {
        "byte": INT8,
        "short": INT16,
        "number": INT32,
        "long": INT64,
        "float": FLOAT32,
        "double": FLOAT64,
        "flag": BOOLEAN,
        "text": STRING,
        "data": BYTES,
        "price": logical.decimal(2, precision=10),
        "day": logical.DATE,
        "at": logical.TIME,
        "moment": logical.TIMESTAMP,
        "tags": array(STRING),
        "counts": map_of(STRING, INT64),
        "size": SHIRT,
        "inner": struct({"x": OPTIONAL_INT32}, name="shop.Inner"),
        "inners": array(struct({"y": STRING}, name="Line")),
    },
    name="shop.Everything",
)
TEXT = """\
syntax = "proto3";
package shop;

import "confluent/type/decimal.proto";
import "google/type/date.proto";
import "google/type/timeofday.proto";
import "google/protobuf/timestamp.proto";

message Everything {
  int32 byte = 1 [(confluent.field_meta) = {
    params: [
      {
        key: "connect.type",
        value: "int8"
      }
    ]
  }];
  int32 short = 2 [(confluent.field_meta) = {
    params: [
      {
        key: "connect.type",
        value: "int16"
      }
    ]
  }];
  int32 number = 3;
  int64 long = 4;
  float float = 5;
  double double = 6;
  bool flag = 7;
  string text = 8;
  bytes data = 9;
  confluent.type.Decimal price = 10 [(confluent.field_meta) = {
    params: [
      {
        value: "10",
        key: "precision"
      },
      {
        value: "2",
        key: "scale"
      }
    ]
  }];
  google.type.Date day = 11;
  google.type.TimeOfDay at = 12;
  google.protobuf.Timestamp moment = 13;
  repeated string tags = 14;
  repeated ConnectDefault1Entry counts = 15;
  Size size = 16;
  Inner inner = 17;
  repeated Line inners = 18;

  message ConnectDefault1Entry {
    string key = 1;
    int64 value = 2;
  }
  message Inner {
    int32 x = 1;
  }
  message Line {
    string y = 1;
  }
  enum Size {
    SMALL = 0;
    LARGE = 5;
  }
}
"""
VALUES = {
    "byte": -128,
    "short": 32767,
    "number": -5,
    "long": 2**63 - 1,
    "float": 1.5,
    "double": -0.1,
    "flag": True,
    "text": "ä",
    "data": b"\0\xff",
    "price": Decimal("-12.30"),
    "day": datetime.date(1969, 12, 31),
    "at": datetime.time(23, 59, 58, 7000),
    "moment": datetime.datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=datetime.UTC),
    "tags": ["a", ""],
    "counts": {"k": -1},
    "size": "LARGE",
    "inner": {"x": 3},
    "inners": [{"y": "1"}, {"y": ""}],
}


def structure(schema: Schema, value: Any) -> Any:
    """Dicts as structs of the schema."""
    if schema.type is Type.STRUCT and isinstance(value, dict):
        fields = {field.name: field.schema for field in schema.fields}
        return Struct(schema, {name: structure(fields[name], each) for name, each in value.items()})
    if schema.type is Type.ARRAY:
        return [structure(schema.items, each) for each in value]
    return value


def round_trip(data: ProtobufData, schema: Schema, value: Any) -> Any:
    written, message = data.from_connect(schema, structure(schema, value))
    # Through bytes, and through the text that a registry would store.
    again = LANGUAGE.parse(written.canonical_text)
    read = again.message_class(written.name).FromString(message.SerializeToString())
    schema_again = ProtobufSchema(again.file, {}, name=written.name)
    return as_plain(data.to_connect(schema_again, read).value)


def test_the_schema_of_everything() -> None:
    assert DATA.from_connect_schema(EVERYTHING).canonical_text == TEXT


def test_the_values_of_everything() -> None:
    assert round_trip(DATA, EVERYTHING, VALUES) == VALUES


def test_what_protobuf_does_not_say_comes_back_from_the_text() -> None:
    schema = DATA.to_connect_schema(LANGUAGE.parse(TEXT))

    def of(name: str) -> Schema:
        field = schema.field(name)
        assert field is not None
        return field.schema

    assert (of("byte").type, of("short").type) == (Type.INT8, Type.INT16)
    assert of("price") == logical.decimal(2, precision=10).replace(
        optional=True,
        parameters={"scale": "2", "connect.decimal.precision": "10", TAG: "10"},
    )
    assert of("size").parameters == {**SHIRT.parameters, TAG: "16"}


def test_messages_are_those_that_googles_classes_read() -> None:
    from google.protobuf import timestamp_pb2
    from google.type import date_pb2, timeofday_pb2

    _, message = DATA.from_connect(EVERYTHING, structure(EVERYTHING, VALUES))
    day = date_pb2.Date.FromString(message.day.SerializeToString())
    at = timeofday_pb2.TimeOfDay.FromString(message.at.SerializeToString())
    moment = timestamp_pb2.Timestamp.FromString(message.moment.SerializeToString())
    assert (day.year, day.month, day.day) == (1969, 12, 31)
    assert (at.hours, at.minutes, at.seconds, at.nanos) == (23, 59, 58, 7_000_000)
    assert moment.ToMilliseconds() == -1
    price = message.price
    assert (price.value, price.precision, price.scale) == (b"\xfb\x32", 4, 2)


READ = """
syntax = "proto3"; package p;
import "google/protobuf/wrappers.proto"; import "google/protobuf/timestamp.proto";
message M {
  uint32 small = 1; uint64 large = 2; sint32 zigzag = 3; fixed64 fixed = 4;
  oneof choice { string name = 5; N n = 6; google.protobuf.Int32Value wrapped = 7; }
  optional int32 maybe = 8; map<string, N> by_name = 9; repeated E es = 10; E e = 11;
  google.protobuf.StringValue value = 12; N inner = 13;
  oneof second { int32 a = 14; }
}
message N { int32 x = 1; }
enum E { ZERO = 0; ONE = 1; }
"""


def connect(parameters: dict[str, str] | None = None, tag: int = 0, **changes: Any) -> Any:
    attributes = {"optional": True, **changes}
    return Schema(parameters={**(parameters or {}), TAG: str(tag)}, **attributes)


def test_the_connect_schema_of_a_message() -> None:
    kind = "io.confluent.connect.protobuf.Type"
    enum = {ENUM: "E", f"{ENUM}.ZERO": "0", f"{ENUM}.ONE": "1"}

    def inner(tag: int) -> Schema:
        return struct(
            {"x": connect(tag=1, type=Type.INT32)},
            name="N", optional=True, parameters={TAG: str(tag)},
        )  # fmt: skip

    def wrapper(name: str, type_: Type, tag: int) -> Schema:
        return struct(
            {"value": connect(tag=1, type=type_)},
            name=name, optional=True, parameters={TAG: str(tag)},
        )  # fmt: skip

    expected = struct(
        {
            "choice_0": struct(
                {
                    "name": connect(tag=5, type=Type.STRING),
                    "n": inner(6),
                    "wrapped": wrapper("Int32Value", Type.INT32, 7),
                },
                name=f"{UNION}choice",
                optional=True,
            ),
            "second_1": struct(
                {"a": connect(tag=14, type=Type.INT32)}, name=f"{UNION}second", optional=True
            ),
            "small": connect({kind: "uint32"}, 1, type=Type.INT64),
            "large": connect({kind: "uint64"}, 2, type=Type.INT64),
            "zigzag": connect({kind: "sint32"}, 3, type=Type.INT32),
            "fixed": connect({kind: "fixed64"}, 4, type=Type.INT64),
            "maybe": connect(tag=8, type=Type.INT32),
            "by_name": connect(
                tag=9,
                type=Type.MAP,
                name="by_name",
                key_schema=connect(tag=1, type=Type.STRING),
                value_schema=inner(2),
            ),
            "es": connect(
                tag=10,
                type=Type.ARRAY,
                value_schema=Schema(type=Type.STRING, name="E", parameters=enum, optional=True),
            ),
            "e": connect(enum, 11, type=Type.STRING, name="E"),
            "value": wrapper("StringValue", Type.STRING, 12),
            "inner": inner(13),
        },
        name="M",
        version=3,
    )
    assert DATA.to_connect_schema(LANGUAGE.parse(READ), version=3) == expected


def values_of(options: ProtobufDataOptions, **fields: Any) -> dict[str, Any]:
    schema = LANGUAGE.parse(READ)
    message = schema.message_class()(**fields)
    plain: dict[str, Any] = as_plain(ProtobufData(options).to_connect(schema, message).value)
    return plain


def test_the_connect_values_of_a_message() -> None:
    values = values_of(
        ProtobufDataOptions(),
        small=2**32 - 1, large=2**64 - 1, zigzag=-1, n={"x": 1}, es=[1, 0, 7],
        by_name={"k": {"x": 2}}, value={"value": "v"},
    )  # fmt: skip
    assert values == {
        "choice_0": {"name": None, "n": {"x": 1}, "wrapped": None},
        "second_1": None,
        "small": 2**32 - 1,
        "large": -1,
        "zigzag": -1,
        "fixed": 0,
        "maybe": None,
        "by_name": {"k": {"x": 2}},
        "es": ["ONE", "ZERO", "UNKNOWN_ENUM_VALUE_E_7"],
        "e": "ZERO",
        "value": {"value": "v"},
        "inner": None,
    }


@pytest.mark.parametrize(
    ("option", "name", "expected"),
    [
        ("int_for_enums", "es", [1]),
        ("flatten_unions", "name", "n"),
        ("wrapper_for_nullables", "value", "v"),
        ("generate_struct_for_nulls", "inner", {"x": 0}),
    ],
)
def test_an_option_changes_the_value(option: str, name: str, expected: Any) -> None:
    values = values_of(
        ProtobufDataOptions(**{option: True}), es=[1], name="n", value={"value": "v"}
    )
    assert values[name] == expected


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("enhanced_protobuf_schema_support", ["p.M", "choice_0", f"{UNION}p.M.choice", True]),
        ("generate_index_for_unions", ["M", "choice", f"{UNION}choice", True]),
        ("generalized_sum_type_support", ["M", "choice_0", "choice", True]),
        ("optional_for_nullables", ["M", "choice_0", f"{UNION}choice", False]),
        ("wrapper_for_nullables", ["M", "choice_0", f"{UNION}choice", False]),
    ],
)
def test_an_option_changes_the_schema(option: str, expected: list[Any]) -> None:
    default = getattr(ProtobufDataOptions(), option)
    data = ProtobufData(ProtobufDataOptions(**{option: not default}))
    schema = data.to_connect_schema(LANGUAGE.parse(READ))
    small = schema.field("small")
    assert small is not None
    union = schema.fields[0]
    assert [schema.name, union.name, union.schema.name, small.schema.optional] == expected


def test_a_union_becomes_a_oneof() -> None:
    schema = struct(
        {
            "id": INT32.replace(parameters={TAG: "1"}),
            "choice_0": struct(
                {
                    "name": OPTIONAL_STRING.replace(parameters={TAG: "5"}),
                    "number": OPTIONAL_INT32.replace(parameters={TAG: "6"}),
                },
                name=f"{UNION}choice",
                optional=True,
            ),
        },
        name="M",
    )
    written = DATA.from_connect_schema(schema)
    assert written.canonical_text == (
        'syntax = "proto3";\n\nmessage M {\n  int32 id = 1;\n\n'
        "  oneof choice {\n    string name = 5;\n    int32 number = 6;\n  }\n}\n"
    )
    values = {"id": 1, "choice_0": {"name": None, "number": 7}}
    assert round_trip(DATA, schema, {"id": 1, "choice_0": {"number": 7}}) == values
    with pytest.raises(DataError, match="Cannot find non-null field"):
        DATA.from_connect(schema, structure(schema, {"id": 1, "choice_0": {}}))


@pytest.mark.parametrize(
    ("schema", "value", "name"),
    [
        (INT8, -3, "google.protobuf.Int32Value"),
        (INT64, 2**62, "google.protobuf.Int64Value"),
        (FLOAT64, 0.5, "google.protobuf.DoubleValue"),
        (BOOLEAN, True, "google.protobuf.BoolValue"),
        (STRING, "s", "google.protobuf.StringValue"),
        (BYTES, b"b", "google.protobuf.BytesValue"),
    ],
)
def test_a_primitive_alone_is_a_wrapper(schema: Schema, value: Any, name: str) -> None:
    written, message = DATA.from_connect(schema, value)
    assert written.name == name
    assert written.message_name(written.message_indexes()) == name
    read = DATA.to_connect(written, type(message).FromString(message.SerializeToString()))
    assert read.value == value


def test_wrappers_for_nullables() -> None:
    data = ProtobufData(ProtobufDataOptions(wrapper_for_nullables=True))
    schema = struct({"a": OPTIONAL_INT32, "b": INT32, "c": OPTIONAL_STRING}, name="M")
    text = data.from_connect_schema(schema).canonical_text
    assert "  google.protobuf.Int32Value a = 1;\n  int32 b = 2;\n" in text
    assert round_trip(data, schema, {"b": 1, "c": ""}) == {"a": None, "b": 1, "c": ""}
    assert round_trip(data, schema, {"a": 0, "b": 1}) == {"a": 0, "b": 1, "c": None}


def test_optional_for_nullables() -> None:
    data = ProtobufData(ProtobufDataOptions(optional_for_nullables=True))
    schema = struct({"a": OPTIONAL_INT32, "b": INT32}, name="M")
    assert "  optional int32 a = 1;\n  int32 b = 2;\n" in (
        data.from_connect_schema(schema).canonical_text
    )
    assert round_trip(data, schema, {"b": 0}) == {"a": None, "b": 0}
    assert round_trip(data, schema, {"a": 0, "b": 0}) == {"a": 0, "b": 0}


def test_names_are_scrubbed_if_asked() -> None:
    schema = struct({"a-b": INT32, "1st": STRING}, name="com-x.My Type")
    with pytest.raises(DataError, match="has no Protobuf schema"):
        DATA.from_connect_schema(schema)
    data = ProtobufData(ProtobufDataOptions(scrub_invalid_names=True))
    text = data.from_connect_schema(schema).canonical_text
    assert text.startswith('syntax = "proto3";\npackage com_x;\n\nmessage My_Type {\n')
    assert "int32 a_b = 1;\n  string x1st = 2;" in text


def test_proto2_and_what_it_leaves_out() -> None:
    schema = LANGUAGE.parse(
        "message M { optional int32 a = 1; required int32 b = 2; optional string c = 3 "
        '[default = "d"]; }'
    )
    message = schema.message_class()(b=2)
    assert as_plain(DATA.to_connect(schema, message).value) == {"a": None, "b": 2, "c": None}
    data = ProtobufData(ProtobufDataOptions(optional_for_proto2=False))
    assert as_plain(data.to_connect(schema, message).value) == {"a": 0, "b": 2, "c": "d"}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('syntax = "proto3"; message M { repeated M children = 1; }', "M holds itself"),
        ("message M { optional group G = 1 {} }", "is a group"),
    ],
)
def test_a_message_without_a_connect_schema(text: str, error: str) -> None:
    with pytest.raises(DataError, match=error):
        DATA.to_connect_schema(LANGUAGE.parse(text))


@pytest.mark.parametrize(
    ("schema", "value", "error"),
    [
        (array(INT32), [1], "Unsupported root schema of type ARRAY"),
        (struct({"a": array(array(INT32))}, name="M"), {}, "Array cannot be nested"),
        (struct({"e": SHIRT}, name="M"), {"e": "HUGE"}, "HUGE is no value of enum"),
        (struct({"a": INT32.replace(parameters={TAG: "0"})}, name="M"), {}, "no Protobuf schema"),
    ],
)
def test_what_protobuf_cannot_say(schema: Schema, value: Any, error: str) -> None:
    with pytest.raises(DataError, match=error):
        DATA.from_connect(schema, structure(schema, value))


def test_structs_that_are_used_everywhere() -> None:
    """Both messages of a level use both of the next one: 2**30 paths, but 60 messages."""
    texts = [
        f"message {name}{n} {{ A{n + 1} a = 1; B{n + 1} b = 2; }}"
        for n in range(30)
        for name in "AB"
    ]
    last = "message A30 {} message B30 {}"
    schema = LANGUAGE.parse(f'syntax = "proto3"; {" ".join(texts)} {last}')
    message = schema.message_class()(a={"b": {}})
    value = DATA.to_connect(schema, message).value
    assert value["a"]["a"] is None
    assert value["a"]["b"]["a"] is None
    with pytest.raises(DataError, match="more than 10000 messages"):
        DATA.from_connect_schema(value.schema)


def test_structs_that_are_too_deep() -> None:
    texts = [f"message L{n} {{ L{n + 1} a = 1; }}" for n in range(2_000)]
    schema = LANGUAGE.parse(f'syntax = "proto3"; {" ".join(texts)} message L2000 {{}}')
    with pytest.raises(SchemaError, match="nested too deeply"):
        DATA.to_connect_schema(schema)
    deep = INT32
    for n in range(200):
        deep = struct({"a": deep}, name=f"S{n}")
    with pytest.raises(DataError, match=r"nested (too deeply|more than)|no Protobuf schema"):
        DATA.from_connect_schema(deep)


def test_wrappers_in_a_oneof_stay_wrappers() -> None:
    text = """syntax = "proto3"; import "google/protobuf/wrappers.proto";
        message M { oneof o { google.protobuf.StringValue a = 1; string b = 2; } }"""
    data = ProtobufData(ProtobufDataOptions(wrapper_for_nullables=True))
    schema = LANGUAGE.parse(text)
    for fields in ({"a": {"value": "x"}}, {"b": "x"}, {"a": {}}):
        message = schema.message_class()(**fields)
        read = data.to_connect(schema, message)
        assert read.schema is not None
        _, written = data.from_connect(read.schema, read.value)
        assert written.SerializeToString() == message.SerializeToString()


def test_dates_and_times_that_do_not_exist() -> None:
    schema = LANGUAGE.parse(
        'syntax = "proto3"; import "google/type/date.proto"; import "google/type/timeofday.proto"; '
        "message M { google.type.Date d = 1; google.type.TimeOfDay t = 2; }"
    )
    for fields in ({"d": {"year": 2023, "month": 2, "day": 29}}, {"t": {"hours": 24}}):
        with pytest.raises(DataError, match=r"No date|No time of day"):
            DATA.to_connect(schema, schema.message_class()(**fields))


def test_options_from_a_configuration() -> None:
    options = ProtobufDataOptions.from_config({"int.for.enums": "TRUE", "other": "x"})
    assert options == ProtobufDataOptions(int_for_enums=True)
    with pytest.raises(OptionError, match=r"int\.for\.enums"):
        ProtobufDataOptions.from_config({"int.for.enums": "maybe"})


PRIMITIVES: list[tuple[Schema, Any]] = [
    (INT8, st.integers(-128, 127)),
    (INT16, st.integers(-(2**15), 2**15 - 1)),
    (INT32, st.integers(-(2**31), 2**31 - 1)),
    (INT64, st.integers(-(2**63), 2**63 - 1)),
    (FLOAT32, st.floats(width=32, allow_nan=False)),
    (FLOAT64, st.floats(allow_nan=False)),
    (BOOLEAN, st.booleans()),
    (STRING, st.text(st.characters(codec="utf-8"), max_size=8)),
    (BYTES, st.binary(max_size=8)),
    (logical.decimal(3), st.decimals(-(10**12), 10**12, places=3, allow_nan=False)),
    (logical.DATE, st.dates()),
    (logical.TIMESTAMP, st.integers(-(10**13), 10**14).map(logical.timestamp_from_ms)),
    (logical.TIME, st.integers(0, 86_399_999).map(logical.time_from_ms)),
]
KEYS = [pair for pair in PRIMITIVES if pair[0].type in (Type.INT32, Type.INT64, Type.STRING)]


@st.composite
def typed_values(draw: Any, depth: int = 0) -> tuple[Schema, Any]:
    kind = draw(st.integers(0, 3 if depth < 2 else 0))
    schema, values = draw(st.sampled_from(PRIMITIVES))
    if kind == 0:
        return schema, draw(values)
    if kind == 1:
        return array(schema), draw(st.lists(values, max_size=3))
    if kind == 2:
        keys, key_values = draw(st.sampled_from(KEYS))
        return map_of(keys, schema), draw(st.dictionaries(key_values, values, max_size=3))
    return draw(structs(depth + 1))


@st.composite
def structs(draw: Any, depth: int = 0) -> tuple[Schema, Any]:
    pairs = draw(st.lists(typed_values(depth), min_size=1, max_size=5))
    schema = struct({f"f{index}": schema for index, (schema, _) in enumerate(pairs)})
    return schema, {f"f{index}": value for index, (_, value) in enumerate(pairs)}


@given(structs())
@settings(deadline=None, max_examples=examples(60))
def test_values_come_back(pair: tuple[Schema, Any]) -> None:
    schema, value = pair
    assert round_trip(DATA, schema, value) == value
