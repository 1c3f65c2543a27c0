"""Our answers to cases of Connect's values and transforms, written as ConnectAnswers.java writes
those of Kafka's classes: every value with a letter for its type."""

from __future__ import annotations

import base64
import contextlib
import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from moldau.connect.api import ConnectError, ConnectRecord, Header, SinkRecord, SourceRecord
from moldau.connect.api.errors import java_name
from moldau.connect.built_in import PluginKind
from moldau.connect.plugins import Plugins
from moldau.data import logical
from moldau.data.connect_json import JsonConverter, JsonOptions
from moldau.data.schema import Schema, Type
from moldau.data.struct import Struct
from moldau.data.value_text import parse_string
from moldau.data.values import to_text
from support.connect_cases import schema_of, value_of

__all__ = ["comparable", "our_answer", "record_of"]

_TRANSFORMS = "org.apache.kafka.connect.transforms."
_PLUGINS = Plugins()


def our_answer(case: dict[str, Any]) -> dict[str, Any]:
    try:
        return _ANSWERS[case["kind"]](case)
    except (ConnectError, ValueError) as error:
        return {"error": java_name(error).rpartition(".")[2], "message": str(error)}


def comparable(answer: dict[str, Any]) -> Any:
    """What must be equal: of an error only that it is one, of a text of JSON what it says."""
    if "error" in answer:
        return "an error"
    found = _numbers(answer)
    if isinstance(found.get("bytes"), str):
        # What is JSON is compared as JSON: Java and Python write numbers differently.
        with contextlib.suppress(ValueError):
            text = base64.b64decode(found["bytes"][2:])
            found["bytes"] = json.loads(text, parse_float=Decimal)
    if answer.get("back") is not None:
        found["back"] = json.loads(answer["back"], parse_float=Decimal)
    return found


def _numbers(node: Any) -> Any:
    """Java and Python write fractions differently."""
    match node:
        case str() if node.startswith("f:"):
            number = float(node[2:].replace("Infinity", "inf"))
            return "NaN" if number != number else number
        case list():
            return [_numbers(each) for each in node]
        case dict():
            return {name: _numbers(each) for name, each in node.items()}
    return node


def _parsed(case: dict[str, Any]) -> dict[str, Any]:
    found = parse_string(case["text"])
    return _both(found.schema, found.value)


def _through_json(case: dict[str, Any]) -> dict[str, Any]:
    converter = JsonConverter(JsonOptions.from_config(case["config"]))
    found = converter.from_json(case["text"].encode())
    back = converter.to_json(found.schema, found.value)
    text = back.decode() if isinstance(back, bytes) else back
    return {**_both(found.schema, found.value), "back": text}


def _transformed(case: dict[str, Any]) -> dict[str, Any]:
    converter = JsonConverter(JsonOptions.from_config({"schemas.enable": case["schemas"]}))
    parts: dict[str, Any] = {}
    for part in ("key", "value"):
        if case[part] is not None:
            found = converter.from_json(case[part].encode())
            parts |= {part: found.value, f"{part}_schema": found.schema}
    record = SourceRecord(None, None, case["topic"], 0, timestamp=case["timestamp"], **parts)
    transform = _PLUGINS.find(_TRANSFORMS + case["smt"], [PluginKind.TRANSFORMATION])()
    transform.configure(case["config"])
    return _record(transform.apply(record))


def _record(made: ConnectRecord | None) -> dict[str, Any]:
    if made is None:
        return {"dropped": None}
    return {
        "topic": made.topic,
        "timestamp": made.timestamp,
        "key": _both(made.key_schema, made.key),
        "value": _both(made.value_schema, made.value),
        "headers": [{"key": each.key, **_both(each.schema, each.value)} for each in made.headers],
    }


# Cases as the shared vectors write them.


def record_of(node: dict[str, Any]) -> ConnectRecord:
    key_schema, key = _data(node["key"])
    value_schema, value = _data(node["value"])
    headers = [Header(each["key"], *reversed(_data(each))) for each in node.get("headers", ())]
    parts: dict[str, Any] = {
        "key_schema": key_schema,
        "key": key,
        "value_schema": value_schema,
        "value": value,
        "timestamp": node.get("timestamp"),
        "headers": headers,
    }
    topic, partition = node["topic"], node.get("partition")
    if node.get("kind") == "sink":
        return SinkRecord(topic, partition or 0, node["offset"], **parts)
    return SourceRecord(None, None, topic, partition, **parts)


