"""Java's own key store format (JKS).

Java replaced it by PKCS#12 in 2017, and the libraries that read it are no longer kept or bring five
others along; it takes two digests and a page of code. Certificates are readable without a password.
Keys are protected by Sun's own method: a stream of SHA-1 digests.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass, field
from typing import Final

__all__ = ["InvalidKeyStore", "JksKey", "JksStore", "is_jks", "read_jks"]

_MAGIC_JKS: Final = b"\xfe\xed\xfe\xed"
_MAGIC_JCEKS: Final = b"\xce\xce\xce\xce"
_KEY_ENTRY: Final = 1
_TRUSTED_ENTRY: Final = 2
_DIGEST_SIZE: Final = 20
# Bytes that Java mixes into the digest of the file.
_SEASONING: Final = b"Mighty Aphrodite"


class InvalidKeyStore(ValueError):
    """Not a key store, or not with this password."""


@dataclass(frozen=True, slots=True)
class JksKey:
    """A private key with its certificates, own certificate first."""

    alias: str
    certificates: tuple[bytes, ...]
    protected: bytes = field(repr=False)

    def decrypted(self, password: str | None) -> bytes:
        """The key in PKCS#8."""
        secret = _bytes_of(password)
        data = _protected_octets(self.protected)
        salt, cipher, digest = data[:20], data[20:-20], data[-20:]
        stream = bytearray()
        block = salt
        while len(stream) < len(cipher):
            block = hashlib.sha1(secret + block, usedforsecurity=False).digest()
            stream += block
        plain = bytes(a ^ b for a, b in zip(cipher, stream, strict=False))
        expected = hashlib.sha1(secret + plain, usedforsecurity=False).digest()
        if not hmac.compare_digest(expected, digest):
            raise InvalidKeyStore(
                f"the private key {self.alias} cannot be decrypted: ssl.key.password (or "
                "ssl.keystore.password, if it is not set) is wrong"
            )
        return plain


@dataclass(frozen=True, slots=True)
class JksStore:
    keys: tuple[JksKey, ...]
    trusted: tuple[bytes, ...]


def is_jks(data: bytes) -> bool:
    return data[:4] in (_MAGIC_JKS, _MAGIC_JCEKS)


def read_jks(data: bytes, password: str | None) -> JksStore:
    """With a password the file's digest is checked too, as Java does."""
    if data[:4] == _MAGIC_JCEKS:
        raise InvalidKeyStore(
            "it is a JCEKS key store, which is not supported; convert it with "
            "keytool -importkeystore -deststoretype pkcs12"
        )
    body, digest = data[:-_DIGEST_SIZE], data[-_DIGEST_SIZE:]
    try:
        store = _Reader(body).store()
    except (struct.error, UnicodeDecodeError, IndexError):
        raise InvalidKeyStore("it is not a complete JKS key store") from None
    if password is not None:
        secret = _bytes_of(password) + _SEASONING + body
        expected = hashlib.sha1(secret, usedforsecurity=False).digest()
        if not hmac.compare_digest(expected, digest):
            raise InvalidKeyStore("the password is wrong, or the file was damaged")
    return store


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = len(_MAGIC_JKS)

    def store(self) -> JksStore:
        version, count = self._number(), self._number()
        keys: list[JksKey] = []
        trusted: list[bytes] = []
        for _ in range(count):
            kind, alias = self._number(), self._text()
            self._take(8)  # when it was made
            if kind == _KEY_ENTRY:
                protected = self._take(self._number())
                chain = tuple(self._certificate(version) for _ in range(self._number()))
                keys.append(JksKey(alias, chain, protected))
            elif kind == _TRUSTED_ENTRY:
                trusted.append(self._certificate(version))
            else:
                raise InvalidKeyStore(f"it has an entry of the unknown kind {kind}")
        return JksStore(tuple(keys), tuple(trusted))

    def _certificate(self, version: int) -> bytes:
        if version > 1:
            self._text()  # its type, which is X.509
        return self._take(self._number())

    def _number(self) -> int:
        return int(struct.unpack(">I", self._take(4))[0])

    def _text(self) -> str:
        return self._take(struct.unpack(">H", self._take(2))[0]).decode()

    def _take(self, size: int) -> bytes:
        taken = self._data[self._position : self._position + size]
        if len(taken) < size:
            raise IndexError
        self._position += size
        return taken


def _protected_octets(data: bytes) -> bytes:
    """The octets of SEQUENCE { SEQUENCE { algorithm }, OCTET STRING }."""
    _, start, _ = _element(data, 0)
    _, inner, size = _element(data, start)
    _, octets, count = _element(data, inner + size)
    return data[octets : octets + count]


def _element(data: bytes, position: int) -> tuple[int, int, int]:
    """Tag, where the content starts, and its size."""
    tag, size, start = data[position], data[position + 1], position + 2
    if size & 0x80:
        count = size & 0x7F
        size = int.from_bytes(data[start : start + count], "big")
        start += count
    return tag, start, size


def _bytes_of(password: str | None) -> bytes:
    return (password or "").encode("utf-16-be")
