"""Avro schemas read from JSON, as strictly as Apache Avro 1.12 reads them.

A name may be used before the type is defined, so names are resolved, and defaults and unions
checked, when the whole text has been read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn

from moldau.data import json_text
from moldau.data.avro.defaults import DefaultChecker
from moldau.data.avro.model import (
    MISSING,
    PRIMITIVES,
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
    parts,
)
from moldau.data.avro.printing import definition_text, schema_text
from moldau.data.schema_language import SchemaError

#: Schemas inside of one another: more than anyone writes, less than Python's stack holds.
NESTING_MAX = 100
_SCHEMA_RESERVED = frozenset(
    ["doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"]
)
_ENUM_RESERVED = _SCHEMA_RESERVED | {"default"}
_FIELD_RESERVED = frozenset(["default", "doc", "name", "order", "type", "aliases"])
_STRICT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n\r]*|/\*.*?\*/', re.DOTALL)
_FIXED_SIZE_MAX = 2**31 - 1 - 8


class Parser:
    """Reads schemas one after another; each may name the types of those before it.

    `strict` is for what is new: names of ASCII letters only, and defaults that fit. What a registry
    already holds is read without, as Confluent's does.
    """

    def __init__(self, *, strict: bool = True) -> None:
        self._strict = strict
        self._types: dict[str, NamedType] = {}

    def parse(self, text: str) -> AvroType:
        reading = _Reading(self._types, strict=self._strict)
        try:
            schema = reading.read(_load(text))
        except RecursionError:
            raise SchemaError("The schema is nested too deeply") from None
        self._types = reading.types
        return schema


def _load(text: str) -> Any:
    try:
        return json_text.parse(text)
    except ValueError as error:
        if "/" not in text:
            raise SchemaError(f"The schema is not JSON: {error}") from None
    try:
        return json_text.parse(_COMMENT.sub(_without_comment, text))
    except ValueError as error:
        raise SchemaError(f"The schema is not JSON: {error}") from None


def _without_comment(found: re.Match[str]) -> str:
    return " " if found.group().startswith("/") else found.group()


class _Reading:
    """One text being read."""

    def __init__(self, types: dict[str, NamedType], *, strict: bool) -> None:
        self._known = types
        self._new: dict[str, NamedType] = {}
        self._strict = strict
        self._unresolved: list[tuple[str, Callable[[AvroType], None]]] = []
        self._unions: list[Union] = []
        self._fields: list[RecordField] = []
        self._twice: list[tuple[NamedType, NamedType]] = []

    @property
    def types(self) -> dict[str, NamedType]:
        return {**self._new, **self._known}

    def read(self, node: Any) -> AvroType:
        root: list[AvroType] = []
        self._read(node, "", 1, root.append)
        for name, put in self._unresolved:
            found = self._defined(name)
            if found is None:
                raise SchemaError(f"Undefined schema: {name}")
            put(found)
        schema = root[0]
        _check_depth(schema)
        for before, again in self._twice:
            if definition_text(before) != definition_text(again):
                raise SchemaError(f"Can't redefine: {again.name.full}")
        for union in self._unions:
            _check_union(union)
        if self._strict:
            self._check_defaults()
        # A definition that only repeats an earlier one stands for it, documentation and all.
        return self._defined(full_name(schema)) or schema

    def _defined(self, name: str) -> NamedType | None:
        return self._known.get(name) or self._new.get(name)

    def _check_defaults(self) -> None:
        checker = DefaultChecker()
        for field in self._fields:
            if field.default is not MISSING and not checker.is_valid(field.type, field.default):
                raise SchemaError(
                    f"Invalid default for field {field.name}: "
                    f"{json_text.compact(field.default)} not a {schema_text(field.type)}"
                )

    def _read(self, node: Any, namespace: str, depth: int, put: Callable[[AvroType], None]) -> None:
        """Put the type that `node` describes where it belongs, later if it is only named."""
        if depth > NESTING_MAX:
            raise SchemaError(f"The schema is nested more than {NESTING_MAX} levels deep")
        if isinstance(node, str):
            self._find(node, namespace, put)
        elif isinstance(node, dict):
            self._read_object(node, namespace, depth, put)
        elif isinstance(node, list):
            put(self._read_union(node, namespace, depth))
        else:
            raise SchemaError(f"Schema not yet supported: {json_text.compact(node)}")

    def _find(self, text: str, namespace: str, put: Callable[[AvroType], None]) -> None:
        if text in PRIMITIVES:
            put(Primitive(text))
            return
        name = text if "." in text else Name(text, namespace).full
        for each in (name, text):
            found = self._defined(each)
            if found is not None:
                put(found)
                return
        self._unresolved.append((name, put))

    def _read_object(
        self, node: dict[str, Any], namespace: str, depth: int, put: Callable[[AvroType], None]
    ) -> None:
        kind = _required_text(node, "type", "No type")
        if kind in PRIMITIVES:
            put(Primitive(kind, _props(node, _SCHEMA_RESERVED)))
        elif kind in ("record", "error"):
            put(self._read_record(node, namespace, depth))
        elif kind == "enum":
            put(self._read_enum(node, namespace))
        elif kind == "fixed":
            put(self._read_fixed(node, namespace))
        elif kind == "array":
            put(self._read_array(node, namespace, depth))
        elif kind == "map":
            put(self._read_map(node, namespace, depth))
        else:
            self._find(kind, namespace, put)

    def _read_union(self, node: list[Any], namespace: str, depth: int) -> Union:
        union = Union([_PENDING] * len(node))
        for index, each in enumerate(node):
            self._read(each, namespace, depth + 1, _setter(union.branches, index))
        self._unions.append(union)
        return union

    def _read_array(self, node: dict[str, Any], namespace: str, depth: int) -> Array:
        if "items" not in node:
            _refuse("Array has no items type", node)
        array = Array(_PENDING, _props(node, _SCHEMA_RESERVED))
        self._read(
            node["items"], namespace, depth + 1, lambda found: setattr(array, "items", found)
        )
        return array

    def _read_map(self, node: dict[str, Any], namespace: str, depth: int) -> Map:
        if "values" not in node:
            _refuse("Map has no values type", node)
        map_ = Map(_PENDING, _props(node, _SCHEMA_RESERVED))
        self._read(
            node["values"], namespace, depth + 1, lambda found: setattr(map_, "values", found)
        )
        return map_

    def _read_record(self, node: dict[str, Any], namespace: str, depth: int) -> Record:
        name = self._name(node, namespace)
        record = Record(name, is_error=node["type"] == "error", doc=_text(node, "doc"))
        fields = node.get("fields")
        if not isinstance(fields, list):
            _refuse("Record has no fields", node)
        seen = set()
        for each in fields:
            field = self._read_field(each, name.namespace, depth)
            if field.name in seen:
                raise SchemaError(f"Duplicate field {field.name} in record {name.full}")
            seen.add(field.name)
            record.fields.append(field)
        record.props = _props(node, _SCHEMA_RESERVED)
        record.aliases = self._type_aliases(node, name)
        self._define(record)
        return record

    def _read_field(self, node: Any, namespace: str, depth: int) -> RecordField:
        if not isinstance(node, dict):
            _refuse("No field name", node)
        name = self._checked_name(_required_text(node, "name", "No field name"))
        if "type" not in node:
            _refuse("No field type", node)
        field = RecordField(name, _PENDING, doc=_text(node, "doc"))
        self._read(node["type"], namespace, depth + 1, lambda found: setattr(field, "type", found))
        field.order = _order(node)
        if "default" in node:
            field.default = _default(node["default"], field.type)
        field.props = _props(node, _FIELD_RESERVED)
        field.aliases = _aliases(node)
        self._fields.append(field)
        return field

    def _read_enum(self, node: dict[str, Any], namespace: str) -> Enum:
        name = self._name(node, namespace)
        symbols = node.get("symbols")
        if not isinstance(symbols, list):
            _refuse("Enum has no symbols", node)
        seen = set()
        for symbol in symbols:
            self._checked_name(symbol)
            if symbol in seen:
                raise SchemaError(f"Duplicate enum symbol: {symbol}")
            seen.add(symbol)
        default = _text(node, "default")
        if default is not None and default not in seen:
            raise SchemaError(
                f"The Enum Default: {default} is not in the enum symbol set: [{', '.join(symbols)}]"
            )
        enum = Enum(name, symbols, default, doc=_text(node, "doc"))
        enum.props = _props(node, _ENUM_RESERVED)
        enum.aliases = self._type_aliases(node, name)
        self._define(enum)
        return enum

    def _read_fixed(self, node: dict[str, Any], namespace: str) -> Fixed:
        name = self._name(node, namespace)
        size = node.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _FIXED_SIZE_MAX:
            _refuse("Invalid or no size", node)
        fixed = Fixed(name, size, doc=_text(node, "doc"))
        fixed.props = _props(node, _SCHEMA_RESERVED)
        fixed.aliases = self._type_aliases(node, name)
        self._define(fixed)
        return fixed

    def _name(self, node: dict[str, Any], namespace: str) -> Name:
        own = _text(node, "namespace")
        text = _required_text(node, "name", "No name in schema")
        name = Name.of(text, namespace if own is None else own)
        self._checked_name(name.simple)
        if name.full in PRIMITIVES:
            raise SchemaError(f"Schemas may not be named after primitives: {name.full}")
        return name

    def _checked_name(self, name: Any) -> str:
        """One part of a name: a field, a symbol, what is between two dots."""
        if not isinstance(name, str):
            raise SchemaError("Null name")
        if not name:
            raise SchemaError("Empty name")
        if self._strict:
            fits = _STRICT_NAME.fullmatch(name) is not None
        else:
            fits = (name[0].isalpha() or name[0] == "_") and all(
                each.isalnum() or each == "_" for each in name
            )
        if fits:
            return name
        first = name[0].isalpha() or name[0] == "_"
        raise SchemaError(f"Illegal {'character in' if first else 'initial character'}: {name}")

    def _type_aliases(self, node: dict[str, Any], name: Name) -> list[Name]:
        aliases = [Name.of(each, name.namespace) for each in _aliases(node)]
        if self._strict:
            for each in aliases:
                self._checked_name(each.simple)
        return list(dict.fromkeys(aliases))

    def _define(self, schema: NamedType) -> None:
        full = schema.name.full
        if self._strict and schema.name.namespace:
            for part in schema.name.namespace.split("."):
                try:
                    self._checked_name(part)
                except SchemaError as error:
                    raise SchemaError(f'Namespace part "{part}" is invalid: {error}') from None
        before = self._defined(full)
        if before is None:
            self._new[full] = schema
        else:
            self._twice.append((before, schema))


#: Stands where a type goes that has not been read yet.
_PENDING: AvroType = Primitive("null")


def _setter(into: list[AvroType], index: int) -> Callable[[AvroType], None]:
    def put(found: AvroType) -> None:
        into[index] = found

    return put


def _check_depth(schema: AvroType) -> None:
    """Names let a flat text describe a deep schema; walking it must not exhaust the stack."""
    seen = {id(schema)}
    path = [parts(schema)]
    while path:
        inner = next(path[-1], None)
        if inner is None:
            path.pop()
        elif not isinstance(inner, (Primitive, Enum, Fixed)) and id(inner) not in seen:
            seen.add(id(inner))
            path.append(parts(inner))
            if len(path) > NESTING_MAX:
                raise SchemaError(f"The schema is nested more than {NESTING_MAX} levels deep")


def _check_union(union: Union) -> None:
    seen = set()
    for branch in union.branches:
        if isinstance(branch, Union):
            raise SchemaError(f"Nested union: {schema_text(union)}")
        name = full_name(branch)
        if name in seen:
            raise SchemaError(f"Duplicate in union:{name}")
        seen.add(name)


def _default(value: Any, schema: AvroType) -> Any:
    """A number may be written as a text where a float or double is wanted: "NaN" is no JSON."""
    if isinstance(value, str) and schema.kind in ("float", "double"):
        try:
            return float(value)
        except ValueError:
            raise SchemaError(f'The default "{value}" is not a number') from None
    return value


def _order(node: dict[str, Any]) -> str:
    order = node.get("order")
    if order is None and "order" not in node:
        return "ascending"
    if not isinstance(order, str) or order.lower() not in ("ascending", "descending", "ignore"):
        _refuse("The order of a field is ascending, descending or ignore", node)
    return order.lower()


def _aliases(node: dict[str, Any]) -> list[str]:
    if "aliases" not in node:
        return []
    aliases = node["aliases"]
    if not isinstance(aliases, list):
        _refuse("aliases not an array", node)
    for alias in aliases:
        if not isinstance(alias, str):
            _refuse("alias not a string", alias)
    return list(dict.fromkeys(aliases))


def _props(node: dict[str, Any], reserved: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in reserved}


def _text(node: dict[str, Any], key: str) -> str | None:
    value = node.get(key)
    return value if isinstance(value, str) else None


def _required_text(node: dict[str, Any], key: str, problem: str) -> str:
    value = _text(node, key)
    if value is None:
        _refuse(problem, node)
    return value


def _refuse(problem: str, node: Any) -> NoReturn:
    shown = json_text.compact(node)
    raise SchemaError(f"{problem}: {shown[:1000]}")
