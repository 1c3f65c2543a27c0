"""Avro's schemas and values as Connect's, as Confluent's AvroData reads them.

A union of null and one type is that type, optional; any other union is a struct with a field for
each branch, one of which is set. An enum is a string whose parameters have the symbols.
"""

from __future__ import annotations

from typing import Any

from moldau.data import logical
from moldau.data.avro import connect_names as names
from moldau.data.avro.canonical import parsing_canonical_form
from moldau.data.avro.connect_names import AvroDataOptions
from moldau.data.avro.default_values import default_value
from moldau.data.avro.model import (
    MISSING,
    Array,
    AvroType,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    RecordField,
    Union,
    full_name,
)
from moldau.data.builders import STRING, checked
from moldau.data.errors import DataError
from moldau.data.json_text import to_float32
from moldau.data.schema import INTEGER_BITS, Field, Schema, SchemaAndValue, Type
from moldau.data.struct import Struct

_TYPES = {
    "boolean": Type.BOOLEAN,
    "int": Type.INT32,
    "long": Type.INT64,
    "float": Type.FLOAT32,
    "double": Type.FLOAT64,
    "string": Type.STRING,
    "bytes": Type.BYTES,
}
_LOGICAL = {
    ("int", "date"): logical.DATE,
    ("int", "time-millis"): logical.TIME,
    ("long", "timestamp-millis"): logical.TIMESTAMP,
}


def connect_schema(
    root: AvroType, options: AvroDataOptions | None = None, *, version: int | None = None
) -> Schema | None:
    """The Connect schema of an Avro schema; None for that of values without schema.

    `version` is that of the subject, for a schema that does not say its own.
    """
    if full_name(root) == names.ANYTHING and parsing_canonical_form(root) == parsing_canonical_form(
        names.anything()
    ):
        return None
    return _Schemas(options or AvroDataOptions()).of(root, version=version)


