"""ENCRYPT (fields) and ENCRYPT_PAYLOAD (the bytes of a record), as Confluent's clients do it.

A data encryption key (DEK) per subject encrypts; a key encryption key (KEK), which a KMS has,
encrypts the DEK; the DEK registry keeps both without seeing a DEK in the clear, unless the KEK is
shared with it: then it asks the KMS itself, and clients need no access to it. The bytes are
Tink's, without its prefix: a nonce of 12 bytes, then AES-GCM, or deterministic AES-SIV. A DEK is
stored as Tink's key message. Which KMS there are is in `kms.py`.
"""

from __future__ import annotations

import base64
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from moldau.serde.errors import RegistryError, RegistryUnavailableError
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.serde.rules.kms import Kms, kms_for, open_sealed, sealed
from moldau.serde.rules.machine.errors import RuleError
from moldau.serde.rules.machine.fields import Field, bytes_fields
from moldau.serde.rules.running import RuleContext

__all__ = ["EncryptFieldsExecutor", "EncryptPayloadExecutor", "Encryption", "new_key_message"]

_KEYS_MAX: Final = 10_000
_DAY_MS: Final = 24 * 60 * 60 * 1000
_LATEST: Final = -1
_KEKS: Final = "/dek-registry/v1/keks"
_PASSTHROUGH: Final = "encrypt.nonshared.kek.passthrough"
_logger: Final = logging.getLogger(__name__)
#: By algorithm: the size of a key, and the number of its field in Tink's message.
_ALGORITHMS: Final = {"AES128_GCM": (16, 3), "AES256_GCM": (32, 3), "AES256_SIV": (64, 2)}


@dataclass(frozen=True, slots=True)
class _Key:
    """A DEK in the clear."""

    algorithm: str
    data: bytes
    version: int
    created_ms: int

    def encrypt(self, plain: bytes) -> bytes:
        if self.algorithm == "AES256_SIV":
            return AESSIV(self.data).encrypt(plain, [b""])
        return sealed(self.data, plain)

    def decrypt(self, data: bytes) -> bytes:
        try:
            if self.algorithm == "AES256_SIV":
                return AESSIV(self.data).decrypt(data, [b""])
            return open_sealed(self.data, data)
        except (InvalidTag, ValueError):
            raise RuleError("the data cannot be decrypted with its key") from None


def new_key_message(algorithm: str) -> bytes:
    """A key made for an algorithm, as Tink's message."""
    size, number = _ALGORITHMS[algorithm]
    return bytes([number << 3 | 2, size]) + os.urandom(size)


def _of_tink(algorithm: str, message: bytes) -> bytes:
    size, number = _ALGORITHMS[algorithm]
    found = bytes_fields(message, number)
    if len(found) != 1 or len(found[0]) != size:
        raise RuleError(f"the registry's DEK is not a key of {algorithm}")
    return found[0]


