"""Schemas as a registry knows them: values that go to it and come from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["RegisteredSchema", "Schema", "SchemaReference"]

AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"


@dataclass(frozen=True, slots=True)
class SchemaReference:
    """A schema that another one uses: the name in its text, and where the registry has it."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema to register or look up.

    `metadata` and `rule_set` are kept in the registry's own JSON form.
    """

    text: str
    schema_type: str = AVRO
    references: tuple[SchemaReference, ...] = ()
    metadata: Mapping[str, Any] | None = field(default=None, hash=False)
    rule_set: Mapping[str, Any] | None = field(default=None, hash=False)

    def to_json(self) -> dict[str, Any]:
        """The body of a request."""
        body: dict[str, Any] = {"schema": self.text}
        if self.schema_type != AVRO:
            body["schemaType"] = self.schema_type
        if self.references:
            body["references"] = [
                {"name": each.name, "subject": each.subject, "version": each.version}
                for each in self.references
            ]
        if self.metadata is not None:
            body["metadata"] = dict(self.metadata)
        if self.rule_set is not None:
            body["ruleSet"] = dict(self.rule_set)
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Schema:
        references = tuple(
            SchemaReference(each["name"], each["subject"], each["version"])
            for each in body.get("references") or ()
        )
        return cls(
            body["schema"],
            body.get("schemaType") or AVRO,
            references,
            body.get("metadata"),
            body.get("ruleSet"),
        )


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema with its id; subject and version where the registry was asked by them."""

    id: int
    schema: Schema
    subject: str | None = None
    version: int | None = None
    guid: str | None = None

    @classmethod
    def from_json(
        cls, body: Mapping[str, Any], *, schema: Schema | None = None
    ) -> RegisteredSchema:
        """`schema` is used where the registry answers with the id alone."""
        known = Schema.from_json(body) if "schema" in body or schema is None else schema
        return cls(body["id"], known, body.get("subject"), body.get("version"), body.get("guid"))
