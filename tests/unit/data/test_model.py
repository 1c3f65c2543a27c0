"""Schemas are values; values fit them or the message says where they do not."""

from __future__ import annotations

import datetime
import pickle
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.data import logical
from moldau.data.builders import (
    BOOLEAN,
    BYTES,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    array,
    map_of,
    struct,
    with_default,
)
from moldau.data.errors import DataError, SchemaBuilderError, SchemaProjectorError
from moldau.data.projection import project
from moldau.data.schema import Field, Schema, Type
from moldau.data.struct import Struct, validate_value

GROUP = struct({"name": STRING, "size": INT8}, name="Group")
USER = struct({"id": INT64, "groups": array(GROUP), "nick": OPTIONAL_STRING}, name="User")


def test_equal_schemas_are_one_key_of_a_dict() -> None:
    again = struct({"name": STRING, "size": INT8}, name="Group")
    assert again == GROUP
    assert {GROUP: 1}[again] == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "Other"},
        {"version": 2},
        {"doc": "text"},
        {"optional": True},
        {"parameters": {"a": "b"}},
        {"default": Struct(GROUP, {"name": "x", "size": 1})},
        {"fields": (Field("name", 0, STRING),)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_every_attribute_counts_for_equality(changes: dict[str, Any]) -> None:
    assert GROUP.replace(**changes) != GROUP
    assert GROUP.replace(**changes) == GROUP.replace(**changes)


def test_a_schema_is_the_same_after_pickling() -> None:
    schema = struct({"when": logical.TIMESTAMP, "users": array(USER)}, parameters={"a": "b"})
    copied = pickle.loads(pickle.dumps(schema))
    assert copied == schema
    assert hash(copied) == hash(schema)


def test_a_schema_does_not_change_with_the_parameters_it_was_given() -> None:
    given = {"a": "b"}
    schema = Schema(type=Type.STRING, parameters=given)
    given["a"] = "c"
    assert schema.parameters == {"a": "b"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: struct([("a", INT8), ("a", INT8)]), "field name duplication a"),
        (lambda: struct({"": INT8}), "Field 0 has no name"),
        (lambda: with_default(INT8, 300), r"Invalid default value: .* 300 at \$ does not fit INT8"),
        (lambda: array(INT8, default=["x"]), r"str at \$\[0\]"),
    ],
)
def test_a_schema_that_makes_no_sense_is_refused(make: Any, message: str) -> None:
    with pytest.raises(SchemaBuilderError, match=message):
        make()


def user(**changes: Any) -> Struct:
    group = Struct(GROUP, {"name": "admins", "size": 2})
    return Struct(USER, {"id": 1, "groups": [group], **changes})


def test_a_whole_struct_is_valid() -> None:
    validate_value(USER, user())
    assert user().get("nick") is None
    assert user(nick="x")["nick"] == "x"
    assert user().as_dict() == {"id": 1, "groups": [{"name": "admins", "size": 2}], "nick": None}
    assert repr(user(nick="x")) == "Struct{id=1,groups=[Struct{name=admins,size=2}],nick=x}"


def test_what_is_missing_deep_inside_is_named_by_its_path() -> None:
    value = Struct.unchecked(USER, [1, [Struct(GROUP, {"size": 1})], None])
    with pytest.raises(DataError, match=r"null used for required \$\.groups\[0\]\.name, .*STRING"):
        value.validate()


def test_a_default_stands_in_for_what_was_not_put() -> None:
    schema = struct({"a": with_default(INT32, 5)})
    value = Struct(schema)
    value.validate()
    assert value.get("a") == 5
    assert value.get_without_default("a") is None


def test_an_unknown_field_is_an_error() -> None:
    with pytest.raises(DataError, match="size is not a valid field name"):
        user().get("size")


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (INT8, 128),
        (INT64, -(1 << 63) - 1),
        (INT32, True),
        (INT32, 1.0),
        (FLOAT64, 1),
        (BOOLEAN, 1),
        (STRING, b"x"),
        (BYTES, "x"),
        (array(INT8), {}),
        (map_of(STRING, INT8), {1: 1}),
        (map_of(STRING, INT8), {"a": None}),
        (GROUP, {"name": "x", "size": 1}),
        (GROUP.as_optional(), Struct(GROUP)),
        (logical.DATE, 5),
        (logical.decimal(2), 1.5),
        (Schema(type=Type.ARRAY), [1]),
    ],
)
def test_a_value_of_another_type_is_refused(schema: Schema, value: Any) -> None:
    with pytest.raises(DataError, match=r"\$|No schema defined"):
        validate_value(schema, value)


