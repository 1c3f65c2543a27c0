"""Keys for encrypting fields, and their records in the topic `_dek_registry_keys`.

A KEK (key encryption key) is held by a KMS and named here; a DEK (data encryption key) belongs to a
subject and is stored encrypted by its KEK. Records have Confluent's JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from moldau.services.registry.machine.errors import RegistryError
from moldau.services.registry.machine.json_fields import (
    boolean_field,
    int_field,
    text_field,
    text_map,
)
from moldau.services.registry.machine.records import UnreadableRecord

__all__ = ["ALGORITHMS", "Dek", "DekId", "Kek", "KeySet", "decode_key", "encode_key"]

DEFAULT_ALGORITHM: Final = "AES256_GCM"
ALGORITHMS: Final = ("AES128_GCM", DEFAULT_ALGORITHM, "AES256_SIV")
_TENANT: Final = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kek:
    name: str
    kms_type: str
    kms_key_id: str
    kms_props: tuple[tuple[str, str], ...] = ()
    doc: str | None = None
    shared: bool = False
    deleted: bool = False
    timestamp_ms: int | None = None

    def equals_but_for_time(self, other: Kek) -> bool:
        """Whether it is deleted does not count either."""
        return replace(self, deleted=False, timestamp_ms=None) == replace(
            other, deleted=False, timestamp_ms=None
        )

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "name": self.name,
            "kmsType": self.kms_type,
            "kmsKeyId": self.kms_key_id,
            "kmsProps": dict(self.kms_props),
            "doc": self.doc,
            "shared": self.shared,
            "ts": self.timestamp_ms,
            "deleted": self.deleted,
        }
        return {key: value for key, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True, order=True)
class DekId:
    kek_name: str
    subject: str
    algorithm: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dek:
    id: DekId
    encrypted_key_material: str | None = None
    deleted: bool = False
    timestamp_ms: int | None = None

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "kekName": self.id.kek_name,
            "subject": self.id.subject,
            "version": self.id.version,
            "algorithm": self.id.algorithm,
            "encryptedKeyMaterial": self.encrypted_key_material,
            "ts": self.timestamp_ms,
            "deleted": self.deleted,
        }
        return {key: value for key, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class KeySet:
    """A key by its name or id; None removes it for good."""

    id: str | DekId
    key: Kek | Dek | None


def encode_key(record: KeySet) -> tuple[bytes, bytes | None]:
    if isinstance(record.id, DekId):
        id: dict[str, Any] = {
            "tenant": _TENANT,
            "kekName": record.id.kek_name,
            "subject": record.id.subject,
            "algorithm": record.id.algorithm,
            "version": record.id.version,
            "type": "DEK",
        }
    else:
        id = {"tenant": _TENANT, "name": record.id, "type": "KEK"}
    if record.key is None:
        return _bytes(id), None
    value = {key: each for key, each in record.key.to_json().items() if key != "ts"}
    return _bytes(id), _bytes({**value, "type": id["type"]})


def decode_key(key: bytes | None, value: bytes | None, *, timestamp_ms: int | None) -> KeySet:
    id_fields, fields = _object(key, "key"), None if value is None else _object(value, "value")
    try:
        if id_fields["type"] == "KEK":
            name = str(id_fields["name"])
            return KeySet(name, None if fields is None else _kek(name, fields, timestamp_ms))
        id = DekId(
            str(id_fields["kekName"]),
            str(id_fields["subject"]),
            str(id_fields["algorithm"]),
            int(id_fields["version"]),
        )
        if fields is None:
            return KeySet(id, None)
        return KeySet(
            id,
            Dek(
                id=id,
                encrypted_key_material=text_field(fields, "encryptedKeyMaterial"),
                deleted=boolean_field(fields, "deleted") or False,
                timestamp_ms=timestamp_ms,
            ),
        )
    except (KeyError, TypeError, ValueError, RegistryError) as error:
        raise UnreadableRecord(f"{id_fields}: {error!r}") from error


def _kek(name: str, fields: Mapping[str, Any], timestamp_ms: int | None) -> Kek:
    return Kek(
        name=name,
        kms_type=text_field(fields, "kmsType") or "",
        kms_key_id=text_field(fields, "kmsKeyId") or "",
        kms_props=tuple(sorted(text_map(fields, "kmsProps").items())),
        doc=text_field(fields, "doc"),
        shared=boolean_field(fields, "shared") or False,
        deleted=boolean_field(fields, "deleted") or False,
        timestamp_ms=timestamp_ms,
    )


def requested_version(fields: Mapping[str, Any]) -> int:
    return int_field(fields, "version") or 1


def _bytes(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _object(data: bytes | None, what: str) -> dict[str, Any]:
    try:
        found = json.loads(data or b"")
    except ValueError as error:
        raise UnreadableRecord(f"the {what} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise UnreadableRecord(f"the {what} is not a JSON object")
    return found
