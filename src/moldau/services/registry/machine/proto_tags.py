"""Tags within Protobuf: `(confluent.message_meta).tags` and `(confluent.field_meta).tags`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from moldau.data.protobuf.model import (
    Aggregate,
    Field,
    Group,
    Items,
    Message,
    OneOf,
    Option,
    ProtoFile,
    Text,
    Value,
)
from moldau.data.protobuf.parser import parse_text
from moldau.data.protobuf.printer import canonical

__all__ = ["Entity", "tags_of_messages", "with_tags_of_messages"]

#: The path, within the package, and `sr_record` or `sr_field`.
Entity = tuple[str, str]
_RECORD: Final = "sr_record"
_FIELD: Final = "sr_field"
_METAS: Final = {_RECORD: "confluent.message_meta", _FIELD: "confluent.field_meta"}
_TAGS: Final = "tags"


def tags_of_messages(text: str) -> dict[Entity, tuple[str, ...]]:
    """Every message and field, each before what is within it."""
    return {
        entity: _tags(options, _METAS[entity[1]])
        for each in parse_text(text).types
        if isinstance(each, Message)
        for entity, options in _entities(each, "")
    }


def _entities(message: Message, scope: str) -> Iterator[tuple[Entity, tuple[Option, ...]]]:
    path = f"{scope}{message.name}"
    yield (path, _RECORD), message.options
    parts = [*message.members, *(each for one in message.oneofs for each in one.members)]
    for part in parts:
        yield (f"{path}.{part.name}", _FIELD), part.options
    for inner in message.messages():
        yield from _entities(inner, f"{path}.")


def _tags(options: tuple[Option, ...], meta: str) -> tuple[str, ...]:
    found: list[str] = []
    for name, value in _meta_fields(options, meta):
        if name == _TAGS:
            items = value.values if isinstance(value, Items) else (value,)
            found += [each.data.decode() for each in items if isinstance(each, Text)]
    return tuple(found)


def _meta_fields(options: tuple[Option, ...], meta: str) -> Iterator[tuple[str, Value]]:
    """`(meta) = {name: value}` and `(meta).name = value`."""
    for option in options:
        if not _is_meta(option, meta):
            continue
        if isinstance(option.value, Aggregate):
            yield from option.value.fields
        elif isinstance(option.value, Option) and not isinstance(option.value.value, Option):
            yield option.value.name, option.value.value


def _is_meta(option: Option, meta: str) -> bool:
    return option.custom and option.name.removeprefix(".") == meta


def with_tags_of_messages(text: str, changes: Mapping[Entity, tuple[str, ...]]) -> str:
    file: ProtoFile = parse_text(text)
    types = tuple(
        _changed(each, "", changes) if isinstance(each, Message) else each for each in file.types
    )
    return canonical(replace(file, types=types))


def _changed(message: Message, scope: str, changes: Mapping[Entity, tuple[str, ...]]) -> Message:
    path = f"{scope}{message.name}"

    def options(name: str, kind: str, given: tuple[Option, ...]) -> tuple[Option, ...]:
        tags = changes.get((name, kind))
        return given if tags is None else _with_tags(given, _METAS[kind], tags)

    def part(each: Any) -> Any:
        found: Field | Group = each
        return replace(found, options=options(f"{path}.{found.name}", _FIELD, found.options))

    def oneof(each: OneOf) -> OneOf:
        return replace(
            each, fields=tuple(map(part, each.fields)), groups=tuple(map(part, each.groups))
        )

    return replace(
        message,
        options=options(path, _RECORD, message.options),
        fields=tuple(map(part, message.fields)),
        groups=tuple(map(part, message.groups)),
        oneofs=tuple(map(oneof, message.oneofs)),
        types=tuple(
            _changed(each, f"{path}.", changes) if isinstance(each, Message) else each
            for each in message.types
        ),
    )


def _with_tags(options: tuple[Option, ...], meta: str, tags: tuple[str, ...]) -> tuple[Option, ...]:
    """In one option: a message in braces and a path into it exclude each other."""
    fields = [(name, value) for name, value in _meta_fields(options, meta) if name != _TAGS]
    if tags:
        fields.append((_TAGS, Items(tuple(map(Text.of, tags)))))
    others = tuple(each for each in options if not _is_meta(each, meta))
    if not fields:
        return others
    return (*others, Option(meta, Aggregate(tuple(fields)), custom=True))