class Encryption:
    """The keys of all subjects, remembered. `params` are for the executor and for the KMS."""

    def __init__(self, registry: SchemaRegistryClient, *, params: Mapping[str, str]) -> None:
        self._registry = registry
        self._params = params
        self._keys_max = _whole(params.get("cache.size"), "cache.size", _KEYS_MAX)
        self._forgets_s = _whole(params.get("cache.expiry.secs"), "cache.expiry.secs", -1)
        self._reads_only_shared = params.get(_PASSTHROUGH, "").lower() == "true"
        self._remembers_since_s = time.monotonic()
        self._services: dict[tuple[Any, ...], Kms] = {}
        self._keks: dict[tuple[str, bool], Mapping[str, Any]] = {}
        self._keys: dict[tuple[str, str, str, int], _Key] = {}
        self._lock = threading.Lock()

    def passes(self, context: RuleContext) -> bool:
        """Whether data is read as it is, because only keys that are shared are to be used."""
        if not self._reads_only_shared or context.mode != "READ":
            return False
        with self._lock:
            self._forget_old()
            return not self._kek(context).get("shared")

    def encrypt(self, context: RuleContext, plain: bytes) -> bytes:
        expiry_days = _expiry_days(context)
        with self._lock:
            self._forget_old()
            key = self._writing_key(context, expiry_days)
        data = key.encrypt(plain)
        # With keys that expire, the version says which one it was.
        return b"\x00" + key.version.to_bytes(4, "big") + data if expiry_days else data

    def decrypt(self, context: RuleContext, data: bytes) -> bytes:
        version = 1
        if _expiry_days(context):
            if len(data) < 5 or data[0] != 0:
                raise RuleError("no version found in ciphertext")
            version, data = int.from_bytes(data[1:5], "big"), data[5:]
        with self._lock:
            self._forget_old()
            key = self._find(context, version)
        if key is None:
            raise RuleError(f"no dek found for {_kek_name(context)} during consume")
        return key.decrypt(data)

    # Keys.

    def _forget_old(self) -> None:
        if 0 <= self._forgets_s < time.monotonic() - self._remembers_since_s:
            self._keks.clear()
            self._keys.clear()
            self._remembers_since_s = time.monotonic()

    def _writing_key(self, context: RuleContext, expiry_days: int) -> _Key:
        key = self._find(context, _LATEST if expiry_days else 1)
        now_ms = int(time.time() * 1000)
        if key is None:
            return self._create(context, 1)
        if expiry_days and (now_ms - key.created_ms) / _DAY_MS > expiry_days:
            try:
                return self._create(context, key.version + 1)
            except (RegistryError, RegistryUnavailableError) as error:
                # Better an old key than no record.
                _logger.warning("Cannot make a new dek of %s: %s", _kek_name(context), error)
        return key

    def _find(self, context: RuleContext, version: int) -> _Key | None:
        name, algorithm = _kek_name(context), _algorithm(context)
        place = (name, context.subject, algorithm, version)
        found = self._keys.get(place)
        if found is not None:
            return found
        kek = self._kek(context)
        shown = "latest" if version == _LATEST else str(version)
        path = f"{_dek_path(name, context.subject)}/versions/{shown}?algorithm={algorithm}"
        if context.mode == "READ":
            path += "&deleted=true"
        answer = self._get(path)
        if answer is None or not answer.get("encryptedKeyMaterial"):
            return None
        return self._remember(place, self._opened(kek, algorithm, answer))

    def _create(self, context: RuleContext, version: int) -> _Key:
        name, algorithm = _kek_name(context), _algorithm(context)
        kek = self._kek(context)
        body = {"subject": context.subject, "version": version, "algorithm": algorithm}
        # The registry itself makes the keys of a KEK that is shared with it.
        if not kek.get("shared"):
            wrapped = self._asked(kek, lambda kms: kms.encrypt(new_key_message(algorithm)))
            body["encryptedKeyMaterial"] = base64.b64encode(wrapped).decode()
        try:
            answer = self._registry.request("POST", f"{_KEKS}/{_q(name)}/deks", body)
        except RegistryError as error:
            if error.status != 409:
                raise
            # Another client was faster: its key counts.
            path = f"{_dek_path(name, context.subject)}/versions/{version}?algorithm={algorithm}"
            answer = self._get(path)
        if answer is None:
            raise RuleError(f"no dek found for {name} during produce")
        places = [(name, context.subject, algorithm, each) for each in (version, _LATEST)]
        key = self._opened(kek, algorithm, answer)
        for place in places if version > 1 or _expiry_days(context) else places[:1]:
            self._remember(place, key)
        return key

    def _remember(self, place: tuple[str, str, str, int], key: _Key) -> _Key:
        if len(self._keys) >= self._keys_max:
            self._keys.clear()
        self._keys[place] = key
        return key

    def _opened(self, kek: Mapping[str, Any], algorithm: str, dek: Mapping[str, Any]) -> _Key:
        if dek.get("keyMaterial"):
            message = base64.b64decode(dek["keyMaterial"])
        else:
            wrapped = base64.b64decode(dek["encryptedKeyMaterial"])
            message = self._asked(kek, lambda kms: kms.decrypt(wrapped))
        version, created_ms = int(dek.get("version") or 1), int(dek.get("ts") or 0)
        return _Key(algorithm, _of_tink(algorithm, message), version, created_ms)

    def _kek(self, context: RuleContext) -> Mapping[str, Any]:
        name = _kek_name(context)
        reads = context.mode == "READ"
        found = self._keks.get((name, reads))
        if found is None:
            found = self._get(f"{_KEKS}/{_q(name)}" + ("?deleted=true" if reads else ""))
            if found is None:
                found = self._create_kek(context, name)
            self._keks[name, reads] = found
        for parameter, key in (("encrypt.kms.type", "kmsType"), ("encrypt.kms.key.id", "kmsKeyId")):
            wanted = context.parameter(parameter)
            if wanted and found[key] != wanted:
                raise RuleError(
                    f"found {name} with {key} {found[key]} which differs from the rule's {wanted}"
                )
        return found

    def _create_kek(self, context: RuleContext, name: str) -> Mapping[str, Any]:
        if context.mode == "READ":
            raise RuleError(f"no kek found for {name} during consume")
        kms_type = context.parameter("encrypt.kms.type")
        key_id = context.parameter("encrypt.kms.key.id")
        if not kms_type or not key_id:
            raise RuleError(f"no kms type or no kms key id found for {name} during produce")
        body = {"name": name, "kmsType": kms_type, "kmsKeyId": key_id, "shared": False}
        try:
            answer: Mapping[str, Any] = self._registry.request("POST", _KEKS, body)
        except RegistryError as error:
            if error.status != 409:
                raise
            answer = self._get(f"{_KEKS}/{_q(name)}") or body
        return answer

    def _asked(self, kek: Mapping[str, Any], ask: Callable[[Kms], bytes]) -> bytes:
        """What the KMS of a KEK answers."""
        kms_type, key_id, props = kek["kmsType"], kek["kmsKeyId"], kek.get("kmsProps") or {}
        place = (kms_type, key_id, *sorted(props.items()))
        if place not in self._services:
            self._services[place] = kms_for(kms_type, key_id, {**self._params, **props})
        try:
            return ask(self._services[place])
        except Exception as error:  # Each library has errors of its own.
            raise RuleError(f"{kms_type} refuses kek {kek['name']}: {error}") from error

    def _get(self, path: str) -> Mapping[str, Any] | None:
        try:
            found: Mapping[str, Any] = self._registry.request("GET", path)
        except RegistryError as error:
            if error.status == 404:
                return None
            raise
        return found


