"""Values that only clients can read: a serializer that encrypts, a deserializer that decrypts.

Envelope encryption: each value is encrypted with a data key, which comes along, itself encrypted
with a key of the key ring that brokers never see. A new data key is made for every
`encryption.data.key.records.max` records and whenever the ring's first key changes. All of it is
AES-256-GCM. A value is

    magic and version (4 bytes: "MEV", 1), length of the key's id (1 byte), the id in UTF-8,
    nonce (12), encrypted data key with tag (48), nonce (12), encrypted value with tag

where all before the first nonce authenticates the data key, and all before the second the value.

Invariants: no nonce is used twice with a key (they are random, and a data key is used for at most
2^32 records); null stays null, since compaction needs it; keys are in no message and no repr.
"""

from __future__ import annotations

import base64
import binascii
import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from moldau.client.errors import ConfigError, SerializationError
from moldau.client.serialization import resolve_deserializer, resolve_serializer, serialized
from moldau.config.errors import ConfigError as AnyConfigError
from moldau.config.properties import load_properties
from moldau.installation import pip_install

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

__all__ = ["DecryptingDeserializer", "EncryptingSerializer", "KeyRing"]

_log = logging.getLogger(__name__)

VALUE_MAGIC: Final = b"MEV\x01"
KEY_SIZE: Final = 32
NONCE_SIZE: Final = 12
TAG_SIZE: Final = 16
RECORDS_MAX_DEFAULT: Final = 10_000
# With random nonces, the most that NIST SP 800-38D allows for one key.
_RECORDS_MAX_LIMIT: Final = 2**32
_ID_SIZE_MAX: Final = 255
_WRAPPED_SIZE: Final = NONCE_SIZE + KEY_SIZE + TAG_SIZE
# Data keys that a deserializer remembers: about one for each producer and ten thousand records.
_DATA_KEYS_MAX: Final = 1024
_LOOK_SECONDS: Final = 1.0

_KEYS: Final = "encryption.keys"
_LOCATION: Final = "encryption.keys.location"
_RECORDS_MAX: Final = "encryption.data.key.records.max"


