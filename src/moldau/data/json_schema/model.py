"""Schemas in the shape in which the registry compares them.

Each class stands for the keywords of one type. A schema with keywords of several types is the
`allOf` of its parts, a list of types the `anyOf` of them. That is the shape of the schema library
under Confluent's registry, and the list of differences follows from it.

Nodes are compared by identity: the comparison remembers pairs of them. They are not frozen, because
loaders merge parts, and references are set when all documents are read.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

Number = int | Decimal


class Absent(enum.Enum):
    """No value, where null is one."""

    ABSENT = enum.auto()


ABSENT = Absent.ABSENT


@dataclass(slots=True, eq=False, kw_only=True)
class SchemaNode:
    """What all schemas have. `unprocessed` are keywords that are not part of the language."""

    id: str | None = None
    title: str | None = None
    description: str | None = None
    default: Any = ABSENT
    unprocessed: dict[str, Any] = field(default_factory=dict)

    @property
    def has_default(self) -> bool:
        return self.default is not ABSENT


@dataclass(slots=True, eq=False, kw_only=True)
class EmptySchema(SchemaNode):
    """`{}`: any value."""


@dataclass(slots=True, eq=False, kw_only=True)
class TrueSchema(EmptySchema):
    """`true`: any value."""


@dataclass(slots=True, eq=False, kw_only=True)
class FalseSchema(SchemaNode):
    """`false`: no value."""


@dataclass(slots=True, eq=False, kw_only=True)
class NullSchema(SchemaNode):
    pass


@dataclass(slots=True, eq=False, kw_only=True)
class BooleanSchema(SchemaNode):
    pass


@dataclass(slots=True, eq=False, kw_only=True)
class StringSchema(SchemaNode):
    """`required`: the value must be a string; else the keywords bind strings only."""

    required: bool = False
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    format: str | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class NumberSchema(SchemaNode):
    """The exclusive bounds are numbers; draft 4 has flags for them, which are kept apart."""

    required: bool = False
    requires_integer: bool = False
    minimum: Number | None = None
    maximum: Number | None = None
    exclusive_minimum: Number | None = None
    exclusive_maximum: Number | None = None
    minimum_is_exclusive: bool = False
    maximum_is_exclusive: bool = False
    multiple_of: Number | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class ArraySchema(SchemaNode):
    """`all_items` is the schema of every item, `items` those of the first ones by position."""

    required: bool = False
    min_items: int | None = None
    max_items: int | None = None
    unique_items: bool = False
    all_items: SchemaNode | None = None
    items: list[SchemaNode] | None = None
    additional_items_allowed: bool = True
    additional_items: SchemaNode | None = None
    contains: SchemaNode | None = None
    unevaluated_items: SchemaNode | None = None

    @property
    def permits_additional_items(self) -> bool:
        return (
            self.additional_items_allowed
            or self.all_items is not None
            or self.additional_items is not None
        )


@dataclass(slots=True, eq=False, kw_only=True)
class ObjectSchema(SchemaNode):
    required: bool = False
    properties: dict[str, SchemaNode] = field(default_factory=dict)
    pattern_properties: dict[str, SchemaNode] = field(default_factory=dict)
    permits_additional_properties: bool = True
    additional_properties: SchemaNode | None = None
    unevaluated_properties: SchemaNode | None = None
    required_properties: list[str] = field(default_factory=list)
    min_properties: int | None = None
    max_properties: int | None = None
    property_dependencies: dict[str, set[str]] = field(default_factory=dict)
    schema_dependencies: dict[str, SchemaNode] = field(default_factory=dict)
    property_names: SchemaNode | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class EnumSchema(SchemaNode):
    values: list[Any]


@dataclass(slots=True, eq=False, kw_only=True)
class ConstSchema(SchemaNode):
    value: Any


@dataclass(slots=True, eq=False, kw_only=True)
class NotSchema(SchemaNode):
    must_not_match: SchemaNode


@dataclass(slots=True, eq=False, kw_only=True)
class ConditionalSchema(SchemaNode):
    if_schema: SchemaNode | None = None
    then_schema: SchemaNode | None = None
    else_schema: SchemaNode | None = None


class Criterion(enum.Enum):
    """How many schemas of a combined one must hold, named as its keyword."""

    ALL = "allOf"
    ANY = "anyOf"
    ONE = "oneOf"


@dataclass(slots=True, eq=False, kw_only=True)
class CombinedSchema(SchemaNode):
    """`generated`: no keyword of the text, but the parts of one schema, or its list of types."""

    criterion: Criterion
    subschemas: list[SchemaNode]
    generated: bool = False


@dataclass(slots=True, eq=False, kw_only=True)
class ReferenceSchema(SchemaNode):
    """A `$ref`; `target` is what it leads to in the end, which is no reference.

    It is the empty schema until all documents are read.
    """

    ref: str
    target: SchemaNode = field(default_factory=EmptySchema)
