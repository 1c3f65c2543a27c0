"""Schemas and columns in Arrow, and back."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.data import builders, logical
from moldau.data.arrow import (
    arrow_array,
    arrow_field,
    arrow_schema,
    arrow_type,
    connect_schema,
    connect_values,
)
from moldau.data.builders import INT32, STRING, array, map_of, struct
from moldau.data.errors import DataError
from moldau.data.schema import Schema, Type
from moldau.data.struct import Struct, as_plain
from support.connect_strategies import schemas, values


@given(schemas())
def test_a_field_gives_the_schema_back(schema: Schema) -> None:
    assert connect_schema(arrow_field("x", schema)) == schema


@given(schemas().flatmap(lambda each: st.tuples(st.just(each), st.lists(values(each), max_size=3))))
def test_a_column_gives_the_values_back(case: tuple[Schema, list[Any]]) -> None:
    schema, given_values = case
    column = arrow_array(schema, given_values)
    assert column.type == arrow_type(schema)
    assert [as_plain(each) for each in connect_values(schema, column)] == [
        as_plain(each) for each in given_values
    ]


def test_a_struct_is_a_schema_of_columns() -> None:
    schema = struct(
        {
            "id": builders.INT64,
            "tags": array(STRING),
            "sizes": map_of(STRING, builders.OPTIONAL_INT32),
            "at": logical.TIMESTAMP.as_optional(),
            "price": logical.decimal(2, precision=9),
        },
        name="com.acme.Order",
        version=3,
    )
    columns = arrow_schema(schema)
    assert columns.field("at").type == pa.timestamp("ms", tz="UTC")
    assert columns.field("price").type == pa.decimal128(9, 2)
    assert (columns.field("id").nullable, columns.field("at").nullable) == (False, True)
    assert connect_schema(columns) == schema
    # Whoever drops a column gets a schema of what is left.
    fewer = connect_schema(columns.remove(0))
    assert [each.name for each in fewer.fields] == ["tags", "sizes", "at", "price"]


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (pa.uint8(), builders.INT16),
        (pa.uint32(), builders.INT64),
        (pa.float16(), builders.FLOAT32),
        (pa.large_string(), STRING),
        (pa.dictionary(pa.int8(), pa.string()), STRING),
        (pa.binary(4), builders.BYTES),
        (pa.date64(), logical.DATE),
        (pa.time64("us"), logical.TIME),
        (pa.timestamp("us"), logical.TIMESTAMP),
        (pa.large_list(pa.int32()), array(builders.OPTIONAL_INT32)),
        (pa.map_(pa.string(), pa.int32()), map_of(STRING, builders.OPTIONAL_INT32)),
    ],
)
def test_types_of_other_writers_are_read(kind: pa.DataType, schema: Schema) -> None:
    assert connect_schema(kind) == schema


@pytest.mark.parametrize("kind", [pa.uint64(), pa.null(), pa.duration("s")], ids=str)
def test_a_type_that_connect_does_not_have_is_refused(kind: pa.DataType) -> None:
    with pytest.raises(DataError, match="Connect has no schema for Arrow's type"):
        connect_schema(kind)


def test_a_value_that_does_not_fit_the_column_is_refused() -> None:
    with pytest.raises(DataError, match="does not fit Arrow's type"):
        arrow_array(logical.decimal(2, precision=3), [Decimal("1234.56")])


def test_microseconds_are_cut_off() -> None:
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, 678999, tzinfo=datetime.UTC)
    (found,) = connect_values(logical.TIMESTAMP, arrow_array(logical.TIMESTAMP, [moment]))
    assert found == moment.replace(microsecond=678000)


def test_after_a_change_the_type_counts_and_not_the_metadata() -> None:
    field = arrow_field("x", INT32.replace(doc="d"))
    assert connect_schema(field).doc == "d"
    assert connect_schema(field.with_type(pa.int64())) == builders.INT64
    assert connect_schema(field.with_nullable(True)).optional


def test_structs_are_rows() -> None:
    schema = struct({"a": INT32})
    column = arrow_array(schema, [Struct(schema, {"a": 1})])
    assert column.to_pylist() == [{"a": 1}]
    assert schema.type is Type.STRUCT
