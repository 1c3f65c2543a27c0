"""Formats: rows to bytes and back, by ksqlDB's rules."""

from __future__ import annotations

import json
import struct
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.sql.errors import KsqlException
from moldau.sql.formats import SerdeError, format_for
from moldau.sql.ports import RowSerde
from moldau.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    Column,
    DecimalType,
    MapType,
    SqlType,
    StructType,
)
from support.examples import examples

NONE: frozenset[str] = frozenset()
UNWRAP = frozenset({"UNWRAP_SINGLES"})


class Registry:
    """Schemas in memory."""

    def __init__(self) -> None:
        self.schemas: list[tuple[str, str]] = []
        self.subjects: dict[str, int] = {}

    def register(self, subject: str, schema_type: str, text: str) -> int:
        if (schema_type, text) not in self.schemas:
            self.schemas.append((schema_type, text))
        self.subjects[subject] = self.schemas.index((schema_type, text)) + 1
        return self.subjects[subject]

    def delete(self, subject: str) -> None:
        self.subjects.pop(subject, None)

    def by_id(self, schema_id: int) -> tuple[str, str]:
        return self.schemas[schema_id - 1]

    def latest(self, subject: str) -> tuple[int, str, str]:
        found = self.subjects[subject]
        return (found, *self.by_id(found))


def columns(*types: SqlType) -> list[Column]:
    return [Column(f"C{index}", each) for index, each in enumerate(types)]


def serde(
    name: str,
    of: list[Column],
    *,
    features: frozenset[str] = NONE,
    registry: Registry | None = None,
    **properties: str,
) -> RowSerde:
    known = Registry() if registry is None else registry
    return format_for(name, properties).serde(of, features, known, is_key=False)


ALL = columns(
    BIGINT,
    STRING,
    DOUBLE,
    BOOLEAN,
    DecimalType(6, 2),
    ArrayType(INTEGER),
    MapType(STRING, BIGINT),
    StructType((("X", STRING), ("Y", ArrayType(DOUBLE)))),
    DATE,
    TIME,
    TIMESTAMP,
    BYTES,
)
ROW = (
    1,
    'hé "q" \n\x1f',
    1.5,
    True,
    Decimal("12.30"),
    [1, 2],
    {"k": 5},
    ("x", [1.0]),
    18_000,
    5_000,
    1_600_000_000_123,
    b"\x00ab",
)
WITH_NESTING = ["JSON", "JSON_SR", "AVRO", "PROTOBUF", "PROTOBUF_NOSR"]


@pytest.mark.parametrize("name", WITH_NESTING)
def test_a_row_of_all_types_comes_back(name: str) -> None:
    both = serde(name, ALL)
    assert both.deserialize("t", both.serialize("t", ROW)) == ROW
    assert both.serialize("t", None) is None
    assert both.deserialize("t", None) is None


@pytest.mark.parametrize("name", ["JSON", "JSON_SR", "AVRO"])
def test_nulls_come_back(name: str) -> None:
    both = serde(name, ALL)
    nulls = (None,) * len(ALL)
    assert both.deserialize("t", both.serialize("t", nulls)) == nulls


@pytest.mark.parametrize("name", ["AVRO", "JSON_SR", "PROTOBUF"])
def test_columns_are_inferred_from_what_was_registered(name: str) -> None:
    registry = Registry()
    serde(name, ALL, registry=registry).serialize("t", ROW)
    _, schema_type, text = registry.latest("t-value")
    found = format_for(name, {}).columns_of(schema_type, text, NONE, is_key=False)
    assert found == [(each.name, each.type) for each in ALL]
    assert format_for(name, {}).schema_text(ALL, NONE) == (schema_type, text)


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_VALUES: dict[SqlType, st.SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    INTEGER: st.integers(-(2**31), 2**31 - 1),
    BIGINT: st.integers(-(2**63), 2**63 - 1),
    DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    STRING: _TEXT,
    BYTES: st.binary(max_size=8),
    DATE: st.integers(-100_000, 100_000),
    TIME: st.integers(0, 86_399_999),
    TIMESTAMP: st.integers(-(10**12), 10**13),
}
_TYPES = st.recursive(
    st.sampled_from([*_VALUES]) | st.builds(DecimalType, st.just(8), st.integers(0, 8)),
    lambda inner: st.one_of(
        st.builds(ArrayType, inner),
        st.builds(lambda value: MapType(STRING, value), inner),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda types: StructType(tuple((f"F{i}", each) for i, each in enumerate(types)))
        ),
    ),
    max_leaves=4,
)


