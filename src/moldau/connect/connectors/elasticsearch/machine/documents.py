"""Records as actions of a bulk request, and the answers to them.

A document's id is the record's key, or its place in Kafka with `key.ignore=true`. Either way it is
the same when a record comes again, and the version is the record's offset, so an older record never
replaces a newer one: the sink is idempotent.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from moldau.connect.api.records import SinkRecord
from moldau.connect.connectors.support.documents import document, text_of
from moldau.data import json_text, logical
from moldau.data.errors import DataError
from moldau.data.schema import Schema, Type

INDEX_BYTES_MAX: Final = 255
ID_BYTES_MAX: Final = 512

IGNORE, DELETE, FAIL, WARN = "ignore", "delete", "fail", "warn"

#: Failures of one document that another document would not have.
MALFORMED: Final = frozenset(
    {
        "mapper_parsing_exception",
        "illegal_argument_exception",
        "action_request_validation_exception",
        "document_parsing_exception",
        "strict_dynamic_mapping_exception",
    }
)


@dataclass(frozen=True, slots=True)
class Rules:
    key_ignored_for: frozenset[str]
    key_ignore: bool
    schema_ignored_for: frozenset[str]
    schema_ignore: bool
    upsert: bool
    null_values: str
    type_name: str | None
    """The type of documents, which Elasticsearch 6 has."""
    version_header: str | None
    compact_maps: bool = True

    def ignores_key(self, topic: str) -> bool:
        return self.key_ignore or topic in self.key_ignored_for

    def ignores_schema(self, topic: str) -> bool:
        return self.schema_ignore or topic in self.schema_ignored_for


def index_name(topic: str) -> str:
    """The topic's name as Elasticsearch allows it."""
    name = topic.lower()
    if name in (".", ".."):
        return name.replace(".", "dot")
    name = name.encode()[:INDEX_BYTES_MAX].decode("utf-8", "ignore")
    return name[1:] if name.startswith(("-", "_")) else name


@dataclass(frozen=True, slots=True)
class Action:
    """One record of a bulk request."""

    record: SinkRecord
    index: str
    lines: bytes


def action(rules: Rules, record: SinkRecord, index: str) -> Action | None:
    """What to do for a record; None if nothing."""
    if record.value is None:
        if rules.null_values == IGNORE:
            return None
        if rules.null_values == FAIL:
            raise DataError(f"{_place(record)} has no value, and behavior.on.null.values is fail")
        if record.key is None:
            # Nothing can be deleted without an id.
            return None
    target: dict[str, Any] = {"_index": index, "_id": _id(rules, record)}
    if rules.type_name is not None:
        target["_type"] = rules.type_name
    versioned = not rules.ignores_key(record.topic) and not rules.upsert
    if versioned:
        target["version"] = _version(rules, record)
        target["version_type"] = "external"
    if record.value is None:
        return Action(record, index, _line({"delete": target}))
    value = _spread(record.value, record.value_schema, compact=rules.compact_maps)
    source = document(value)
    if not isinstance(source, dict):
        raise DataError(f"{_place(record)} is not an object, so it cannot be a document")
    if rules.upsert:
        target["retry_on_conflict"] = 5
        body = {"doc": source, "doc_as_upsert": True}
        return Action(record, index, _line({"update": target}) + _line(body))
    return Action(record, index, _line({"index": target}) + _line(source))


def _spread(value: Any, schema: Schema | None, *, compact: bool) -> Any:
    """A value of a schema, with the maps that cannot be objects, or need not, as lists of entries,
    each with a key and a value. A time of day is in milliseconds, as the mapping says."""
    if value is None or schema is None:
        return value
    if schema.name == logical.TIME_NAME and isinstance(value, datetime.time):
        since = datetime.datetime.combine(datetime.date.min, value) - datetime.datetime.min
        return since // datetime.timedelta(milliseconds=1)
    match schema.type:
        case Type.STRUCT:
            return {
                each.name: _spread(value.get(each.name), each.schema, compact=compact)
                for each in schema.fields
            }
        case Type.ARRAY:
            return [_spread(each, schema.items, compact=compact) for each in value]
        case Type.MAP if compact and schema.keys.type is Type.STRING:
            return {
                key: _spread(each, schema.items, compact=compact) for key, each in value.items()
            }
        case Type.MAP:
            return [
                {
                    "key": _spread(key, schema.keys, compact=compact),
                    "value": _spread(each, schema.items, compact=compact),
                }
                for key, each in value.items()
            ]
    return value


