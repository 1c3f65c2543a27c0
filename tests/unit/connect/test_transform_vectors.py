"""Transforms and predicates against the answers of Kafka 4.3's own classes."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.connect.api import (
    ConfigError,
    ConnectError,
    ConnectRecord,
    DataError,
    Header,
    SinkRecord,
    SourceRecord,
)
from moldau.connect.built_in import PluginKind
from moldau.connect.plugins import Plugins
from moldau.data.logical import is_logical
from support import shared_vectors
from support.connect_cases import schema_of, value_of

FILES = (
    "smt-cast",
    "smt-extract-hoist",
    "smt-flatten",
    "smt-headers",
    "smt-insert-field",
    "smt-mask-field",
    "smt-replace-field",
    "smt-routing",
    "smt-schema-and-key",
    "smt-timestamp-converter",
    "predicates",
)
CASES = [
    pytest.param(case, id=f"{name}/{index}/{case['name']}")
    for name in FILES
    for index, case in enumerate(shared_vectors.cases(f"connect/{name}.json"))
]
ERRORS: dict[str, type[Exception]] = {
    "ConfigException": ConfigError,
    "DataException": DataError,
    "SchemaBuilderException": DataError,
    "IllegalArgumentException": ValueError,
    "ConnectException": ConnectError,
    "ClassCastException": DataError,
    "IndexOutOfBoundsException": DataError,
}
PLUGINS = Plugins()


def part(node: Any, *, plain: bool) -> tuple[Any, Any]:
    if node is None:
        return None, None
    schema = schema_of(node["schema"])
    # A cast value of a logical type keeps the schema's name, but is none of its values any more.
    by = schema
    if plain and schema is not None and is_logical(schema):
        by = schema.replace(name=None)
    return schema, value_of(by, node["value"])


def record_of(node: dict[str, Any], *, plain: bool = False) -> ConnectRecord:
    key_schema, key = part(node.get("key"), plain=plain)
    value_schema, value = part(node.get("value"), plain=plain)
    parts: dict[str, Any] = {
        "key_schema": key_schema,
        "key": key,
        "value_schema": value_schema,
        "value": value,
        "timestamp": node.get("timestamp"),
        "headers": [
            Header(
                each["key"], value_of(schema := schema_of(each["schema"]), each["value"]), schema
            )
            for each in node.get("headers") or ()
        ],
    }
    topic, partition = node.get("topic"), node.get("partition")
    if node.get("kind") == "sink":
        return SinkRecord(topic, partition, node["offset"], **parts)  # type: ignore[arg-type]
    return SourceRecord(None, None, topic, partition, **parts)  # type: ignore[arg-type]


def seen(record: ConnectRecord) -> dict[str, Any]:
    """What a case says of a record."""
    return {
        name: getattr(record, name)
        for name in (
            *("topic", "partition", "key_schema", "key", "value_schema", "value"),
            *("timestamp", "headers"),
        )
    }


def configured(case: dict[str, Any]) -> Any:
    kind = PluginKind.TRANSFORMATION if case["kind"] == "smt" else PluginKind.PREDICATE
    made = PLUGINS.find(case.get("smt") or case["predicate"], [kind])()
    made.configure(case["config"])
    return made


def applied(made: Any, case: dict[str, Any]) -> Any:
    record = record_of(case["input"])
    return made.apply(record) if case["kind"] == "smt" else made.test(record)


@pytest.mark.parametrize("case", CASES)
def test_a_record_is_changed_as_kafka_changes_it(case: dict[str, Any]) -> None:
    error = case.get("error")
    if error is None:
        found, expected = applied(configured(case), case), case["output"]
        if isinstance(expected, dict):
            assert found is not None
            assert seen(found) == seen(record_of(expected, plain=case["smt"] == "Cast$Value"))
        else:
            assert found == expected
    elif error["at"] == "configure":
        with pytest.raises(ERRORS[error["class"]]):
            configured(case)
    else:
        made = configured(case)
        with pytest.raises(ERRORS[error["class"]]):
            applied(made, case)
