"""From a Connect schema to a JSON Schema, with keys in the order in which Confluent writes them."""

from __future__ import annotations

from typing import Any

from moldau.data.json_schema.connect.settings import (
    CONNECT_INDEX,
    CONNECT_PARAMETERS,
    CONNECT_TYPE,
    CONNECT_VERSION,
    DEFAULT_CONFIG,
    ENUM_PARAMETER,
    GENERAL_ENUM_PARAMETER,
    NAMESPACE,
    NULL_SYMBOL,
    JsonSchemaDataConfig,
    is_union,
)
from moldau.data.json_schema.connect.values import has_names_for_keys, value_from_connect
from moldau.data.json_schema.diff.java_order import hash_order
from moldau.data.json_schema.schema import JsonSchema, JsonSchemaLanguage
from moldau.data.json_text import compact
from moldau.data.logical import DECIMAL_NAME
from moldau.data.schema import Schema, Type

_NULL = {"type": "null"}
_NUMBERS = {
    Type.INT8: "integer",
    Type.INT16: "integer",
    Type.INT32: "integer",
    Type.INT64: "integer",
    Type.FLOAT32: "number",
    Type.FLOAT64: "number",
}


def schema_from_connect(
    schema: Schema, config: JsonSchemaDataConfig = DEFAULT_CONFIG
) -> JsonSchema:
    """The JSON Schema of values that `value_from_connect` writes."""
    return JsonSchemaLanguage().parse(compact(_Writer(config).document(schema)))


class _Writer:
    def __init__(self, config: JsonSchemaDataConfig) -> None:
        self._config = config

    def document(
        self, schema: Schema, index: int | None = None, *, ignore_optional: bool = False
    ) -> dict[str, Any]:
        own_index = {} if index is None else {CONNECT_INDEX: index}
        if is_union(schema):
            parts = [self.document(f.schema.as_required(), f.index) for f in schema.fields]
            return {**own_index, "oneOf": [_NULL, *parts] if schema.optional else parts}
        if not schema.optional or ignore_optional:
            return self._required(schema, own_index)
        return {**own_index, "oneOf": [_NULL, self._required(schema, {})]}

    def _required(self, schema: Schema, extras: dict[str, Any]) -> dict[str, Any]:
        first, connect_type, last = self._keywords(schema)
        described: dict[str, Any] = {}
        if schema.name is not None:
            described["title"] = schema.name
        if schema.doc is not None:
            described["description"] = schema.doc
        if schema.default is not None:
            described["default"] = value_from_connect(schema, schema.default, self._config)
        extras = dict(extras)
        if connect_type is not None:
            extras[CONNECT_TYPE] = connect_type
        if schema.version is not None:
            extras[CONNECT_VERSION] = schema.version
        parameters = {
            name: schema.parameters[name]
            for name in hash_order(list(schema.parameters))
            if not name.startswith(NAMESPACE)
        }
        if parameters:
            extras[CONNECT_PARAMETERS] = parameters
        ordered = {name: extras[name] for name in hash_order(list(extras))}
        return {**first, **described, **ordered, **last}

    def _keywords(self, schema: Schema) -> tuple[dict[str, Any], str | None, dict[str, Any]]:
        """The keywords before the description, the connect.type, and the keywords after it."""
        match schema.type:
            case Type.BOOLEAN:
                return {}, None, {"type": "boolean"}
            case Type.STRING:
                return self._string(schema), None, {}
            case Type.BYTES:
                numeric = schema.name == DECIMAL_NAME and self._config.decimal_format == "NUMERIC"
                return {"type": "number" if numeric else "string"}, "bytes", {}
            case Type.ARRAY:
                return {"type": "array"}, None, {"items": self.document(schema.items)}
            case Type.MAP:
                return self._map(schema)
            case Type.STRUCT:
                return self._struct(schema)
            case _:
                return {"type": _NUMBERS[schema.type]}, schema.type.value, {}

    def _string(self, schema: Schema) -> dict[str, Any]:
        if not {ENUM_PARAMETER, GENERAL_ENUM_PARAMETER} & schema.parameters.keys():
            return {"type": "string"}
        prefix = self._config.enum_parameter + "."
        names = [name for name in schema.parameters if name.startswith(prefix)]
        symbols = hash_order([name.removeprefix(prefix) for name in names])
        return {"enum": [None if each == NULL_SYMBOL else each for each in symbols]}

    def _map(self, schema: Schema) -> tuple[dict[str, Any], str | None, dict[str, Any]]:
        if has_names_for_keys(schema):
            values = {"additionalProperties": self.document(schema.items)}
            return {"type": "object"}, "map", values
        entry = {
            "key": self.document(schema.keys, 0),
            "value": self.document(schema.items, 1),
        }
        ordered = {name: entry[name] for name in hash_order(list(entry))}
        return {"type": "array"}, "map", {"items": {"type": "object", "properties": ordered}}

    def _struct(self, schema: Schema) -> tuple[dict[str, Any], str | None, dict[str, Any]]:
        properties = {f.name: self.document(f.schema, f.index) for f in schema.fields}
        first: dict[str, Any] = {"type": "object"}
        if not self._config.object_additional_properties:
            first["additionalProperties"] = False
        if not properties:
            return first, None, {}
        ordered = {name: properties[name] for name in hash_order(list(properties))}
        return first, None, {"properties": ordered}
