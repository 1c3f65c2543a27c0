"""Connect's schemas and values as JSON."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

from moldau.data import json_text, logical
from moldau.data.connect_json.options import (
    SCHEMAS_CACHED_MAX,
    TYPE_NAMES,
    DecimalFormat,
    JsonOptions,
)
from moldau.data.errors import DataError
from moldau.data.schema import INTEGER_BITS, Schema, Type
from moldau.data.struct import Struct

#: Turns values of one schema into what `dump` takes.
Plan: TypeAlias = Callable[[Any], Any]

#: Types whose values are written as they are, if they are exactly of this class.
_AS_THEY_ARE: dict[Type, type] = {
    **dict.fromkeys(INTEGER_BITS, int),
    Type.BOOLEAN: bool,
    Type.STRING: str,
}


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def dump(node: Any) -> bytes:
    try:
        text = _ENCODER.encode(node)
    except TypeError:
        # The standard module has no exact decimals.
        text = json_text.compact(node)
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise DataError("A text has half of a surrogate pair, which UTF-8 cannot express") from None


class JsonWriter:
    def __init__(self, options: JsonOptions) -> None:
        self._options = options
        self._schemas: dict[Schema | None, bytes] = {None: b"null"}
        self._plans: dict[Schema, Plan] = {}
        # Records of a topic have one schema for long: the last one is found without a hash.
        self._last: tuple[Schema | None, bytes, Plan] | None = None

    def message(self, schema: Schema | None, value: Any) -> tuple[bytes, bytes]:
        """The schema and the value of a message, as JSON."""
        last = self._last
        if last is None or last[0] is not schema:
            plan = self._schemaless_or_none if schema is None else self.plan(schema)
            last = self._last = (schema, self.schema(schema), plan)
        return last[1], dump(last[2](value))

    def _schemaless_or_none(self, value: Any) -> Any:
        return self.value(None, value)

    def plan(self, schema: Schema) -> Plan:
        """What `value` does for a schema, with all that depends on the schema alone done once."""
        found = self._plans.get(schema)
        if found is None:
            if len(self._plans) >= SCHEMAS_CACHED_MAX:
                self._plans.clear()
            found = self._plans[schema] = self._make_plan(schema)
        return found

    def _make_plan(self, schema: Schema) -> Plan:
        value = self.value

        def general(each: Any) -> Any:
            return value(schema, each)

        if logical.is_logical(schema):
            return general
        if schema.type is Type.STRUCT:
            return self._struct_plan(schema, general)
        if schema.type is Type.FLOAT64:
            isfinite = math.isfinite
            return lambda each: each if type(each) is float and isfinite(each) else general(each)
        exact = _AS_THEY_ARE.get(schema.type)
        if exact is None:
            return general
        return lambda each: each if type(each) is exact else general(each)

    def _struct_plan(self, schema: Schema, general: Plan) -> Plan:
        plans = [(each.name, self.plan(each.schema)) for each in schema.fields]

        def write(each: Any) -> Any:
            if not isinstance(each, Struct):
                return general(each)
            # Mostly it is the same object, which is faster to see than that it is equal.
            if each.schema is not schema and each.schema != schema:
                return general(each)
            pairs = zip(plans, each.values, strict=True)
            return {name: plan(value) for (name, plan), value in pairs}

        return write

    def schema(self, schema: Schema | None) -> bytes:
        """A schema as JSON, as it is in a message's envelope."""
        found = self._schemas.get(schema)
        if found is None:
            found = dump(self._schema(schema))
            if len(self._schemas) >= SCHEMAS_CACHED_MAX:
                self._schemas = {None: b"null"}
            self._schemas[schema] = found
        return found

    def _schema(self, schema: Schema | None) -> dict[str, Any] | None:
        if schema is None:
            return None
        node: dict[str, Any] = {"type": TYPE_NAMES[schema.type]}
        match schema.type:
            case Type.ARRAY:
                node["items"] = self._schema(schema.value_schema)
            case Type.MAP:
                node["keys"] = self._schema(schema.key_schema)
                node["values"] = self._schema(schema.value_schema)
            case Type.STRUCT:
                node["fields"] = [
                    {**(self._schema(each.schema) or {}), "field": each.name}
                    for each in schema.fields
                ]
        node["optional"] = schema.optional
        if schema.name is not None:
            node["name"] = schema.name
        if schema.version is not None:
            node["version"] = schema.version
        if schema.doc is not None:
            node["doc"] = schema.doc
        if schema.parameters:
            node["parameters"] = dict(schema.parameters)
        if schema.default is not None:
            node["default"] = self.value(schema, schema.default)
        return node

    def value(self, schema: Schema | None, value: Any) -> Any:
        if value is None:
            return None if schema is None else self._null(schema)
        if schema is None:
            return self._schemaless(value)
        if logical.is_logical(schema):
            return self._logical(schema, value)
        match schema.type:
            case Type.STRUCT:
                return self._struct(schema, value)
            case Type.ARRAY if isinstance(value, (list, tuple)):
                return [self.value(schema.value_schema, each) for each in value]
            case Type.MAP if isinstance(value, dict):
                return self._map(schema, value)
            case _:
                return _simple(schema.type, value)

    def _null(self, schema: Schema) -> Any:
        if schema.default is not None and self._options.replace_null_with_default:
            return self.value(schema, schema.default)
        if schema.optional:
            return None
        raise DataError(
            "Conversion error: null value for field that is required and has no default value"
        )

    def _logical(self, schema: Schema, value: Any) -> Any:
        if schema.name != logical.DECIMAL_NAME:
            return logical.to_base(schema, value)
        if self._options.decimal_format is DecimalFormat.BASE64:
            return base64.b64encode(logical.to_base(schema, value)).decode()
        if not isinstance(value, Decimal) or not value.is_finite():
            raise DataError(f"Invalid type for Decimal, expected Decimal but was {value!r}")
        return value

    def _struct(self, schema: Schema, value: Any) -> dict[str, Any]:
        if not isinstance(value, Struct):
            raise DataError(f"Invalid type for STRUCT: {type(value).__name__}")
        if not value.is_of(schema):
            raise DataError(f"Mismatching schema: {value.schema} is not {schema}")
        return {field.name: self.value(field.schema, each) for field, each in value.items()}

    def _map(self, schema: Schema, value: dict[Any, Any]) -> Any:
        if schema.keys.type is Type.STRING:
            return {
                _key(self.value(schema.keys, key)): self.value(schema.value_schema, each)
                for key, each in value.items()
            }
        return [
            [self.value(schema.keys, key), self.value(schema.value_schema, each)]
            for key, each in value.items()
        ]

    def _schemaless(self, value: Any) -> Any:
        match value:
            case bool() | str():
                return value
            case int():
                return _simple(Type.INT64, value)
            case float():
                return _simple(Type.FLOAT64, value)
            case bytes() | bytearray() | memoryview():
                return _simple(Type.BYTES, value)
            case list() | tuple():
                return [self.value(None, each) for each in value]
            case dict():
                items = [(key, self.value(None, each)) for key, each in value.items()]
                if all(isinstance(key, str) for key, _ in items):
                    return dict(items)
                return [[self.value(None, key), each] for key, each in items]
            case _:
                raise DataError(
                    f"A {type(value).__name__} without schema does not have a corresponding "
                    "schema type: give it a schema"
                )


def _key(key: Any) -> str:
    return "null" if key is None else str(key)


_WRITTEN: dict[Type, tuple[type, ...]] = {
    **dict.fromkeys(INTEGER_BITS, (int,)),
    Type.FLOAT32: (float,),
    Type.FLOAT64: (float,),
    Type.BOOLEAN: (bool,),
    Type.STRING: (str,),
    Type.BYTES: (bytes, bytearray, memoryview),
}


def _simple(kind: Type, value: Any) -> Any:
    fits = isinstance(value, _WRITTEN.get(kind, ()))
    if not fits or (isinstance(value, bool) and kind is not Type.BOOLEAN):
        raise DataError(f"Invalid type for {kind.name}: {type(value).__name__}")
    if kind is Type.BYTES:
        return base64.b64encode(value).decode()
    if kind is Type.FLOAT64 or kind is Type.FLOAT32:
        if not math.isfinite(value):
            return json_text.double_text(value)
        return json_text.shortest_float32(value) if kind is Type.FLOAT32 else value
    return value
