"""Tags within schemas: `confluent:tags` of records and fields, in Protobuf options.

An entity is named by its path: `namespace.Record` (`sr_record`) or `namespace.Record.field`
(`sr_field`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from moldau.services.registry.machine.errors import InvalidRequest, InvalidSchema
from moldau.services.registry.machine.json_fields import (
    JsonObject,
    list_field,
    object_field,
    text_field,
    text_list,
)
from moldau.services.registry.machine.schemas import AVRO, Schema

__all__ = ["EntityTags", "found_tags", "with_tags", "with_tags_of"]

#: The path, and `sr_record` or `sr_field`.
Entity = tuple[str, str]
_PROTOBUF: Final = "PROTOBUF"
_TAGS: Final = "confluent:tags"
_RECORD: Final = "sr_record"
_FIELD: Final = "sr_field"


@dataclass(frozen=True, slots=True)
class EntityTags:
    path: str
    type: str
    tags: tuple[str, ...]

    @classmethod
    def list_from_json(cls, source: JsonObject, name: str) -> tuple[EntityTags, ...]:
        return tuple(cls._from_json(each) for each in list_field(source, name))

    @classmethod
    def _from_json(cls, source: object) -> EntityTags:
        entity = object_field(source, "schemaEntity") if isinstance(source, dict) else None
        if not isinstance(source, dict) or entity is None:
            raise InvalidRequest("tags must be objects with schemaEntity and tags")
        path, type = text_field(entity, "entityPath"), text_field(entity, "entityType")
        if path is None or type not in (_RECORD, _FIELD):
            raise InvalidRequest(
                f"schemaEntity must have entityPath and entityType {_RECORD} or {_FIELD}"
            )
        tags = text_list(source.get("tags") or [], "tags")
        return cls(path.removeprefix("."), type, tags)

    def to_json(self) -> dict[str, Any]:
        entity = {"entityPath": self.path, "entityType": self.type}
        return {"schemaEntity": entity, "tags": list(self.tags)}


def found_tags(schema: Schema, wanted: Iterable[str]) -> list[EntityTags]:
    """The entities with one of these tags; `*` stands for any."""
    names = set(wanted)
    return [
        EntityTags(path, type, tags)
        for (path, type), tags in _tagged(schema).items()
        if tags and ("*" in names or names & set(tags))
    ]


def with_tags(schema: Schema, added: Iterable[EntityTags], removed: Iterable[EntityTags]) -> str:
    """The text with other tags. Raises InvalidSchema for a path that leads nowhere."""
    before = _tagged(schema)
    after: dict[Entity, tuple[str, ...]] = {}
    for each, adds in [(one, True) for one in added] + [(one, False) for one in removed]:
        entity = (each.path, each.type)
        if entity not in before:
            raise InvalidSchema(f"No matching path '{each.path}' found in the schema")
        tags = dict.fromkeys(after.get(entity, before[entity]))
        for tag in each.tags:
            if adds:
                tags[tag] = None
            else:
                tags.pop(tag, None)
        after[entity] = tuple(tags)
    return _rewritten(schema, after)


def with_tags_of(schema: Schema, previous: Schema) -> str:
    """The text with the tags of another version, for what both have."""
    if schema.type != previous.type:
        return schema.text
    there = _tagged(schema)
    kept = [each for each in found_tags(previous, ["*"]) if (each.path, each.type) in there]
    return with_tags(schema, kept, ()) if kept else schema.text


def _tagged(schema: Schema) -> dict[Entity, tuple[str, ...]]:
    """Every entity with its tags."""
    if schema.type == _PROTOBUF:
        from moldau.services.registry.machine.proto_tags import tags_of_messages

        return tags_of_messages(schema.text)
    return {key: tuple(node.get(_TAGS) or ()) for key, node in _nodes(schema, _read(schema))}


def _rewritten(schema: Schema, changes: Mapping[Entity, tuple[str, ...]]) -> str:
    if schema.type == _PROTOBUF:
        from moldau.services.registry.machine.proto_tags import with_tags_of_messages

        return with_tags_of_messages(schema.text, changes)
    document = _read(schema)
    nodes = dict(_nodes(schema, document))
    for entity, tags in changes.items():
        if tags:
            nodes[entity][_TAGS] = list(tags)
        else:
            nodes[entity].pop(_TAGS, None)
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _read(schema: Schema) -> Any:
    return json.loads(schema.text)


def _nodes(schema: Schema, document: Any) -> Iterator[tuple[Entity, dict[str, Any]]]:
    return _entities(document) if schema.type == AVRO else _json_entities(document)


def _json_entities(document: Any) -> Iterator[tuple[Entity, dict[str, Any]]]:
    """Of JSON Schema: objects are records, what they have is fields. A path says what it leads
    through: `object.tags.array.object.name`, `object.owner.allof.0.object`."""
    pending: list[tuple[Any, str]] = [(document, "")]
    while pending:
        node, path = pending.pop()
        if not isinstance(node, dict):
            continue
        before = f"{path}." if path else ""
        inner: list[tuple[Any, str]] = []
        for word in ("allOf", "anyOf", "oneOf"):
            parts = node.get(word)
            for at, each in enumerate(parts if isinstance(parts, list) else ()):
                inner.append((each, f"{before}{word.lower()}.{at}"))
        inner.append((node.get("not"), f"{before}not"))
        inner.append((node.get("items"), f"{before}array"))
        properties = node.get("properties")
        if isinstance(properties, dict) or node.get("type") == "object":
            yield (f"{before}object", _RECORD), node
            for name, each in (properties or {}).items():
                if isinstance(each, dict):
                    yield (f"{before}object.{name}", _FIELD), each
                    inner.append((each, f"{before}object.{name}"))
        pending += reversed(inner)


def _entities(document: Any) -> Iterator[tuple[Entity, dict[str, Any]]]:
    """Of Avro: records and fields, each before what is within it."""
    pending: list[tuple[Any, str]] = [(document, "")]
    while pending:
        node, namespace = pending.pop()
        if isinstance(node, list):
            pending += [(each, namespace) for each in reversed(node)]
        if not isinstance(node, dict):
            continue
        kind = node.get("type")
        if kind == "array":
            pending.append((node.get("items"), namespace))
        elif kind == "map":
            pending.append((node.get("values"), namespace))
        elif kind in ("record", "error"):
            name = str(node.get("name"))
            if "." not in name:
                inside = node.get("namespace", namespace)
                name = f"{inside}.{name}" if inside else name
            yield (name, _RECORD), node
            fields = [each for each in node.get("fields", ()) if isinstance(each, dict)]
            for each in fields:
                yield (f"{name}.{each.get('name')}", _FIELD), each
            inside = name.rpartition(".")[0]
            pending += [(each.get("type"), inside) for each in reversed(fields)]
        elif isinstance(kind, (dict, list)):
            pending.append((kind, namespace))
