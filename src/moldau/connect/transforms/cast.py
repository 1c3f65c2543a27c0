"""Cast: fields, or the whole key or value, converted to another simple type."""

from __future__ import annotations

import base64
import datetime
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, TypeVar

from moldau.connect.api import (
    ConfigDef,
    ConfigError,
    ConnectRecord,
    DataError,
    Importance,
    Kind,
    Transformation,
)
from moldau.connect.transforms.parts import (
    KEY,
    VALUE,
    Part,
    SchemaCache,
    field_value,
    java_class,
    require_known,
    require_map,
    require_struct,
    struct_schema,
    with_replace_null,
)
from moldau.data import json_text, logical
from moldau.data.primitive_bytes import java_text
from moldau.data.schema import INTEGER_BITS, Schema, Type
from moldau.data.struct import Struct
from moldau.data.values import to_text

R = TypeVar("R", bound=ConnectRecord)

_OUTPUTS = (
    Type.INT8,
    Type.INT16,
    Type.INT32,
    Type.INT64,
    Type.FLOAT32,
    Type.FLOAT64,
    Type.BOOLEAN,
    Type.STRING,
)
_INPUTS = (*_OUTPUTS, Type.BYTES)
_TEMPORAL = (datetime.date, datetime.time)
_PURPOSE = "cast types"

CONFIG = with_replace_null(
    ConfigDef().define(
        "spec",
        Kind.LIST,
        importance=Importance.HIGH,
        doc="Fields and the types to cast them to, as field1:type1,field2:type2, or one type for "
        "the whole key or value. Types: int8, int16, int32, int64, float32, float64, boolean, "
        "string. Bytes can be cast to string only.",
    )
)


class Cast(Transformation):
    PART: Part

    def __init__(self) -> None:
        self._whole: Type | None = None
        self._casts: dict[str, Type] = {}
        self._replace_null = True
        self._schemas = SchemaCache(self._updated_schema)

    @classmethod
    def config(cls) -> ConfigDef:
        return CONFIG

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = CONFIG.parse(configs)
        self._whole, self._casts = _parse_spec(settings["spec"])
        self._replace_null = settings["replace.null.with.default"]

    def apply(self, record: R) -> R | None:
        value = self.PART.value(record)
        if value is None:
            return record
        schema = self.PART.schema(record)
        if schema is None:
            return self.PART.replaced(record, None, self._schemaless(value))
        updated = self._schemas.get(schema)
        if self._whole is not None:
            return self.PART.replaced(record, updated, cast(schema, value, self._whole))
        struct = require_struct(value, _PURPOSE)
        values = []
        for field in schema.fields:
            original = field_value(struct, field.name, self._replace_null)
            target = self._casts.get(field.name)
            values.append(original if target is None else cast(field.schema, original, target))
        return self.PART.replaced(record, updated, Struct.unchecked(updated, values))

    def _schemaless(self, value: Any) -> Any:
        if self._whole is not None:
            return cast(None, value, self._whole)
        found = dict(require_map(value, _PURPOSE))
        for name, target in self._casts.items():
            # As in Kafka a field that is not there becomes null.
            found[name] = cast(None, found.get(name), target)
        return found

    def _updated_schema(self, schema: Schema) -> Schema:
        if self._whole is not None:
            return _cast_schema(schema, self._whole).replace(
                name=schema.name,
                version=schema.version,
                doc=schema.doc,
                parameters=schema.parameters,
            )
        fields = []
        for field in schema.fields:
            target = self._casts.get(field.name)
            own = field.schema if target is None else _cast_schema(field.schema, target)
            fields.append((field.name, own))
        return struct_schema(schema, fields).replace(optional=schema.optional)


class CastKey(Cast):
    PART = KEY


class CastValue(Cast):
    PART = VALUE


def _cast_schema(schema: Schema, target: Type) -> Schema:
    default = None if schema.default is None else cast(schema, schema.default, target)
    return Schema(type=target, optional=schema.optional, default=default)


def _parse_spec(spec: tuple[str, ...]) -> tuple[Type | None, dict[str, Type]]:
    if not spec:
        raise ConfigError("Must specify at least one field to cast.", key="spec")
    whole: Type | None = None
    casts: dict[str, Type] = {}
    for pair in spec:
        match pair.split(":"):
            case [text]:
                whole = _target(text)
            case [name, text]:
                casts[name.strip()] = _target(text)
            case _:
                raise ConfigError.invalid("spec", pair, "expected field:type")
    if whole is not None and len(spec) > 1:
        raise ConfigError(
            "Cast transformations that specify a type to cast the entire value to may only specify "
            "a single cast in their spec",
            key="spec",
        )
    return whole, casts


