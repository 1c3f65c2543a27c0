"""Avro schemas as texts: as Apache Avro prints them, and as Confluent's registry normalizes them.

The order of attributes, what is left out and how a name is shortened inside of its namespace are
part of the form: registries look schemas up by these texts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moldau.data.avro.logical_types import decimal_precision_and_scale, logical_type
from moldau.data.avro.model import (
    MISSING,
    Array,
    AvroType,
    Enum,
    Fixed,
    Map,
    NamedType,
    Primitive,
    Record,
    RecordField,
    Union,
)
from moldau.data.json_text import compact, float_text, to_float32


def schema_text(schema: AvroType, known_names: Iterable[str] = ()) -> str:
    """Java's Schema.toString: types in `known_names` are written by name only."""
    return compact(_Printer(set(known_names)).node(schema, ""))


def definition_text(schema: NamedType) -> str:
    """What two definitions of one name must have in common: all but documentation and aliases."""
    return compact(_Printer(set(), only_meaning=True).node(schema, ""))


class _Printer:
    def __init__(self, known: set[str], *, only_meaning: bool = False) -> None:
        self._known = known
        self._only_meaning = only_meaning

    def node(self, schema: AvroType, namespace: str) -> Any:
        match schema:
            case Primitive():
                return {"type": schema.kind, **schema.props} if schema.props else schema.kind
            case Array():
                items = self.node(schema.items, namespace)
                return {"type": "array", "items": items, **_container_props(schema)}
            case Map():
                values = self.node(schema.values, namespace)
                return {"type": "map", "values": values, **schema.props}
            case Union():
                return [self.node(each, namespace) for each in schema.branches]
            case _:
                return self._named(schema, namespace)

    def _named(self, schema: NamedType, namespace: str) -> Any:
        name = schema.name
        if name.full in self._known:
            return name.within(namespace)
        self._known.add(name.full)
        node: dict[str, Any] = {"type": schema.kind, "name": name.simple}
        if name.namespace != namespace:
            node["namespace"] = name.namespace
        if schema.doc is not None and not self._only_meaning:
            node["doc"] = schema.doc
        match schema:
            case Record():
                node["type"] = "error" if schema.is_error and not self._only_meaning else "record"
                node["fields"] = [self._field(each, name.namespace) for each in schema.fields]
                node.update(_container_props(schema))
            case Enum():
                node["symbols"] = schema.symbols
                if schema.default is not None and not self._only_meaning:
                    node["default"] = schema.default
                node.update(schema.props)
            case Fixed():
                node["size"] = schema.size
                node.update(schema.props)
        if schema.aliases and not self._only_meaning:
            node["aliases"] = [each.within(name.namespace) for each in schema.aliases]
        return node

    def _field(self, field: RecordField, namespace: str) -> dict[str, Any]:
        node: dict[str, Any] = {"name": field.name, "type": self.node(field.type, namespace)}
        if field.doc is not None and not self._only_meaning:
            node["doc"] = field.doc
        if field.default is not MISSING:
            node["default"] = field.default
        if field.order != "ascending":
            node["order"] = field.order
        if field.aliases and not self._only_meaning:
            node["aliases"] = field.aliases
        node.update(field.props)
        return node


def _container_props(schema: Array | Record) -> dict[str, Any]:
    """Avro copies arrays and records when it resolves names, their logical type first."""
    if logical_type(schema) is None:
        return schema.props
    return {"logicalType": schema.props["logicalType"], **schema.props}


def normalized_text(schema: AvroType, known_names: Iterable[str] = ()) -> str:
    """The schema in the one form that all equivalent ones have.

    Names in full, properties and aliases sorted, a decimal's scale of zero and empty documentation
    left out, and defaults written as values of their type: 1.0 for a double, never 1.
    """
    return compact(_Normalizer(set(known_names)).node(schema, ""))


