"""A schema as it is asked for, stored and returned.

`guid` is Confluent's: the MD5 of text, references, metadata and rules, written as a UUID. Two
schemas of one type with one guid are equal, and have one id in a context.
"""

from __future__ import annotations

import hashlib
import struct
import uuid
from dataclasses import dataclass, replace
from typing import Any, Final

from moldau.services.registry.machine.contracts import Metadata, RuleSet
from moldau.services.registry.machine.errors import InvalidRequest
from moldau.services.registry.machine.json_fields import (
    JsonObject,
    int_field,
    list_field,
    object_field,
    text_field,
)

__all__ = ["AVRO", "LATEST", "Reference", "Schema", "StoredSchema", "guid_from_text"]

AVRO: Final = "AVRO"
#: The version that stands for the newest one.
LATEST: Final = -1


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema that another one uses: the name it has there, and where it is registered."""

    name: str | None
    subject: str | None
    version: int | None

    @classmethod
    def from_json(cls, source: object) -> Reference:
        if not isinstance(source, dict):
            raise InvalidRequest("a reference must be an object with name, subject and version")
        return cls(
            text_field(source, "name"), text_field(source, "subject"), int_field(source, "version")
        )

    def to_json(self) -> dict[str, Any]:
        found = {"name": self.name, "subject": self.subject, "version": self.version}
        return {key: value for key, value in found.items() if value not in (None, "")}


@dataclass(frozen=True, slots=True)
class Schema:
    """What makes one schema differ from another."""

    text: str
    type: str = AVRO
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None

    @classmethod
    def from_json(cls, source: JsonObject) -> Schema:
        """The schema in a request or in a record's value."""
        return cls(
            text_field(source, "schema") or "",
            text_field(source, "schemaType") or AVRO,
            tuple(map(Reference.from_json, list_field(source, "references"))),
            Metadata.from_json(object_field(source, "metadata")),
            RuleSet.from_json(object_field(source, "ruleSet")),
        )

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"schemaType": self.type}
        if self.references:
            found["references"] = [each.to_json() for each in self.references]
        if self.metadata is not None:
            found["metadata"] = self.metadata.to_json()
        if self.rule_set is not None:
            found["ruleSet"] = self.rule_set.to_json()
        found["schema"] = self.text
        return found

    @property
    def guid(self) -> str:
        digest = hashlib.md5(self.text.encode("utf-8", "surrogatepass"), usedforsecurity=False)
        for each in self.references:
            digest.update(((each.name or "") + (each.subject or "")).encode())
            if each.version is not None:
                digest.update(struct.pack(">i", each.version))
        for part in (self.metadata, self.rule_set):
            if part is not None:
                digest.update(b"\x01")
                digest.update("".join(part.hashed()).encode("utf-8", "surrogatepass"))
        # What str(uuid.UUID(...)) is, at a third of its cost.
        text = digest.hexdigest()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    @property
    def reserved_fields(self) -> tuple[str, ...]:
        return () if self.metadata is None else self.metadata.reserved_fields

    def equals_but_for_version(self, other: Schema, other_version: int) -> bool:
        """Equal, if `confluent:version` is left out of the one that alone has it.

        References are not compared.
        """
        mine, theirs = _version_of(self), _version_of(other)
        if mine is not None and theirs is None and mine != str(other_version):
            return False
        if (mine is None) == (theirs is None):
            return self.metadata == other.metadata and self.rule_set == other.rule_set
        left, right = self.metadata or Metadata(), other.metadata or Metadata()
        return left.without_version() == right.without_version() and self.rule_set == other.rule_set


def _version_of(schema: Schema) -> str | None:
    version = None if schema.metadata is None else schema.metadata.version
    return version if version is not None and version.lstrip("-").isdigit() else None


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """A version of a subject."""

    subject: str
    version: int
    id: int
    schema: Schema
    guid: str
    deleted: bool = False
    timestamp_ms: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The body of a response."""
        found: dict[str, Any] = {
            "subject": self.subject,
            "version": self.version,
            "id": self.id,
            "guid": self.guid,
            **self.schema.to_json(),
        }
        if self.timestamp_ms is not None:
            found["ts"] = self.timestamp_ms
        found["deleted"] = self.deleted
        return found

    def as_deleted(self) -> StoredSchema:
        return replace(self, deleted=True)


def guid_from_text(text: str) -> str | None:
    """A guid in its one spelling, or None if the text is none."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return None
