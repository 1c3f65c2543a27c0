"""Files from descriptors: the inverse of `builder.py`.

The text that a file made here has is that of Confluent's registry for the same descriptor: names of
types are complete, and maps are written as the messages of their entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

from google.protobuf import descriptor_pb2

from moldau.data.protobuf.model import (
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
)

_FieldProto = descriptor_pb2.FieldDescriptorProto
_LABELS = {
    _FieldProto.LABEL_OPTIONAL: Label.OPTIONAL,
    _FieldProto.LABEL_REQUIRED: Label.REQUIRED,
    _FieldProto.LABEL_REPEATED: Label.REPEATED,
}
#: Options are printed in this order, then in that of their numbers.
_FIRST = (
    *("java_package", "java_outer_classname", "java_multiple_files"),
    *("java_generate_equals_and_hash", "java_string_check_utf8", "optimize_for", "go_package"),
    *("cc_generic_services", "java_generic_services", "py_generic_services"),
    *("no_standard_descriptor_accessor", "allow_alias", "ctype", "packed", "jstype"),
    *("deprecated", "debug_redact", "retention", "targets", "map_entry", "idempotency_level"),
    *("cc_enable_arenas", "objc_class_prefix", "csharp_namespace", "swift_prefix"),
    *("php_class_prefix", "php_namespace", "php_metadata_namespace", "ruby_package"),
    *("edition_defaults", "declaration", "features", "feature_support", "verification"),
)
_RANK = {name: rank for rank, name in enumerate(_FIRST)}


def file_of(proto: Any) -> ProtoFile:
    """The file that a FileDescriptorProto describes; ValueError if it cannot be one."""
    _check_texts(proto)
    return _Reader(proto).file()


def _check_texts(message: Any) -> None:
    """Texts in a descriptor may be any bytes, but no name or path is."""
    for field, value in message.ListFields():
        values = value if field.is_repeated else [value]
        if field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for each in values:
                _check_texts(each)
        elif field.type == field.TYPE_STRING and any(isinstance(each, bytes) for each in values):
            raise ValueError(f"{field.full_name} is not UTF-8")


class _Reader:
    def __init__(self, proto: Any) -> None:
        self._proto = proto
        self._is_proto3 = proto.syntax == "proto3"
        self._is_editions = proto.syntax == "editions"
        #: Places in a text that does not exist, so that the order is kept.
        self._at = count(1)

    def file(self) -> ProtoFile:
        proto = self._proto
        public, weak = set(proto.public_dependency), set(proto.weak_dependency)
        paths = list(enumerate(proto.dependency))
        groups = _group_names(proto.extension)
        nested = {each.name: each for each in proto.message_type}
        types: list[Message | Enum] = [
            self._message(each) for each in proto.message_type if each.name not in groups
        ]
        types += [self._enum(each) for each in proto.enum_type]
        edition = ""
        if self._is_editions:
            edition = descriptor_pb2.Edition.Name(proto.edition).removeprefix("EDITION_")
        return ProtoFile(
            syntax=proto.syntax if proto.syntax in ("proto2", "proto3") else "",
            edition=edition,
            package=proto.package,
            imports=tuple(path for i, path in paths if i not in public and i not in weak),
            public_imports=tuple(path for i, path in paths if i in public),
            weak_imports=tuple(path for i, path in paths if i in weak and i not in public),
            all_imports=tuple(proto.dependency),
            options=options_of(proto),
            types=tuple(types),
            extends=self._extends(proto.extension, nested),
            services=tuple(map(self._service, proto.service)),
        )

    def _message(self, proto: Any) -> Message:
        at = next(self._at)
        groups = _group_names((*proto.field, *proto.extension))
        nested = {each.name: each for each in proto.nested_type}
        fields: list[Field] = []
        own_groups: list[Group] = []
        oneofs: list[list[Field | Group]] = [[] for _ in proto.oneof_decl]
        for each in proto.field:
            in_oneof = each.HasField("oneof_index") and not each.proto3_optional
            made = self._field(each, nested, in_oneof=in_oneof)
            if in_oneof and each.oneof_index < len(oneofs):
                oneofs[each.oneof_index].append(made)
            elif isinstance(made, Group):
                own_groups.append(made)
            else:
                fields.append(made)
        types: list[Message | Enum] = [
            self._message(each) for each in proto.nested_type if each.name not in groups
        ]
        types += map(self._enum, proto.enum_type)
        return Message(
            proto.name,
            fields=tuple(fields),
            oneofs=tuple(self._oneofs(proto, oneofs)),
            groups=tuple(own_groups),
            types=tuple(types),
            extends=self._extends(proto.extension, nested),
            extensions=tuple(
                Extensions((_range(each.start, each.end - 1),), options_of(each))
                for each in proto.extension_range
            ),
            reserved=_reserved(proto, exclusive=1),
            options=options_of(proto),
            visibility=_visibility(proto),
            at=at,
        )

    @staticmethod
    def _oneofs(proto: Any, members: list[list[Field | Group]]) -> Iterator[OneOf]:
        for each, fields in zip(proto.oneof_decl, members, strict=True):
            if fields:
                yield OneOf(
                    each.name,
                    tuple(field for field in fields if isinstance(field, Field)),
                    tuple(field for field in fields if isinstance(field, Group)),
                    options_of(each),
                )

    def _field(
        self, proto: Any, nested: dict[str, Any], *, in_oneof: bool = False
    ) -> Field | Group:
        at = next(self._at)
        label = None if in_oneof else self._label(proto)
        group = proto.type_name.rpartition(".")[2]
        if proto.type == _FieldProto.TYPE_GROUP and group in nested:
            body = self._message(nested[group])
            return Group(label, proto.number, body, options_of(proto), at)
        type_name = proto.type_name
        if not type_name:
            type_name = _FieldProto.Type.Name(proto.type).removeprefix("TYPE_").lower()
        return Field(
            label,
            type_name,
            proto.name,
            proto.number,
            self._default(proto),
            proto.json_name if proto.HasField("json_name") else None,
            options_of(proto),
            at,
        )

    def _label(self, proto: Any) -> Label | None:
        if proto.proto3_optional:
            return Label.OPTIONAL
        label = _LABELS[proto.label]
        if (self._is_proto3 or self._is_editions) and label is not Label.REPEATED:
            return None
        return label

    def _default(self, proto: Any) -> Value | None:
        if self._is_proto3 or not proto.HasField("default_value"):
            return None
        text = proto.default_value
        if proto.type == _FieldProto.TYPE_STRING:
            return Text.of(text)
        if proto.type == _FieldProto.TYPE_BYTES:
            return Text(_unescaped(text))
        if proto.type == _FieldProto.TYPE_BOOL:
            return Word(WordKind.BOOLEAN, text)
        is_name = proto.type == _FieldProto.TYPE_ENUM or text in ("inf", "nan")
        return Word(WordKind.ENUM if is_name else WordKind.NUMBER, text)

    def _extends(self, protos: Iterable[Any], nested: dict[str, Any]) -> tuple[Extend, ...]:
        by_extended: dict[str, list[Field | Group]] = {}
        for proto in protos:
            made = self._field(proto, nested)
            by_extended.setdefault(proto.extendee, []).append(made)
        return tuple(
            Extend(
                name,
                tuple(each for each in made if isinstance(each, Field)),
                tuple(each for each in made if isinstance(each, Group)),
            )
            for name, made in by_extended.items()
        )

    def _enum(self, proto: Any) -> Enum:
        at = next(self._at)
        values = tuple(EnumValue(each.name, each.number, options_of(each)) for each in proto.value)
        reserved = _reserved(proto, exclusive=0)
        return Enum(proto.name, values, reserved, options_of(proto), _visibility(proto), at)

    @staticmethod
    def _service(proto: Any) -> Service:
        return Service(
            proto.name,
            tuple(
                Rpc(
                    each.name,
                    each.input_type,
                    each.output_type,
                    each.client_streaming,
                    each.server_streaming,
                    options_of(each),
                )
                for each in proto.method
            ),
            options_of(proto),
        )


def _group_names(fields: Iterable[Any]) -> set[str]:
    """The names of the messages that are groups."""
    return {
        field.type_name.rpartition(".")[2]
        for field in fields
        if field.type == _FieldProto.TYPE_GROUP
    }


def _visibility(proto: Any) -> str:
    # Versions of protobuf before edition 2024 have no such field.
    number = getattr(proto, "visibility", 0)
    return {1: "local", 2: "export"}.get(number, "")


def _range(start: int, end: int) -> int | Range:
    return start if start == end else Range(start, end)


def _reserved(proto: Any, *, exclusive: int) -> tuple[Reserved, ...]:
    ranges = [
        Reserved((_range(each.start, each.end - exclusive),)) for each in proto.reserved_range
    ]
    return (*ranges, *(Reserved((name,)) for name in proto.reserved_name))


def _unescaped(text: str) -> bytes:
    """The bytes of a default as descriptors write it."""
    return text.encode().decode("unicode_escape", errors="replace").encode("latin-1", "replace")


def options_of(owner: Any) -> tuple[Option, ...]:
    """The options that are set, and of the custom ones those that the descriptor's pool knows."""
    if not owner.HasField("options"):
        return ()
    fields = owner.options.ListFields()
    last = len(_RANK)
    fields.sort(
        key=lambda pair: (
            pair[0].is_extension,
            _RANK.get(pair[0].name, last),
            pair[0].number,
        )
    )
    options: list[Option] = []
    for field, value in fields:
        if field.name == "uninterpreted_option":
            continue
        name = field.full_name if field.is_extension else field.name
        is_meta = field.is_extension and name.startswith("confluent.")
        if is_meta:
            meta = _meta(value)
            options += [Option(name, meta, custom=True)] if meta.fields else []
            continue
        values = value if _is_repeated(field) else [value]
        options += [Option(name, _value(field, each), field.is_extension) for each in values]
    return tuple(options)


