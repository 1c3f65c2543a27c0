"""Connect's converters against the answers of Kafka 4.3's own classes."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from moldau.data.connect_json import JsonConverter, JsonOptions
from moldau.data.errors import DataError, OptionError
from moldau.data.primitive_bytes import converter
from moldau.data.schema import SchemaAndValue
from moldau.data.value_text import parse_string
from moldau.data.values import to_text
from support import shared_vectors
from support.connect_cases import schema_of, value_of

FILES = ("json-converter", "values-and-headers", "primitive-converters")
CASES = [
    pytest.param(case, id=f"{name}/{index}/{case['name']}")
    for name in FILES
    for index, case in enumerate(shared_vectors.cases(f"connect/{name}.json"))
]
ERRORS = {"DataException": DataError, "ConfigException": OptionError}


def given(node: Any) -> SchemaAndValue:
    if node is None:
        return SchemaAndValue(None, None)
    schema = schema_of(node["schema"])
    return SchemaAndValue(schema, value_of(schema, node["value"]))


def data_of(node: Any) -> bytes | None:
    if isinstance(node, dict):
        data = value_of(None, node)
        assert isinstance(data, bytes)
        return data
    return None if node is None else node.encode()


def exact(data: bytes | str | None) -> Any:
    return None if data is None else json.loads(data, parse_float=Decimal)


def answer(case: dict[str, Any]) -> tuple[Any, Any]:
    """What we make of a case, and what Kafka made of it."""
    config, node, output = case.get("config", {}), case["input"], case.get("output")
    match case["kind"]:
        case "json_to_connect":
            found = JsonConverter(JsonOptions.from_config(config)).from_json(data_of(node))
            return found, output and given(output)
        case "connect_to_json":
            options = JsonOptions.from_config(config)
            value = given(node)
            text = JsonConverter(options).to_json(value.schema, value.value)
            return exact(text), exact(output)
        case "values_parse" | "header_to_connect":
            return parse_string(node), given(output)
        case "values_to_string" | "connect_to_header":
            value = given(node)
            return to_text(value.value, value.schema), output
    convert = converter(
        case["converter"].rpartition(".")[2], encoding=config.get("converter.encoding", "UTF-8")
    )
    if case["kind"] == "converter_to_connect":
        return convert.from_bytes(data_of(node)), output and given(output)
    value = given(node)
    return convert.to_bytes(value.schema, value.value), data_of(output)


@pytest.mark.parametrize("case", CASES)
def test_a_value_is_converted_as_kafka_does(case: dict[str, Any]) -> None:
    if "error" in case:
        with pytest.raises(ERRORS[case["error"]["class"]]):
            answer(case)
    else:
        found, expected = answer(case)
        assert found == expected