class KeyRing:
    """Keys by their ids. New values are encrypted with the first, all can decrypt."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        self._keys = _checked(keys, "the key ring")
        self._path: Path | None = None
        self._seen: tuple[int, int] | None = None
        self._looked_at = 0.0

    @classmethod
    def from_text(cls, text: str) -> KeyRing:
        """ID=BASE64, several with commas or on lines of their own."""
        return cls(_parsed(load_properties(text.replace(",", "\n")), _KEYS))

    @classmethod
    def from_file(cls, path: str | Path) -> KeyRing:
        """A properties file with lines ID=BASE64. It is read again when it has changed."""
        seen = _stamp(Path(path))
        ring = cls(_read(Path(path)))
        ring._path, ring._seen, ring._looked_at = Path(path), seen, time.monotonic()
        return ring

    def __repr__(self) -> str:
        return f"KeyRing({', '.join(self._keys)})"

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._keys)

    def first(self) -> tuple[str, bytes]:
        """The id of the key to encrypt with, and the key."""
        self._refresh()
        return next(iter(self._keys.items()))

    def get(self, key_id: str) -> bytes | None:
        key = self._keys.get(key_id)
        if key is None:
            self._refresh()
            key = self._keys.get(key_id)
        return key

    def _refresh(self) -> None:
        """Looks at the file at most once a second; one that cannot be used changes nothing."""
        if self._path is None or time.monotonic() - self._looked_at < _LOOK_SECONDS:
            return
        self._looked_at = time.monotonic()
        try:
            seen = _stamp(self._path)
            if seen != self._seen:
                self._keys = _checked(_read(self._path), str(self._path))
                self._seen = seen
        except ConfigError as error:
            # It is being replaced, or damaged: what was read before is still right.
            _log.warning("%s. The keys that were read before stay in use.", error)


class _DataKey(NamedTuple):
    key_id: str
    header: bytes
    cipher: AESGCM


class EncryptingSerializer:
    """Encrypts what another serializer makes of a value; without one, bytes and text.

    Made with a key ring, or by its dotted name in `value.serializer`: then the settings
    `encryption.keys` or `encryption.keys.location`, `encryption.value.serializer` and
    `encryption.data.key.records.max` apply.
    """

    def __init__(
        self,
        keys: KeyRing | None = None,
        serializer: Any = None,
        *,
        records_max: int = RECORDS_MAX_DEFAULT,
    ) -> None:
        self._keys = keys
        self._serializer = serializer
        self._serialize = resolve_serializer(serializer, False)
        self._records_max = _checked_records_max(records_max)
        self._data_key: _DataKey | None = None
        self._left = 0
        # Threads that send share a producer, and with it this object.
        self._lock = threading.Lock()

    def configure(self, config: Mapping[str, Any], is_key: bool) -> None:
        self._keys = _configured_ring(self._keys, config, is_key)
        inner = config.get("encryption.value.serializer", self._serializer)
        self._serialize = resolve_serializer(inner, False, config)
        if _RECORDS_MAX in config:
            self._records_max = _checked_records_max(config[_RECORDS_MAX])

    def serialize(self, topic: str, data: Any, headers: Any) -> bytes | None:
        plain = serialized(self._serialize, topic, data, headers, "value")
        if plain is None:
            return None
        data_key = self._next_data_key()
        nonce = os.urandom(NONCE_SIZE)
        encrypted = data_key.cipher.encrypt(nonce, plain, data_key.header)
        return b"".join((data_key.header, nonce, encrypted))

    def _next_data_key(self) -> _DataKey:
        ring = _required(self._keys)
        with self._lock:
            key_id, key = ring.first()
            current = self._data_key
            if current is None or self._left <= 0 or current.key_id != key_id:
                current = self._data_key = _new_data_key(key_id, key)
                self._left = self._records_max
            self._left -= 1
            return current


class DecryptingDeserializer:
    """Decrypts values of an `EncryptingSerializer`, for another deserializer or as bytes.

    Made as that one is; the setting for the other one is `encryption.value.deserializer`.
    """

    null_is_null: Final = True

    def __init__(self, keys: KeyRing | None = None, deserializer: Any = None) -> None:
        self._keys = keys
        self._deserializer = deserializer
        self._deserialize = resolve_deserializer(deserializer, False)
        self._data_keys: OrderedDict[bytes, AESGCM] = OrderedDict()

    def configure(self, config: Mapping[str, Any], is_key: bool) -> None:
        self._keys = _configured_ring(self._keys, config, is_key)
        inner = config.get("encryption.value.deserializer", self._deserializer)
        self._deserialize = resolve_deserializer(inner, False, config)

    def deserialize(self, topic: str, data: bytes | None, headers: Any) -> Any:
        if data is None:
            return None
        plain = self._decrypt(topic, bytes(data))
        return plain if self._deserialize is None else self._deserialize(topic, plain, headers)

    __call__ = deserialize

    def _decrypt(self, topic: str, data: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag

        size = _header_size(topic, data)
        header, nonce, rest = data[:size], data[size : size + NONCE_SIZE], data[size + NONCE_SIZE :]
        try:
            return self._cipher(topic, header).decrypt(nonce, rest, header)
        except InvalidTag:
            raise SerializationError(
                f"a value of topic {topic} has been changed since it was encrypted"
            ) from None

    def _cipher(self, topic: str, header: bytes) -> AESGCM:
        known = self._data_keys.get(header)
        if known is None:
            known = self._data_keys[header] = _unwrapped(_required(self._keys), topic, header)
            while len(self._data_keys) > _DATA_KEYS_MAX:
                self._data_keys.popitem(last=False)
        return known


def _new_data_key(key_id: str, key: bytes) -> _DataKey:
    secret = os.urandom(KEY_SIZE)
    nonce = os.urandom(NONCE_SIZE)
    encoded = key_id.encode()
    prefix = VALUE_MAGIC + bytes([len(encoded)]) + encoded
    wrapped = _cipher_of(key).encrypt(nonce, secret, prefix)
    return _DataKey(key_id, prefix + nonce + wrapped, _cipher_of(secret))


def _unwrapped(ring: KeyRing, topic: str, header: bytes) -> AESGCM:
    from cryptography.exceptions import InvalidTag

    prefix, wrapped = header[:-_WRAPPED_SIZE], header[-_WRAPPED_SIZE:]
    key_id = prefix[len(VALUE_MAGIC) + 1 :].decode(errors="replace")
    key = ring.get(key_id)
    if key is None:
        raise SerializationError(
            f"a value of topic {topic} was encrypted with the key {key_id!r}, which is not in the "
            f"key ring (it has {', '.join(ring.ids)})",
            advice="add that key to the key ring of this consumer",
        )
    try:
        secret = _cipher_of(key).decrypt(wrapped[:NONCE_SIZE], wrapped[NONCE_SIZE:], prefix)
    except InvalidTag:
        raise SerializationError(
            f"the data key of a value of topic {topic} cannot be decrypted: the value has been "
            f"changed, or the key {key_id!r} is not the one that the producer has",
            advice="compare the key rings of producer and consumer",
        ) from None
    return _cipher_of(secret)


def _header_size(topic: str, data: bytes) -> int:
    """Of what comes before the value's nonce."""
    if not data.startswith(VALUE_MAGIC[:-1]):
        raise SerializationError(
            f"a value of topic {topic} is not encrypted ({len(data)} bytes)",
            advice="use the deserializer that fits its producer's serializer",
        )
    if data[len(VALUE_MAGIC) - 1 : len(VALUE_MAGIC)] != VALUE_MAGIC[-1:]:
        raise SerializationError(
            f"a value of topic {topic} is encrypted in a format that is not known here",
            advice="update Moldau",
        )
    start = len(VALUE_MAGIC) + 1
    size = start + data[start - 1] + _WRAPPED_SIZE if len(data) >= start else len(data)
    if len(data) < size + NONCE_SIZE + TAG_SIZE:
        raise SerializationError(f"an encrypted value of topic {topic} is cut off")
    return size


