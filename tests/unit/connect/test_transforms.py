"""Transforms where Kafka's answer is easily missed; what they do in general is in the vectors."""

from __future__ import annotations

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
    with pytest.raises(DataError, match="9007199254740992 is not in the years 1 to 9999"):
        applied("TimestampConverter$Value", record, field="at", target_type="Timestamp")