def values_of(sql_type: SqlType) -> st.SearchStrategy[Any]:
    match sql_type:
        case DecimalType():
            plain: st.SearchStrategy[Any] = st.integers(0, 10**8 - 1).map(
                lambda n: Decimal(n).scaleb(-sql_type.scale)
            )
        case ArrayType():
            plain = st.lists(values_of(sql_type.item), max_size=3)
        case MapType():
            plain = st.dictionaries(_TEXT, values_of(sql_type.value), max_size=3)
        case StructType():
            plain = st.tuples(*(values_of(each) for _, each in sql_type.fields))
        case _:
            plain = _VALUES[sql_type]
    return st.none() | plain


@pytest.mark.parametrize("name", ["JSON", "JSON_SR", "AVRO"])
@given(data=st.data())
@settings(max_examples=examples(60), deadline=None)
def test_any_row_comes_back(name: str, data: st.DataObject) -> None:
    types = data.draw(st.lists(_TYPES, min_size=1, max_size=3))
    row = tuple(data.draw(values_of(each)) for each in types)
    both = serde(name, columns(*types))
    assert both.deserialize("t", both.serialize("t", row)) == row


@given(
    text=st.none() | _TEXT.filter(bool),
    number=st.none() | _VALUES[DOUBLE],
    delimiter=st.sampled_from([",", "|", "TAB", "SPACE"]),
)
@settings(max_examples=examples(100), deadline=None)
def test_any_line_comes_back(text: str | None, number: float | None, delimiter: str) -> None:
    both = serde("DELIMITED", columns(STRING, DOUBLE, STRING), delimiter=delimiter)
    row = (text, number, text)
    data = both.serialize("t", row)
    if row == (None, None, None):
        assert data is not None
        return
    assert both.deserialize("t", data) == row


# JSON.


def test_json_is_written_as_connect_writes_it() -> None:
    both = serde("JSON", columns(INTEGER, DOUBLE, DecimalType(4, 2), STRING, DOUBLE))
    data = both.serialize("t", (None, 1e10, Decimal("1.10"), "\x01é", float("nan")))
    assert data == '{"C0":null,"C1":1.0E10,"C2":1.10,"C3":"\\u0001é","C4":"NaN"}'.encode()


@pytest.mark.parametrize(
    ("sql_type", "text", "expected"),
    [
        (INTEGER, '"12"', 12),
        (INTEGER, "1.9", 1),
        (INTEGER, "4294967297", 1),
        (BIGINT, "12", 12),
        (DOUBLE, "3", 3.0),
        (DOUBLE, '"1.5"', 1.5),
        (STRING, "1.50", "1.50"),
        (STRING, "true", "true"),
        (STRING, '{"a": [1, 2.50]}', '{"a":[1,2.50]}'),
        (STRING, '["a", 1, null]', "[a, 1, null]"),
        (BYTES, '"YWI="', b"ab"),
        (DecimalType(4, 2), "1.5", Decimal("1.50")),
        (DecimalType(4, 2), '"1.5"', Decimal("1.50")),
        (DATE, '"3"', 3),
        (TIMESTAMP, "3", 3),
        (BOOLEAN, "null", None),
        (ArrayType(STRING), '[1, "a"]', ["1", "a"]),
    ],
)
def test_json_values_convert(sql_type: SqlType, text: str, expected: Any) -> None:
    both = serde("JSON", [Column("A", sql_type)])
    found = both.deserialize("t", f'{{"a": {text}}}'.encode())
    assert found == (expected,)
    assert type(found[0]) is type(expected)


@pytest.mark.parametrize(
    ("sql_type", "text", "reason"),
    [
        (INTEGER, '"x"', "Can't coerce string to type. targetType: INTEGER, path: $.A"),
        (INTEGER, "[1]", "sourceType: ArrayNode, requiredType: INTEGER, path: $.A"),
        (BOOLEAN, '"true"', "sourceType: TextNode, requiredType: BOOLEAN, path: $.A"),
        (ArrayType(INTEGER), "[1, {}]", "requiredType: INTEGER, path: $.A[1]"),
        (MapType(STRING, INTEGER), '{"k": []}', "path: $.A.k.value"),
        (StructType((("B", DATE),)), '{"b": true}', "path: $.A.B"),
        (DecimalType(2, 1), "1.25", "Cannot fit decimal '1.25' into DECIMAL(2, 1)"),
        (TIME, "86400001", "Time values must use number of milliseconds"),
        (BYTES, '"%"', "not a valid Base64"),
    ],
)
def test_json_that_does_not_fit_says_where(sql_type: SqlType, text: str, reason: str) -> None:
    both = serde("JSON", [Column("A", sql_type)])
    with pytest.raises(SerdeError) as caught:
        both.deserialize("t", f'{{"a": {text}}}'.encode())
    assert "Failed to deserialize value from topic: t." in str(caught.value)
    assert reason in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"1", b"null", b"\xff", b'{"A":NaN}'])
