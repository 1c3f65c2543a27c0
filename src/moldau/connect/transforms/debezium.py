"""ExtractNewRecordState: a change as Debezium writes it, replaced by the row after the change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from moldau.connect.api import (
    ConfigDef,
    ConfigError,
    ConnectRecord,
    DataError,
    Importance,
    Kind,
    OneOf,
    Transformation,
)
from moldau.connect.api.records import Header
from moldau.connect.transforms.parts import field_value, struct_schema, with_replace_null
from moldau.data import builders
from moldau.data.schema import Schema
from moldau.data.struct import Struct

R = TypeVar("R", bound=ConnectRecord)

_ENVELOPE: Final = ".Envelope"
_DELETED: Final = "__deleted"
_DELETE, _TRUNCATE = "d", "t"
#: Fields of the envelope itself, and of its transaction; all others are looked for in its source.
_OF_ENVELOPE: Final = frozenset({"op", "ts_ms", "ts_us", "ts_ns"})
_OF_TRANSACTION: Final = frozenset({"id", "total_order", "data_collection_order"})

DROP, TOMBSTONE, REWRITE = "drop", "tombstone", "rewrite"
REWRITE_WITH_TOMBSTONE, DELETE_TO_TOMBSTONE = "rewrite-with-tombstone", "delete-to-tombstone"
#: Former settings: how deletes are handled, and whether tombstones are dropped.
_FORMER: Final = {
    ("drop", True): DROP,
    ("drop", False): TOMBSTONE,
    ("rewrite", True): REWRITE,
    ("rewrite", False): REWRITE_WITH_TOMBSTONE,
    ("none", True): DELETE_TO_TOMBSTONE,
    ("none", False): DELETE_TO_TOMBSTONE,
}
_NOT_HERE: Final = ("drop.fields.header.name",)


@dataclass(frozen=True, slots=True)
class _Added:
    """A field of the change that goes into the row or a header, under another name."""

    structure: str | None
    field: str
    name: str

    @classmethod
    def parse(cls, text: str, prefix: str) -> _Added:
        path, _, alias = text.strip().partition(":")
        first, dot, second = path.partition(".")
        if dot:
            return cls(first, second, prefix + (alias or f"{first}_{second}"))
        structure = "source"
        if first in _OF_ENVELOPE:
            structure = ""
        elif first in _OF_TRANSACTION:
            structure = "transaction"
        return cls(structure or None, first, prefix + (alias or first))

    def schema(self, envelope: Schema) -> Schema:
        owner: Schema | None = envelope
        if self.structure is not None:
            found = envelope.field(self.structure)
            owner = None if found is None else found.schema
        field = None if owner is None else owner.field(self.field)
        if field is None:
            path = self.field if self.structure is None else f"{self.structure}.{self.field}"
            raise ConfigError(f"Unable to find field {path} in the change events.")
        return field.schema.as_optional()

    def value(self, envelope: Struct) -> Any:
        owner: Any = envelope
        if self.structure is not None:
            owner = envelope.get(self.structure)
        return None if owner is None else owner.get(self.field)


class ExtractNewRecordState(Transformation):
    """See the module. What is not a change is passed on as it is."""

    CONFIG = with_replace_null(
        ConfigDef()
        .define(
            "delete.tombstone.handling.mode",
            Kind.STRING,
            TOMBSTONE,
            validator=OneOf(
                (DROP, TOMBSTONE, REWRITE, REWRITE_WITH_TOMBSTONE, DELETE_TO_TOMBSTONE),
                ignore_case=True,
            ),
            importance=Importance.MEDIUM,
            doc="What becomes of a deleted row: drop the change and its tombstone; keep the "
            "tombstone; rewrite the change to the last row with __deleted, with or without the "
            "tombstone; or make the change itself the tombstone (delete-to-tombstone).",
        )
        .define(
            "drop.tombstones",
            Kind.BOOLEAN,
            True,
            importance=Importance.LOW,
            doc="Former setting, with delete.handling.mode: whether tombstones are dropped.",
        )
        .define(
            "delete.handling.mode",
            Kind.STRING,
            "drop",
            validator=OneOf(("drop", "rewrite", "none"), ignore_case=True),
            importance=Importance.LOW,
            doc="Former setting: drop, rewrite or none. Use delete.tombstone.handling.mode.",
        )
        .define(
            "add.fields",
            Kind.LIST,
            (),
            importance=Importance.LOW,
            doc="Fields of the change to add to the row, such as op,source.ts_ms,table:origin.",
        )
        .define(
            "add.fields.prefix",
            Kind.STRING,
            "__",
            importance=Importance.LOW,
            doc="Put before the names of added fields.",
        )
        .define(
            "add.headers",
            Kind.LIST,
            (),
            importance=Importance.LOW,
            doc="Fields of the change to add as headers.",
        )
        .define(
            "add.headers.prefix",
            Kind.STRING,
            "__",
            importance=Importance.LOW,
            doc="Put before the names of added headers.",
        )
        .define(
            "route.by.field",
            Kind.STRING,
            "",
            importance=Importance.LOW,
            doc="The column whose value is the topic of the record.",
        )
        .define(
            "drop.fields.header.name",
            Kind.STRING,
            None,
            importance=Importance.LOW,
            doc="Not supported: a header that names fields to drop.",
        )
    )

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.CONFIG

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = self.CONFIG.parse(configs)
        for key in _NOT_HERE:
            if settings[key]:
                raise ConfigError(f"{key} is not supported: use ReplaceField to drop fields")
        self._mode = settings["delete.tombstone.handling.mode"].lower()
        if "delete.tombstone.handling.mode" not in configs and (
            "drop.tombstones" in configs or "delete.handling.mode" in configs
        ):
            former = settings["delete.handling.mode"].lower(), settings["drop.tombstones"]
            self._mode = _FORMER[former]
        self._replace_null = settings["replace.null.with.default"]
        self._route_by = settings["route.by.field"]
        self._fields = [
            _Added.parse(each, settings["add.fields.prefix"]) for each in settings["add.fields"]
        ]
        self._headers = [
            _Added.parse(each, settings["add.headers.prefix"]) for each in settings["add.headers"]
        ]

    def apply(self, record: R) -> R | None:
        if record.value is None:
            kept = self._mode in (TOMBSTONE, REWRITE_WITH_TOMBSTONE)
            return record if kept else None
        schema, change = record.value_schema, record.value
        if schema is None or not isinstance(change, Struct) or not _is_envelope(schema):
            return record
        op = change.get("op")
        if op == _TRUNCATE:
            return None
        deleted = op == _DELETE or change.get("after") is None
        if deleted and self._mode in (DROP, TOMBSTONE):
            return None
        headers = (
            *record.headers,
            *(Header(each.name, each.value(change), each.schema(schema)) for each in self._headers),
        )
        row = change.get("before" if deleted else "after")
        topic = self._topic(record, row)
        if deleted and (self._mode == DELETE_TO_TOMBSTONE or row is None):
            return record.new_record(topic=topic, value=None, value_schema=None, headers=headers)
        row = self._extended(row, change, schema, deleted=deleted)
        return record.new_record(topic=topic, value=row, value_schema=row.schema, headers=headers)

    def _topic(self, record: ConnectRecord, row: Struct | None) -> str:
        if not self._route_by or row is None:
            return record.topic
        if row.schema.field(self._route_by) is None:
            raise DataError(f"Unknown field: {self._route_by}, which route.by.field names")
        return str(row.get(self._route_by))

    def _extended(self, row: Struct, change: Struct, envelope: Schema, *, deleted: bool) -> Struct:
        added: list[tuple[str, Schema, Any]] = []
        if self._mode in (REWRITE, REWRITE_WITH_TOMBSTONE):
            added.append((_DELETED, builders.OPTIONAL_STRING, "true" if deleted else "false"))
        added += [(each.name, each.schema(envelope), each.value(change)) for each in self._fields]
        if not added and self._replace_null:
            return row
        fields = [(each.name, each.schema) for each in row.schema.fields]
        schema = struct_schema(row.schema, [*fields, *((name, each) for name, each, _ in added)])
        if row.schema.optional:
            schema = schema.as_optional()
        values = {name: field_value(row, name, self._replace_null) for name, _ in fields}
        return Struct(schema, {**values, **{name: value for name, _, value in added}})


def _is_envelope(schema: Schema) -> bool:
    return schema.name is not None and schema.name.endswith(_ENVELOPE)