class EncryptFieldsExecutor:
    """Strings become base64; bytes stay bytes. Other types cannot be encrypted."""

    def __init__(self, encryption: Encryption) -> None:
        self._encryption = encryption

    def visit(self, context: RuleContext) -> Callable[[Field, frozenset[str], Any], Any]:
        def change(field: Field, tags: frozenset[str], value: Any) -> Any:
            if value is None:
                return None
            if self._encryption.passes(context):
                return value
            if field.type not in ("STRING", "BYTES"):
                if context.mode == "READ":
                    return value
                raise RuleError(f"type {field.type} not supported for encryption")
            is_text = field.type == "STRING"
            if context.mode == "WRITE":
                sealed = self._encryption.encrypt(context, value.encode() if is_text else value)
                return base64.b64encode(sealed).decode() if is_text else sealed
            plain = self._encryption.decrypt(context, base64.b64decode(value) if is_text else value)
            return plain.decode() if is_text else plain

        return change


class EncryptPayloadExecutor:
    """All of a record's bytes."""

    def __init__(self, encryption: Encryption) -> None:
        self._encryption = encryption

    def run(self, context: RuleContext, data: Any) -> Any:
        if context.mode == "WRITE":
            return self._encryption.encrypt(context, data)
        return data if self._encryption.passes(context) else self._encryption.decrypt(context, data)


def _kek_name(context: RuleContext) -> str:
    name = context.parameter("encrypt.kek.name")
    if not name:
        raise RuleError("no kek name found")
    return name


def _algorithm(context: RuleContext) -> str:
    name = context.parameter("encrypt.dek.algorithm") or "AES256_GCM"
    if name not in _ALGORITHMS:
        raise RuleError(f"encrypt.dek.algorithm {name} is none of {', '.join(_ALGORITHMS)}")
    return name


def _expiry_days(context: RuleContext) -> int:
    name = "encrypt.dek.expiry.days"
    days = _whole(context.parameter(name), name, 0)
    if days < 0:
        raise RuleError(f"{name} {days} is not a number of days")
    return days


def _whole(text: str | None, name: str, default: int) -> int:
    if not text:
        return default
    try:
        return int(text)
    except ValueError:
        raise RuleError(f"{name} {text} is not a whole number") from None


def _dek_path(name: str, subject: str) -> str:
    return f"{_KEKS}/{_q(name)}/deks/{_q(subject)}"


def _q(text: str) -> str:
    return quote(text, safe="")
