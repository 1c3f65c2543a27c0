"""Fields of data: a walk by the schema that calls a function for each, and takes what it returns.

A walker is made once per schema. It copies what it changes: a caller's data stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from moldau.data.avro.language import AvroSchema
from moldau.data.avro.model import Array, AvroType, Map, Record, Union, full_name
from moldau.data.json_schema import JsonSchema
from moldau.data.schema_language import ParsedSchema

__all__ = [
    "DECIMAL_MESSAGE",
    "TIMESTAMP_MESSAGE",
    "UNSIGNED_TYPES",
    "VARIANT_MESSAGE",
    "Field",
    "Visit",
    "Walk",
    "bytes_fields",
    "is_map_field",
    "is_repeated",
    "may_be",
    "options_meta",
    "resolved_reference",
    "union_branch",
    "walker_of",
]

DECIMAL_MESSAGE: Final = "confluent.type.Decimal"
VARIANT_MESSAGE: Final = "confluent.type.Variant"
TIMESTAMP_MESSAGE: Final = "google.protobuf.Timestamp"
#: Numbers of Protobuf's types uint64, fixed64, fixed32 and uint32.
UNSIGNED_TYPES: Final = frozenset({4, 6, 7, 13})
#: Messages that are one value, and the types that rules see, which are those of Avro.
_VALUE_MESSAGES: Final = {DECIMAL_MESSAGE: "BYTES", TIMESTAMP_MESSAGE: "LONG"}


@dataclass(frozen=True, slots=True)
class Field:
    """`tags` are those of the schema itself, and `descriptor` is there for Protobuf."""

    message: Any
    full_name: str
    name: str
    type: str
    tags: frozenset[str]
    descriptor: Any = None


Visit = Callable[[Field, Any], Any]
Walk = Callable[[Any, Visit], Any]
_TAGS: Final = "confluent:tags"
_DEPTH_MAX: Final = 200


def walker_of(schema: ParsedSchema) -> Walk:
    if isinstance(schema, AvroSchema):
        root = schema.root
        return lambda data, visit: _avro(root, data, visit, None)
    if isinstance(schema, JsonSchema):
        return _JsonWalk(schema).walk
    return _protobuf_copy


# Avro.

_Place = tuple[Any, str, str, frozenset[str]]


def _avro(schema: AvroType, data: Any, visit: Visit, place: _Place | None) -> Any:
    match schema:
        case Union():
            return _avro_union(schema, data, visit, place)
        case Array() if isinstance(data, list):
            return [_avro(schema.items, each, visit, place) for each in data]
        case Map() if isinstance(data, dict):
            return {key: _avro(schema.values, each, visit, place) for key, each in data.items()}
        case Record():
            if not isinstance(data, dict):
                return data
            changed = dict(data)
            for field in schema.fields:
                if field.name in data:
                    tags = frozenset(field.props.get(_TAGS) or ())
                    inner = (data, f"{schema.name.full}.{field.name}", field.name, tags)
                    changed[field.name] = _avro(field.type, data[field.name], visit, inner)
            return changed
        case _:
            if place is None:
                return data
            message, whole, name, tags = place
            return visit(Field(message, whole, name, schema.kind.upper(), tags), data)


def _avro_union(schema: Union, data: Any, visit: Visit, place: _Place | None) -> Any:
    if isinstance(data, tuple) and len(data) == 2:
        for branch in schema.branches:
            if full_name(branch) == data[0]:
                return data[0], _avro(branch, data[1], visit, place)
        return data
    chosen = union_branch(schema, data)
    return data if chosen is None else _avro(chosen, data, visit, place)


_KINDS: Final[Mapping[type, tuple[str, ...]]] = {
    type(None): ("null",),
    bool: ("boolean",),
    int: ("int", "long", "float", "double"),
    float: ("double", "float"),
    str: ("string", "enum"),
    bytes: ("bytes", "fixed"),
    list: ("array",),
    dict: ("record", "map"),
}


def union_branch(schema: Union, data: Any) -> AvroType | None:
    """The branch that the encoder would choose."""
    kinds = _KINDS.get(type(data))
    if kinds is None:
        # A value of a logical type, such as a date.
        others = [each for each in schema.branches if each.props.get("logicalType")]
        return others[0] if others else None
    fitting = [each for kind in kinds for each in schema.branches if each.kind == kind]
    if isinstance(data, dict):
        for each in fitting:
            if isinstance(each, Record) and {field.name for field in each.fields} == data.keys():
                return each
    return fitting[0] if fitting else None


# JSON Schema.


class _JsonWalk:
    """References within the document are followed; others are left alone."""

    def __init__(self, schema: JsonSchema) -> None:
        self._document = schema.document

    def walk(self, data: Any, visit: Visit) -> Any:
        return self._visit(self._document, data, visit, "$", None, 0)

    def _visit(
        self, schema: Any, data: Any, visit: Visit, path: str, place: _Place | None, depth: int
    ) -> Any:
        if not isinstance(schema, dict) or data is None or depth > _DEPTH_MAX:
            return data
        for key in ("allOf", "anyOf", "oneOf"):
            for each in schema.get(key) or ():
                if key == "allOf" or may_be(resolved_reference(self._document, each), data):
                    data = self._visit(each, data, visit, path, place, depth + 1)
                    if key == "oneOf":
                        break
        if "$ref" in schema:
            inner = resolved_reference(self._document, schema)
            return self._visit(inner, data, visit, path, place, depth + 1)
        if isinstance(data, list):
            items = schema.get("items")
            if items is None:
                return data
            return [self._visit(items, each, visit, path, place, depth + 1) for each in data]
        if isinstance(data, dict):
            return self._object(schema, data, visit, path, depth)
        if place is None or any(key in schema for key in ("allOf", "anyOf", "oneOf")):
            return data
        message, whole, name, tags = place
        return visit(Field(message, whole, name, _json_type(schema, data), tags), data)

    def _object(
        self, schema: dict[str, Any], data: dict[str, Any], visit: Visit, path: str, depth: int
    ) -> dict[str, Any]:
        changed = dict(data)
        for name, inner in (schema.get("properties") or {}).items():
            if name not in data:
                continue
            whole = f"{path}.{name}"
            tags = frozenset(inner.get(_TAGS) or ()) if isinstance(inner, dict) else frozenset()
            place = (data, whole, name, tags)
            changed[name] = self._visit(inner, data[name], visit, whole, place, depth + 1)
        return changed


def resolved_reference(document: Any, schema: Any) -> Any:
    """What a `$ref` within the document means; a schema without one is itself."""
    reference = schema.get("$ref") if isinstance(schema, dict) else None
    if not isinstance(reference, str):
        return schema
    if not reference.startswith("#"):
        return None
    found = document
    for part in reference[1:].strip("/").split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, dict) or (name and name not in found):
            return None
        found = found[name] if name else found
    return found


_JSON_KINDS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
_JSON_TYPES: Final = {
    bool: "BOOLEAN",
    int: "INT",
    float: "DOUBLE",
    str: "STRING",
}


def may_be(schema: Any, data: Any) -> bool:
    """Whether the type, and for objects the required fields, allow the value."""
    if not isinstance(schema, dict):
        return False
    wanted = schema.get("type")
    names = wanted if isinstance(wanted, list) else [wanted] if wanted is not None else []
    if names and not any(isinstance(data, _JSON_KINDS.get(each, object)) for each in names):
        return False
    if isinstance(data, dict):
        return all(each in data for each in schema.get("required") or ())
    return True


def _json_type(schema: Mapping[str, Any], data: Any) -> str:
    if "enum" in schema:
        return "ENUM"
    if schema.get("type") == "number":
        return "DOUBLE"
    return _JSON_TYPES.get(type(data), "NULL")


# Protobuf.

_META_FIELD: Final = 1088
_META_TAGS: Final = 3


def _protobuf_copy(message: Any, visit: Visit) -> Any:
    copied = type(message)()
    copied.CopyFrom(message)
    return _protobuf(copied, visit)


def _protobuf(message: Any, visit: Visit) -> Any:
    for field in message.DESCRIPTOR.fields:
        if field.has_presence and not message.HasField(field.name):
            continue
        value = getattr(message, field.name)
        if is_map_field(field):
            _protobuf_map(message, field, value, visit)
        elif is_repeated(field):
            _protobuf_repeated(message, field, value, visit)
        elif _is_inner(field):
            _protobuf(value, visit)
        else:
            changed = visit(_protobuf_field(message, field), value)
            if field.message_type is not None:
                _replace(value, changed)
            elif changed is not None:
                setattr(message, field.name, changed)
    return message


def _protobuf_repeated(message: Any, field: Any, value: Any, visit: Visit) -> None:
    if _is_inner(field):
        for each in value:
            _protobuf(each, visit)
    elif field.message_type is not None:
        for each in value:
            _replace(each, visit(_protobuf_field(message, field), each))
    else:
        value[:] = [visit(_protobuf_field(message, field), each) for each in value]


def _protobuf_map(message: Any, field: Any, value: Any, visit: Visit) -> None:
    is_message = field.message_type.fields_by_name["value"].message_type is not None
    for key in list(value):
        if is_message:
            _protobuf(value[key], visit)
        else:
            value[key] = visit(_protobuf_field(message, field), value[key])


def _replace(message: Any, changed: Any) -> None:
    if changed is not message:
        message.CopyFrom(changed)


def _is_inner(field: Any) -> bool:
    """Whether it is a message with fields of its own, as rules see it."""
    return field.message_type is not None and field.message_type.full_name not in _VALUE_MESSAGES


def is_map_field(field: Any) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def is_repeated(field: Any) -> bool:
    # `label` is going away in newer releases of the library.
    found = getattr(field, "is_repeated", None)
    return bool(found) if found is not None else field.label == field.LABEL_REPEATED


_PROTOBUF_TYPES: Final = {
    1: "DOUBLE",
    2: "FLOAT",
    3: "LONG",
    4: "LONG",
    5: "INT",
    6: "LONG",
    7: "INT",
    8: "BOOLEAN",
    9: "STRING",
    12: "BYTES",
    13: "INT",
    14: "ENUM",
    15: "INT",
    16: "LONG",
    17: "INT",
    18: "LONG",
}


def _protobuf_field(message: Any, field: Any) -> Field:
    kind = _PROTOBUF_TYPES.get(field.type, "RECORD")
    if field.message_type is not None:
        kind = _VALUE_MESSAGES.get(field.message_type.full_name, kind)
    return Field(message, field.full_name, field.name, kind, _protobuf_tags(field), field)


def _protobuf_tags(field: Any) -> frozenset[str]:
    """`(confluent.field_meta).tags`, from the bytes: the extension's class may not be there."""
    return frozenset(tag.decode() for tag in options_meta(field, _META_TAGS))


def options_meta(descriptor: Any, number: int) -> list[bytes]:
    """A field of the confluent.Meta among the options of a field or message."""
    if not descriptor.has_options:
        return []
    options = descriptor.GetOptions().SerializeToString()
    return [
        each for meta in bytes_fields(options, _META_FIELD) for each in bytes_fields(meta, number)
    ]


def bytes_fields(data: bytes, number: int) -> list[bytes]:
    """The values of a length-delimited field of a message."""
    found, position = [], 0
    while position < len(data):
        tag, position = _varint(data, position)
        if tag & 7 == 2:
            size, position = _varint(data, position)
            if tag >> 3 == number:
                found.append(data[position : position + size])
            position += size
        elif tag & 7 == 0:
            _, position = _varint(data, position)
        else:
            position += 8 if tag & 7 == 1 else 4
    return found


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, position
