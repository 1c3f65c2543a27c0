"""The registry of data encryption keys: what it remembers, decides and answers.

A DEK is found by KEK, subject, algorithm and version; another version is asked for by its number.
Only `replay` changes what is remembered.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from moldau.services.registry.machine.decision import Decision
from moldau.services.registry.machine.errors import RegistryError
from moldau.services.registry.machine.json_fields import (
    boolean_field,
    text_field,
    text_map,
)
from moldau.services.registry.machine.key_records import (
    ALGORITHMS,
    DEFAULT_ALGORITHM,
    Dek,
    DekId,
    Kek,
    KeySet,
    requested_version,
)
from moldau.services.registry.machine.schemas import LATEST

__all__ = ["KeyRegistry", "algorithm_of"]

_NAME_LENGTH_MAX: Final = 256
_KMS_TYPES: Final = {"aws": "aws-kms", "azure": "azure-kms", "gcp": "gcp-kms"}
#: How the ids of keys begin.
_KEY_IDS: Final = {
    "aws-kms": ("arn:aws:kms:",),
    "azure-kms": ("https://",),
    "gcp-kms": ("projects/",),
    "hcvault": ("https://", "http://"),
}
KEYS_MAX: Final = 20_000
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class KeyRegistry:
    def __init__(self, keys_max: int = KEYS_MAX) -> None:
        self._keys_max = keys_max
        self._keks: dict[str, Kek] = {}
        self._deks: dict[DekId, Dek] = {}

    def replay(self, record: KeySet) -> None:
        match record.id, record.key:
            case DekId() as id, Dek() as dek:
                self._deks[id] = dek
            case DekId() as id, None:
                self._deks.pop(id, None)
            case str() as name, Kek() as kek:
                self._keks[name] = kek
            case name, _:
                self._keks.pop(str(name), None)

    def current(self, id: str | DekId) -> KeySet:
        """What a key is now."""
        return KeySet(id, self._deks.get(id) if isinstance(id, DekId) else self._keks.get(id))

    @property
    def ids(self) -> list[str | DekId]:
        """All keys, also those that are deleted softly."""
        return [*self._keks, *self._deks]

    # KEKs.

    def kek_names(self, prefixes: Sequence[str], *, deleted: bool) -> list[str]:
        """All, or those of subjects with a prefix."""
        if not prefixes:
            return sorted(name for name, kek in self._keks.items() if deleted or not kek.deleted)
        return sorted(
            {
                id.kek_name
                for id, dek in self._deks.items()
                if (deleted or not dek.deleted) and id.subject.startswith(tuple(prefixes))
            }
        )

    def kek(self, name: str, *, deleted: bool) -> Kek:
        found = self._keks.get(name)
        if found is None or (found.deleted and not deleted):
            raise _not_found(name)
        return found

    def shared_kek(self, name: str) -> Kek:
        """Raises RegistryError for a KEK that the registry may not use."""
        kek = self.kek(name, deleted=False)
        if not kek.shared:
            raise _invalid("shared")
        return kek

    def create_kek(self, body: Mapping[str, Any]) -> Decision[Kek]:
        name = text_field(body, "name")
        kms_type, kms_key_id = text_field(body, "kmsType"), text_field(body, "kmsKeyId")
        if name is None or not _is_name(name):
            raise _invalid("name")
        if not kms_key_id:
            raise _invalid("kmsKeyId")
        if not kms_type:
            raise _invalid("kmsType")
        if not kms_key_id.startswith(_KEY_IDS.get(kms_type, ("",))):
            raise _invalid("kmsKeyId")
        self._check_count(self._keks)
        kek = Kek(
            name=name,
            kms_type=_normalized(kms_type),
            kms_key_id=kms_key_id,
            kms_props=tuple(sorted(text_map(body, "kmsProps").items())),
            doc=text_field(body, "doc"),
            shared=boolean_field(body, "shared") or False,
            deleted=boolean_field(body, "deleted") or False,
        )
        old = self._keks.get(name)
        # To create a key that is deleted again is to undelete it.
        if old is not None and (old.deleted == kek.deleted or not old.equals_but_for_time(kek)):
            raise _exists(name)
        return Decision((KeySet(name, kek),), kek)

    def _check_count(self, keys: Collection[object]) -> None:
        if len(keys) > self._keys_max:
            raise RegistryError(409, 40972, f"A maximum of {self._keys_max} keys already exist")

    def update_kek(self, name: str, body: Mapping[str, Any]) -> Decision[Kek]:
        old = self.kek(name, deleted=False)
        kek = old
        if "kmsProps" in body:
            kek = replace(kek, kms_props=tuple(sorted(text_map(body, "kmsProps").items())))
        if "doc" in body:
            kek = replace(kek, doc=text_field(body, "doc"))
        if "shared" in body:
            kek = replace(kek, shared=boolean_field(body, "shared") or False)
        return Decision(() if kek == old else (KeySet(name, kek),), kek)

    def delete_kek(self, name: str, *, permanent: bool) -> Decision[None]:
        kek = self.kek(name, deleted=True)
        if any(
            id.kek_name == name and (permanent or not dek.deleted) for id, dek in self._deks.items()
        ):
            raise RegistryError(422, 42272, f"One or more references exist to the key '{name}'")
        if not permanent:
            gone = replace(kek, deleted=True)
            return Decision(() if kek.deleted else (KeySet(name, gone),), None)
        if not kek.deleted:
            raise _not_soft_deleted(name)
        return Decision((KeySet(name, None),), None)

    def undelete_kek(self, name: str) -> Decision[None]:
        kek = self.kek(name, deleted=True)
        back = replace(kek, deleted=False)
        return Decision((KeySet(name, back),) if kek.deleted else (), None)

    # DEKs.

    def dek_subjects(self, kek_name: str, *, deleted: bool) -> list[str]:
        self.kek(kek_name, deleted=deleted)
        return sorted(
            {
                id.subject
                for id, dek in self._deks.items()
                if id.kek_name == kek_name and (deleted or not dek.deleted)
            }
        )

    def dek_versions(
        self, kek_name: str, subject: str, algorithm: str, *, deleted: bool
    ) -> list[int]:
        self.kek(kek_name, deleted=deleted)
        found = self._versions(kek_name, subject, algorithm, deleted=deleted)
        return [each.id.version for each in found]

    def _versions(self, kek_name: str, subject: str, algorithm: str, *, deleted: bool) -> list[Dek]:
        wanted = (kek_name, subject, algorithm)
        found = [
            dek
            for id, dek in self._deks.items()
            if (id.kek_name, id.subject, id.algorithm) == wanted and (deleted or not dek.deleted)
        ]
        return sorted(found, key=lambda dek: dek.id.version)

    def dek(
        self, kek_name: str, subject: str, algorithm: str, version: int, *, deleted: bool
    ) -> Dek:
        self.kek(kek_name, deleted=deleted)
        found = self._versions(kek_name, subject, algorithm, deleted=deleted)
        for each in reversed(found):
            if version in (LATEST, each.id.version):
                return each
        raise _not_found(subject)

    def missing_material(
        self, kek_name: str, subject: str, body: Mapping[str, Any], *, rewrap: bool
    ) -> tuple[Kek, DekId, Dek | None] | None:
        """The KEK and DEK for which the registry must ask the KMS, with the DEK to rewrap if there
        is one; None if it need not."""
        kek = self._keks.get(kek_name)
        if kek is None or not kek.shared or text_field(body, "encryptedKeyMaterial") is not None:
            return None
        algorithm = algorithm_of(text_field(body, "algorithm"))
        id = DekId(kek_name, subject, algorithm, requested_version(body))
        old = self._deks.get(id)
        if old is not None and not rewrap:
            return None
        return kek, id, old

    def create_dek(
        self, kek_name: str, subject: str, body: Mapping[str, Any], *, rewrap: bool
    ) -> Decision[Dek]:
        if not _is_name(kek_name):
            raise _invalid("name")
        if not subject or _CONTROL.search(subject):
            raise _invalid("subject")
        deleted = boolean_field(body, "deleted") or False
        self.kek(kek_name, deleted=deleted)
        self._check_count(self._deks)
        algorithm = algorithm_of(text_field(body, "algorithm"))
        id = DekId(kek_name, subject, algorithm, requested_version(body))
        material = text_field(body, "encryptedKeyMaterial")
        old = self._deks.get(id)
        if old is not None and not rewrap:
            same = material is None or old.encrypted_key_material == material
            if old.deleted == deleted or not same:
                raise _exists(subject)
            material = old.encrypted_key_material
        if material is None:
            raise _invalid("encryptedKeyMaterial")
        dek = Dek(id=id, encrypted_key_material=material, deleted=deleted)
        return Decision((KeySet(id, dek),), dek)

    def delete_deks(
        self, kek_name: str, subject: str, algorithm: str, version: int | None, *, permanent: bool
    ) -> Decision[None]:
        """One version, or all (None)."""
        doomed = self._of(kek_name, subject, algorithm, version)
        if not permanent:
            return Decision(
                tuple(
                    KeySet(each.id, replace(each, deleted=True))
                    for each in doomed
                    if not each.deleted
                ),
                None,
            )
        if not all(each.deleted for each in doomed):
            raise _not_soft_deleted(subject)
        return Decision(tuple(KeySet(each.id, None) for each in doomed), None)

    def undelete_deks(
        self, kek_name: str, subject: str, algorithm: str, version: int | None
    ) -> Decision[None]:
        found = self._of(kek_name, subject, algorithm, version)
        if self.kek(kek_name, deleted=True).deleted:
            raise RegistryError(404, 40472, f"Key '{kek_name}' must be undeleted first")
        records = (KeySet(each.id, replace(each, deleted=False)) for each in found if each.deleted)
        return Decision(tuple(records), None)

    def _of(self, kek_name: str, subject: str, algorithm: str, version: int | None) -> list[Dek]:
        self.kek(kek_name, deleted=True)
        found = self._versions(kek_name, subject, algorithm, deleted=True)
        if version == LATEST:
            found = found[-1:]
        elif version is not None:
            found = [each for each in found if each.id.version == version]
        if not found:
            raise _not_found(subject)
        return found


def algorithm_of(text: str | None) -> str:
    if not text:
        return DEFAULT_ALGORITHM
    if text not in ALGORITHMS:
        raise _invalid("algorithm")
    return text


def _normalized(kms_type: str) -> str:
    for prefix, name in _KMS_TYPES.items():
        if kms_type.lower().startswith(prefix):
            return name
    return kms_type


def _is_name(name: str) -> bool:
    if not 0 < len(name) <= _NAME_LENGTH_MAX or not (name[0].isalpha() or name[0] == "_"):
        return False
    return all(each.isalnum() or each in "_-" for each in name)


def _not_found(name: str) -> RegistryError:
    return RegistryError(404, 40470, f"Key '{name}' not found")


def _not_soft_deleted(name: str) -> RegistryError:
    return RegistryError(
        404, 40471, f"Key '{name}' was not deleted first before being permanently deleted"
    )


def _exists(name: str) -> RegistryError:
    return RegistryError(409, 40971, f"Key '{name}' already exists; use a different value")


def _invalid(field: str) -> RegistryError:
    return RegistryError(422, 42271, f"Invalid or missing value for field '{field}' of key")