class _Normalizer:
    def __init__(self, known: set[str]) -> None:
        self._known = known

    def node(self, schema: AvroType, namespace: str) -> Any:
        match schema:
            case Primitive():
                props = _normalized_props(schema)
                return {"type": schema.kind, **props} if props else schema.kind
            case Array():
                node = {"type": "array", "items": self.node(schema.items, namespace)}
                return {**node, **_normalized_props(schema)}
            case Map():
                node = {"type": "map", "values": self.node(schema.values, namespace)}
                return {**node, **_normalized_props(schema)}
            case Union():
                return [self.node(each, namespace) for each in schema.branches]
            case _:
                return self._named(schema, namespace)

    def _named(self, schema: NamedType, namespace: str) -> Any:
        full = schema.name.full
        if full in self._known:
            return full
        self._known.add(full)
        node: dict[str, Any] = {"name": full, "type": schema.kind}
        if namespace and not schema.name.namespace:
            node["namespace"] = ""  # else it would be read as a name of the outer namespace
        match schema:
            case Record():
                node["fields"] = [
                    self._field(each, schema.name.namespace) for each in schema.fields
                ]
            case Enum():
                node["symbols"] = schema.symbols
            case Fixed():
                node["size"] = schema.size
        if schema.doc:
            node["doc"] = schema.doc
        if schema.aliases:
            node["aliases"] = sorted(
                each.full if each.namespace or not schema.name.namespace else "." + each.simple
                for each in schema.aliases
            )
        if isinstance(schema, Enum) and schema.default is not None:
            node["default"] = schema.default
        return {**node, **_normalized_props(schema)}

    def _field(self, field: RecordField, namespace: str) -> dict[str, Any]:
        node: dict[str, Any] = {"name": field.name, "type": self.node(field.type, namespace)}
        node["order"] = field.order
        if field.doc is not None:
            node["doc"] = field.doc
        if field.aliases:
            node["aliases"] = sorted(field.aliases)
        default = _typed_default(field.default, field.type)
        if default is not MISSING:
            node["default"] = _sorted(default)
        return {**node, **{key: _sorted(field.props[key]) for key in sorted(field.props)}}


def _normalized_props(schema: AvroType) -> dict[str, Any]:
    ordered: dict[str, Any] = {}
    name = logical_type(schema)
    if name is not None:
        ordered["logicalType"] = name
    if name == "decimal":
        precision, scale = decimal_precision_and_scale(schema)
        ordered["precision"] = precision
        if scale:
            ordered["scale"] = scale
    return {**ordered, **{key: _sorted(schema.props[key]) for key in sorted(schema.props)}}


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sorted(each) for each in value]
    return value


def _typed_default(value: Any, schema: AvroType) -> Any:
    """The default as a value of the type; MISSING where Confluent's registry drops it."""
    if value is MISSING or value is None or isinstance(value, bool):
        return value
    match schema:
        case Union():
            for branch in schema.branches:
                if branch.kind != "null":
                    typed = _typed_default(value, branch)
                    if typed is not MISSING:
                        return typed
            return MISSING
        case Array() if isinstance(value, list):
            return [_typed_part(each, schema.items) for each in value]
        case Map() if isinstance(value, dict):
            return {key: _typed_part(each, schema.values) for key, each in value.items()}
        case Record() if isinstance(value, dict):
            types = {each.name: each.type for each in schema.fields}
            return {key: _typed_part(each, types.get(key)) for key, each in value.items()}
        case _:
            return value if isinstance(value, dict) else _typed_simple(value, schema.kind)


def _typed_part(value: Any, schema: AvroType | None) -> Any:
    typed = MISSING if schema is None else _typed_default(value, schema)
    return value if typed is MISSING else typed


def _typed_simple(value: Any, kind: str) -> Any:
    match value:
        case int() if kind in ("int", "long"):
            return value
        case int() | float() if kind == "double":
            return float(value)
        case int() | float() if kind == "float":
            return float(float_text(to_float32(value)))
        case str() if kind in ("string", "enum", "bytes", "fixed"):
            return value
        case _:
            return MISSING