class _Schemas:
    def __init__(self, options: AvroDataOptions) -> None:
        self._options = options
        self._found: dict[tuple[int, bool], Schema] = {}
        self._open: set[int] = set()

    def of(
        self,
        type_: AvroType,
        *,
        optional: bool = False,
        default: Any = MISSING,
        version: int | None = None,
    ) -> Schema:
        if isinstance(type_, Union):
            member = self._only_member(type_)
            if member is not None:
                return self.of(member, optional=optional or len(type_.branches) > 1)
        key = (id(type_), optional)
        if default is MISSING and version is None and key in self._found:
            return self._found[key]
        if id(type_) in self._open:
            raise DataError(
                f"{full_name(type_)} holds itself, and Connect schemas here cannot: "
                "convert it without a Connect schema"
            )
        self._open.add(id(type_))
        base = self._base(type_)
        if optional:
            base = base.as_optional()
        made = self._with_attributes(type_, base, default, version)
        self._open.discard(id(type_))
        if default is MISSING and version is None:
            self._found[key] = made
        return made

    def _only_member(self, union: Union) -> AvroType | None:
        branches = union.branches
        if len(branches) == 1 and self._options.flatten_singleton_unions:
            return branches[0]
        if len(branches) == 2:
            present = [each for each in branches if each.kind != "null"]
            return present[0] if len(present) == 1 else None
        return None

    def _base(self, type_: AvroType) -> Schema:
        match type_:
            case Record():
                return self._struct(type_)
            case Enum():
                return self._enum(type_)
            case Array():
                return self._array(type_)
            case Map():
                return Schema(type=Type.MAP, key_schema=STRING, value_schema=self.of(type_.values))
            case Union():
                return self._union(type_)
            case Fixed():
                return self._bytes(type_)
            case Primitive(kind="bytes"):
                return self._bytes(type_)
            case Primitive(kind="null"):
                raise DataError("Standalone null schemas are not supported by this converter")
            case _:
                return _primitive(type_)

    def _bytes(self, type_: AvroType) -> Schema:
        schema = Schema(type=Type.BYTES)
        if _text(type_, "logicalType").lower() == "decimal":
            scale, precision = type_.props.get("scale"), type_.props.get("precision")
            if precision is not None and not isinstance(precision, (int, float)):
                raise DataError("precision property must be a JSON Integer.")
            shown = None if precision in (None, names.PRECISION_DEFAULT) else int(precision or 0)
            number = int(scale) if isinstance(scale, (int, float)) else 0
            schema = logical.decimal(number, precision=shown)
        if isinstance(type_, Fixed):
            schema = _with_parameters(schema, {names.FIXED_SIZE: str(type_.size)})
        return schema

    def _array(self, type_: Array) -> Schema:
        entry = type_.items
        if not isinstance(entry, Record) or not _is_map_entry(entry):
            return Schema(type=Type.ARRAY, value_schema=self.of(entry))
        key, value = entry.field("key"), entry.field("value")
        if len(entry.fields) != 2 or key is None or value is None:
            raise DataError(
                "Found map encoded as array of key-value pairs, but array elements do not match "
                "the expected format."
            )
        return Schema(type=Type.MAP, key_schema=self.of(key.type), value_schema=self.of(value.type))

    def _struct(self, type_: Record) -> Schema:
        parameters = {}
        if self._options.connect_meta_data:
            if type_.doc is not None:
                parameters[names.RECORD_DOC] = type_.doc
            for field in type_.fields:
                if field.doc is not None:
                    parameters[names.FIELD_DOC + field.name] = field.doc
        fields = tuple(
            Field(each.name, index, self._field(each)) for index, each in enumerate(type_.fields)
        )
        return Schema(type=Type.STRUCT, fields=fields, parameters=parameters)

    def _field(self, field: RecordField) -> Schema:
        schema = self.of(field.type, default=field.default)
        parameters = field.props.get("connect.parameters")
        if self._options.connect_meta_data and isinstance(parameters, dict):
            return _with_parameters(schema, {key: str(each) for key, each in parameters.items()})
        return schema

    def _enum(self, type_: Enum) -> Schema:
        parameters = {}
        if self._options.connect_meta_data:
            if type_.doc is not None:
                parameters[names.ENUM_DOC + type_.name.simple] = type_.doc
            if type_.default is not None:
                parameters[names.ENUM_DEFAULT + type_.name.simple] = type_.default
        parameters[names.ENUM] = type_.name.full
        parameters |= {f"{names.ENUM}.{each}": each for each in type_.symbols}
        return Schema(type=Type.STRING, parameters=parameters)

    def _union(self, type_: Union) -> Schema:
        present = [each for each in type_.branches if each.kind != "null"]
        found = [self.branch_name(each) for each in present]
        if len(set(found)) < len(found):
            raise DataError("Multiple union schemas map to the Connect union field name")
        fields = tuple(
            Field(name, index, self.of(each, optional=True))
            for index, (name, each) in enumerate(zip(found, present, strict=True))
        )
        optional = len(present) < len(type_.branches)
        return Schema(type=Type.STRUCT, name=names.UNION, fields=fields, optional=optional)

    def branch_name(self, type_: AvroType) -> str:
        if isinstance(type_, (Record, Enum, Fixed)):
            enhanced = self._options.enhanced_avro_schema_support
            return type_.name.full if enhanced else type_.name.simple
        return type_.kind

    def _with_attributes(
        self, type_: AvroType, schema: Schema, default: Any, version: int | None
    ) -> Schema:
        meta_data = self._options.connect_meta_data
        props = type_.props
        changes: dict[str, Any] = {}
        if meta_data and isinstance(props.get("connect.doc"), str):
            changes["doc"] = props["connect.doc"]
        own_version = _version(props.get("connect.version"), version, schema)
        if own_version is not None:
            changes["version"] = own_version
        name = _name(type_, schema)
        if name is not None:
            changes["name"] = name
        parameters = dict(schema.parameters)
        if meta_data and props.get("connect.parameters") is not None:
            parameters |= _checked_parameters(props["connect.parameters"])
        parameters |= {
            key: each if isinstance(each, str) else str(each)
            for key, each in props.items()
            if key.startswith(names.AVRO_PREFIX)
        }
        own_default = props.get("connect.default")
        if default is not MISSING and meta_data and own_default is None:
            parameters[names.FIELD_DEFAULT] = "true"
        made = schema.replace(**changes, parameters=parameters)
        return _with_default(made, type_, own_default if default is MISSING else default)


