"""What an Avro schema is made of.

A schema is a graph: a record may hold itself. Types are compared by identity, and every mention of
a primitive type is an object of its own, as in Apache Avro, whose compatibility check remembers
pairs of types by identity. Nothing changes a type once it is parsed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
KINDS = PRIMITIVES | {"record", "enum", "array", "map", "union", "fixed"}


class Missing:
    """The default of a field that has none: null is a default."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing()


@dataclass(frozen=True, slots=True)
class Name:
    """A name with its namespace, "" for none."""

    simple: str
    namespace: str = ""

    @classmethod
    def of(cls, text: str, namespace: str = "") -> Name:
        """A name that may be qualified itself, which then wins over `namespace`."""
        before, dot, simple = text.rpartition(".")
        return cls(simple, before) if dot else cls(text, namespace)

    @property
    def full(self) -> str:
        return f"{self.namespace}.{self.simple}" if self.namespace else self.simple

    def within(self, namespace: str) -> str:
        """How it is written inside of `namespace`."""
        # A simple name that is also a type's would be read as that type.
        hidden = self.namespace == namespace and self.namespace and self.simple not in KINDS
        return self.simple if hidden else self.full


@dataclass(eq=False, slots=True)
class Primitive:
    kind: str
    props: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Array:
    items: AvroType
    props: dict[str, Any] = field(default_factory=dict)
    kind: str = field(init=False, default="array")


@dataclass(eq=False, slots=True)
class Map:
    values: AvroType
    props: dict[str, Any] = field(default_factory=dict)
    kind: str = field(init=False, default="map")


@dataclass(eq=False, slots=True)
class Union:
    branches: list[AvroType]
    props: dict[str, Any] = field(init=False, default_factory=dict)
    kind: str = field(init=False, default="union")


@dataclass(eq=False, slots=True)
class Enum:
    name: Name
    symbols: list[str]
    default: str | None = None
    doc: str | None = None
    aliases: list[Name] = field(default_factory=list)
    props: dict[str, Any] = field(default_factory=dict)
    kind: str = field(init=False, default="enum")


@dataclass(eq=False, slots=True)
class Fixed:
    name: Name
    size: int
    doc: str | None = None
    aliases: list[Name] = field(default_factory=list)
    props: dict[str, Any] = field(default_factory=dict)
    kind: str = field(init=False, default="fixed")


@dataclass(eq=False, slots=True)
class RecordField:
    name: str
    type: AvroType
    default: Any = MISSING
    doc: str | None = None
    order: str = "ascending"
    aliases: list[str] = field(default_factory=list)
    props: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Record:
    name: Name
    fields: list[RecordField] = field(default_factory=list)
    is_error: bool = False
    doc: str | None = None
    aliases: list[Name] = field(default_factory=list)
    props: dict[str, Any] = field(default_factory=dict)
    kind: str = field(init=False, default="record")

    def field(self, name: str) -> RecordField | None:
        return next((each for each in self.fields if each.name == name), None)


NamedType: TypeAlias = Record | Enum | Fixed
AvroType: TypeAlias = Primitive | Array | Map | Union | Record | Enum | Fixed


def full_name(schema: AvroType) -> str:
    """The name by which a union knows a branch: that of a named type, or the kind."""
    return schema.name.full if isinstance(schema, (Record, Enum, Fixed)) else schema.kind


def parts(schema: AvroType) -> Iterator[AvroType]:
    """The types that a type is directly made of."""
    match schema:
        case Array():
            yield schema.items
        case Map():
            yield schema.values
        case Union():
            yield from schema.branches
        case Record():
            for each in schema.fields:
                yield each.type
        case _:
            return