def _line(value: Any) -> bytes:
    return json_text.compact(value).encode() + b"\n"


def _place(record: SinkRecord) -> str:
    return f"record {record.topic}-{record.partition}@{record.offset}"


def _id(rules: Rules, record: SinkRecord) -> str:
    if rules.ignores_key(record.topic):
        place = (record.original_topic, record.original_partition, record.original_offset)
        return "+".join(map(str, place))
    if record.key is None:
        raise DataError(
            f"{_place(record)} has no key to be used as a document id: set key.ignore=true"
        )
    if isinstance(record.key, (bool, float, bytes, bytearray)):
        kind = record.key_schema.type.name if record.key_schema else type(record.key).__name__
        raise DataError(f"{kind} is not supported as the document id: {_place(record)}")
    found = text_of(record.key, record.key_schema, "a document id")
    if not found:
        raise DataError(f"{_place(record)}: Key is used as document id and can not be empty.")
    if len(found.encode()) > ID_BYTES_MAX:
        raise DataError(f"the key of {_place(record)} is longer than {ID_BYTES_MAX} bytes")
    return found


def _version(rules: Rules, record: SinkRecord) -> int:
    if rules.version_header is None:
        return record.original_offset
    for header in record.headers:
        if header.key == rules.version_header:
            try:
                return int(header.value)
            except (TypeError, ValueError):
                raise DataError(
                    f"header {header.key} of {_place(record)} is no number: {header.value!r}"
                ) from None
    raise DataError(f"{_place(record)} has no header {rules.version_header}, which has the version")


@dataclass(frozen=True, slots=True)
class Outcome:
    """`retried` are those that the server was too busy for."""

    retried: list[Action]
    refused: list[tuple[Action, str]]


def outcome(actions: Sequence[Action], answer: Mapping[str, Any]) -> Outcome:
    """What became of a bulk request."""
    retried: list[Action] = []
    refused: list[tuple[Action, str]] = []
    items = answer.get("items") or []
    for each, item in zip(actions, items, strict=True):
        ((kind, result),) = item.items()
        status = int(result.get("status", 500))
        if status < 300 or (kind == "delete" and status == 404):
            continue
        if status == 409:
            # A newer version is there: this record has come before.
            continue
        if status in (429, 503):
            retried.append(each)
        else:
            error = result.get("error") or {}
            refused.append((each, f"{error.get('type')}: {error.get('reason')}"))
    return Outcome(retried, refused)


def is_malformed(reason: str) -> bool:
    return reason.partition(":")[0] in MALFORMED


_TYPES: Final = {
    Type.INT8: "byte",
    Type.INT16: "short",
    Type.INT32: "integer",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
}


def mapping(schema: Schema, *, compact_maps: bool = True) -> dict[str, Any]:
    """The mapping of an index for documents of a schema."""
    if schema.name in (logical.DATE_NAME, logical.TIME_NAME, logical.TIMESTAMP_NAME):
        return {"type": "date"}
    if schema.name == logical.DECIMAL_NAME:
        number = None if schema.default is None else float(schema.default)
        return _with_default("double", number)
    match schema.type:
        case Type.STRUCT:
            fields = {
                each.name: mapping(each.schema, compact_maps=compact_maps) for each in schema.fields
            }
            return {"properties": fields}
        case Type.ARRAY:
            return mapping(schema.items, compact_maps=compact_maps)
        case Type.MAP if compact_maps and schema.keys.type is Type.STRING:
            return {"type": "object"}
        case Type.MAP:
            entry = {"key": schema.keys, "value": schema.items}
            return {
                "properties": {
                    name: mapping(each, compact_maps=compact_maps) for name, each in entry.items()
                }
            }
        case Type.STRING:
            keyword = {"type": "keyword", "ignore_above": 256}
            return {"type": "text", "fields": {"keyword": keyword}}
    if schema.type is Type.BYTES:
        return {"type": "binary"}
    return _with_default(_TYPES[schema.type], schema.default)


def _with_default(kind: str, default: Any) -> dict[str, Any]:
    return {"type": kind} if default is None else {"type": kind, "null_value": default}
