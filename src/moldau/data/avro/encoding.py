"""Avro's binary encoding, by fastavro: a schema is prepared once, then values are converted.

A record is a dict, an enum a str, bytes and fixed are bytes, and the logical types are Decimal,
date, time, datetime and UUID. A value of a union may be a pair of the branch's name and the value.
"""

from __future__ import annotations

from copy import deepcopy
from io import BytesIO
from typing import Any

from fastavro import parse_schema, schemaless_reader, schemaless_writer

from moldau.data.avro.default_values import default_value
from moldau.data.avro.defaults import DefaultChecker
from moldau.data.avro.int_ranges import int_check
from moldau.data.avro.limits import DEPTH_MAX, check_data, has_empty_items, is_recursive
from moldau.data.avro.logical_types import logical_type
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
    parts,
)
from moldau.data.errors import DataError

#: What fastavro converts; with any other logical type a value is the one underneath.
_LOGICAL_TYPES = frozenset(
    {
        "date",
        "decimal",
        "time-millis",
        "time-micros",
        "timestamp-millis",
        "timestamp-micros",
        "local-timestamp-millis",
        "local-timestamp-micros",
        "uuid",
    }
)
_LOGICAL_ATTRIBUTES = ("logicalType", "precision", "scale")


class AvroEncoder:
    """Encodes values of one schema.

    Without `logical_types` their values are the numbers and bytes underneath.
    """

    def __init__(self, schema: AvroType, *, logical_types: bool = True) -> None:
        self._schema, _ = _prepared(schema, logical_types=logical_types)
        self._check_ints = int_check(schema)

    def encode(self, value: Any) -> bytes:
        if self._check_ints is not None:
            self._check_ints(value)
        buffer = BytesIO()
        try:
            schemaless_writer(buffer, self._schema, value)
        except Exception as error:
            # fastavro has no class for values that do not fit: whatever a wrong type leads to.
            raise DataError(f"The value does not fit the Avro schema: {_said(error)}") from error
        return buffer.getvalue()


class AvroDecoder:
    """Decodes data that was written with one schema, as values of the same or another schema.

    With `named_branches`, a record, enum or fixed in a union is a pair of its name and the value.
    """

    def __init__(
        self,
        writer: AvroType,
        reader: AvroType | None = None,
        *,
        named_branches: bool = False,
        logical_types: bool = True,
    ) -> None:
        self._writer_type = writer
        self._writer, _ = _prepared(writer, logical_types=logical_types)
        self._reader: Any = None
        self._shared: list[Any] = []
        if reader is not None:
            self._reader, self._shared = _prepared(reader, logical_types=logical_types)
        self._shared_ids = frozenset(map(id, self._shared))
        self._named_branches = named_branches
        self._is_recursive = is_recursive(writer)
        self._has_empty_items = has_empty_items(writer)

    def decode(self, data: bytes | bytearray | memoryview) -> Any:
        given = bytes(data)
        # Each level takes a byte at least, so that little data cannot be deep.
        if self._has_empty_items or (self._is_recursive and len(given) > DEPTH_MAX):
            check_data(self._writer_type, given)
        try:
            value = schemaless_reader(
                BytesIO(given),
                self._writer,
                self._reader,
                return_named_type=self._named_branches,
            )
        except Exception as error:
            raise DataError(f"Not data of the Avro schema: {_said(error)}") from error
        return _own(value, self._shared_ids) if self._shared_ids else value


def _own(value: Any, shared: frozenset[int]) -> Any:
    """The value with copies of defaults that are lists or dicts.

    fastavro puts the same object into every record, where a change to one would change all.
    """
    if id(value) in shared:
        return deepcopy(value)
    match value:
        case dict():
            for key, each in value.items():
                if isinstance(each, (dict, list, tuple)):
                    value[key] = _own(each, shared)
        case list():
            for index, each in enumerate(value):
                if isinstance(each, (dict, list, tuple)):
                    value[index] = _own(each, shared)
        case (name, inner):
            return name, _own(inner, shared)
    return value


def _said(error: Exception) -> str:
    return f"{error}" or type(error).__name__


