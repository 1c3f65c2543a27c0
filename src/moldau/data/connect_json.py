"""Values as JSON, with and without their schema: what Connect's JsonConverter writes and reads.

With `schemas_enable` a message is `{"schema": ..., "payload": ...}`. Reading is as lenient as
Connect's: a text where a number should be is 0, a number that is too large is cut.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

from moldau.data import json_text, logical
from moldau.data.builders import checked
from moldau.data.errors import DataError, OptionError, SchemaBuilderError
from moldau.data.schema import INTEGER_BITS, Field, Schema, SchemaAndValue, Type
from moldau.data.struct import Struct

_TYPE_NAMES = {
    Type.BOOLEAN: "boolean",
    Type.INT8: "int8",
    Type.INT16: "int16",
    Type.INT32: "int32",
    Type.INT64: "int64",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.STRING: "string",
    Type.BYTES: "bytes",
    Type.ARRAY: "array",
    Type.MAP: "map",
    Type.STRUCT: "struct",
}
_TYPES_BY_NAME = {name: each for each, name in _TYPE_NAMES.items()}
_SCHEMAS_CACHED_MAX = 1000


class DecimalFormat(Enum):
    BASE64 = "BASE64"
    NUMERIC = "NUMERIC"


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonOptions:
    """The settings of Connect's JsonConverter."""

    schemas_enable: bool = True
    decimal_format: DecimalFormat = DecimalFormat.BASE64
    replace_null_with_default: bool = True

    @classmethod
    def from_config(cls, config: Mapping[str, str]) -> JsonOptions:
        """The options that a connector's configuration gives; others are ignored."""
        format_name = config.get("decimal.format", "BASE64")
        try:
            decimal_format = DecimalFormat(format_name.upper())
        except ValueError:
            raise OptionError(
                f"Invalid value {format_name} for configuration decimal.format: String must be "
                "one of (case insensitive): NUMERIC, BASE64"
            ) from None
        return cls(
            schemas_enable=_flag(config, "schemas.enable"),
            decimal_format=decimal_format,
            replace_null_with_default=_flag(config, "replace.null.with.default"),
        )


def _flag(config: Mapping[str, str], key: str) -> bool:
    text = config.get(key, "true").strip().lower()
    if text not in ("true", "false"):
        raise OptionError(f"Invalid value {text} for configuration {key}: expected true or false")
    return text == "true"


class JsonConverter:
    """Converts messages; it remembers the schemas it has met, up to a number."""

    def __init__(self, options: JsonOptions | None = None) -> None:
        self._options = options or JsonOptions()
        self._writer = _Writer(self._options)
        self._reader = _Reader(self._options)

    def to_json(self, schema: Schema | None, value: Any) -> bytes | None:
        """A message of the value; None, a tombstone, for no value without schema."""
        if schema is None and value is None:
            return None
        try:
            node = self._writer.value(schema, value)
            if self._options.schemas_enable:
                node = {"schema": self._writer.schema(schema), "payload": node}
            return _dump(node)
        except RecursionError:
            raise DataError("The value is nested too deeply for JSON") from None

    def from_json(self, data: bytes | None) -> SchemaAndValue:
        """The value of a message, with its schema if there is one."""
        if data is None:
            return SchemaAndValue(None, None)
        try:
            node = json_text.parse(data, decimals=True) if data.strip() else None
        except ValueError as error:
            raise DataError(
                "Converting byte[] to Kafka Connect data failed due to serialization error: "
                f"{error}"
            ) from None
        try:
            return self._reader.message(node)
        except RecursionError:
            raise DataError("The JSON is nested too deeply") from None


def schema_to_json(schema: Schema) -> bytes:
    """A schema as JSON, as it is in a message's envelope."""
    return _dump(_Writer(JsonOptions()).schema(schema))


def schema_from_json(data: bytes) -> Schema | None:
    """The schema that `schema_to_json` wrote; ValueError for anything else."""
    return _Reader(JsonOptions()).schema(json_text.parse(data, decimals=True))


def _dump(node: Any) -> bytes:
    try:
        text = json.dumps(node, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except TypeError:
        # The standard module has no exact decimals.
        text = json_text.compact(node)
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise DataError("A text has half of a surrogate pair, which UTF-8 cannot express") from None


class _Writer:
    def __init__(self, options: JsonOptions) -> None:
        self._options = options
        self._schemas: dict[Schema, dict[str, Any]] = {}

    def schema(self, schema: Schema | None) -> dict[str, Any] | None:
        if schema is None:
            return None
        found = self._schemas.get(schema)
        if found is None:
            found = self._schema(schema)
            if len(self._schemas) >= _SCHEMAS_CACHED_MAX:
                self._schemas.clear()
            self._schemas[schema] = found
        return found

    def _schema(self, schema: Schema) -> dict[str, Any]:
        node: dict[str, Any] = {"type": _TYPE_NAMES[schema.type]}
        match schema.type:
            case Type.ARRAY:
                node["items"] = self.schema(schema.value_schema)
            case Type.MAP:
                node["keys"] = self.schema(schema.key_schema)
                node["values"] = self.schema(schema.value_schema)
            case Type.STRUCT:
                node["fields"] = [
                    {**self._schema(each.schema), "field": each.name} for each in schema.fields
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


class _Reader:
    def __init__(self, options: JsonOptions) -> None:
        self._options = options
        self._schemas: dict[str, Schema] = {}

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
        key = json_text.compact(node)
        found = self._schemas.get(key)
        if found is None:
            found = self._schema(node)
            if len(self._schemas) >= _SCHEMAS_CACHED_MAX:
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
        struct = Struct(schema)
        for field in schema.fields:
            struct.put(field.name, self.value(field.schema, node.get(field.name)))
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
