"""Connect's schemas and values as Avro, as Confluent's AvroData writes them.

What Avro has no word for is kept in properties (`connect.name`, `connect.version`, `connect.doc`,
`connect.parameters`, `connect.default`, `connect.type`), so that the way back gives the same
schema.
"""

from __future__ import annotations

from typing import Any

from moldau.data import logical
from moldau.data.avro import connect_names as names
from moldau.data.avro.canonical import parsing_canonical_form
from moldau.data.avro.connect_names import AvroDataOptions
from moldau.data.avro.defaults import DefaultChecker
from moldau.data.avro.language import AvroLanguage, AvroSchema
from moldau.data.avro.model import (
    MISSING,
    Array,
    AvroType,
    Enum,
    Fixed,
    Map,
    Name,
    NamedType,
    Primitive,
    Record,
    RecordField,
    Union,
    full_name,
)
from moldau.data.avro.printing import schema_text
from moldau.data.errors import DataError
from moldau.data.json_text import shortest_float32
from moldau.data.schema import Schema, Type
from moldau.data.schema_language import SchemaError
from moldau.data.struct import Struct, validate_value

_KINDS = {
    Type.INT8: "int",
    Type.INT16: "int",
    Type.INT32: "int",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_LOGICAL_TYPES = {
    logical.DECIMAL_NAME: "decimal",
    logical.DATE_NAME: "date",
    logical.TIME_NAME: "time-millis",
    logical.TIMESTAMP_NAME: "timestamp-millis",
}


def avro_schema(schema: Schema | None, options: AvroDataOptions | None = None) -> AvroSchema:
    """The Avro schema of a Connect schema; that of `Anything` for None."""
    try:
        root = _Schemas(options or AvroDataOptions()).of(schema)
        return AvroLanguage().parse(schema_text(root), strict=False)
    except RecursionError:
        raise DataError(f"{schema} is nested too deeply for Avro") from None
    except SchemaError as error:
        raise DataError(f"{schema} is not an Avro schema: {error}") from None


class _Schemas:
    def __init__(self, options: AvroDataOptions) -> None:
        self._options = options
        self._found: dict[Schema, AvroType] = {}
        self._by_name: dict[str, NamedType] = {}
        self._fields_seen: set[str] = set()
        self._unnamed = 0

    def of(self, schema: Schema | None, *, ignore_optional: bool = False) -> AvroType:
        if schema is None:
            return names.anything()
        if names.is_union(schema):
            return self._union(schema)
        if schema.type is Type.STRUCT and schema.optional:
            return Union([Primitive("null"), self.of(schema.as_required())])
        if schema.optional:
            made = self._with_properties(schema)
            return made if ignore_optional else _optional(schema, made)
        found = self._found.get(schema)
        if found is None:
            found = self._found[schema] = self._with_properties(schema)
        return found

    def _union(self, schema: Schema) -> Union:
        branches: list[AvroType] = [Primitive("null")] if schema.optional else []
        for field in schema.fields:
            branches.append(self.of(field.schema.as_required(), ignore_optional=True))
        return Union(branches)

    def _with_properties(self, schema: Schema) -> AvroType:
        made = self._base(schema)
        made.props.update(self._meta_data(schema))
        if schema.name in _LOGICAL_TYPES:
            made.props["logicalType"] = _LOGICAL_TYPES[schema.name or ""]
        for key, value in schema.parameters.items():
            if key.startswith(names.AVRO_PREFIX):
                made.props[key] = value
        return made

    def _base(self, schema: Schema) -> AvroType:
        match schema.type:
            case Type.ARRAY:
                return Array(self.of(schema.items))
            case Type.MAP:
                return self._map(schema)
            case Type.STRUCT:
                return self._record(schema)
            case Type.BYTES:
                return self._bytes(schema)
            case Type.STRING if self._options.enhanced_avro_schema_support and names.is_enum(
                schema
            ):
                return self._enum(schema)
            case _:
                return Primitive(_KINDS[schema.type])

    def _meta_data(self, schema: Schema) -> dict[str, Any]:
        if not self._options.connect_meta_data:
            return {}
        props: dict[str, Any] = {}
        if schema.doc is not None:
            props["connect.doc"] = schema.doc
        if schema.version is not None:
            props["connect.version"] = schema.version
        parameters = _parameters(schema)
        if parameters:
            props["connect.parameters"] = parameters
        if schema.default is not None and names.FIELD_DEFAULT not in schema.parameters:
            props["connect.default"] = self._default(schema, schema.default)
        if schema.name is not None:
            props["connect.name"] = schema.name
        if schema.type in (Type.INT8, Type.INT16):
            props["connect.type"] = schema.type.value
        return props

    def _name(self, schema: Schema) -> Name:
        if schema.name is not None:
            return Name.of(".".join(map(self._part, schema.name.split("."))))
        self._unnamed += 1
        number = str(self._unnamed) if self._unnamed > 1 else ""
        return Name(names.DEFAULT_NAME + number, names.NAMESPACE)

    def _part(self, name: str) -> str:
        return names.scrubbed(name) if self._options.scrub_invalid_names else name

    def _defined(self, made: NamedType) -> NamedType:
        """The type, unless another one has its name: a name has one meaning in Avro."""
        before = self._by_name.setdefault(made.name.full, made)
        if parsing_canonical_form(before) != parsing_canonical_form(made):
            raise DataError(
                f"Two different schemas are called {made.name.full}: give one of them another name"
            )
        return made

    def _bytes(self, schema: Schema) -> AvroType:
        made: Primitive | Fixed = Primitive("bytes")
        if names.is_fixed(schema):
            made = Fixed(self._name(schema), _number(schema, names.FIXED_SIZE))
            self._defined(made)
        if schema.name == logical.DECIMAL_NAME:
            made.props["scale"] = logical.scale_of(schema)
            made.props["precision"] = _number(
                schema, logical.PRECISION_PARAMETER, names.PRECISION_DEFAULT
            )
        return made

    def _enum(self, schema: Schema) -> AvroType:
        prefix = names.ENUM + "."
        symbols = [key.removeprefix(prefix) for key in schema.parameters if key.startswith(prefix)]
        name = Name.of(schema.parameters[names.ENUM])
        simple = Name.of(schema.name).simple if schema.name else name.simple
        made = Enum(
            name,
            symbols,
            schema.parameters.get(names.ENUM_DEFAULT + simple),
            doc=schema.parameters.get(names.ENUM_DOC + simple),
        )
        return self._defined(made)

    def _map(self, schema: Schema) -> AvroType:
        if self.has_text_keys(schema):
            return Map(self.of(schema.items))
        if schema.name is None:
            entry = Record(Name(names.MAP_ENTRY, names.NAMESPACE))
        else:
            entry = Record(self._name(schema), props={names.INTERNAL_TYPE: names.MAP_ENTRY})
        entry.fields = [self._field("key", schema.keys), self._field("value", schema.items)]
        self._defined(entry)
        return Array(entry)

    def has_text_keys(self, schema: Schema) -> bool:
        """Whether a map is one in Avro, too, and not an array of entries."""
        keys = schema.keys
        return keys.type is Type.STRING and (
            not keys.optional or self._options.allow_optional_map_keys
        )

    def _record(self, schema: Schema) -> AvroType:
        made = Record(self._name(schema), doc=schema.parameters.get(names.RECORD_DOC))
        for field in schema.fields:
            doc = schema.parameters.get(names.FIELD_DOC + field.name)
            made.fields.append(self._field(self._part(field.name), field.schema, doc))
        return self._defined(made)

    def _field(self, name: str, schema: Schema, doc: str | None = None) -> RecordField:
        seen = schema.name is not None and schema.name in self._fields_seen
        if schema.name is not None:
            self._fields_seen.add(schema.name)
        made = RecordField(name, self.of(schema), doc=doc)
        default: Any = MISSING
        if schema.default is not None:
            default = self._default(schema, schema.default)
        elif schema.optional:
            default = None
        if default is not MISSING and DefaultChecker().is_valid(made.type, default):
            made.default = default
        if self._options.connect_meta_data and seen and _holds_named(made.type):
            # The type is written elsewhere, with the parameters that it has there.
            parameters = _parameters(schema)
            if parameters:
                made.props["connect.parameters"] = parameters
        return made

    def _default(self, schema: Schema, value: Any) -> Any:
        """A Connect value in the JSON form of Avro's defaults."""
        if value is None:
            return None
        if logical.is_logical(schema):
            value = logical.to_base(schema, value)
        match schema.type:
            case Type.BYTES:
                return bytes(value).decode("latin-1")
            case Type.FLOAT32:
                return shortest_float32(value)
            case Type.ARRAY:
                return [self._default(schema.items, each) for each in value]
            case Type.MAP if self.has_text_keys(schema):
                return {key: self._default(schema.items, each) for key, each in value.items()}
            case Type.MAP:
                return [
                    [self._default(schema.keys, key), self._default(schema.items, each)]
                    for key, each in value.items()
                ]
            case Type.STRUCT:
                fields = {
                    self._part(each.name): self._default(each.schema, value.get(each.name))
                    for each in schema.fields
                }
                return next(iter(fields.values())) if names.is_union(schema) else fields
            case _:
                return value


def _optional(schema: Schema, made: AvroType) -> Union:
    null = Primitive("null")
    return Union([made, null] if schema.default is not None else [null, made])


def _parameters(schema: Schema) -> dict[str, str]:
    return {key: value for key, value in schema.parameters.items() if key != names.FIELD_DEFAULT}


def _holds_named(schema: AvroType) -> bool:
    branches = schema.branches if isinstance(schema, Union) else [schema]
    return any(isinstance(each, (Record, Enum, Fixed)) for each in branches)


def _number(schema: Schema, key: str, default: int | None = None) -> int:
    text = schema.parameters.get(key)
    if text is None and default is not None:
        return default
    try:
        return int(text or "")
    except ValueError:
        raise DataError(f"The parameter {key} of {schema} is no number: {text}") from None


def avro_value(schema: Schema | None, avro: AvroSchema, value: Any) -> Any:
    """A Connect value for `AvroEncoder(avro.root, logical_types=False)`.

    `avro` is what `avro_schema` made of `schema`.
    """
    if schema is not None:
        validate_value(schema, value)
    return _value(schema, avro.root, value)


def _value(schema: Schema | None, type_: AvroType, value: Any) -> Any:
    if schema is None:
        return _anything(value)
    if value is None:
        if not schema.optional:
            raise DataError("Found null value for non-optional schema")
        return None
    if names.is_union(schema):
        return _branch_value(schema, type_, value)
    inner = _present(type_)
    if logical.is_logical(schema):
        value = logical.to_base(schema, value)
    match inner:
        case Record():
            return {
                field.name: _value(each.schema, field.type, value.get(each.name))
                for field, each in zip(inner.fields, schema.fields, strict=True)
            }
        case Map():
            return {
                key: _value(schema.value_schema, inner.values, each) for key, each in value.items()
            }
        case Array() if schema.type is Type.MAP and isinstance(inner.items, Record):
            key, item = inner.items.fields
            return [
                {
                    "key": _value(schema.key_schema, key.type, each),
                    "value": _value(schema.value_schema, item.type, value[each]),
                }
                for each in value
            ]
        case Array():
            return [_value(schema.value_schema, inner.items, each) for each in value]
        case Fixed() if schema.name == logical.DECIMAL_NAME:
            return _padded(value, inner.size)
        case _:
            return bytes(value) if schema.type is Type.BYTES else value


def _present(type_: AvroType) -> AvroType:
    """The branch of an optional type that is not null."""
    if isinstance(type_, Union):
        return next(each for each in type_.branches if each.kind != "null")
    return type_


def _branch_value(schema: Schema, type_: AvroType, value: Struct) -> Any:
    """The one field that is set, with the name of its branch."""
    branches = type_.branches if isinstance(type_, Union) else [type_]
    present = [each for each in branches if each.kind != "null"]
    for field, branch in zip(schema.fields, present, strict=True):
        item = value.get(field.name)
        if item is not None:
            return full_name(branch), _value(field.schema.as_required(), branch, item)
    if schema.optional:
        return None
    raise DataError("A union has no field that is set")


def _padded(data: bytes, size: int) -> bytes:
    if len(data) > size:
        raise DataError(f"The decimal takes {len(data)} bytes, more than the {size} of its type")
    return (b"\xff" if data[:1] >= b"\x80" else b"\x00") * (size - len(data)) + data


def _anything(value: Any) -> dict[str, Any]:
    match value:
        case None:
            return {}
        case bool():
            return {"boolean": value}
        case int():
            return {"long": value}
        case float():
            return {"double": value}
        case str():
            return {"string": value}
        case bytes() | bytearray() | memoryview():
            return {"bytes": bytes(value)}
        case list() | tuple():
            return {"array": [_anything(each) for each in value]}
        case dict():
            entries = [
                {"key": _anything(key), "value": _anything(each)} for key, each in value.items()
            ]
            return {"map": entries}
        case _:
            raise DataError(
                f"A {type(value).__name__} without schema cannot be written as Avro: give it one"
            )
