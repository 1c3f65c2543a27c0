"""Converters under Connect's interface; conversions are tested with `moldau.data`."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from moldau.connect.api import ConfigError, DataError
from moldau.connect.built_in import PluginKind
from moldau.connect.plugins import Plugins
from moldau.data import logical
from moldau.data.builders import FLOAT64, INT8, INT32, OPTIONAL_STRING, STRING, struct
from moldau.data.schema import Schema, SchemaAndValue
from moldau.data.struct import Struct
from support import shared_vectors
from support.connect_cases import schema_of, value_of

PLUGINS = Plugins()
CASES = [
    pytest.param(case, id=f"{index}/{case['name']}")
    for index, case in enumerate(shared_vectors.cases("connect/primitive-converters.json"))
]


def made(name: str, config: dict[str, str] | None = None) -> Any:
    found = PLUGINS.find(name, [PluginKind.CONVERTER])()
    found.configure(config or {}, is_key=False)
    return found


def data_of(node: Any) -> bytes | None:
    if isinstance(node, dict):
        data: bytes = value_of(None, node)
        return data
    return None if node is None else node.encode()


@pytest.mark.parametrize("case", CASES)
def test_simple_values_are_converted_as_kafka_does(case: dict[str, Any]) -> None:
    def answer() -> Any:
        convert = made(case["converter"], case.get("config"))
        if case["kind"] == "converter_to_connect":
            return convert.to_connect_data("t", data_of(case["input"]))
        schema = schema_of(case["input"]["schema"])
        return convert.from_connect_data("t", schema, value_of(schema, case["input"]["value"]))

    if "error" in case:
        with pytest.raises((DataError, ConfigError)):
            answer()
    elif case["kind"] == "converter_to_connect":
        output = case["output"]
        schema = schema_of(output["schema"])
        assert answer() == SchemaAndValue(schema, value_of(schema, output["value"]))
    else:
        assert answer() == data_of(case["output"])


def test_json_without_schemas() -> None:
    convert = made("org.apache.kafka.connect.json.JsonConverter", {"schemas.enable": "false"})
    assert convert.from_connect_data("t", None, {"a": 1}) == b'{"a":1}'
    assert convert.to_connect_data("t", b'{"a":1}') == SchemaAndValue(None, {"a": 1})


def test_json_with_the_schema_in_the_configuration() -> None:
    content = '{"type":"struct","fields":[{"field":"a","type":"int32"}]}'
    convert = made("JsonConverter", {"schemas.enable": "false", "schema.content": content})
    schema = struct({"a": INT32})
    assert convert.to_connect_data("t", b'{"a":1}') == SchemaAndValue(
        schema, Struct(schema, {"a": 1})
    )
    with pytest.raises(ConfigError):
        made("JsonConverter", {"schema.content": '{"type":"x"}'})


def test_headers_are_texts_with_inferred_types() -> None:
    convert = PLUGINS.find("SimpleHeaderConverter", [PluginKind.HEADER_CONVERTER])()
    assert convert.from_connect_header("t", "h", STRING, "x") == b"x"
    assert convert.to_connect_header("t", "h", b"true").value is True
    assert convert.to_connect_header("t", "h", None) == SchemaAndValue(None, None)


def test_a_registry_must_be_named() -> None:
    with pytest.raises(ConfigError, match=r"schema\.registry\.url"):
        made("io.confluent.connect.avro.AvroConverter")


def test_texts_that_utf8_cannot_hold_are_replaced() -> None:
    assert made("StringConverter").from_connect_data("t", OPTIONAL_STRING, "a\ud800") == b"a?"


@pytest.mark.parametrize(
    ("name", "schema", "value"),
    [
        ("IntegerConverter", INT8, 5),
        ("LongConverter", INT32, 5),
        ("FloatConverter", FLOAT64, 1e300),
    ],
)
def test_a_number_of_another_type_is_refused(name: str, schema: Schema, value: float) -> None:
    with pytest.raises(DataError, match="Failed to serialize to"):
        made(name).from_connect_data("t", schema, value)


def test_times_as_java_prints_them() -> None:
    day = datetime.date(1970, 1, 1)
    assert made("StringConverter").from_connect_data("t", logical.DATE, day) == (
        b"Thu Jan 01 00:00:00 UTC 1970"
    )
