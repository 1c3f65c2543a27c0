"""Records of the topic `_schemas`, in the bytes that Confluent's registry writes.

A key is JSON with its fields in a fixed order: compaction compares bytes, so a key that is spelled
differently would be another key. Values are JSON objects; what is not known in them is ignored.
"""

from __future__ import annotations

import base64
import binascii
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from moldau.services.registry.machine.associations import (
    Association,
    AssociationId,
    AssociationSet,
)
from moldau.services.registry.machine.configs import Config
from moldau.services.registry.machine.errors import RegistryError
from moldau.services.registry.machine.schemas import Schema, StoredSchema

__all__ = [
    "ClearSubject",
    "ConfigSet",
    "ContextSet",
    "DeleteSubject",
    "ModeSet",
    "Noop",
    "Record",
    "SchemaSet",
    "UnreadableRecord",
    "decode",
    "encode",
]

_TENANT: Final = "default"


class UnreadableRecord(ValueError):
    """A record that is not one of the registry's; the message says why."""


@dataclass(frozen=True, slots=True)
class SchemaSet:
    """A version of a subject; None removes it for good."""

    subject: str
    version: int
    stored: StoredSchema | None


@dataclass(frozen=True, slots=True)
class ConfigSet:
    """The config of a subject, a context, or of the registry (None); no config removes it."""

    subject: str | None
    config: Config | None


@dataclass(frozen=True, slots=True)
class ModeSet:
    subject: str | None
    mode: str | None


@dataclass(frozen=True, slots=True)
class DeleteSubject:
    """Versions up to this one are deleted, softly."""

    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class ClearSubject:
    """What is deleted softly in this subject, context or registry (None) is forgotten."""

    subject: str | None


@dataclass(frozen=True, slots=True)
class ContextSet:
    context: str
    exists: bool = True


@dataclass(frozen=True, slots=True)
class Noop:
    """A mark in the log. `id_maxima` is the highest id that each context has ever given out.

    Confluent's registry ignores the value. Without it, ids of schemas that are removed for good
    could be given out again once the topic is compacted. `opens_term`: a primary begins with it.
    """

    id_maxima: Mapping[str, int] = field(default_factory=dict)
    opens_term: bool = False


Record = (
    SchemaSet
    | ConfigSet
    | ModeSet
    | DeleteSubject
    | ClearSubject
    | ContextSet
    | AssociationSet
    | Noop
)


def encode(record: Record) -> tuple[bytes, bytes | None]:
    """Key and value."""
    match record:
        case SchemaSet(subject, version, stored):
            key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
            return _bytes(key), None if stored is None else _bytes(_schema_value(stored))
        case ConfigSet(subject, config):
            value = None if config is None else {**_subject(subject), **config.to_json()}
            return _settings_key("CONFIG", subject), None if value is None else _bytes(value)
        case ModeSet(subject, mode):
            value = None if mode is None else {**_subject(subject), "mode": mode}
            return _settings_key("MODE", subject), None if value is None else _bytes(value)
        case DeleteSubject(subject, version):
            return _settings_key("DELETE_SUBJECT", subject), _bytes(
                {"subject": subject, "version": version}
            )
        case ClearSubject(subject):
            return _settings_key("CLEAR_SUBJECT", subject), _bytes(_subject(subject))
        case ContextSet(context, exists):
            name = {"tenant": _TENANT, "context": context}
            key = {"keytype": "CONTEXT", **name, "magic": 0}
            return _bytes(key), _bytes(name) if exists else None
        case AssociationSet(id, association):
            value = None if association is None else _association_value(association)
            return _bytes(_association_key(id)), None if value is None else _bytes(value)
        case Noop(id_maxima, opens_term):
            key = {"keytype": "NOOP", "magic": 0}
            return _bytes(key), _bytes({"maxIds": dict(id_maxima), "opensTerm": opens_term})


def _settings_key(kind: str, subject: str | None) -> bytes:
    return _bytes({"keytype": kind, **_subject(subject), "magic": 0})


def _subject(subject: str | None) -> dict[str, Any]:
    """Confluent leaves out what is null or empty."""
    return {"subject": subject} if subject else {}


