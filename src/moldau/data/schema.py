"""Schemas as Kafka Connect has them: immutable values, equal if all their attributes are.

`INT64`, `array(STRING)` or `struct({"id": INT64, "name": OPTIONAL_STRING}, name="User")` in
`builders.py` make them; the class itself checks nothing but its shape.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from moldau.data.errors import DataError, SchemaBuilderError


class Type(Enum):
    """The kinds of values, named as Connect's JSON vectors and messages name them."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"

    @property
    def is_primitive(self) -> bool:
        return self not in _CONTAINERS

    @property
    def is_integer(self) -> bool:
        return self in INTEGER_BITS


_CONTAINERS = frozenset({Type.ARRAY, Type.MAP, Type.STRUCT})
INTEGER_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct; its index is its place among the fields."""

    name: str
    index: int
    schema: Schema


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Schema:
    """The type of a value, and what is known about it beyond that.

    A default of None is no default, as in Connect. An array or map of unknown contents, which
    parsing "[]" gives, has None for the schema of its values.
    """

    type: Type
    optional: bool = False
    default: Any = None
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: Mapping[str, str] = dataclasses.field(default_factory=dict)
    fields: tuple[Field, ...] = ()
    key_schema: Schema | None = None
    value_schema: Schema | None = None
    _fields_by_name: dict[str, Field] = dataclasses.field(init=False, default_factory=dict)
    _hash: int = dataclasses.field(init=False, default=0)

    def __post_init__(self) -> None:
        # A dict of our own: nobody else holds it.
        object.__setattr__(self, "parameters", dict(self.parameters))
        if self.fields:
            self._index_fields()
        parts = (
            self.type,
            self.optional,
            self.fields,
            self.key_schema,
            self.value_schema,
            self.name,
            self.version,
            self.doc,
            frozenset(self.parameters.items()),
        )
        # Without the default, which may be a list or a map: equal schemas still hash alike.
        object.__setattr__(self, "_hash", hash(parts))

    def _index_fields(self) -> None:
        if self.type is not Type.STRUCT:
            raise SchemaBuilderError(f"Cannot create fields on type {self.type.name}")
        for position, each in enumerate(self.fields):
            if not each.name:
                raise SchemaBuilderError(f"Field {position} has no name")
            if each.index != position:
                raise SchemaBuilderError(
                    f"Field {each.name} has index {each.index} and is at position {position}"
                )
            if each.name in self._fields_by_name:
                raise SchemaBuilderError(
                    f"Cannot create field because of field name duplication {each.name}"
                )
            self._fields_by_name[each.name] = each

    def field(self, name: str) -> Field | None:
        """The field of that name, or None."""
        if self.type is not Type.STRUCT:
            raise DataError(f"Cannot look up fields on non-struct type: {self}")
        return self._fields_by_name.get(name)

    @property
    def items(self) -> Schema:
        """The schema of an array's or map's values; an error if it is not known."""
        if self.value_schema is None:
            raise DataError(f"No schema defined for the values of {self}")
        return self.value_schema

    @property
    def keys(self) -> Schema:
        """The schema of a map's keys; an error if it is not known."""
        if self.key_schema is None:
            raise DataError(f"No schema defined for the keys of {self}")
        return self.key_schema

    def replace(self, **changes: Any) -> Schema:
        """The same schema with other attributes."""
        return dataclasses.replace(self, **changes)

    def as_optional(self) -> Schema:
        return self if self.optional else self.replace(optional=True)

    def as_required(self) -> Schema:
        return self.replace(optional=False) if self.optional else self

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Schema):
            return NotImplemented
        return (
            self._hash == other._hash
            and self.type is other.type
            and self.optional == other.optional
            and self.version == other.version
            and self.name == other.name
            and self.doc == other.doc
            and self.fields == other.fields
            and self.key_schema == other.key_schema
            and self.value_schema == other.value_schema
            and self.parameters == other.parameters
            and same_value(self.default, other.default)
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return (
            f"Schema{{{self.name}:{self.type.name}}}"
            if self.name
            else f"Schema{{{self.type.name}}}"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Hashes of texts differ between processes, so a pickled schema is built again.
        names = [each.name for each in dataclasses.fields(self) if each.init]
        return _rebuild, ({name: getattr(self, name) for name in names},)


def _rebuild(attributes: dict[str, Any]) -> Schema:
    return Schema(**attributes)


class SchemaAndValue(NamedTuple):
    """A value with its schema; None as schema for a value that has none."""

    schema: Schema | None
    value: Any


def same_value(one: Any, other: Any) -> bool:
    """Whether two values of one schema are equal, NaN being equal to itself as in Java."""
    return bool(one == other or (one != one and other != other))
