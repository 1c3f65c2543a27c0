"""ksqlDB's types are read, written and turned into schemas."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.data import builders, logical
from moldau.data.errors import DataError
from moldau.data.schema import Schema, Type
from moldau.data.sql_types import (
    ArrayType,
    BaseType,
    DecimalType,
    MapType,
    SqlType,
    StructType,
    connect_schema,
    parse,
    sql_type,
)
from support.connect_strategies import schemas

DECIMALS = st.integers(1, 76).flatmap(
    lambda precision: st.builds(DecimalType, st.just(precision), st.integers(0, precision))
)
TYPES: st.SearchStrategy[SqlType] = st.recursive(
    st.sampled_from(BaseType) | DECIMALS,
    lambda inner: (
        st.builds(ArrayType, inner)
        | st.builds(MapType, inner, inner)
        | st.dictionaries(st.text(min_size=1, max_size=5), inner, max_size=3).map(
            lambda fields: StructType(tuple(fields.items()))
        )
    ),
    max_leaves=6,
)


@pytest.mark.parametrize("text", ["STRING", "varchar", "VARCHAR(10)", "ARRAY<STRING>"])
def test_texts_have_any_length(text: str) -> None:
    assert str(parse(text)) in ("STRING", "ARRAY<STRING>")


@given(TYPES)
def test_a_type_is_read_as_it_is_written(type_: SqlType) -> None:
    assert parse(str(type_)) == type_


@given(TYPES)
def test_a_type_comes_back_from_its_schema(type_: SqlType) -> None:
    assert sql_type(connect_schema(type_)) == type_


@given(schemas())
def test_every_schema_has_a_type(schema: Schema) -> None:
    type_ = sql_type(schema)
    assert sql_type(connect_schema(type_)) == type_


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("int", "INTEGER"),
        (" varchar ( 20 ) ", "STRING"),
        ("decimal(4,2)", "DECIMAL(4, 2)"),
        ("map<string,array<bigint>>", "MAP<STRING, ARRAY<BIGINT>>"),
        ("struct<a int, `b``c` double>", "STRUCT<`A` INTEGER, `b``c` DOUBLE>"),
        ("STRUCT< >", "STRUCT< >"),
    ],
)
def test_a_type_is_written_as_ksql_writes_it(text: str, written: str) -> None:
    assert str(parse(text)) == written


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected more of the type"),
        ("FLOATY", "Unknown SQL type FLOATY: use one of BOOLEAN"),
        ("ARRAY<INT", "expected more of the type"),
        ("ARRAY<INT>>", "expected the end of the type"),
        ("MAP<INT>", "expected ',', not '>'"),
        ("DECIMAL(2)", "expected ','"),
        ("DECIMAL(2, 3)", "precision must be >= scale"),
        ("DECIMAL(0, 0)", "precision must be >= 1"),
        ("STRUCT<5 INT>", "the name of a field, not '5'"),
        ("STRUCT<a INT, A INT>", "Duplicate field `A`"),
        ("ARRAY<" * 200, "nested more than"),
    ],
)
def test_what_is_no_type_is_refused(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message.replace("(", r"\(")):
        parse(text)


def test_schemas_are_optional_all_the_way_down() -> None:
    schema = connect_schema(parse("STRUCT<a ARRAY<INT>>"))
    inner = schema.fields[0].schema
    assert (schema.optional, inner.optional, inner.items.optional) == (True, True, True)


def test_smaller_numbers_widen() -> None:
    schema = builders.struct(
        {"a": builders.INT8, "b": builders.FLOAT32, "c": logical.decimal(2), "d": logical.DATE}
    )
    assert str(sql_type(schema)) == (
        "STRUCT<`a` INTEGER, `b` DOUBLE, `c` DECIMAL(64, 2), `d` DATE>"
    )
    assert connect_schema(BaseType.BIGINT).type is Type.INT64
