"""Our answers to cases of Connect's values and transforms, written as ConnectAnswers.java writes
those of Kafka's classes: every value with a letter for its type."""

from __future__ import annotations

import base64
import datetime
import json
from decimal import Decimal
from typing import Any

from moldau.connect.api import ConnectError, SourceRecord
from moldau.connect.built_in import PluginKind
from moldau.connect.plugins import Plugins
from moldau.data import logical
from moldau.data.connect_json import JsonConverter, JsonOptions
from moldau.data.schema import Schema, Type
from moldau.data.struct import Struct
from moldau.data.value_text import parse_string

__all__ = ["comparable", "our_answer"]

_TRANSFORMS = "org.apache.kafka.connect.transforms."
_PLUGINS = Plugins()


def our_answer(case: dict[str, Any]) -> dict[str, Any]:
    try:
        match case["kind"]:
            case "parse":
                found = parse_string(case["text"])
                return _both(found.schema, found.value)
            case "json":
                return _through_json(case)
        return _transformed(case)
    except (ConnectError, ValueError) as error:
        return {"error": str(error)}


def comparable(answer: dict[str, Any]) -> Any:
    """What must be equal: of an error only that it is one, of a text of JSON what it says."""
    if "error" in answer:
        return "an error"
    found = _numbers(answer)
    if answer.get("back") is not None:
        found["back"] = json.loads(answer["back"], parse_float=Decimal)
    return found


def _numbers(node: Any) -> Any:
    """Java and Python write fractions differently."""
    match node:
        case str() if node.startswith("f:"):
            return float(node[2:].replace("Infinity", "inf"))
        case list():
            return [_numbers(each) for each in node]
        case dict():
            return {name: _numbers(each) for name, each in node.items()}
    return node


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
    made = transform.apply(record)
    if made is None:
        return {"dropped": None}
    return {
        "topic": made.topic,
        "timestamp": made.timestamp,
        "key": _both(made.key_schema, made.key),
        "value": _both(made.value_schema, made.value),
        "headers": [{"key": each.key, **_both(each.schema, each.value)} for each in made.headers],
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