def _data(node: dict[str, Any]) -> tuple[Schema | None, Any]:
    schema = schema_of(node["schema"])
    return schema, value_of(schema, node["value"])


def _changed(case: dict[str, Any]) -> dict[str, Any]:
    transform = _PLUGINS.find(_TRANSFORMS + case["smt"], [PluginKind.TRANSFORMATION])()
    transform.configure(case["config"])
    return _record(transform.apply(record_of(case["input"])))


def _tested(case: dict[str, Any]) -> dict[str, Any]:
    name = f"{_TRANSFORMS}predicates.{case['predicate']}"
    predicate = _PLUGINS.find(name, [PluginKind.PREDICATE])()
    predicate.configure(case["config"])
    return {"found": predicate.test(record_of(case["input"]))}


def _as_text(case: dict[str, Any]) -> dict[str, Any]:
    schema, value = _data(case["input"])
    return {"text": to_text(value, schema)}


def _as_header(case: dict[str, Any]) -> dict[str, Any]:
    found = _header_converter().from_connect_header("t", "h", *_data(case["input"]))
    return {"bytes": _value(found)}


def _from_header(case: dict[str, Any]) -> dict[str, Any]:
    given = case["input"]
    data = None if given is None else given.encode()
    found = _header_converter().to_connect_header("t", "h", data)
    return _both(found.schema, found.value)


def _header_converter() -> Any:
    return _PLUGINS.find("SimpleHeaderConverter", [PluginKind.HEADER_CONVERTER])()


def _written(case: dict[str, Any]) -> dict[str, Any]:
    return {"bytes": _value(_converter(case).from_connect_data("t", *_data(case["input"])))}


def _read(case: dict[str, Any]) -> dict[str, Any]:
    given = case["input"]
    data = None if given is None else value_of(None, given)
    found = _converter(case).to_connect_data("t", data)
    return _both(found.schema, found.value)


def _converter(case: dict[str, Any]) -> Any:
    made = _PLUGINS.find(case["converter"], [PluginKind.CONVERTER])()
    made.configure(case["config"], is_key=False)
    return made


_ANSWERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "parse": _parsed,
    "json": _through_json,
    "smt": _transformed,
    "record": _changed,
    "predicate": _tested,
    "values_to_string": _as_text,
    "connect_to_header": _as_header,
    "header_to_connect": _from_header,
    "converter_from_connect": _written,
    "converter_to_connect": _read,
}


def _both(schema: Schema | None, value: Any) -> dict[str, Any]:
    return {"schema": _schema(schema), "value": _value(value)}


def _schema(schema: Schema | None) -> Any:
    if schema is None:
        return None
    made: dict[str, Any] = {
        "type": schema.type.value,
        "optional": schema.optional,
        "name": schema.name,
        "version": schema.version,
        "doc": schema.doc,
        "default": _value(schema.default),
        "parameters": dict(schema.parameters),
    }
    if schema.type is Type.ARRAY:
        made["items"] = _schema(schema.value_schema)
    if schema.type is Type.MAP:
        made |= {"keys": _schema(schema.key_schema), "values": _schema(schema.value_schema)}
    if schema.type is Type.STRUCT:
        made["fields"] = [[each.name, _schema(each.schema)] for each in schema.fields]
    return made


def _value(value: Any) -> Any:
    match value:
        case None | bool():
            return value
        case int():
            return f"i:{value}"
        case float():
            return f"f:{value!r}"
        case Decimal():
            return f"d:{value:f}"
        case bytes() | bytearray() | memoryview():
            return f"b:{base64.b64encode(bytes(value)).decode()}"
        case datetime.datetime():
            return f"t:{logical.timestamp_to_ms(value)}"
        case datetime.date():
            return f"t:{logical.date_to_days(value) * logical.DAY_MS}"
        case datetime.time():
            return f"t:{logical.time_to_ms(value)}"
        case Struct():
            return {field.name: _value(each) for field, each in value.items()}
        case list() | tuple():
            return [_value(each) for each in value]
        case dict():
            pairs = [[_value(name), _value(each)] for name, each in value.items()]
            return ["map", *sorted(pairs, key=lambda pair: json.dumps(pair[0]))]
    return f"s:{value}"