def _target(text: str) -> Type:
    try:
        found = Type(text.strip().lower())
    except ValueError:
        raise ConfigError(
            f"Invalid type found in casting spec: {text.strip()}", key="spec"
        ) from None
    if found not in _OUTPUTS:
        names = ", ".join(each.name for each in _OUTPUTS)
        raise ConfigError(
            f"Cast transformation does not support casting to {found.name}; "
            f"supported types are [{names}]",
            key="spec",
        )
    return found


def cast(schema: Schema | None, value: Any, target: Type) -> Any:
    """The value as the target type, by Java's rules for narrowing."""
    if value is None:
        return None
    if schema is None:
        require_known(value, "Cast")
    kind = _inferred(value) if schema is None else schema.type
    if kind not in _INPUTS:
        names = ", ".join(each.name for each in _INPUTS)
        raise DataError(
            f"Cast transformation does not support casting from {kind.name}; "
            f"supported types are [{names}]"
        )
    if target is Type.STRING:
        return _text(schema, value)
    if isinstance(value, _TEMPORAL) and schema is not None and logical.is_logical(schema):
        value = logical.to_base(schema, value)
    try:
        if target is Type.BOOLEAN:
            return _boolean(value)
        if target in INTEGER_BITS:
            return _integer(value, INTEGER_BITS[target])
        number = _float(value)
        return json_text.to_float32(number) if target is Type.FLOAT32 else number
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"Value ({value}) was out of range for requested data type") from None


def _inferred(value: Any) -> Type:
    match value:
        case bool():
            return Type.BOOLEAN
        case int():
            return Type.INT64
        case float():
            return Type.FLOAT64
        case str():
            return Type.STRING
        case bytes() | bytearray() | memoryview():
            return Type.BYTES
        case list() | tuple():
            return Type.ARRAY
        case dict():
            return Type.MAP
        case Struct():
            return Type.STRUCT
    raise DataError(
        f"Cast transformation was passed a value of type {type(value).__name__} which is not "
        "supported by Connect's data API"
    )


def _text(schema: Schema | None, value: Any) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, _TEMPORAL):
        return to_text(value) or ""
    if schema is not None and schema.type is Type.FLOAT32:
        return json_text.float_text(value)
    return java_text(value)


def _boolean(value: Any) -> bool:
    match value:
        case bool():
            return value
        case int():
            return value != 0
        case float() | Decimal():
            return _integer(value, 64) != 0
        case str():
            return value.lower() == "true"
    raise _unexpected(value)


def _integer(value: Any, bits: int) -> int:
    match value:
        case bool():
            return int(value)
        case int():
            return _cut(value, bits)
        case float():
            # A double narrows to 32 or 64 bits with saturation, then loses its upper bits.
            wide = max(bits, 32)
            if math.isnan(value):
                return 0
            most = (1 << wide - 1) - 1
            saturated = (
                max(-most - 1, min(most, int(value)))
                if math.isfinite(value)
                else (most if value > 0 else -most - 1)
            )
            return _cut(saturated, bits)
        case Decimal():
            return _cut(int(value), bits)
        case str():
            number = _java_integer(value)
            if number != _cut(number, bits):
                raise ValueError(value)
            return number
    raise _unexpected(value)


def _java_integer(text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    # As Java's: digits of any script.
    if not digits.isdecimal() or len(digits) > 20:
        raise ValueError(text)
    return int(text)


def _cut(value: int, bits: int) -> int:
    half = 1 << bits - 1
    return (value + half & 2 * half - 1) - half


def _float(value: Any) -> float:
    match value:
        case bool() | int() | float() | Decimal():
            return float(value)
        case str():
            return _java_float(value)
    raise _unexpected(value)


_FLOAT_TEXT = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?)", re.ASCII
)
_HEX_FLOAT_TEXT = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+[fFdD]?", re.ASCII
)


def _java_float(text: str) -> float:
    """By the rules of Java's parseDouble."""
    found = text.strip(_JAVA_SPACES)
    if _FLOAT_TEXT.fullmatch(found):
        return float(found if found.endswith(("NaN", "y")) else found.rstrip("fFdD"))
    if _HEX_FLOAT_TEXT.fullmatch(found):
        return float.fromhex(found.rstrip("fFdD"))
    raise ValueError(text)


_JAVA_SPACES = "".join(map(chr, range(33)))


def _unexpected(value: Any) -> DataError:
    return DataError(f"Unexpected type in Cast transformation: class {java_class(value)}")
