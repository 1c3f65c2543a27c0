"""Transforms where Kafka's answer is easily missed; what they do in general is in the vectors."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from moldau.connect.api import DataError, SourceRecord
from moldau.connect.built_in import PluginKind
from moldau.connect.plugins import Plugins
from moldau.data import builders
from moldau.data.struct import Struct

PLUGINS = Plugins()


def applied(name: str, record: SourceRecord, **config: str) -> Any:
    made = PLUGINS.find(name, [PluginKind.TRANSFORMATION])()
    made.configure({key.replace("_", "."): value for key, value in config.items()})
    return made.apply(record)


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("ReplaceField$Value", {"exclude": "b"}),
        ("Flatten$Value", {}),
        ("HeaderFrom$Value", {"fields": "b", "headers": "h", "operation": "move"}),
    ],
)
def test_a_struct_that_is_made_new_is_required(name: str, config: dict[str, str]) -> None:
    schema = builders.struct({"a": builders.INT32, "b": builders.STRING}).as_optional()
    value = Struct(schema).put("a", 1).put("b", "x")
    found = applied(name, SourceRecord(None, None, "t", value_schema=schema, value=value), **config)
    assert not found.value_schema.optional


def test_a_cast_field_that_is_not_there_becomes_null() -> None:
    record = SourceRecord(None, None, "t", value={"a": "1"})
    assert applied("Cast$Value", record, spec="a:int8,b:string").value == {"a": 1, "b": None}


def test_a_time_that_python_does_not_have_is_bad_data() -> None:
    record = SourceRecord(None, None, "t", value={"at": 2**53})
    with pytest.raises(
        DataError, match="9007199254740992 ms since 1970 is outside of the years 1 to 9999"
    ):
        applied("TimestampConverter$Value", record, field="at", target_type="Timestamp")


def test_a_text_that_is_no_time_is_named_with_the_format() -> None:
    record = SourceRecord(None, None, "t", value={"at": "soon"})
    expected = r"Could not parse timestamp: value \(soon\) does not match pattern \(yyyy-MM-dd\)"
    with pytest.raises(DataError, match=expected):
        applied("TimestampConverter$Value", record, field="at", target_type="unix",
                format="yyyy-MM-dd")  # fmt: skip


@pytest.mark.parametrize(
    ("text", "number"),
    [("1d", 1.0), ("2f", 2.0), ("0x1p3", 8.0), (" 5", 5.0), ("1.", 1.0), (".5", 0.5)],
)
def test_a_fraction_is_read_by_javas_rules(text: str, number: float) -> None:
    record = SourceRecord(None, None, "t", value=text)
    assert applied("Cast$Value", record, spec="float64").value == number


@pytest.mark.parametrize("text", ["1_0", "٣", "inf", "nan", "0x1", "1e", ""])
def test_what_java_does_not_read_as_a_fraction_is_bad_data(text: str) -> None:
    with pytest.raises(DataError, match="was out of range for requested data type"):
        applied("Cast$Value", SourceRecord(None, None, "t", value=text), spec="float64")


@pytest.mark.parametrize("value", [Decimal("1.5"), datetime.datetime.now(datetime.UTC)])
@pytest.mark.parametrize(("name", "config"), [("Cast", {"spec": "a:string"}), ("Flatten", {})])
def test_values_that_could_have_several_schemas_need_one(
    name: str, config: dict[str, str], value: Any
) -> None:
    record = SourceRecord(None, None, "t", value={"a": value})
    with pytest.raises(DataError, match="which is not supported by Connect's data API"):
        applied(f"{name}$Value", record, **config)


@pytest.mark.parametrize(
    ("regex", "topic"),
    [(r"\Qa.b\E.*", "a.b-c"), ("[a-z&&[^x]]+", "abc"), ("[a-z&&b-d]+", "bcd")],
)
def test_patterns_that_only_java_has(regex: str, topic: str) -> None:
    config = {"regex": regex, "replacement": "new"}
    assert applied("RegexRouter", SourceRecord(None, None, topic), **config).topic == "new"
    assert applied("RegexRouter", SourceRecord(None, None, "x" + topic), **config).topic != "new"


def test_the_last_days_of_december_may_be_in_the_first_week() -> None:
    record = SourceRecord(None, None, "t", timestamp=1_577_836_799_999)
    found = applied("TimestampRouter", record, timestamp_format="YYYY-ww")
    assert found.topic == "t-2020-01"