def _is_repeated(field: Any) -> bool:
    return bool(field.is_repeated)


def _value(field: Any, value: Any) -> Value:
    if field.message_type is not None:
        return _aggregate(value)
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return Word(WordKind.ENUM, named.name if named else str(value))
    if isinstance(value, bool):
        return Word(WordKind.BOOLEAN, str(value).lower())
    if isinstance(value, str):
        return Text.of(value)
    if isinstance(value, bytes):
        return Text(value)
    return Word(WordKind.NUMBER, str(value))


def _aggregate(message: Any) -> Aggregate:
    fields: list[tuple[str, Value]] = []
    for field, value in message.ListFields():
        name = f"[{field.full_name}]" if field.is_extension else field.name
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            fields.append((name, _entries(field, value)))
        elif _is_repeated(field):
            fields.append((name, Items(tuple(_value(field, each) for each in value))))
        else:
            fields.append((name, _value(field, value)))
    return Aggregate(tuple(fields))


def _entries(field: Any, value: Any) -> Items:
    types = field.message_type.fields_by_name
    return Items(
        tuple(
            Aggregate((("key", _value(types["key"], key)), ("value", _value(types["value"], each))))
            for key, each in sorted(value.items())
        )
    )


def _meta(meta: Any) -> Aggregate:
    """Confluent's metadata, in the order in which its registry prints them."""
    fields: list[tuple[str, Value]] = []
    if meta.doc:
        fields.append(("doc", Text.of(meta.doc)))
    if meta.params:
        params = tuple(_param(*each) for each in sorted(meta.params.items()))
        fields.append(("params", Items(params)))
    if meta.tags:
        fields.append(("tags", Items(tuple(map(Text.of, meta.tags)))))
    rules = (
        tuple(
            (name, Text.of(getattr(rule, name)))
            for name in ("name", "doc", "expr", "sql")
            if getattr(rule, name)
        )
        for rule in meta.rules
    )
    if entries := tuple(Aggregate(rule) for rule in rules if rule):
        fields.append(("rules", Items(entries)))
    return Aggregate(tuple(fields))


def _param(key: str, value: str) -> Aggregate:
    pair = (("key", Text.of(key)), ("value", Text.of(value)))
    # Confluent prints these two the other way round, as it once printed all of them.
    return Aggregate(pair[::-1] if key in ("precision", "scale") else pair)
