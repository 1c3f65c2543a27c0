"""Descriptors from files: what protoc would make of the same text.

Options of the language itself are set at once, since they change what a file means. Custom options
are kept for `compiled.py`, which sets them when the types of the file are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import descriptor_pb2, text_format

from moldau.data.protobuf.descriptor_values import default_text, json_name, map_entry_name
from moldau.data.protobuf.model import (
    SCALARS,
    Enum,
    Extend,
    Field,
    Group,
    Label,
    Message,
    OneOf,
    Option,
    ProtoFile,
    Range,
    Service,
    Word,
    map_types,
)
from moldau.data.protobuf.option_text import is_standard, standard_text
from moldau.data.protobuf.types import Scope, TypeTable, groups_of
from moldau.data.schema_language import SchemaError

_FieldProto = descriptor_pb2.FieldDescriptorProto
_LABELS = {
    None: _FieldProto.LABEL_OPTIONAL,
    Label.OPTIONAL: _FieldProto.LABEL_OPTIONAL,
    Label.REQUIRED: _FieldProto.LABEL_REQUIRED,
    Label.REPEATED: _FieldProto.LABEL_REPEATED,
}


@dataclass(frozen=True, slots=True)
class PendingOptions:
    """Custom options of a part of a descriptor that has a field `options`."""

    owner: Any
    options: tuple[Option, ...]
    scope: Scope


@dataclass(slots=True)
class BuiltFile:
    """A descriptor, and the custom options that it lacks."""

    proto: descriptor_pb2.FileDescriptorProto
    pending: list[PendingOptions] = field(default_factory=list)


def build(file: ProtoFile, name: str, table: TypeTable, available: Iterable[str]) -> BuiltFile:
    """The descriptor of a file under a name; SchemaError if it is none that protoc would make.

    Imports of files that are not available are left out, as Confluent's registry does.
    """
    built = BuiltFile(descriptor_pb2.FileDescriptorProto(name=name))
    proto = built.proto
    if file.edition:
        proto.syntax = "editions"
        proto.edition = _edition(file.edition)
    elif file.syntax == "proto3":
        proto.syntax = "proto3"
    if file.package:
        proto.package = file.package
    known = set(available)
    for path in dict.fromkeys(file.all_imports):
        if path not in known:
            continue
        if path in file.public_imports:
            proto.public_dependency.append(len(proto.dependency))
        elif path in file.weak_imports:
            proto.weak_dependency.append(len(proto.dependency))
        proto.dependency.append(path)
    scope = Scope(file.package)
    builder = _Builder(file, table, built)
    builder.types(proto.message_type, proto.enum_type, file.types, (), (), file.extends, scope)
    builder.extends(proto.extension, file.extends, scope)
    for service in file.services:
        builder.service(proto.service.add(), service, scope)
    builder.options(proto, file.options, scope)
    return built


def _edition(name: str) -> Any:
    try:
        return descriptor_pb2.Edition.Value(f"EDITION_{name}")
    except ValueError:
        raise SchemaError(f"Edition {name} is not known to the installed protobuf") from None


class _Builder:
    def __init__(self, file: ProtoFile, table: TypeTable, built: BuiltFile) -> None:
        self._file = file
        self._table = table
        self._built = built

    def types(
        self,
        messages: Any,
        enums: Any,
        types: Sequence[Message | Enum],
        groups: Iterable[Group],
        maps: Iterable[Field],
        extends: Iterable[Extend],
        scope: Scope,
    ) -> None:
        """The types that are declared in a scope, in the order of the text."""
        extended = [group for extend in extends for group in extend.groups]
        bodies = [group.body for group in (*groups, *extended)]
        declared: list[Message | Enum | Field] = [*types, *bodies, *maps]
        for each in sorted(declared, key=lambda declaration: declaration.at):
            if isinstance(each, Message):
                self._message(messages.add(), each, scope)
            elif isinstance(each, Enum):
                self._enum(enums.add(), each, scope)
            else:
                self._map_entry(messages.add(), each, scope)

    def _message(self, proto: Any, message: Message, outer: Scope) -> None:
        scope = outer.inside(message.name)
        proto.name = message.name
        if message.visibility:
            proto.visibility = _visibility(message.visibility)
        maps = [each for each in message.fields if map_types(each.type)]
        self.types(
            proto.nested_type,
            proto.enum_type,
            message.types,
            groups_of(message),
            maps,
            message.extends,
            scope,
        )
        self._fields(proto, message, scope)
        self.extends(proto.extension, message.extends, scope)
        for extensions in message.extensions:
            for value in extensions.values:
                start, end = (value.start, value.end) if isinstance(value, Range) else (value,) * 2
                span = proto.extension_range.add(start=start, end=end + 1)
                self.options(span, extensions.options, scope)
        for reserved in message.reserved:
            for each in reserved.values:
                if isinstance(each, str):
                    proto.reserved_name.append(each)
                else:
                    start, end = (each.start, each.end) if isinstance(each, Range) else (each,) * 2
                    proto.reserved_range.add(start=start, end=end + 1)
        self.options(proto, message.options, scope)

    def _fields(self, proto: Any, message: Message, scope: Scope) -> None:
        numbered: list[tuple[Field | Group, int | None]] = [
            (each, None) for each in message.members
        ]
        for index, oneof in enumerate(message.oneofs):
            self._oneof(proto, oneof, scope)
            numbered += [(each, index) for each in oneof.members]
        numbered.sort(key=lambda pair: pair[0].at)
        optional = []
        for each, oneof_index in numbered:
            made = proto.field.add()
            self._any_field(made, each, scope)
            if oneof_index is not None:
                made.oneof_index = oneof_index
            elif self._file.syntax == "proto3" and each.label is Label.OPTIONAL:
                made.proto3_optional = True
                optional.append(made)
        names = {each.name for each in (*proto.field, *proto.oneof_decl)}
        for made in optional:
            # Every optional field of proto3 has a oneof of its own, behind the real ones.
            name = made.name if made.name.startswith("_") else f"_{made.name}"
            while name in names:
                name = f"X{name}"
            names.add(name)
            made.oneof_index = len(proto.oneof_decl)
            proto.oneof_decl.add(name=name)

    def _oneof(self, proto: Any, oneof: OneOf, scope: Scope) -> None:
        self.options(proto.oneof_decl.add(name=oneof.name), oneof.options, scope)

    def _any_field(self, proto: Any, each: Field | Group, scope: Scope) -> None:
        if isinstance(each, Group):
            self._group_field(proto, each, scope)
            return
        proto.name, proto.number = each.name, each.number
        proto.label = _LABELS[each.label]
        proto.json_name = json_name(each.name) if each.json_name is None else each.json_name
        if map_types(each.type):
            proto.label = _FieldProto.LABEL_REPEATED
            proto.type = _FieldProto.TYPE_MESSAGE
            proto.type_name = f".{next(scope.prefixes())}{map_entry_name(each.name)}"
        else:
            self._type(proto, each.type, scope)
        if each.default is not None:
            proto.default_value = self._default(proto, each)
        self.options(proto, each.options, scope)

    def _group_field(self, proto: Any, group: Group, scope: Scope) -> None:
        proto.name, proto.number = group.name.lower(), group.number
        proto.label = _LABELS[group.label]
        proto.type = _FieldProto.TYPE_GROUP
        proto.type_name = f".{next(scope.prefixes())}{group.name}"
        proto.json_name = json_name(proto.name)
        self.options(proto, group.options, scope)

    def _type(self, proto: Any, type_name: str, scope: Scope) -> None:
        if type_name in SCALARS:
            proto.type = getattr(_FieldProto, f"TYPE_{type_name.upper()}")
            return
        found = self._table.type(type_name, scope)
        if found is None:
            raise SchemaError(f"Could not resolve type: {type_name}")
        is_enum = isinstance(found.declared, Enum)
        proto.type = _FieldProto.TYPE_ENUM if is_enum else _FieldProto.TYPE_MESSAGE
        proto.type_name = f".{found.full_name}"

    def _default(self, proto: Any, each: Field) -> str:
        if proto.type == _FieldProto.TYPE_ENUM and isinstance(each.default, Word):
            return each.default.text
        try:
            return default_text(each.type, each.default)  # type: ignore[arg-type]
        except ValueError as error:
            raise SchemaError(f"Field {each.name}: {error}") from None

    def _map_entry(self, proto: Any, each: Field, scope: Scope) -> None:
        entry = map_types(each.type)
        if entry is None:
            return
        proto.name = map_entry_name(each.name)
        proto.options.map_entry = True
        for number, (name, type_name) in enumerate(zip(("key", "value"), entry, strict=True), 1):
            made = proto.field.add(
                name=name, number=number, label=_FieldProto.LABEL_OPTIONAL, json_name=name
            )
            self._type(made, type_name, scope)

    def extends(self, extensions: Any, extends: Iterable[Extend], scope: Scope) -> None:
        for extend in extends:
            found = self._table.type(extend.name, scope)
            if found is None:
                raise SchemaError(f"Could not resolve type: {extend.name}")
            for each in extend.members:
                made = extensions.add()
                self._any_field(made, each, scope)
                made.extendee = f".{found.full_name}"
                if self._file.syntax == "proto3" and each.label is Label.OPTIONAL:
                    made.proto3_optional = True

    def _enum(self, proto: Any, enum: Enum, outer: Scope) -> None:
        scope = outer.inside(enum.name)
        proto.name = enum.name
        if enum.visibility:
            proto.visibility = _visibility(enum.visibility)
        for value in enum.values:
            made = proto.value.add(name=value.name, number=value.number)
            self.options(made, value.options, scope)
        for reserved in enum.reserved:
            for each in reserved.values:
                if isinstance(each, str):
                    proto.reserved_name.append(each)
                else:
                    start, end = (each.start, each.end) if isinstance(each, Range) else (each,) * 2
                    proto.reserved_range.add(start=start, end=end)
        self.options(proto, enum.options, scope)

    def service(self, proto: Any, service: Service, outer: Scope) -> None:
        scope = outer.inside(service.name)
        proto.name = service.name
        for rpc in service.rpcs:
            made = proto.method.add(name=rpc.name)
            for attribute, type_name in (
                ("input_type", rpc.request),
                ("output_type", rpc.response),
            ):
                found = self._table.type(type_name, scope)
                if found is None:
                    raise SchemaError(f"Could not resolve type: {type_name}")
                setattr(made, attribute, f".{found.full_name}")
            if rpc.request_streaming:
                made.client_streaming = True
            if rpc.response_streaming:
                made.server_streaming = True
            self.options(made, rpc.options, scope)
        self.options(proto, service.options, scope)

    def options(self, owner: Any, options: tuple[Option, ...], scope: Scope) -> None:
        """Sets the options of the language, and keeps the custom ones for later."""
        custom = tuple(option for option in options if not is_standard(option))
        if custom:
            self._built.pending.append(PendingOptions(owner, custom, scope))
        for option in options:
            # As in Confluent's registry, a name that the language does not have says nothing.
            first = option.name.partition(".")[0]
            if not is_standard(option) or first not in owner.options.DESCRIPTOR.fields_by_name:
                continue
            try:
                text_format.Merge(standard_text(option), owner.options)
            except text_format.ParseError as error:
                raise SchemaError(f"Option {option.name}: {error}") from None


def _visibility(word: str) -> Any:
    return getattr(descriptor_pb2, f"VISIBILITY_{word.upper()}")