def test_structs_are_keys_of_maps() -> None:
    key = Struct(USER, {"id": 1, "groups": [Struct(GROUP, {"name": "a", "size": 1})]})
    value = {key: 1}
    validate_value(map_of(USER, INT8), value)
    assert value[pickle.loads(pickle.dumps(key))] == 1


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_decimal_comes_back_from_its_bytes(value: Decimal) -> None:
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    schema = logical.decimal(-exponent)
    back = logical.from_base(schema, logical.to_base(schema, value))
    assert back.as_tuple() == (value.as_tuple() if value else value.copy_abs().as_tuple())


@given(st.integers())
def test_the_bytes_of_a_decimal_are_as_few_as_in_java(number: int) -> None:
    data = logical.decimal_to_bytes(Decimal(number), 0)
    assert int.from_bytes(data, "big", signed=True) == number
    if len(data) > 1:
        assert int.from_bytes(data[1:], "big", signed=True) != number


@given(st.dates())
def test_a_date_comes_back_from_its_day(value: datetime.date) -> None:
    assert logical.date_from_days(logical.date_to_days(value)) == value


@given(st.times())
def test_a_time_comes_back_from_its_milliseconds(value: datetime.time) -> None:
    back = logical.time_from_ms(logical.time_to_ms(value))
    assert back == value.replace(microsecond=value.microsecond // 1000 * 1000)


@given(st.datetimes(timezones=st.just(datetime.UTC)))
def test_a_timestamp_comes_back_from_its_milliseconds(value: datetime.datetime) -> None:
    back = logical.timestamp_from_ms(logical.timestamp_to_ms(value))
    assert back == value.replace(microsecond=value.microsecond // 1000 * 1000)


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        (logical.decimal(2), Decimal("1.5"), "Schema has scale 2, value has scale 1"),
        (logical.decimal(2), Decimal("NaN"), "not a decimal number"),
        (logical.TIMESTAMP, datetime.datetime(2020, 1, 1), "no time zone"),
        (logical.DATE, datetime.datetime(2020, 1, 1, 1, tzinfo=datetime.UTC), "time fields"),
        (logical.TIME, datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), "date fields"),
        (logical.DATE, 5, "expected date but was int"),
        (logical.DATE.replace(type=Type.STRING), datetime.date(2020, 1, 1), "must have type INT32"),
        (logical.decimal(2).replace(parameters={}), Decimal(1), "scale parameter not found"),
    ],
)
def test_a_logical_value_that_does_not_fit_is_refused(
    schema: Schema, value: Any, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        logical.to_base(schema, value)


def test_a_struct_is_read_with_a_later_schema() -> None:
    later = struct(
        {
            "size": FLOAT64,
            "name": STRING,
            "more": with_default(INT8, 7),
            "maybe": OPTIONAL_STRING,
        },
        name="Group",
    )
    assert project(GROUP, Struct(GROUP, {"name": "x", "size": 2}), later).as_dict() == {
        "size": 2.0,
        "name": "x",
        "more": 7,
        "maybe": None,
    }


@pytest.mark.parametrize(
    ("source", "value", "target", "message"),
    [
        (INT64, 1, INT32, "type mismatch. source type: INT64 and target type: INT32"),
        (STRING, "x", BYTES, "type mismatch"),
        (GROUP, Struct(GROUP), GROUP.replace(name="Other"), "name mismatch"),
        (INT8, 1, INT8.replace(parameters={"a": "b"}), "parameters not equal"),
        (INT8.as_optional(), 1, INT8, "does not provide a default value"),
        (struct({}), Struct(struct({})), struct({"a": INT8}), "Required field `a` is missing"),
        (
            struct({"a": INT64}),
            Struct(struct({"a": INT64}), {"a": 1}),
            struct({"a": INT8}),
            "Error projecting a: Schema type mismatch",
        ),
    ],
)
def test_a_projection_that_would_lose_something_is_refused(
    source: Schema, value: Any, target: Schema, message: str
) -> None:
    with pytest.raises(SchemaProjectorError, match=message):
        project(source, value, target)
