"""What the writers of reader and writer source share: fields of one version, lines, constants.

`reader_source` and `writer_source` write the Python source of the functions that read and write
one message in one version. `codec_maker` compiles it; tools/generate_codecs.py writes what clients
need when they start into `messages/ready`.
"""

from __future__ import annotations

from typing import NamedTuple

from moldau.wire.message import FieldSpec, Message

FORMATS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
SIZES = {"?": 1, "b": 1, "B": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "d": 8, "16s": 16}
SIZED = ("string", "bytes", "records")


class Field:
    """A row of a class's field table, seen from one version."""

    __slots__ = (
        "default",
        "element",
        "ever_nullable",
        "flexible",
        "ignorable",
        "is_array",
        "name",
        "nullable",
        "present",
        "tag",
        "type",
    )

    def __init__(self, row: FieldSpec, version: int, flexible: bool) -> None:
        self.name, self.type, low, high, nullable, tag, self.default, self.ignorable = row
        self.flexible = flexible and self.type != "inflexible-string"
        if self.type == "inflexible-string":
            self.type = "string"
        self.is_array = self.type.startswith("[]")
        self.element = self.type.removeprefix("[]")
        self.present = low <= version <= high
        self.ever_nullable = nullable is not None
        self.nullable = nullable is not None and nullable[0] <= version <= nullable[1]
        self.tag = tag[0] if tag and flexible and tag[1] <= version <= tag[2] else None


class FunctionSource(NamedTuple):
    """The source of a function, and what it uses beside the names of `codec_functions`."""

    #: The methods of structs: names, and the expressions that make them.
    methods: dict[str, str]
    #: The message and its parts, by the names that the function has for them.
    classes: dict[str, type[Message]]
    text: str


class Source:
    """Lines of a function body, what they use, and fresh names."""

    def __init__(self, cls: type[Message], version: int) -> None:
        self.cls = cls
        self.version = version
        self.flexible = version >= cls.FLEXIBLE_FROM
        self.lines: list[str] = []
        self.depth = 1
        self.methods: dict[str, str] = {}
        self.classes: dict[str, type[Message]] = {}
        self._count = 0

    def add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem}{self._count}"

    def class_name(self, cls: type[Message]) -> str:
        """The name by which the function knows this class."""
        name = cls.__qualname__.replace(".", "_")
        self.classes[name] = cls
        return name

    def fields(self, cls: type[Message]) -> list[Field]:
        return [Field(row, self.version, self.flexible) for row in cls.FIELDS]

    def struct(self, name: str) -> type[Message]:
        found: type[Message] = getattr(self.cls, name)
        return found

    def packer(self, stem: str, formats: list[str]) -> tuple[str, int]:
        """The name of a struct's method for these formats, and the struct's size."""
        name = f"{stem}_" + "".join(formats).replace("?", "o")
        method = "pack" if stem == "pack" else "unpack_from"
        self.methods[name] = f"Struct({'>' + ''.join(formats)!r}).{method}"
        return name, sum(SIZES[f] for f in formats)

    def default(self, field: Field) -> str:
        """An expression for a fresh default value."""
        if field.default is None:
            return "None"
        if field.is_array:
            return "[]"
        if field.type == "uuid":
            return "ZERO_UUID"
        if field.default == ():
            return self.class_name(self.struct(field.type)) + "()"
        return repr(field.default)

    def finish(self, head: str) -> FunctionSource:
        return FunctionSource(self.methods, self.classes, "\n".join([head, *self.lines]) + "\n")


def minimum_size(source: Source, field: Field) -> int:
    """The fewest bytes an element of this array (or this field's own value) can take."""
    element = field.element
    if element in FORMATS:
        return SIZES[FORMATS[element]]
    if element == "string":
        return 1 if source.flexible else 2
    if element in ("bytes", "records"):
        return 1 if source.flexible else 4
    size = 1 if source.flexible else 0
    for inner in source.fields(source.struct(element)):
        if not inner.present or inner.tag is not None:
            continue
        if inner.is_array:
            size += 1 if source.flexible else 4
        elif inner.nullable and inner.element not in SIZED:
            size += 1
        else:
            size += minimum_size(source, inner)
    return size