def _prepared(schema: AvroType, *, logical_types: bool) -> tuple[Any, list[Any]]:
    """The schema as fastavro wants it, defaults as Python values, and those that can be changed."""
    named: dict[str, NamedType] = {}
    _collect(schema, named)
    namespaces = {bool(each.name.namespace) for each in named.values()}
    writing = _Node(mixed=len(namespaces) > 1, logical_types=logical_types)
    try:
        parsed = parse_schema(writing.of(schema))
    except Exception as error:
        # Names of other alphabets, for example, which registries hold from long ago.
        raise DataError(f"The schema cannot be used for data: {_said(error)}") from error
    records = {writing.name(each.name): each for each in named.values() if isinstance(each, Record)}
    defaults = _Defaults(records, logical_types=logical_types)
    defaults.put_into(parsed)
    return parsed, defaults.changeable


class _Node:
    """The schema as JSON, without what does not matter to the encoding.

    fastavro looks for a name without namespace only in the namespace around it. In a schema of
    both kinds those without get one.
    """

    def __init__(self, *, mixed: bool, logical_types: bool) -> None:
        self._known: set[str] = set()
        self._mixed = mixed
        self._logical_types = logical_types

    def name(self, name: Name) -> str:
        return f"_.{name.simple}" if self._mixed and not name.namespace else name.full

    def of(self, schema: AvroType) -> Any:
        match schema:
            case Primitive():
                attributes = self._logical(schema)
                return {"type": schema.kind, **attributes} if attributes else schema.kind
            case Array():
                return {"type": "array", "items": self.of(schema.items)}
            case Map():
                return {"type": "map", "values": self.of(schema.values)}
            case Union():
                return [self.of(each) for each in schema.branches]
            case _:
                return self._named(schema)

    def _named(self, schema: NamedType) -> Any:
        full = self.name(schema.name)
        if full in self._known:
            return full
        self._known.add(full)
        node: dict[str, Any] = {"type": schema.kind, "name": full}
        if schema.aliases:
            node["aliases"] = [self.name(each) for each in schema.aliases]
        match schema:
            case Record():
                node["fields"] = [
                    {"name": each.name, "type": self.of(each.type), "aliases": each.aliases}
                    for each in schema.fields
                ]
            case Enum():
                node["symbols"] = schema.symbols
                if schema.default is not None:
                    node["default"] = schema.default
            case Fixed():
                node["size"] = schema.size
                node.update(self._logical(schema))
        return node

    def _logical(self, schema: AvroType) -> dict[str, Any]:
        if not self._logical_types or logical_type(schema) not in _LOGICAL_TYPES:
            return {}
        return {key: schema.props[key] for key in _LOGICAL_ATTRIBUTES if key in schema.props}


def _collect(schema: AvroType, named: dict[str, NamedType]) -> None:
    if isinstance(schema, (Record, Enum, Fixed)):
        if schema.name.full in named:
            return
        named[schema.name.full] = schema
    for inner in parts(schema):
        _collect(inner, named)


class _Defaults:
    """Puts defaults as Python values into a schema that fastavro has parsed."""

    def __init__(self, records: dict[str, Record], *, logical_types: bool) -> None:
        self._records = records
        self._logical_types = logical_types
        self._checker = DefaultChecker()
        self.changeable: list[Any] = []

    def put_into(self, node: Any) -> None:
        if isinstance(node, list):
            for each in node:
                self.put_into(each)
        elif isinstance(node, dict):
            is_record = node.get("type") == "record"
            record = self._records.get(str(node.get("name"))) if is_record else None
            if record is not None:
                for field, each in zip(record.fields, node["fields"], strict=True):
                    self._put(field, each)
                    self.put_into(each["type"])
            for key in ("items", "values"):
                self.put_into(node.get(key))
            self.put_into(list(node.get("__named_schemas", {}).values()))

    def _put(self, field: RecordField, node: dict[str, Any]) -> None:
        # One that does not fit, in a schema from long ago, is none.
        if field.default is MISSING or not self._checker.is_valid(field.type, field.default):
            return
        value = default_value(field.type, field.default, logical_types=self._logical_types)
        node["default"] = value
        if isinstance(value, (list, dict)):
            self.changeable.append(value)