def _primitive(type_: Primitive) -> Schema:
    own = _text(type_, "connect.type")
    logical_name = _text(type_, "logicalType").lower()
    found = _LOGICAL.get((type_.kind, logical_name))
    if found is not None:
        return found
    if type_.kind == "int" and own and not logical_name:
        if own not in ("int8", "int16"):
            raise DataError(f"connect.type of an Avro int is int8 or int16, not {own}")
        return Schema(type=Type(own))
    return Schema(type=_TYPES[type_.kind])


def _text(type_: AvroType, key: str) -> str:
    value = type_.props.get(key)
    return value if isinstance(value, str) else ""


def _is_map_entry(type_: Record) -> bool:
    if type_.name.namespace == names.NAMESPACE and type_.name.simple == names.MAP_ENTRY:
        return True
    return type_.props.get(names.INTERNAL_TYPE) == names.MAP_ENTRY


def _with_parameters(schema: Schema, more: dict[str, str]) -> Schema:
    return schema.replace(parameters={**schema.parameters, **more})


def _checked_parameters(node: Any) -> dict[str, str]:
    if not isinstance(node, dict):
        raise DataError(f"Expected JSON object for schema parameters but found: {node!r}")
    for value in node.values():
        if not isinstance(value, str):
            raise DataError(f"Expected schema parameter values to be strings but found: {value!r}")
    return node


def _version(own: Any, given: int | None, schema: Schema) -> int | None:
    if own is not None and (not isinstance(own, (int, float)) or isinstance(own, bool)):
        raise DataError(f"Invalid Connect version found: {own!r}")
    version = given if own is None else int(own)
    if version is None or version < 0:
        return None
    if schema.version is not None and schema.version != version:
        raise DataError(
            f"Mismatched versions: the logical type has version {schema.version}, the Avro schema "
            f"says {version}"
        )
    return version


def _name(type_: AvroType, schema: Schema) -> str | None:
    name = type_.props.get("connect.name")
    if name is not None and not isinstance(name, str):
        raise DataError(f"Invalid schema name: {name!r}")
    if name is None:
        is_decimal = schema.name == logical.DECIMAL_NAME
        if isinstance(type_, (Record, Enum)) or (isinstance(type_, Fixed) and not is_decimal):
            name = type_.name.full
    if name is None or name.startswith(f"{names.NAMESPACE}.{names.DEFAULT_NAME}"):
        return None
    if schema.name is not None and schema.name != name:
        raise DataError(
            f"Mismatched names: the logical type is {schema.name}, the Avro schema says {name}"
        )
    return name


def _with_default(schema: Schema, type_: AvroType, default: Any) -> Schema:
    """The schema with its default, if that is one: what does not fit is left out."""
    if default is MISSING or default is None:
        return schema
    try:
        value = default_value(type_, default, logical_types=False)
        return checked(schema.replace(default=_Values().of(schema, type_, value)))
    except (DataError, AttributeError, TypeError, KeyError):
        return schema


def connect_value(schema: Schema | None, root: AvroType, value: Any) -> SchemaAndValue:
    """A value of `AvroDecoder(root, named_branches=True, logical_types=False)` for Connect.

    `schema` is what `connect_schema` made of `root`.
    """
    return SchemaAndValue(schema, _Values().of(schema, root, value))


