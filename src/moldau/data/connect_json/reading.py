"""JSON as Connect's schemas and values, read as leniently as Connect reads it."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

from moldau.data import json_text, logical
from moldau.data.builders import checked
from moldau.data.connect_json.options import SCHEMAS_CACHED_MAX, TYPE_NAMES, JsonOptions
from moldau.data.errors import DataError, SchemaBuilderError
from moldau.data.schema import INTEGER_BITS, Field, Schema, SchemaAndValue, Type
from moldau.data.struct import Struct

_TYPES_BY_NAME = {name: each for each, name in TYPE_NAMES.items()}
_ENVELOPE = b'{"schema":'
_PAYLOAD = ',"payload":'
#: Turns nodes of JSON into values of one schema.
Plan: TypeAlias = Callable[[Any], Any]
_RANGES = {each: (-(1 << bits - 1), (1 << bits - 1) - 1) for each, bits in INTEGER_BITS.items()}


def load(data: bytes) -> Any:
    try:
        return json_text.parse(data, decimals=True) if data.strip() else None
    except ValueError as error:
        raise DataError(
            f"Converting byte[] to Kafka Connect data failed due to serialization error: {error}"
        ) from None


class JsonReader:
    def __init__(self, options: JsonOptions) -> None:
        self._options = options
        self._schemas: dict[str, Schema] = {}
        self._prefix: bytes | None = None
        self._prefix_schema: Schema | None = None
        self._prefix_plan: Plan | None = None
        self._plans: dict[Schema, Plan] = {}

    def after_prefix(self, data: bytes) -> SchemaAndValue | None:
        """The value of a message that begins as the one before did, so that only its payload is
        read; None if it does not, or is not what it seems.
        """
        prefix, plan = self._prefix, self._prefix_plan
        if prefix is None or plan is None:
            return None
        if not data.startswith(prefix) or data[-1:] != b"}":
            return None
        try:
            node = json_text.parse(data[len(prefix) : -1], decimals=True)
        except ValueError:
            return None
        return SchemaAndValue(self._prefix_schema, plan(node))

    def remember_prefix(self, data: bytes, schema: Schema | None) -> None:
        """Of a message as Connect writes it: the schema first, without spaces."""
        if schema is None or not data.startswith(_ENVELOPE + b"{"):
            return
        text = data.decode()
        _, end = json.JSONDecoder().raw_decode(text, len(_ENVELOPE))
        if text.startswith(_PAYLOAD, end):
            self._prefix = text[: end + len(_PAYLOAD)].encode()
            self._prefix_schema = schema
            self._prefix_plan = self.plan(schema)

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

        def general(node: Any) -> Any:
            return value(schema, node)

        if logical.is_logical(schema):
            return general
        if schema.type is Type.STRUCT:
            return self._struct_plan(schema, general)
        if schema.type is Type.STRING:
            return lambda node: node if type(node) is str else general(node)
        if schema.type is Type.FLOAT64:
            return lambda node: float(node) if type(node) is Decimal else general(node)
        if schema.type in _RANGES:
            low, high = _RANGES[schema.type]
            return lambda node: node if type(node) is int and low <= node <= high else general(node)
        return general

    def _struct_plan(self, schema: Schema, general: Plan) -> Plan:
        plans = [
            (
                each.name,
                self.plan(each.schema),
                # A null is fine; an array or a map may have one inside where none may be.
                each.schema.optional,
                each.schema.type in (Type.ARRAY, Type.MAP),
            )
            for each in schema.fields
        ]

        def read(node: Any) -> Any:
            if type(node) is not dict:
                return general(node)
            get = node.get
            values = []
            for name, plan, optional, deep in plans:
                value = plan(get(name))
                if deep or (value is None and not optional):
                    return general(node)
                values.append(value)
            return Struct.unchecked(schema, values)

        return read

    def message(self, node: Any) -> SchemaAndValue:
        if not self._options.schemas_enable:
            return SchemaAndValue(None, self.value(None, node))
        if not isinstance(node, dict) or node.keys() != {"schema", "payload"}:
            raise DataError(
                'JsonConverter with schemas.enable requires "schema" and "payload" fields and may '
                "not contain additional fields. If you are trying to deserialize plain JSON data, "
                "set schemas.enable=false in your converter configuration."
            )
        schema = self.schema(node["schema"])
        return SchemaAndValue(schema, self.value(schema, node["payload"]))

    def schema(self, node: Any) -> Schema | None:
        if node is None:
            return None
        key = json.dumps(node, default=lambda number: [str(number)])
        found = self._schemas.get(key)
        if found is None:
            found = self._schema(node)
            if len(self._schemas) >= SCHEMAS_CACHED_MAX:
                self._schemas.clear()
            self._schemas[key] = found
        return found

    def _schema(self, node: Any) -> Schema:
        if not isinstance(node, dict) or not isinstance(node.get("type"), str):
            raise DataError("Schema must contain 'type' field")
        kind = _TYPES_BY_NAME.get(node["type"])
        if kind is None:
            raise DataError(f"Unknown schema type: {node['type']}")
        attributes: dict[str, Any] = {}
        match kind:
            case Type.ARRAY:
                if node.get("items") is None:
                    raise DataError("Array schema did not specify the element type")
                attributes["value_schema"] = self._schema(node["items"])
            case Type.MAP:
                if node.get("keys") is None:
                    raise DataError("Map schema did not specify the key type")
                if node.get("values") is None:
                    raise DataError("Map schema did not specify the value type")
                attributes["key_schema"] = self._schema(node["keys"])
                attributes["value_schema"] = self._schema(node["values"])
            case Type.STRUCT:
                attributes["fields"] = self._fields(node.get("fields"))
        for name, wanted in (("name", str), ("doc", str), ("version", int)):
            if isinstance(node.get(name), wanted) and not isinstance(node[name], bool):
                attributes[name] = node[name]
        schema = Schema(
            type=kind,
            optional=node.get("optional") is True,
            parameters=_parameters(node.get("parameters")),
            **attributes,
        )
        if "default" in node:
            default = self.value(schema, node["default"])
            if default is None and not schema.optional:
                raise SchemaBuilderError(f"Invalid default value of {schema}: {node['default']!r}")
            schema = checked(schema.replace(default=default))
        return schema

    def _fields(self, nodes: Any) -> tuple[Field, ...]:
        if not isinstance(nodes, list):
            raise DataError('Struct schema\'s "fields" argument is not an array.')
        fields = []
        for index, node in enumerate(nodes):
            if not isinstance(node, dict) or not isinstance(node.get("field"), str):
                raise DataError("Struct schema's field name not specified properly")
            fields.append(Field(node["field"], index, self._schema(node)))
        return tuple(fields)

    def value(self, schema: Schema | None, node: Any) -> Any:
        if schema is None:
            return self._schemaless(node)
        if node is None:
            if schema.default is not None and self._options.replace_null_with_default:
                return schema.default
            if schema.optional:
                return None
            raise DataError(f"Invalid null value for required {schema.type.name} field")
        if logical.is_logical(schema):
            return _LOGICAL[schema.name or ""](schema, node)
        match schema.type:
            case Type.STRUCT:
                return self._struct(schema, node)
            case Type.ARRAY:
                # As Jackson iterates: over an object's values, and over nothing in a number.
                items = node.values() if isinstance(node, dict) else node
                if not isinstance(node, (list, dict)):
                    return []
                return [self.value(schema.value_schema, each) for each in items]
            case Type.MAP:
                return self._map(schema, node)
            case _:
                return _SIMPLE[schema.type](node)

    def _struct(self, schema: Schema, node: Any) -> Struct:
        if not isinstance(node, dict):
            raise DataError(
                f"Structs should be encoded as JSON objects, but found {_node_type(node)}"
            )
        values = [self.value(each.schema, node.get(each.name)) for each in schema.fields]
        struct = Struct.unchecked(schema, values)
        for field, value in zip(schema.fields, values, strict=True):
            # A number that was read fits. None stands where a text was no text, deep inside too.
            if value is None or not field.schema.type.is_primitive:
                struct.put(field.name, value)
        return struct

    def _map(self, schema: Schema, node: Any) -> dict[Any, Any]:
        if schema.keys.type is Type.STRING:
            if not isinstance(node, dict):
                raise DataError(
                    "Maps with string fields should be encoded as JSON objects, but found "
                    f"{_node_type(node)}"
                )
            return {key: self.value(schema.value_schema, each) for key, each in node.items()}
        if not isinstance(node, list):
            raise DataError(
                "Maps with non-string fields should be encoded as JSON array of tuples, but found "
                f"{_node_type(node)}"
            )
        return dict(self._entry(schema, each) for each in node)

    def _entry(self, schema: Schema, node: Any) -> tuple[Any, Any]:
        if not isinstance(node, list):
            raise DataError(f"Found invalid map entry instead of array tuple: {_node_type(node)}")
        if len(node) != 2:
            raise DataError(f"Found invalid map entry, expected length 2 but found {len(node)}")
        key = self.value(schema.key_schema, node[0])
        if isinstance(key, (list, dict)):
            raise DataError("Keys of a map cannot be arrays or maps here: Python cannot hash them")
        return key, self.value(schema.value_schema, node[1])

    def _schemaless(self, node: Any) -> Any:
        match node:
            case bool() | str() | None:
                return node
            case int():
                return _wrapped(node, 64)
            case Decimal():
                return float(node)
            case list():
                return [self._schemaless(each) for each in node]
            case _:
                return {key: self._schemaless(each) for key, each in node.items()}


def _parameters(node: Any) -> dict[str, str]:
    if not isinstance(node, dict):
        return {}
    if not all(isinstance(each, str) for each in node.values()):
        raise DataError("Schema parameters must have string values.")
    return node


def _node_type(node: Any) -> str:
    match node:
        case None:
            return "NULL"
        case bool():
            return "BOOLEAN"
        case str():
            return "STRING"
        case list():
            return "ARRAY"
        case dict():
            return "OBJECT"
        case _:
            return "NUMBER"


def _wrapped(number: int, bits: int) -> int:
    """An integer cut to a type's bits, as Java's casts cut it."""
    half = 1 << bits - 1
    return (number + half & (1 << bits) - 1) - half


def _integer(bits: int) -> Callable[[Any], int]:
    def read(node: Any) -> int:
        if isinstance(node, bool) or not isinstance(node, (int, Decimal)):
            return 0
        # Cut to 32 bits first: that is how Connect reads the smaller ones.
        whole = int(node) if isinstance(node, int) or node.adjusted() < 1000 else 0
        return _wrapped(whole if bits == 64 else _wrapped(whole, 32), bits)

    return read


def _number(node: Any) -> float:
    if isinstance(node, bool) or not isinstance(node, (int, Decimal)):
        return 0.0
    try:
        return float(node)
    except OverflowError:
        return math.inf if node > 0 else -math.inf


def _bytes(node: Any) -> bytes | None:
    if not isinstance(node, str):
        return None
    try:
        return base64.b64decode(node, validate=True)
    except (binascii.Error, ValueError) as error:
        raise DataError(f"Invalid bytes field: {error}") from None


_SIMPLE: dict[Type, Callable[[Any], Any]] = {
    **{each: _integer(bits) for each, bits in INTEGER_BITS.items()},
    Type.BOOLEAN: lambda node: node is True,
    Type.FLOAT32: lambda node: json_text.to_float32(_number(node)),
    Type.FLOAT64: _number,
    Type.STRING: lambda node: node if isinstance(node, str) else None,
    Type.BYTES: _bytes,
}


def _decimal(schema: Schema, node: Any) -> Decimal:
    match node:
        case bool():
            pass
        case int() | Decimal():
            return Decimal(node)
        case str():
            try:
                return logical.decimal_from_bytes(_bytes(node) or b"", logical.scale_of(schema))
            except DataError as error:
                raise DataError(f"Invalid bytes for Decimal field: {error}") from None
    raise DataError(
        "Invalid type for Decimal, underlying representation should be numeric or bytes but was "
        f"{_node_type(node)}"
    )


def _temporal(name: str, bits: int) -> Callable[[Schema, Any], Any]:
    def read(schema: Schema, node: Any) -> Any:
        if isinstance(node, bool) or not isinstance(node, int) or _wrapped(node, bits) != node:
            kind = "integral" if bits == 64 else "integer"
            raise DataError(
                f"Invalid type for {name}, underlying representation should be {kind} but was "
                f"{_node_type(node)}"
            )
        return logical.from_base(schema, node)

    return read


_LOGICAL: dict[str, Callable[[Schema, Any], Any]] = {
    logical.DECIMAL_NAME: _decimal,
    logical.DATE_NAME: _temporal("Date", 32),
    logical.TIME_NAME: _temporal("Time", 32),
    logical.TIMESTAMP_NAME: _temporal("Timestamp", 64),
}
