"""The text of a file in the form that Confluent's registry stores.

The canonical text has everything but comments, in a fixed order. The normalized text is the same
for files that mean the same: names are complete, and fields, values, options and ranges are sorted.
Messages and enums are not: the number of a message in its file stands in front of every record.

Where Confluent's printer loses something, this one keeps it: weak imports, defaults of bytes that
are no plain word, contents of groups beyond fields, more than three decimals of a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from moldau.data.protobuf.model import (
    ENUM_NUMBER_MAX,
    FIELD_NUMBER_MAX,
    SCALARS,
    Aggregate,
    Enum,
    EnumValue,
    Extend,
    Extensions,
    Field,
    Group,
    Items,
    Label,
    Message,
    OneOf,
    Option,
    ProtoFile,
    Range,
    Reserved,
    Rpc,
    Service,
    Text,
    Value,
    Word,
    WordKind,
    map_types,
)
from moldau.data.protobuf.normal_options import format_number, is_empty_list, normal_options
from moldau.data.protobuf.types import Scope, TypeTable
from moldau.data.schema_language import SchemaError

_ESCAPES = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    "\\": "\\\\", "'": "\\'", '"': '\\"',
}  # fmt: skip
_TO_ESCAPE = re.compile("[\a\b\f\n\r\t\v\\\\'\"\udc80-\udcff]")
_F = TypeVar("_F", Field, Group)
_PLAIN_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+")


def canonical(file: ProtoFile) -> str:
    return _Printer(Scope(file.package), bare_names=bool(file.edition)).file(file)


def without_extensions(file: ProtoFile) -> str:
    """The canonical text without extensions and options that are nobody's but the user's."""
    scope, bare_names = Scope(file.package), bool(file.edition)
    return _Printer(scope, ignore_extensions=True, bare_names=bare_names).file(file)


def normalized(file: ProtoFile, table: TypeTable) -> str:
    """The normalized text; SchemaError if a type is not known."""
    return _Printer(Scope(file.package), table, bare_names=bool(file.edition)).file(file)


def quoted(data: bytes) -> str:
    """Bytes as a string of the language."""

    def escape(match: re.Match[str]) -> str:
        char = match[0]
        return _ESCAPES.get(char) or f"\\{ord(char) & 0xFF:03o}"

    return f'"{_TO_ESCAPE.sub(escape, data.decode(errors="surrogateescape"))}"'


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.removesuffix("\n").split("\n"))


@dataclass(frozen=True, slots=True)
class _Printer:
    """Prints what stands in one scope. With a table, in normal form."""

    scope: Scope
    table: TypeTable | None = None
    ignore_extensions: bool = False
    #: In editions reserved names have no quotes.
    bare_names: bool = False

    def _inside(self, name: str) -> _Printer:
        return replace(self, scope=self.scope.inside(name))

    def file(self, file: ProtoFile) -> str:
        text = ""
        if file.edition:
            text += f'edition = "{file.edition}";\n'
        elif file.syntax and (self.table is None or file.syntax == "proto3"):
            text += f'syntax = "{file.syntax}";\n'
        if file.package:
            text += f"package {file.package};\n"
        text += self._imports(file)
        if options := self._options(file.options):
            text += "\n" + "".join(self._option_line(option) for option in options)
        if types := self._printed_types(file.types):
            text += "\n" + "".join(types)
        if file.extends and not self.ignore_extensions:
            text += "\n" + "".join(self._extend(each) for each in self._extends(file.extends))
        if file.services:
            text += "\n" + "".join(self._service(service) for service in file.services)
        return text

    def _imports(self, file: ProtoFile) -> str:
        text = ""
        for word, paths in (
            ("", file.imports),
            ("public ", file.public_imports),
            ("weak ", file.weak_imports),
        ):
            chosen: Iterable[str] = sorted(set(paths)) if self.table else paths
            text += "".join(f"import {word}{quoted(path.encode())};\n" for path in chosen)
        return "\n" + text if text else ""

    def _printed_types(self, types: Sequence[Message | Enum]) -> list[str]:
        """Messages, then enums, each in the order of the text."""
        messages = [
            self._inside(each.name).message(each)
            for each in types
            # A map is printed as its field is.
            if isinstance(each, Message) and not (self.table and each.is_map_entry)
        ]
        return messages + [self._enum(each) for each in types if isinstance(each, Enum)]

    def message(self, message: Message) -> str:
        """A message; the scope is that of its contents."""
        return f"{_visibility(message)}message {message.name} {self._body(message)}"

    def _body(self, message: Message) -> str:
        """What stands in braces: a blank line between the sections."""
        normal = self.table is not None
        sections = [
            [self._reserved(each) for each in self._reserved_lines(message.reserved)],
            [self._option_line(option) for option in self._options(message.options)],
            [self._field(each) for each in _by_number(message.fields, normal)],
            [self._oneof(each) for each in self._oneofs(message.oneofs)],
            [self._group(each) for each in _by_number(message.groups, normal)],
        ]
        if not self.ignore_extensions:
            sections += [
                [self._extensions(each) for each in self._extension_lines(message.extensions)],
                [self._extend(each) for each in self._extends(message.extends)],
            ]
        sections.append(self._printed_types(message.types))
        text = "{"
        for section in sections:
            if section:
                text += "\n" + "".join(_indented(part) for part in section)
        return text + "}\n"

    def _reserved_lines(self, reserved: Sequence[Reserved]) -> Sequence[Reserved]:
        if self.table is None:
            return reserved
        values = [value for each in reserved for value in each.values]
        values.sort(key=lambda value: (_first(value), _shown(value)))
        return [Reserved((value,)) for value in values]

    def _extension_lines(self, extensions: Sequence[Extensions]) -> Sequence[Extensions]:
        if self.table is None:
            return extensions
        each_alone = [
            Extensions((value,), each.options) for each in extensions for value in each.values
        ]
        return sorted(each_alone, key=lambda each: _first(each.values[0]))

    def _reserved(self, reserved: Reserved, maximum: int = FIELD_NUMBER_MAX) -> str:
        values = (
            self._reserved_name(value) if isinstance(value, str) else self._range(value, maximum)
            for value in reserved.values
        )
        return f"reserved {', '.join(values)};\n"

    def _reserved_name(self, name: str) -> str:
        return name if self.bare_names else quoted(name.encode())

    def _extensions(self, extensions: Extensions) -> str:
        values = ", ".join(self._range(value, FIELD_NUMBER_MAX) for value in extensions.values)
        return f"extensions {values}{self._bracketed(extensions.options)};\n"

    def _range(self, value: int | Range, maximum: int) -> str:
        if isinstance(value, int):
            return str(value)
        if self.table is not None and value.start == value.end:
            return str(value.start)
        return f"{value.start} to {value.end if value.end < maximum else 'max'}"

    def _oneofs(self, oneofs: Sequence[OneOf]) -> Sequence[OneOf]:
        if self.table is None:
            return oneofs
        sorted_inside = [
            OneOf(
                each.name,
                tuple(_by_number(each.fields, normal=True)),
                tuple(_by_number(each.groups, normal=True)),
                each.options,
            )
            for each in oneofs
            if each.members
        ]
        return sorted(sorted_inside, key=lambda each: min(part.number for part in each.members))

    def _oneof(self, oneof: OneOf) -> str:
        text = f"oneof {oneof.name} {{"
        for section in (
            [self._option_line(option) for option in self._options(oneof.options)],
            [self._field(each) for each in oneof.fields],
            [self._group(each) for each in oneof.groups],
        ):
            if section:
                text += "\n" + "".join(_indented(part) for part in section)
        return text + "}\n"

    def _group(self, group: Group) -> str:
        options = self._bracketed(group.options)
        body = self._inside(group.name)._body(group.body)
        return f"{_label(group.label)}group {group.name} = {group.number}{options} {body}"

    def _extends(self, extends: Sequence[Extend]) -> Sequence[Extend]:
        """In normal form there is one for each extended message."""
        if self.table is None:
            return extends
        merged: dict[str, Extend] = {}
        for each in extends:
            name = self._resolved(each.name)
            before = merged.get(name, Extend(name))
            merged[name] = Extend(name, before.fields + each.fields, before.groups + each.groups)
        return [
            Extend(
                each.name,
                tuple(_by_number(each.fields, normal=True)),
                tuple(_by_number(each.groups, normal=True)),
            )
            for each in merged.values()
            if each.fields or each.groups
        ]

    def _extend(self, extend: Extend) -> str:
        text = f"extend {extend.name} {{"
        if extend.fields or extend.groups:
            text += "\n" + "".join(_indented(self._field(each)) for each in extend.fields)
            text += "".join(_indented(self._group(each)) for each in extend.groups)
        return text + "}\n"

    def _field(self, field: Field) -> str:
        label, type_name = field.label, field.type
        if self.table is not None:
            type_name = self._normal_type(type_name)
            label = None if map_types(type_name) else label
        options = list(field.options)
        if field.default is not None:
            options.append(Option("default", _default(type_name, field.default)))
        if field.json_name is not None:
            options.append(Option("json_name", Text.of(field.json_name)))
        text = f"{_label(label)}{type_name} {field.name} = {field.number}"
        return f"{text}{self._bracketed(tuple(options))};\n"

    def _normal_type(self, name: str) -> str:
        if self.table is None or name in SCALARS:
            return name
        if map_types(name) is None:
            name = self._resolved(name)
            found = self.table.type(name, self.scope)
            name = (found.map_type if found else None) or name
        if (entry := map_types(name)) is not None:
            found = self.table.type(entry[1], self.scope)
            if found is not None:
                return f"map<{entry[0]}, .{found.full_name}>"
            if entry[1] not in SCALARS:
                raise SchemaError(f"Could not resolve type: {entry[1]}")
        return name

    def _resolved(self, name: str) -> str:
        """The full name of a type, with a dot in front."""
        found = self.table.type(name, self.scope) if self.table else None
        if found is None:
            raise SchemaError(f"Could not resolve type: {name}")
        return "." + found.full_name

    def _enum(self, enum: Enum) -> str:
        parts = [
            self._reserved(each, ENUM_NUMBER_MAX) for each in self._reserved_lines(enum.reserved)
        ]
        inside = self._inside(enum.name)
        parts += [inside._option_line(option) for option in inside._options(enum.options)]
        values: Sequence[EnumValue] = enum.values
        if self.table is not None:
            values = sorted(values, key=lambda value: (value.number, value.name))
        parts += [
            f"{value.name} = {value.number}{inside._bracketed(value.options)};\n"
            for value in values
        ]
        begin = "\n" if enum.reserved or enum.options or enum.values else ""
        body = begin + "".join(_indented(part) for part in parts)
        return f"{_visibility(enum)}enum {enum.name} {{{body}}}\n"

    def _service(self, service: Service) -> str:
        text = f"service {service.name} {{"
        if options := self._options(service.options):
            text += "\n" + "".join(_indented(self._option_line(option)) for option in options)
        if service.rpcs:
            text += "\n" + "".join(_indented(self._rpc(rpc)) for rpc in service.rpcs)
        return text + "}\n"

    def _rpc(self, rpc: Rpc) -> str:
        request = self._resolved(rpc.request) if self.table else rpc.request
        response = self._resolved(rpc.response) if self.table else rpc.response
        text = f"rpc {rpc.name} ({'stream ' if rpc.request_streaming else ''}{request}) returns "
        text += f"({'stream ' if rpc.response_streaming else ''}{response})"
        if options := self._options(rpc.options):
            lines = "".join(_indented(self._option_line(option)) for option in options)
            text += f" {{\n{lines}}}"
        return text + ";\n"

    def _options(self, options: tuple[Option, ...]) -> Sequence[Option]:
        """The options to print, in normal form with a table."""
        if self.ignore_extensions:
            options = tuple(
                each for each in options if not each.custom or each.name.startswith("confluent.")
            )
        if self.table is not None and options:
            return normal_options(options, self.table, self.scope)
        return options

    def _bracketed(self, options: tuple[Option, ...]) -> str:
        chosen = self._options(options)
        return " " + self._list([self._option(option) for option in chosen]) if chosen else ""

    def _option_line(self, option: Option) -> str:
        return f"option {self._option(option)};\n"

    def _option(self, option: Option) -> str:
        name = f"({option.name})" if option.custom else option.name
        value = option.value
        if isinstance(value, Option):
            return f"{name}.{self._option(value)}"
        if isinstance(value, Items):
            return f"{name} = {self._list([self._value(each) for each in value.values])}"
        return f"{name} = {self._value(value)}"

    @staticmethod
    def _list(values: list[str]) -> str:
        if len(values) == 1:
            return f"[{values[0]}]"
        return "[\n" + _separated(values) + "]"

    def _value(self, value: Value) -> str:
        normal = self.table is not None
        match value:
            case Text():
                return quoted(value.data)
            case Word():
                is_number = normal and value.kind is WordKind.NUMBER
                return format_number(value.text) if is_number else value.text
            case Aggregate():
                return "{\n" + _separated(self._aggregate_lines(value)) + "}"
            case Items():
                if normal and len(value.values) == 1:
                    return self._value(value.values[0])
                return "[\n" + _separated([self._value(each) for each in value.values]) + "]"

    def _aggregate_lines(self, value: Aggregate) -> list[str]:
        fields = list(value.fields)
        if self.table is not None:
            names = dict[str, Value]()
            for name, each in fields:
                if is_empty_list(each):
                    continue
                if name.startswith("["):
                    found = self.table.extension(name[1:-1], self.scope)
                    name = f"[{found.full_name}]" if found else name
                names.setdefault(name, each)
            fields = sorted(names.items())
        return [f"{name}: {self._value(each)}" for name, each in fields]


def _separated(values: list[str]) -> str:
    """Indented, with a comma after each but the last."""
    last = len(values) - 1
    return "".join(
        _indented(value + ("," if index < last else "")) for index, value in enumerate(values)
    )


def _by_number(fields: Sequence[_F], normal: bool) -> Sequence[_F]:
    return sorted(fields, key=lambda field: field.number) if normal else fields


def _first(value: str | int | Range) -> int:
    """What ranges are sorted by: names come last."""
    if isinstance(value, Range):
        return value.start
    return value if isinstance(value, int) else ENUM_NUMBER_MAX


def _shown(value: str | int | Range) -> str:
    return f"{value.start}..{value.end}" if isinstance(value, Range) else str(value)


def _label(label: Label | None) -> str:
    return f"{label.value} " if label else ""


def _visibility(declared: Message | Enum) -> str:
    return f"{declared.visibility} " if declared.visibility else ""


def _default(type_name: str, value: Value) -> Value:
    """A default as its type shows it: bytes without quotes where that can be read again."""
    if type_name == "bytes" and isinstance(value, Text):
        word = value.data.decode(errors="replace")
        return Word(WordKind.NUMBER, word) if _PLAIN_WORD.fullmatch(word) else value
    return value