def test_what_is_no_json_object_is_an_error(data: bytes) -> None:
    with pytest.raises(SerdeError):
        serde("JSON", [Column("A", INTEGER)]).deserialize("t", data)


def test_names_match_in_their_case_first() -> None:
    both = serde("JSON", [Column("A", INTEGER), Column("b", INTEGER)])
    assert both.deserialize("t", b'{"a":1,"A":2,"b":3}') == (2, 3)
    assert both.deserialize("t", b'{"a":1,"B":3}') == (1, None)


def test_only_texts_name_entries_in_json() -> None:
    with pytest.raises(KsqlException, match="JSON only supports MAP types with STRING keys"):
        serde("JSON", columns(MapType(INTEGER, INTEGER)))


@pytest.mark.parametrize("name", ["JSON", "JSON_SR", "AVRO", "PROTOBUF_NOSR"])
def test_a_single_column_can_stand_alone(name: str) -> None:
    both = serde(
        name,
        columns(ArrayType(STRING)) if "PROTO" not in name else columns(STRING),
        features=UNWRAP,
        **({"unwrapPrimitives": "true"} if "PROTO" in name else {}),
    )
    row = (["a", "b"],) if "PROTO" not in name else ("a",)
    assert both.deserialize("t", both.serialize("t", row)) == row
    assert both.serialize("t", (None,)) is None


# The others.


def test_kafka_writes_primitives() -> None:
    assert serde("KAFKA", columns(INTEGER)).serialize("t", (7,)) == struct.pack(">i", 7)
    assert serde("KAFKA", columns(DOUBLE)).deserialize("t", struct.pack(">d", 1.5)) == (1.5,)
    assert serde("KAFKA", columns(STRING)).deserialize("t", "é".encode()) == ("é",)
    assert serde("KAFKA", []).serialize("t", ()) is None
    with pytest.raises(SerdeError):
        serde("KAFKA", columns(BIGINT)).deserialize("t", b"123")
    with pytest.raises(KsqlException, match="does not support type 'BOOLEAN'"):
        serde("KAFKA", columns(BOOLEAN))
    with pytest.raises(KsqlException, match="only supports a single field"):
        serde("KAFKA", columns(STRING, STRING))


def test_lines_are_quoted_where_commons_csv_quotes() -> None:
    both = serde("DELIMITED", columns(STRING, STRING, BIGINT, DecimalType(4, 2)))
    assert both.serialize("t", ("a,b", 'c"d', -1, Decimal("1.10"))) == b'"a,b","c""d",-1,1.10'
    assert both.serialize("t", (None, "", None, None)) == b",,,"
    assert both.deserialize("t", b"x,,,") == ("x", None, None, None)
    with pytest.raises(SerdeError, match="expected: 4, got: 1"):
        both.deserialize("t", b"x")
    with pytest.raises(KsqlException, match="does not support type 'ARRAY', column: `C0`"):
        serde("DELIMITED", columns(ArrayType(STRING)))


def test_nothing_is_written_without_columns() -> None:
    assert serde("NONE", []).serialize("t", ()) is None
    with pytest.raises(KsqlException, match="can only be used when no columns are defined"):
        serde("NONE", columns(STRING))


@pytest.mark.parametrize(
    ("name", "properties", "reason"),
    [
        ("FANCY", {}, "Unknown format: FANCY"),
        ("JSON", {"delimiter": "|"}, "JSON does not support the following configs: [delimiter]"),
        ("AVRO", {"fullSchemaName": " "}, "fullSchemaName cannot be empty."),
        ("DELIMITED", {"delimiter": "||"}, "Invalid delimiter value: '||'"),
    ],
)
def test_wrong_settings_are_named(name: str, properties: dict[str, str], reason: str) -> None:
    with pytest.raises(KsqlException) as caught:
        format_for(name, properties)
    assert reason in str(caught.value)


def test_features_that_a_format_has_not_got_are_refused() -> None:
    with pytest.raises(KsqlException, match="Unsupported features"):
        serde("PROTOBUF", columns(STRING), features=UNWRAP)


