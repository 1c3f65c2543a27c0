"""What a `.proto` file says, as values.

Names of types are kept as they are written: `types.py` finds what they mean. Everything knows
where in the text it begins (`at`), but that does not count for equality: two texts with the same
declarations are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum as PythonEnum
from typing import TypeAlias

#: The largest number of a field, and what `max` means in the ranges of a message.
FIELD_NUMBER_MAX = 536_870_911
#: What `max` means in the reserved ranges of an enum.
ENUM_NUMBER_MAX = 2_147_483_647

_INTEGERS = (
    *("fixed32", "fixed64", "int32", "int64", "sfixed32", "sfixed64", "sint32", "sint64"),
    *("uint32", "uint64"),
)
SCALARS = frozenset((*_INTEGERS, "bool", "bytes", "double", "float", "string"))
#: The types that a key of a map can have.
KEY_TYPES = frozenset((*_INTEGERS, "bool", "string"))


class WordKind(PythonEnum):
    """What an unquoted value looks like."""

    BOOLEAN = "boolean"
    NUMBER = "number"
    #: An identifier: a value of an enum, or `inf` and `nan`.
    ENUM = "enum"


@dataclass(frozen=True, slots=True)
class Word:
    """An unquoted value of an option, as it is written."""

    kind: WordKind
    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """A quoted value, its escapes replaced. Usually UTF-8."""

    data: bytes

    @classmethod
    def of(cls, text: str) -> Text:
        return cls(text.encode())


@dataclass(frozen=True, slots=True)
class Items:
    """A list of values: `[1, 2]`."""

    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The fields of a message: `{ name: "x" [my.extension]: 1 }`, in order, each name once.

    The name of an extension has its brackets.
    """

    fields: tuple[tuple[str, Value], ...]

    def get(self, name: str) -> Value | None:
        return next((value for key, value in self.fields if key == name), None)


Value: TypeAlias = "Word | Text | Items | Aggregate"


@dataclass(frozen=True, slots=True)
class Option:
    """`name = value`. With a path (`(name).a.b = 1`), the value is the option `a`, and so on."""

    name: str
    value: Value | Option
    #: In parentheses: the name of an extension.
    custom: bool = False
    at: int = field(default=0, compare=False)


class Label(PythonEnum):
    OPTIONAL = "optional"
    REQUIRED = "required"
    REPEATED = "repeated"


@dataclass(frozen=True, slots=True)
class Field:
    label: Label | None
    #: A scalar, a name, or `map<KEY, VALUE>`.
    type: str
    name: str
    number: int
    default: Value | None = None
    json_name: str | None = None
    options: tuple[Option, ...] = ()
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class OneOf:
    name: str
    fields: tuple[Field, ...] = ()
    groups: tuple[Group, ...] = ()
    options: tuple[Option, ...] = ()
    at: int = field(default=0, compare=False)

    @property
    def members(self) -> tuple[Field | Group, ...]:
        """Fields and groups in the order of the text."""
        return in_text_order(self.fields, self.groups)


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `start` to `end`, both included."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Reserved:
    values: tuple[str | int | Range, ...]


@dataclass(frozen=True, slots=True)
class Extensions:
    """The numbers that a message leaves to extensions."""

    values: tuple[int | Range, ...]
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True)
class EnumValue:
    name: str
    number: int
    options: tuple[Option, ...] = ()
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Enum:
    name: str
    values: tuple[EnumValue, ...] = ()
    reserved: tuple[Reserved, ...] = ()
    options: tuple[Option, ...] = ()
    visibility: str = ""
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Extend:
    """Fields for a message that is declared elsewhere."""

    name: str
    fields: tuple[Field, ...] = ()
    groups: tuple[Group, ...] = ()
    at: int = field(default=0, compare=False)

    @property
    def members(self) -> tuple[Field | Group, ...]:
        """Fields and groups in the order of the text."""
        return in_text_order(self.fields, self.groups)


@dataclass(frozen=True, slots=True)
class Message:
    name: str
    fields: tuple[Field, ...] = ()
    oneofs: tuple[OneOf, ...] = ()
    groups: tuple[Group, ...] = ()
    types: tuple[Message | Enum, ...] = ()
    extends: tuple[Extend, ...] = ()
    extensions: tuple[Extensions, ...] = ()
    reserved: tuple[Reserved, ...] = ()
    options: tuple[Option, ...] = ()
    visibility: str = ""
    at: int = field(default=0, compare=False)

    @property
    def members(self) -> tuple[Field | Group, ...]:
        """Fields and groups outside a oneof, in the order of the text."""
        return in_text_order(self.fields, self.groups)

    def messages(self) -> Iterator[Message]:
        return (each for each in self.types if isinstance(each, Message))

    def enums(self) -> Iterator[Enum]:
        return (each for each in self.types if isinstance(each, Enum))

    @property
    def is_map_entry(self) -> bool:
        """Whether it stands for the entries of a map, as descriptors write maps."""
        for option in self.options:
            if option.name == "map_entry" and isinstance(option.value, Word):
                return option.value.text == "true"
        return False


@dataclass(frozen=True, slots=True)
class Group:
    """A field and its message in one, from proto2."""

    label: Label | None
    number: int
    body: Message
    options: tuple[Option, ...] = ()
    at: int = field(default=0, compare=False)

    @property
    def name(self) -> str:
        return self.body.name


@dataclass(frozen=True, slots=True)
class Rpc:
    name: str
    request: str
    response: str
    request_streaming: bool = False
    response_streaming: bool = False
    options: tuple[Option, ...] = ()
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Service:
    name: str
    rpcs: tuple[Rpc, ...] = ()
    options: tuple[Option, ...] = ()
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ProtoFile:
    #: `proto2`, `proto3`, or "" if the text does not say (which means proto2), or has an edition.
    syntax: str = ""
    edition: str = ""
    package: str = ""
    imports: tuple[str, ...] = ()
    public_imports: tuple[str, ...] = ()
    weak_imports: tuple[str, ...] = ()
    #: All of them in the order of the text, which a descriptor keeps.
    all_imports: tuple[str, ...] = field(default=(), compare=False)
    options: tuple[Option, ...] = ()
    types: tuple[Message | Enum, ...] = ()
    extends: tuple[Extend, ...] = ()
    services: tuple[Service, ...] = ()

    def messages(self) -> Iterator[Message]:
        return (each for each in self.types if isinstance(each, Message))

    def enums(self) -> Iterator[Enum]:
        return (each for each in self.types if isinstance(each, Enum))


def in_text_order(
    fields: tuple[Field, ...], groups: tuple[Group, ...]
) -> tuple[Field | Group, ...]:
    both: list[Field | Group] = [*fields, *groups]
    return tuple(sorted(both, key=lambda each: each.at))


def map_types(type_name: str) -> tuple[str, str] | None:
    """The types of key and value if the type is `map<KEY, VALUE>`."""
    if not (type_name.startswith("map<") and type_name.endswith(">")):
        return None
    key, _, value = type_name[len("map<") : -1].partition(",")
    return key.strip(), value.strip()
