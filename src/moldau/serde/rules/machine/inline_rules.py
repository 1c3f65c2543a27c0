"""Rules within a schema: `confluent:rules` of Avro and JSON Schema, `(confluent.field_meta).rules`.

A rule of a record is about the record, one of a field about its value; null and what is not there
have no rules. Decided here: which rules are about which parts of the data. They are evaluated
elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from moldau.data.avro.language import AvroSchema
from moldau.data.avro.model import Array, AvroType, Map, Record, Union, full_name
from moldau.data.json_schema import JsonSchema
from moldau.data.schema_language import ParsedSchema
from moldau.serde.rules.machine.fields import (
    bytes_fields,
    is_map_field,
    is_repeated,
    may_be,
    options_meta,
    resolved_reference,
    union_branch,
)

__all__ = ["InlineRule", "Subject", "inline_rules_of"]

_RULES: Final = "confluent:rules"
_META_RULES: Final = 4
_DEPTH_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class InlineRule:
    name: str | None
    doc: str | None
    expr: str | None
    sql: str | None

    def described(self, path: str, said: str | None, reason: str | None) -> str:
        """One line of what is wrong: what the rule itself said counts first."""
        detail = said or self.doc or self.sql or self.expr
        line = f"{path or '<root>'}: {self.name or 'unnamed'}: {detail}"
        return line if reason is None else f"{line} (caused by: {reason})"


@dataclass(frozen=True, slots=True)
class Subject:
    """A rule, and the value that it is about; `field` is Protobuf's, if it is one of a field."""

    path: str
    rule: InlineRule
    value: Any
    field: Any = None


Walk = Callable[[Any], Iterator[Subject]]


def inline_rules_of(schema: ParsedSchema) -> Walk:
    if isinstance(schema, AvroSchema):
        root = schema.root
        return lambda data: _avro(root, data, "")
    if isinstance(schema, JsonSchema):
        document = schema.document
        return lambda data: _json(document, document, data, "$", 0)
    return lambda message: _protobuf(message, "")


def _listed(given: Any) -> list[InlineRule]:
    """Anything but a list of objects has no rules."""
    return [
        InlineRule(*(each.get(name) for name in ("name", "doc", "expr", "sql")))
        for each in (given if isinstance(given, list) else ())
        if isinstance(each, dict)
    ]


def _avro(schema: AvroType, data: Any, path: str) -> Iterator[Subject]:
    match schema:
        case _ if data is None:
            return
        case Union():
            branch, inner = union_branch(schema, data), data
            if isinstance(data, tuple) and len(data) == 2:
                named = [each for each in schema.branches if full_name(each) == data[0]]
                branch, inner = (named[0] if named else None), data[1]
            if branch is not None:
                yield from _avro(branch, inner, path)
        case Array() if isinstance(data, list):
            for index, each in enumerate(data):
                yield from _avro(schema.items, each, f"{path}[{index}]")
        case Map() if isinstance(data, dict):
            for key, each in data.items():
                yield from _avro(schema.values, each, f'{path}["{key}"]')
        case Record() if isinstance(data, dict):
            for rule in _listed(schema.props.get(_RULES)):
                yield Subject(path, rule, data)
            for field in schema.fields:
                value = data.get(field.name)
                if value is None:
                    continue
                place = f"{path}.{field.name}" if path else field.name
                for rule in _listed(field.props.get(_RULES)):
                    yield Subject(place, rule, value)
                yield from _avro(field.type, value, place)


def _json(document: Any, schema: Any, data: Any, path: str, depth: int) -> Iterator[Subject]:
    if not isinstance(schema, dict) or data is None or depth > _DEPTH_MAX:
        return
    combined = False
    for key in ("allOf", "oneOf", "anyOf"):
        if key not in schema or combined:
            continue
        combined = True
        for each in schema[key] or ():
            if key == "allOf" or may_be(resolved_reference(document, each), data):
                yield from _json(document, each, data, path, depth + 1)
                if key == "oneOf":
                    break
    if not combined and "$ref" in schema and not (isinstance(data, list) and "items" in schema):
        inner = resolved_reference(document, schema)
        yield from _json(document, inner, data, path, depth + 1)
        return
    if isinstance(data, list):
        for index, each in enumerate(data):
            yield from _json(document, schema.get("items"), each, f"{path}[{index}]", depth + 1)
    elif isinstance(data, dict):
        for rule in _listed(schema.get(_RULES)):
            yield Subject(path, rule, data)
        for name, inner in (schema.get("properties") or {}).items():
            value = data.get(name)
            if not isinstance(inner, dict) or value is None:
                continue
            for rule in _listed(inner.get(_RULES)):
                yield Subject(f"{path}.{name}", rule, value)
            yield from _json(document, inner, value, f"{path}.{name}", depth + 1)


def _protobuf(message: Any, path: str) -> Iterator[Subject]:
    for rule in _of_options(message.DESCRIPTOR):
        yield Subject(path, rule, message)
    for field in message.DESCRIPTOR.fields:
        if field.has_presence and not message.HasField(field.name):
            continue
        value = getattr(message, field.name)
        place = f"{path}.{field.name}" if path else field.name
        for rule in _of_options(field):
            yield Subject(place, rule, value, field)
        if field.message_type is None:
            continue
        if is_map_field(field):
            if field.message_type.fields_by_name["value"].message_type is not None:
                for key in value:
                    yield from _protobuf(value[key], f'{place}["{key}"]')
        elif is_repeated(field):
            for index, each in enumerate(value):
                yield from _protobuf(each, f"{place}[{index}]")
        else:
            yield from _protobuf(value, place)


def _of_options(descriptor: Any) -> list[InlineRule]:
    """From the bytes: the extension's class may not be there."""
    found = []
    for data in options_meta(descriptor, _META_RULES):
        texts = [bytes_fields(data, number) for number in (1, 2, 3, 4)]
        found.append(InlineRule(*(each[-1].decode() if each else None for each in texts)))
    return found
