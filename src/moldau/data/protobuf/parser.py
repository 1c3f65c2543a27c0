"""Reads the text of a `.proto` file.

Written here rather than taken from PyPI: the parsers there lose the places of errors or the form of
option values, which the canonical text needs, and none of them bounds its recursion.

It accepts what protoc accepts in proto2, proto3 and editions, and, as Confluent's registry does,
texts that only a compiler would refuse (a number used twice, an import that nobody has): those are
found when descriptors are built.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from moldau.data.protobuf.lexer import Token, TokenKind, Tokens
from moldau.data.protobuf.model import (
    KEY_TYPES,
    Enum,
    EnumValue,
    Extend,
    Extensions,
    Field,
    Group,
    Label,
    Message,
    OneOf,
    Option,
    ProtoFile,
    Reserved,
    Rpc,
    Service,
    Text,
    Word,
)
from moldau.data.protobuf.option_parser import DEPTH_MAX, OptionParser
from moldau.data.protobuf.range_parser import RangeParser

_EDITION = re.compile(r"[0-9]{4}[A-Z0-9_]*|UNSTABLE")


def parse_text(text: str) -> ProtoFile:
    """The file, or SchemaError with line and column."""
    return _Parser(text).file()


@dataclass(slots=True)
class _Parts:
    """What has been read of a message, a group or a file."""

    fields: list[Field] = field(default_factory=list)
    oneofs: list[OneOf] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    types: list[Message | Enum] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)
    extensions: list[Extensions] = field(default_factory=list)
    reserved: list[Reserved] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)
    imports: list[tuple[str, str]] = field(default_factory=list)

    def message(self, name: str, at: int, visibility: str = "") -> Message:
        return Message(
            name,
            fields=tuple(self.fields),
            oneofs=tuple(self.oneofs),
            groups=tuple(self.groups),
            types=tuple(self.types),
            extends=tuple(self.extends),
            extensions=tuple(self.extensions),
            reserved=tuple(self.reserved),
            options=tuple(self.options),
            visibility=visibility,
            at=at,
        )


class _Parser:
    """One reading of one text: every method reads one construct."""

    def __init__(self, text: str) -> None:
        self._tokens = Tokens(text)
        self._read = OptionParser(self._tokens)
        self._ranges = RangeParser(self._tokens, self._read)
        self._syntax = ""
        self._edition = ""
        self._package = ""

    def file(self) -> ProtoFile:
        parts = _Parts()
        first = True
        while self._tokens.next.kind is not TokenKind.END:
            if not self._read.accept(";"):
                self._file_statement(parts, first=first)
            first = False
        return ProtoFile(
            syntax=self._syntax,
            edition=self._edition,
            package=self._package,
            imports=tuple(path for kind, path in parts.imports if not kind),
            public_imports=tuple(path for kind, path in parts.imports if kind == "public"),
            weak_imports=tuple(path for kind, path in parts.imports if kind == "weak"),
            all_imports=tuple(path for _, path in parts.imports),
            options=tuple(parts.options),
            types=tuple(parts.types),
            extends=tuple(parts.extends),
            services=tuple(parts.services),
        )

    def _file_statement(self, parts: _Parts, *, first: bool) -> None:
        token = self._read.name("a declaration")
        match token.text:
            case "syntax" | "edition":
                self._version(token, first=first)
            case "package":
                if self._package:
                    raise self._tokens.error("too many package declarations", token.at)
                self._package = self._read.dotted_name("the name of a package")
                self._read.require(";")
            case "import":
                parts.imports.append(self._import())
            case "option":
                parts.options.append(self._read.statement())
            case "service":
                service = self._service(token.at)
                self._refuse_twice(service, parts.services)
                parts.services.append(service)
            case "extend":
                parts.extends.append(self._extend(token.at, 0))
            case _:
                declared = self._type(token, 0)
                if declared is None:
                    raise self._tokens.error(f"unexpected label: {token.text}", token.at)
                self._refuse_twice(declared, parts.types)
                parts.types.append(declared)

    def _refuse_twice(
        self,
        declared: Message | Enum | Service,
        known: list[Message | Enum] | list[Service],
    ) -> None:
        if any(other.name == declared.name for other in known):
            raise self._tokens.error(f"{declared.name} is already defined", declared.at)

    def _version(self, token: Token, *, first: bool) -> None:
        if self._syntax or self._edition:
            raise self._tokens.error("too many syntax definitions", token.at)
        if not first:
            message = f"'{token.text}' element must be the first declaration in a file"
            raise self._tokens.error(message, token.at)
        self._read.require("=")
        at = self._tokens.next.at
        value = self._read.text(f"the {token.text}")
        self._read.require(";")
        if token.text == "syntax":
            if value not in ("proto2", "proto3"):
                raise self._tokens.error(f"unexpected syntax: {value}", at)
            self._syntax = value
            return
        if not _EDITION.fullmatch(value):
            raise self._tokens.error(f"unexpected edition: {value}", at)
        self._edition = value

    def _import(self) -> tuple[str, str]:
        kind = ""
        if self._tokens.next.kind is TokenKind.NAME:
            token = self._tokens.take()
            kind = token.text
            if kind not in ("public", "weak"):
                raise self._tokens.error("expected quoted string", token.at)
        path = self._read.text("the path of a file")
        self._read.require(";")
        return kind, path

    def _type(self, token: Token, depth: int) -> Message | Enum | None:
        """A message or enum if the word begins one."""
        visibility = ""
        if self._edition >= "2024" and token.text in ("export", "local"):
            if self._tokens.next.text not in ("message", "enum"):
                return None
            visibility, token = token.text, self._tokens.take()
        if token.text == "message" and self._tokens.next.kind is TokenKind.NAME:
            return self._message(token.at, depth + 1, visibility)
        if token.text == "enum" and self._tokens.next.kind is TokenKind.NAME:
            return self._enum(token.at, visibility)
        return None

    def _message(self, at: int, depth: int, visibility: str) -> Message:
        name = self._read.name("the name of a message").text
        return self._body(depth).message(name, at, visibility)

    def _body(self, depth: int) -> _Parts:
        """What stands between the braces of a message."""
        if depth > DEPTH_MAX:
            raise self._tokens.error(f"messages are nested more than {DEPTH_MAX} deep")
        parts = _Parts()
        self._read.require("{")
        while not self._read.accept("}"):
            if not self._read.accept(";"):
                self._message_statement(parts, depth)
        return parts

    def _message_statement(self, parts: _Parts, depth: int) -> None:
        if self._read.is_next("."):
            self._field(parts, None, depth)
            return
        token = self._read.name("a field or a declaration")
        after = self._tokens.next
        match token.text:
            case "option" if after.kind is TokenKind.NAME or after.text == "(":
                parts.options.append(self._read.statement())
            case "reserved" if after.text != ".":
                parts.reserved.append(
                    self._ranges.reserved(in_enum=False, bare_names=bool(self._edition))
                )
            case "extensions" if after.kind is TokenKind.INTEGER:
                parts.extensions.append(self._ranges.extensions())
            case "oneof" if after.kind is TokenKind.NAME:
                parts.oneofs.append(self._oneof(token.at, depth))
            case "extend" if after.kind is TokenKind.NAME or after.text == ".":
                parts.extends.append(self._extend(token.at, depth))
            case "message" | "enum" | "export" | "local":
                declared = self._type(token, depth)
                if declared is None:
                    self._field(parts, token, depth)
                else:
                    parts.types.append(declared)
            case _:
                self._field(parts, token, depth)

    def _field(self, parts: _Parts | _ExtendParts, token: Token | None, depth: int) -> None:
        """A field or group; the first word of it may have been taken."""
        at = self._tokens.next.at if token is None else token.at
        label = None
        if token is not None and token.text in ("required", "optional", "repeated"):
            label = Label(token.text)
            if label is Label.REQUIRED and self._syntax == "proto3":
                message = "'required' label forbidden in proto3 field declarations"
                raise self._tokens.error(message, at)
            if label is not Label.REPEATED and self._edition:
                raise self._tokens.error(f"'{token.text}' label forbidden in editions", at)
            token = None
        if token is None and self._tokens.next.kind is TokenKind.NAME:
            token = self._tokens.take()
        is_map = token is not None and token.text == "map" and self._read.is_next("<")
        if is_map and label is not None:
            raise self._tokens.error("'map' type cannot have label", at)
        if label is None and not is_map and self._syntax != "proto3" and not self._edition:
            shown = "." if token is None else token.text
            raise self._tokens.error(f"unexpected label: {shown}", at)
        if token is not None and token.text == "group" and not self._read.is_next("."):
            parts.groups.append(self._group(label, at, depth))
            return
        parts.fields.append(self._field_of(label, self._type_name(token), at))

    def _field_of(self, label: Label | None, type_name: str, at: int) -> Field:
        name = self._read.name("the name of a field").text
        self._read.require("=")
        number = self._ranges.number()
        options = self._read.bracketed()
        self._read.require(";")
        default = json_name = None
        for option in options:
            value = option.value
            if option.name == "default" and not option.custom and not isinstance(value, Option):
                # The canonical text of Confluent has no quotes around the default of bytes.
                as_text = type_name == "bytes" and isinstance(value, Word)
                default = Text.of(value.text) if as_text else value  # type: ignore[union-attr]
            elif option.name == "json_name" and not option.custom:
                if not isinstance(value, Text):
                    raise self._tokens.error("json_name is not a string", option.at)
                json_name = value.data.decode(errors="replace")
        rest = (each for each in options if each.custom or each.name not in _NO_OPTIONS)
        return Field(label, type_name, name, number, default, json_name, tuple(rest), at)

    def _type_name(self, token: Token | None) -> str:
        if token is None:
            return self._read.dotted_name("a type")
        if token.text == "map" and self._read.accept("<"):
            at = self._tokens.next.at
            key = self._read.dotted_name("the type of a key")
            if key not in KEY_TYPES:
                message = f"map key must be non-byte, non-floating point scalar: {key}"
                raise self._tokens.error(message, at)
            self._read.require(",")
            value = self._read.dotted_name("the type of a value")
            self._read.require(">")
            return f"map<{key}, {value}>"
        if self._read.accept("."):
            return f"{token.text}.{self._read.dotted_name('a type')}"
        return token.text

    def _group(self, label: Label | None, at: int, depth: int) -> Group:
        name = self._read.name("the name of a group").text
        self._read.require("=")
        number = self._ranges.number()
        options = self._read.bracketed()
        body = self._body(depth + 1).message(name, at)
        return Group(label, number, body, options, at)

    def _oneof(self, at: int, depth: int) -> OneOf:
        name = self._read.name("the name of a oneof").text
        parts = _Parts()
        self._read.require("{")
        while not self._read.accept("}"):
            if self._read.accept(";"):
                continue
            field_at = self._tokens.next.at
            token = None if self._read.is_next(".") else self._read.name("a field")
            if token is not None and token.text == "option":
                parts.options.append(self._read.statement())
            elif token is not None and token.text in ("required", "optional", "repeated"):
                raise self._tokens.error("fields of a oneof have no label", field_at)
            elif token is not None and token.text == "map" and self._read.is_next("<"):
                raise self._tokens.error("a map cannot be in a oneof", field_at)
            elif token is not None and token.text == "group" and not self._read.is_next("."):
                parts.groups.append(self._group(None, field_at, depth))
            else:
                parts.fields.append(self._field_of(None, self._type_name(token), field_at))
        return OneOf(name, tuple(parts.fields), tuple(parts.groups), tuple(parts.options), at)

    def _extend(self, at: int, depth: int) -> Extend:
        name = self._read.dotted_name("the name of a message")
        parts = _ExtendParts()
        self._read.require("{")
        while not self._read.accept("}"):
            if not self._read.accept(";"):
                token = None if self._read.is_next(".") else self._read.name("a field")
                self._field(parts, token, depth)
        return Extend(name, tuple(parts.fields), tuple(parts.groups), at)

    def _enum(self, at: int, visibility: str) -> Enum:
        name = self._read.name("the name of an enum").text
        values: list[EnumValue] = []
        reserved: list[Reserved] = []
        options: list[Option] = []
        self._read.require("{")
        while not self._read.accept("}"):
            if self._read.accept(";"):
                continue
            token = self._read.name("the name of a value")
            if token.text == "option" and not self._read.is_next("="):
                options.append(self._read.statement())
            elif token.text == "reserved" and not self._read.is_next("="):
                reserved.append(self._reserved(in_enum=True))
            else:
                self._read.require("=")
                number = self._ranges.number(signed=True)
                values.append(EnumValue(token.text, number, self._read.bracketed(), token.at))
                self._read.require(";")
        return Enum(name, tuple(values), tuple(reserved), tuple(options), visibility, at)

    def _reserved(self, *, in_enum: bool) -> Reserved:
        return self._ranges.reserved(in_enum=in_enum, bare_names=bool(self._edition))

    def _service(self, at: int) -> Service:
        name = self._read.name("the name of a service").text
        rpcs: list[Rpc] = []
        options: list[Option] = []
        self._read.require("{")
        while not self._read.accept("}"):
            if self._read.accept(";"):
                continue
            token = self._read.name("a method")
            if token.text == "option":
                options.append(self._read.statement())
            elif token.text == "rpc":
                rpcs.append(self._rpc(token.at))
            else:
                raise self._tokens.error(f"unexpected label: {token.text}", token.at)
        return Service(name, tuple(rpcs), tuple(options), at)

    def _rpc(self, at: int) -> Rpc:
        name = self._read.name("the name of a method").text
        request, request_streaming = self._rpc_type()
        token = self._read.name("'returns'")
        if token.text != "returns":
            raise self._tokens.error("expected 'returns'", token.at)
        response, response_streaming = self._rpc_type()
        options: list[Option] = []
        if self._read.accept("{"):
            while not self._read.accept("}"):
                if self._read.accept(";"):
                    continue
                token = self._read.name("an option")
                if token.text != "option":
                    raise self._tokens.error(f"unexpected label: {token.text}", token.at)
                options.append(self._read.statement())
        else:
            self._read.require(";")
        return Rpc(
            name, request, response, request_streaming, response_streaming, tuple(options), at
        )

    def _rpc_type(self) -> tuple[str, bool]:
        self._read.require("(")
        token = None if self._read.is_next(".") else self._read.name("a type")
        streaming = token is not None and token.text == "stream"
        if streaming:
            token = None if self._read.is_next(".") else self._read.name("a type")
        name = self._type_name(token)
        self._read.require(")")
        return name, streaming


_NO_OPTIONS = ("default", "json_name")


@dataclass(slots=True)
class _ExtendParts:
    fields: list[Field] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