class _Values:
    def of(self, schema: Schema | None, type_: AvroType, value: Any) -> Any:
        if schema is None:
            return _from_anything(value)
        if isinstance(type_, Union):
            return self._in_union(schema, type_, value)
        if value is None:
            if schema.optional:
                return None
            raise DataError("Found null value for non-optional schema")
        match type_:
            case Record():
                given = dict(value)
                values = [
                    self.of(each.schema, field.type, given[field.name])
                    for each, field in zip(schema.fields, type_.fields, strict=True)
                ]
                return Struct.unchecked(schema, values)
            case Map():
                return {
                    key: self.of(schema.value_schema, type_.values, each)
                    for key, each in value.items()
                }
            case Array() if schema.type is Type.MAP and isinstance(type_.items, Record):
                return self._entries(schema, type_.items, value)
            case Array():
                return [self.of(schema.value_schema, type_.items, each) for each in value]
            case _:
                return _simple(schema, value)

    def _entries(self, schema: Schema, entry: Record, value: Any) -> dict[Any, Any]:
        key, item = entry.field("key"), entry.field("value")
        if key is None or item is None:
            raise DataError("An entry of a map has a key and a value")
        return {
            self.of(schema.key_schema, key.type, each["key"]): self.of(
                schema.value_schema, item.type, each["value"]
            )
            for each in value
        }

    def _in_union(self, schema: Schema, type_: Union, value: Any) -> Any:
        if value is None:
            if schema.optional:
                return None
            raise DataError("Found null value for non-optional schema")
        branch, inner = _branch(type_, value)
        if not names.is_union(schema):
            return self.of(schema, branch, inner)
        present = [each for each in type_.branches if each.kind != "null"]
        values: list[Any] = [None] * len(present)
        index = next(index for index, each in enumerate(present) if each is branch)
        values[index] = self.of(schema.fields[index].schema, branch, inner)
        return Struct.unchecked(schema, values)


def _branch(type_: Union, value: Any) -> tuple[AvroType, Any]:
    """The branch that a value is of, and the value without the branch's name."""
    if isinstance(value, tuple):
        name, inner = value
        for each in type_.branches:
            if full_name(each) == name.removeprefix("_."):
                return each, inner
        raise DataError(f"The union has no branch {name}")
    for each in type_.branches:
        if _is_of(each, value):
            return each, value
    raise DataError("Did not find matching union field for data")


def _is_of(type_: AvroType, value: Any) -> bool:
    match type_.kind, value:
        case ("boolean", bool()) | ("string" | "enum", str()) | ("bytes", bytes()):
            return True
        case ("int" | "long" | "float" | "double", bool()):
            return False
        case "int", int():
            return -(2**31) <= value < 2**31
        case ("long", int()) | ("float" | "double", float()):
            return True
        case ("array", list()) | ("map" | "record", dict()):
            return True
        case "fixed", bytes():
            return isinstance(type_, Fixed) and len(value) == type_.size
        case _:
            return False


def _simple(schema: Schema, value: Any) -> Any:
    if logical.is_logical(schema):
        return logical.from_base(schema, value)
    if schema.type in (Type.INT8, Type.INT16):
        half = 1 << INTEGER_BITS[schema.type] - 1
        return (value + half & 2 * half - 1) - half
    if schema.type is Type.FLOAT32:
        return to_float32(value)
    return value


_ANYTHING_FIELDS = ("boolean", "bytes", "double", "float", "int", "long", "string")


def _from_anything(value: Any) -> Any:
    given = value[1] if isinstance(value, tuple) else value
    for name in _ANYTHING_FIELDS:
        if given.get(name) is not None:
            return given[name]
    if given.get("array") is not None:
        return [_from_anything(each) for each in given["array"]]
    if given.get("map") is not None:
        return {_from_anything(each["key"]): _from_anything(each["value"]) for each in given["map"]}
    return None