def _cipher_of(key: bytes) -> AESGCM:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise ConfigError(
            f"to encrypt values, the package cryptography is needed: {pip_install('security')}"
        ) from None
    return AESGCM(key)


def _configured_ring(given: KeyRing | None, config: Mapping[str, Any], is_key: bool) -> KeyRing:
    if is_key:
        raise ConfigError(
            "record keys cannot be encrypted: equal keys would differ, and with them partitions "
            "and what compaction keeps. Use it as the value's serializer or deserializer"
        )
    text, location = config.get(_KEYS), config.get(_LOCATION)
    if text is not None and location is not None:
        raise ConfigError(f"{_KEYS} and {_LOCATION} are both set. Set one of them", key=_KEYS)
    if text is not None:
        return KeyRing.from_text(str(getattr(text, "value", text)))
    if location is not None:
        return KeyRing.from_file(str(location))
    return _required(given)


def _required(ring: KeyRing | None) -> KeyRing:
    if ring is None:
        raise ConfigError(f"there are no keys to encrypt with. Set {_LOCATION}", key=_LOCATION)
    return ring


def _checked_records_max(value: Any) -> int:
    try:
        count = int(value)
    except (TypeError, ValueError):
        count = 0
    if not 1 <= count <= _RECORDS_MAX_LIMIT:
        raise ConfigError.invalid(_RECORDS_MAX, value, f"must be 1 to {_RECORDS_MAX_LIMIT}")
    return count


def _checked(keys: Mapping[str, bytes], origin: str) -> dict[str, bytes]:
    if not keys:
        raise ConfigError(f"{origin} has no keys")
    for key_id, key in keys.items():
        if not 1 <= len(key_id.encode()) <= _ID_SIZE_MAX:
            raise ConfigError(f"{origin}: the id of a key has 1 to {_ID_SIZE_MAX} bytes")
        if len(key) != KEY_SIZE:
            raise ConfigError(
                f"{origin}: the key {key_id} has {len(key)} bytes instead of {KEY_SIZE}. "
                "`openssl rand -base64 32` makes one"
            )
    return dict(keys)


def _parsed(texts: Mapping[str, str], origin: str) -> dict[str, bytes]:
    keys = {}
    for key_id, text in texts.items():
        try:
            keys[key_id.strip()] = base64.b64decode(text.strip(), validate=True)
        except binascii.Error:
            raise ConfigError(f"{origin}: the key {key_id.strip()} is not in Base64") from None
    return keys


def _read(path: Path) -> dict[str, bytes]:
    try:
        return _parsed(load_properties(path.read_text(encoding="utf-8")), str(path))
    except OSError as error:
        raise ConfigError(f"cannot read the keys in {path}: {error.strerror}") from None
    except (AnyConfigError, UnicodeDecodeError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{path} is not a properties file") from None


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError as error:
        raise ConfigError(f"cannot read the keys in {path}: {error.strerror}") from None
    return status.st_mtime_ns, status.st_ino