def _schema_value(stored: StoredSchema) -> dict[str, Any]:
    return {
        "subject": stored.subject,
        "version": stored.version,
        "id": stored.id,
        "md5": base64.b64encode(uuid.UUID(stored.guid).bytes).decode(),
        **stored.schema.to_json(),
        "deleted": stored.deleted,
    }


def _bytes(value: Mapping[str, Any]) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def decode(key: bytes | None, value: bytes | None, *, timestamp_ms: int | None) -> Record | None:
    """The record, or None for a kind that is not known, or that means nothing any more."""
    fields = _object(key, "key")
    subject = fields.get("subject")
    content = None if value is None else _object(value, "value")
    try:
        match fields.get("keytype"):
            case "SCHEMA":
                return _schema(str(subject or ""), fields, content, timestamp_ms)
            case "CONFIG":
                config = None if content is None else Config.from_json(content)
                return ConfigSet(subject or None, config)
            case "MODE":
                return ModeSet(subject or None, None if content is None else content["mode"])
            case "DELETE_SUBJECT" if content is not None:
                return DeleteSubject(content["subject"], content["version"])
            case "CLEAR_SUBJECT" if content is not None:
                return ClearSubject(content.get("subject"))
            case "CONTEXT":
                return ContextSet(fields["context"], content is not None)
            case "ASSOC":
                return _association(fields, content, timestamp_ms)
            case "NOOP":
                noop = content or {}
                return Noop(noop.get("maxIds") or {}, bool(noop.get("opensTerm")))
            case _:
                return None
    except (KeyError, TypeError, ValueError, AttributeError, RegistryError) as error:
        raise UnreadableRecord(f"{fields}: {error!r}") from error


def _schema(
    subject: str, key: Mapping[str, Any], value: Mapping[str, Any] | None, timestamp_ms: int | None
) -> SchemaSet:
    if key.get("magic") not in (0, 1):
        raise UnreadableRecord(f"{key}: magic must be 0 or 1")
    version = int(key["version"])
    if value is None:
        return SchemaSet(subject, version, None)
    schema = Schema.from_json(value)
    return SchemaSet(
        subject,
        version,
        StoredSchema(
            subject,
            version,
            int(value["id"]),
            schema,
            _guid(value.get("md5")) or schema.guid,
            bool(value.get("deleted")),
            timestamp_ms,
        ),
    )


def _association_key(id: AssociationId) -> dict[str, Any]:
    return {
        "keytype": "ASSOC",
        "tenant": _TENANT,
        "resourceName": id.resource_name,
        "resourceNamespace": id.resource_namespace,
        "resourceType": id.resource_type,
        "associationType": id.association_type,
        "subject": id.subject,
        "magic": 0,
    }


def _association_value(association: Association) -> dict[str, Any]:
    id = association.id
    return {
        "subject": id.subject,
        "guid": association.guid,
        "tenant": _TENANT,
        "resourceName": id.resource_name,
        "resourceNamespace": id.resource_namespace,
        "resourceId": association.resource_id,
        "resourceType": id.resource_type,
        "associationType": id.association_type,
        "lifecycle": association.lifecycle,
        "frozen": association.frozen,
    }


def _association(
    key: Mapping[str, Any], value: Mapping[str, Any] | None, timestamp_ms: int | None
) -> AssociationSet:
    id = AssociationId(
        str(key["resourceName"]),
        str(key["resourceNamespace"]),
        str(key["resourceType"]),
        str(key["associationType"]),
        str(key["subject"]),
    )
    if value is None:
        return AssociationSet(id, None)
    return AssociationSet(
        id,
        Association(
            id=id,
            guid=str(value["guid"]),
            resource_id=str(value["resourceId"]),
            lifecycle=str(value["lifecycle"]),
            frozen=bool(value.get("frozen")),
            updated_ms=timestamp_ms,
        ),
    )


def _guid(md5: str | None) -> str | None:
    if md5 is None:
        return None
    try:
        return str(uuid.UUID(bytes=base64.b64decode(md5, validate=True)))
    except (binascii.Error, ValueError):
        return None


def _object(data: bytes | None, what: str) -> dict[str, Any]:
    try:
        found = json.loads(data or b"")
    except ValueError as error:
        raise UnreadableRecord(f"the {what} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise UnreadableRecord(f"the {what} is not a JSON object")
    return found
