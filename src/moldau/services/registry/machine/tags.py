"""Tags within an Avro schema: `confluent:tags` of records and fields.

An entity is named by its path: `namespace.Record` (`sr_record`) or `namespace.Record.field`
(`sr_field`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
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

__all__ = ["EntityTags", "found_tags", "with_tags"]

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
    found = []
    for (path, type), node in _entities(_document(schema)):
        tags = tuple(node.get(_TAGS) or ())
        if tags and ("*" in names or names & set(tags)):
            found.append(EntityTags(path, type, tags))
    return found


def with_tags(schema: Schema, added: Iterable[EntityTags], removed: Iterable[EntityTags]) -> str:
    """The text with other tags. Raises InvalidSchema for a path that leads nowhere."""
    document = _document(schema)
    nodes = dict(_entities(document))
    for each, adds in [(one, True) for one in added] + [(one, False) for one in removed]:
        node = nodes.get((each.path, each.type))
        if node is None:
            raise InvalidSchema(f"No matching path '{each.path}' found in the schema")
        tags = dict.fromkeys(node.get(_TAGS) or ())
        for tag in each.tags:
            if adds:
                tags[tag] = None
            else:
                tags.pop(tag, None)
        if tags:
            node[_TAGS] = list(tags)
        else:
            node.pop(_TAGS, None)
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _document(schema: Schema) -> Any:
    if schema.type != AVRO:
        raise InvalidSchema(f"Tags within schemas of type {schema.type} are not supported")
    return json.loads(schema.text)


def _entities(document: Any) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    """Records and fields, each before what is within it."""
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