def test_avro_schemas_have_ksqldbs_names() -> None:
    _, text = format_for("AVRO", {}).schema_text(ALL, NONE)
    schema = json.loads(text)
    assert (schema["namespace"], schema["name"]) == (
        "io.confluent.ksql.avro_schemas",
        "KsqlDataSourceSchema",
    )
    kinds = {each["name"]: each["type"] for each in schema["fields"]}
    assert kinds["C7"][1]["name"] == "KsqlDataSourceSchema_C7"
    # Keys of maps may be null in ksqlDB, and so maps are arrays of entries.
    assert kinds["C6"][1]["items"]["connect.internal.type"] == "MapEntry"
    _, named = format_for("AVRO", {"fullSchemaName": "a.B"}).schema_text(columns(STRING), NONE)
    assert json.loads(named)["name"] == "B"


def test_avro_refuses_names_that_avro_has_not_got() -> None:
    with pytest.raises(KsqlException, match="Schema is not compatible with Avro"):
        serde("AVRO", [Column("1X", STRING)])


def test_avro_data_of_other_writers_is_read() -> None:
    registry = Registry()
    text = json.dumps(
        {
            "type": "record",
            "name": "R",
            "fields": [
                {"name": "c0", "type": "int"},
                {"name": "C1", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
                {"name": "c2", "type": ["null", "float"]},
                {"name": "C3", "type": {"type": "map", "values": "int"}},
                {"name": "other", "type": "boolean"},
            ],
        }
    )
    schema_id = registry.register("t-value", "AVRO", text)
    of = columns(BIGINT, STRING, DOUBLE, MapType(STRING, INTEGER), STRING)
    both = serde("AVRO", of, registry=registry)
    payload = b"\x06" + b"\x02" + b"\x02" + struct.pack("<f", 1.5) + b"\x02\x02k\x08\x00" + b"\x01"
    data = b"\x00" + struct.pack(">I", schema_id) + payload
    assert both.deserialize("t", data) == (3, "B", 1.5, {"k": 4}, None)


def test_avro_that_does_not_fit_is_an_error() -> None:
    registry = Registry()
    written = serde("AVRO", columns(STRING), registry=registry).serialize("t", ("x",))
    reader = serde("AVRO", columns(BIGINT), registry=registry)
    with pytest.raises(SerdeError, match="Cannot deserialize type string as type int64"):
        reader.deserialize("t", written)
    with pytest.raises(SerdeError, match="Unknown magic byte"):
        reader.deserialize("t", b"{}")


def test_rows_are_written_with_a_schema_that_is_named_by_its_id() -> None:
    registry = Registry()
    text = json.dumps(
        {
            "type": "record",
            "name": "R",
            "namespace": "n",
            "fields": [
                {"name": "C1", "type": "string"},
                {"name": "C0", "type": "long"},
                {"name": "D", "type": "int", "default": 7},
            ],
        }
    )
    schema_id = registry.register("other", "AVRO", text)
    both = serde("AVRO", columns(BIGINT, STRING), registry=registry, schemaId=str(schema_id))
    data = both.serialize("t", (1, "x"))
    assert data == b"\x00" + struct.pack(">I", schema_id) + b"\x02x" + b"\x02" + b"\x0e"
    assert "t-value" not in registry.subjects
    other = serde("AVRO", columns(BIGINT, STRING, STRING), registry=registry, schemaId="1")
    with pytest.raises(SerdeError, match="misses field with name: C2"):
        other.serialize("t", (1, "x", "y"))


def test_protobuf_has_no_null_but_can_be_given_one() -> None:
    of = columns(BIGINT, STRING, DATE)
    plain = serde("PROTOBUF", of)
    assert plain.deserialize("t", plain.serialize("t", (None, None, None))) == (0, "", None)
    for how in ("optional", "wrapper"):
        both = serde("PROTOBUF", of, nullableRepresentation=how)
        assert both.deserialize("t", both.serialize("t", (None, "", None))) == (None, "", None)


def test_protobuf_reads_any_message_of_a_file() -> None:
    registry = Registry()
    text = 'syntax = "proto3"; package p; message A { int32 x = 1; } message B { int64 c0 = 1; }'
    schema_id = registry.register("t-value", "PROTOBUF", text)
    both = serde("PROTOBUF", columns(BIGINT), registry=registry)
    data = b"\x00" + struct.pack(">I", schema_id) + b"\x02\x02" + b"\x08\x05"
    assert both.deserialize("t", data) == (5,)
    named = format_for("PROTOBUF", {"fullSchemaName": "p.B"})
    assert named.columns_of("PROTOBUF", text, NONE, is_key=False) == [("C0", BIGINT)]
