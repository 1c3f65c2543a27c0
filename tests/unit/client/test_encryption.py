"""Encrypted values: against an implementation of the format by cryptography's low-level API."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from moldau.client import encryption
from moldau.client.config.serializer_keys import DESERIALIZER_KEYS, SERIALIZER_KEYS
from moldau.client.encryption import DecryptingDeserializer, EncryptingSerializer, KeyRing
from moldau.client.errors import ConfigError, SerializationError
from moldau.client.serialization import resolve_deserializer, resolve_serializer

OLD, NEW = bytes(range(32)), bytes(range(32, 64))


def gcm_decrypted(key: bytes, nonce: bytes, sealed: bytes, authenticated: bytes) -> bytes:
    decryptor = Cipher(algorithms.AES(key), modes.GCM(nonce, sealed[-16:])).decryptor()
    decryptor.authenticate_additional_data(authenticated)
    return decryptor.update(sealed[:-16]) + decryptor.finalize()


def gcm_encrypted(key: bytes, nonce: bytes, plain: bytes, authenticated: bytes) -> bytes:
    encryptor = Cipher(algorithms.AES(key), modes.GCM(nonce)).encryptor()
    encryptor.authenticate_additional_data(authenticated)
    return encryptor.update(plain) + encryptor.finalize() + encryptor.tag


def opened(keys: dict[str, bytes], value: bytes) -> tuple[str, bytes, bytes]:
    """Key id, data key and plain text, by the description in the module alone."""
    assert value[:4] == b"MEV\x01"
    size = value[4]
    prefix, rest = value[: 5 + size], value[5 + size :]
    key_id = prefix[5:].decode()
    data_key = gcm_decrypted(keys[key_id], rest[:12], rest[12:60], prefix)
    plain = gcm_decrypted(data_key, rest[60:72], rest[72:], prefix + rest[:60])
    return key_id, data_key, plain


def sealed(key_id: str, key: bytes, data_key: bytes, plain: bytes) -> bytes:
    prefix = b"MEV\x01" + bytes([len(key_id)]) + key_id.encode()
    header = prefix + b"n" * 12 + gcm_encrypted(key, b"n" * 12, data_key, prefix)
    return header + b"m" * 12 + gcm_encrypted(data_key, b"m" * 12, plain, header)


@pytest.mark.parametrize("plain", [b"", b"x", os.urandom(100_000)], ids=["empty", "one", "long"])
def test_the_format(plain: bytes) -> None:
    ring = KeyRing({"2026-11": NEW, "2026-10": OLD})
    made = EncryptingSerializer(ring).serialize("t", plain, [])
    assert made is not None
    assert plain == b"" or plain not in made or len(plain) == 1
    key_id, _, found = opened({"2026-11": NEW}, made)
    assert (key_id, found) == ("2026-11", plain)
    foreign = sealed("2026-10", OLD, bytes(32), plain)
    assert DecryptingDeserializer(ring).deserialize("t", foreign, []) == plain


def test_a_known_answer() -> None:
    """Bytes that will have to be readable for as long as there are topics with them."""
    value = sealed("k1", OLD, bytes(32), b"secret")
    assert value.hex() == (
        "4d455601026b31"
        "6e6e6e6e6e6e6e6e6e6e6e6e" + KNOWN_WRAPPED + "6d6d6d6d6d6d6d6d6d6d6d6d" + KNOWN_VALUE
    )
    assert DecryptingDeserializer(KeyRing({"k1": OLD})).deserialize("t", value, []) == b"secret"


KNOWN_WRAPPED = (
    "a75b1769b55cb7ff6b2c6a5ae94bd78eff7eee3c2258c1f1d0dedfabb2e3e2ab"
    "8a10c8376497958fe0c1adfb1ddcaf55"
)
KNOWN_VALUE = "9f477acc6660dcebb0e835e76346113089d179514d9b"


def test_data_keys_change_and_nonces_differ() -> None:
    serializer = EncryptingSerializer(KeyRing({"k": OLD}), records_max=3)
    values = [serializer.serialize("t", b"same", []) or b"" for _ in range(7)]
    data_keys = [opened({"k": OLD}, value)[1] for value in values]
    assert [len(set(data_keys[start : start + 3])) for start in (0, 3, 6)] == [1, 1, 1]
    assert len(set(data_keys)) == 3
    assert len({value[66:78] for value in values}) == 7


def test_null_stays_null() -> None:
    ring = KeyRing({"k": OLD})
    assert EncryptingSerializer(ring).serialize("t", None, []) is None
    assert DecryptingDeserializer(ring).deserialize("t", None, []) is None


def test_a_key_is_replaced_while_clients_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encryption, "_LOOK_SECONDS", 0.0)
    file = tmp_path / "keys.properties"

    def write(*lines: tuple[str, bytes]) -> None:
        text = "".join(f"{name}={base64.b64encode(key).decode()}\n" for name, key in lines)
        replacement = file.with_suffix(".new")
        replacement.write_text(text)
        replacement.replace(file)

    write(("old", OLD))
    serializer = EncryptingSerializer(KeyRing.from_file(file))
    reader = DecryptingDeserializer(KeyRing.from_file(file))
    first = serializer.serialize("t", b"1", []) or b""
    write(("new", NEW), ("old", OLD))
    second = serializer.serialize("t", b"2", []) or b""
    assert [opened({"old": OLD, "new": NEW}, each)[0] for each in (first, second)] == ["old", "new"]
    assert [reader.deserialize("t", each, []) for each in (first, second)] == [b"1", b"2"]
    # What cannot be used changes nothing.
    file.write_text("new=short\n")
    assert reader.deserialize("t", serializer.serialize("t", b"3", []), []) == b"3"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b'{"plain": true}', "a value of topic t is not encrypted (15 bytes)"),
        (b"MEV\x02" + bytes(200), "encrypted in a format that is not known here"),
        (b"MEV\x01", "an encrypted value of topic t is cut off"),
        (sealed("k", OLD, bytes(32), b"")[:-1], "an encrypted value of topic t is cut off"),
        (
            sealed("k2", OLD, bytes(32), b"x"),
            "the key 'k2', which is not in the key ring (it has k",
        ),
        (sealed("k", NEW, bytes(32), b"x"), "the key 'k' is not the one that the producer has"),
        (sealed("k", OLD, bytes(32), b"xy")[:-1], "has been changed since it was encrypted"),
        (b"MEV\x01\xff" + b"\xff" * 400, "which is not in the key ring"),
    ],
)
def test_what_cannot_be_decrypted(value: bytes, message: str) -> None:
    reader = DecryptingDeserializer(KeyRing({"k": OLD}))
    with pytest.raises(SerializationError) as raised:
        reader.deserialize("t", value, [])
    assert message in str(raised.value)


def test_every_byte_is_protected() -> None:
    reader = DecryptingDeserializer(KeyRing({"k": OLD}))
    value = sealed("k", OLD, bytes(32), b"secret")
    for at in range(len(value)):
        changed = value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]
        with pytest.raises(SerializationError):
            reader.deserialize("t", changed, [])


def test_by_settings(tmp_path: Path) -> None:
    text = f"a={base64.b64encode(NEW).decode()}, b={base64.b64encode(OLD).decode()}"
    file = tmp_path / "keys.properties"
    file.write_text(text.replace(", ", "\n"))
    writes = {
        "encryption.keys": text,
        "encryption.value.serializer": "json",
        "encryption.data.key.records.max": "2",
    }
    reads = {
        "encryption.keys.location": str(file),
        "encryption.value.deserializer": "json",
    }
    # A client warns of no key that it passes on.
    assert set(writes) <= set(SERIALIZER_KEYS)
    assert set(reads) <= set(DESERIALIZER_KEYS)
    serialize = resolve_serializer("moldau.client.encryption.EncryptingSerializer", False, writes)
    deserialize = resolve_deserializer(DecryptingDeserializer, False, reads)
    assert deserialize is not None
    value = serialize("t", {"id": 7}, [])
    assert opened({"a": NEW}, value or b"")[2] == b'{"id":7}'
    assert deserialize("t", value, []) == {"id": 7}


@pytest.mark.parametrize(
    ("config", "is_key", "message"),
    [
        ({}, False, "there are no keys to encrypt with. Set encryption.keys.location"),
        ({}, True, "record keys cannot be encrypted"),
        ({"encryption.keys": "a=AAAA"}, False, "the key a has 3 bytes instead of 32"),
        (
            {"encryption.keys": "a=not base64!"},
            False,
            "encryption.keys: the key a is not in Base64",
        ),
        ({"encryption.keys": ""}, False, "has no keys"),
        ({"encryption.keys.location": "/none"}, False, "cannot read the keys in /none: No such"),
        ({"encryption.keys": "a=b", "encryption.keys.location": "c"}, False, "both set"),
    ],
)
def test_wrong_settings(config: dict[str, Any], is_key: bool, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        resolve_serializer(EncryptingSerializer, is_key, config)
    assert message in str(raised.value)


def test_keys_are_not_shown() -> None:
    ring = KeyRing({"k": OLD})
    shown = repr(ring) + repr(EncryptingSerializer(ring)) + repr(DecryptingDeserializer(ring))
    assert "KeyRing(k)" in shown
    for secret in (OLD.hex(), repr(OLD), base64.b64encode(OLD).decode()):
        assert secret not in shown
    with pytest.raises(ConfigError) as raised:
        KeyRing.from_text(f"k={base64.b64encode(OLD + OLD).decode()}")
    assert base64.b64encode(OLD).decode()[:20] not in str(raised.value)
