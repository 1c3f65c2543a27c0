"""Key stores and trust stores: PEM, PKCS#12 and JKS, read into what OpenSSL takes.

Which keys of the configuration may be set together, and the sentences about it, are those of
Kafka's DefaultSslEngineFactory. The type JKS also reads PKCS#12 and the other way round, as Java
does: the file itself shows what it is. Passwords and keys are in no message and no repr.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from moldau.config.errors import ConfigError
from moldau.config.values import Password
from moldau.installation import pip_install
from moldau.security.machine.jks import InvalidKeyStore, JksStore, is_jks, read_jks

if TYPE_CHECKING:
    from cryptography import x509

__all__ = ["KeyStore", "load_key_store", "load_trusted_certificates", "store_files"]

_PEM = "PEM"
_TYPES: Final = (_PEM, "JKS", "PKCS12")
# White space may stand for line breaks: a value in a properties file is one line.
_BLOCK = re.compile(
    r"-+BEGIN\s+([A-Z0-9 ]+?)\s*-+\s+((?:[A-Za-z0-9-]+:[^\n]*\n+)*)([A-Za-z0-9+/=\s]+)-+END[^-]*-+"
)


@dataclass(frozen=True, slots=True)
class KeyStore:
    """A private key with its certificates, own certificate first."""

    certificates: tuple[bytes, ...]
    """In DER."""
    key_pem: str = field(repr=False)
    key_password: str | None = field(repr=False)
    origin: str
    """Where it was read from, for messages."""

    @property
    def pem(self) -> str:
        return self.key_pem + "".join(_pem("CERTIFICATE", each) for each in self.certificates)


def store_files(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """The files that the stores are read from."""
    locations = (settings["ssl.keystore.location"], settings["ssl.truststore.location"])
    return tuple(each for each in locations if each)


def load_key_store(settings: Mapping[str, Any]) -> KeyStore | None:
    """The own key and certificates; None without any. Raises ConfigError."""
    kind = _store_type(settings, "ssl.keystore.type")
    location = settings["ssl.keystore.location"]
    password = _secret(settings, "ssl.keystore.password")
    key = _secret(settings, "ssl.keystore.key")
    chain = _secret(settings, "ssl.keystore.certificate.chain")
    key_password = _secret(settings, "ssl.key.password")
    if key is not None:
        _only_pem("ssl.keystore.key", "SSL private key", "key store", kind)
        if location:
            raise _refused(
                "ssl.keystore.key",
                "Both SSL key store location and separate private key are specified.",
            )
        if password is not None:
            raise _refused(
                "ssl.keystore.password", "SSL key store password cannot be specified for PEM format"
            )
        if chain is None:
            raise _refused(
                "ssl.keystore.certificate.chain",
                "SSL certificate chain is not specified, but SSL private key is specified.",
            )
        return _pem_key_store("ssl.keystore.key", f"{key}\n{chain}", key_password)
    if chain is not None:
        raise _refused(
            "ssl.keystore.certificate.chain",
            "SSL certificate chain is specified, but the private key is not: set ssl.keystore.key",
        )
    if not location:
        if password is not None:
            raise _refused(
                "ssl.keystore.password",
                "SSL key store is not specified, but key store password is specified.",
            )
        return None
    if kind == _PEM:
        if password is not None:
            raise _refused(
                "ssl.keystore.password",
                "SSL key store password cannot be specified with PEM format, only key password "
                "may be specified",
            )
        text = _read("ssl.keystore.location", location).decode("ascii", "replace")
        return _pem_key_store(f"ssl.keystore.location={location}", text, key_password)
    return _binary_key_store(location, password, key_password)


def load_trusted_certificates(settings: Mapping[str, Any]) -> tuple[bytes, ...] | None:
    """What peers' certificates are checked against, in DER; None: what the system trusts."""
    kind = _store_type(settings, "ssl.truststore.type")
    location = settings["ssl.truststore.location"]
    password = _secret(settings, "ssl.truststore.password")
    certificates = _secret(settings, "ssl.truststore.certificates")
    if certificates is not None:
        _only_pem("ssl.truststore.certificates", "SSL trust store certs", "trust store", kind)
        if location:
            raise _refused(
                "ssl.truststore.certificates",
                "Both SSL trust store location and separate trust certificates are specified.",
            )
        if password is not None:
            raise _refused(
                "ssl.truststore.password",
                "SSL trust store password cannot be specified for PEM format.",
            )
        return _pem_certificates("ssl.truststore.certificates", certificates)
    if not location:
        if password is not None:
            raise _refused(
                "ssl.truststore.password",
                "SSL trust store is not specified, but trust store password is specified.",
            )
        return None
    origin = f"ssl.truststore.location={location}"
    data = _read("ssl.truststore.location", location)
    if kind == _PEM:
        if password is not None:
            raise _refused(
                "ssl.truststore.password",
                "SSL trust store password cannot be specified for PEM format.",
            )
        return _pem_certificates(origin, data.decode("ascii", "replace"))
    if is_jks(data):
        found = _jks(origin, data, password).trusted
    else:
        found = _pkcs12(origin, "ssl.truststore.password", data, password).certificates
    if not found:
        raise _refused("ssl.truststore.location", f"{origin} has no trusted certificate")
    return found


# PEM.


def _pem_key_store(origin: str, text: str, key_password: str | None) -> KeyStore:
    keys = [match for match in _BLOCK.finditer(text) if match[1].endswith("PRIVATE KEY")]
    if len(keys) != 1:
        raise _refused(
            "ssl.keystore.location",
            f"{origin} has {len(keys)} private keys in PEM, and one is needed: "
            "-----BEGIN PRIVATE KEY----- or -----BEGIN ENCRYPTED PRIVATE KEY-----",
        )
    label, headers, body = keys[0].groups()
    encrypted = label.startswith("ENCRYPTED") or "ENCRYPTED" in headers
    if encrypted and key_password is None:
        raise _refused(
            "ssl.key.password", f"The private key of {origin} is encrypted: set ssl.key.password"
        )
    return KeyStore(
        _pem_certificates(origin, text),
        keys[0][0] + "\n" if headers else _pem(label, _decoded(origin, body)),
        key_password if encrypted else None,
        origin,
    )


def _pem_certificates(origin: str, text: str) -> tuple[bytes, ...]:
    found = tuple(
        _decoded(origin, match[3])
        for match in _BLOCK.finditer(text)
        if match[1].endswith("CERTIFICATE")
    )
    if not found:
        raise ConfigError(f"{origin} has no certificate in PEM (-----BEGIN CERTIFICATE-----)")
    return found


def _decoded(origin: str, body: str) -> bytes:
    try:
        return base64.b64decode("".join(body.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError(f"{origin}: what is between BEGIN and END is not base64") from None


def _pem(label: str, data: bytes) -> str:
    text = base64.b64encode(data).decode()
    lines = [text[start : start + 64] for start in range(0, len(text), 64)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""])


# Java's key stores.


def _binary_key_store(location: str, password: str | None, key_password: str | None) -> KeyStore:
    origin = f"ssl.keystore.location={location}"
    data = _read("ssl.keystore.location", location)
    if is_jks(data):
        store = _jks(origin, data, password)
        if not store.keys:
            raise _refused("ssl.keystore.location", f"{origin} has no private key")
        entry = store.keys[0]
        try:
            key = entry.decrypted(password if key_password is None else key_password)
        except InvalidKeyStore as error:
            raise _refused("ssl.key.password", f"{origin}: {error}") from None
        return KeyStore(entry.certificates, _pem("PRIVATE KEY", key), None, origin)
    return _pkcs12(origin, "ssl.keystore.password", data, password).key_store()


def _jks(origin: str, data: bytes, password: str | None) -> JksStore:
    try:
        return read_jks(data, password)
    except InvalidKeyStore as error:
        raise ConfigError(f"{origin}: {error}") from None


class _Pkcs12:
    """A PKCS#12 file, read by `cryptography`."""

    def __init__(self, origin: str, store: Any) -> None:
        self._origin = origin
        self._store = store

    @property
    def certificates(self) -> tuple[bytes, ...]:
        entries = [self._store.cert, *self._store.additional_certs]
        return tuple(_der(each.certificate) for each in entries if each is not None)

    def key_store(self) -> KeyStore:
        from cryptography.hazmat.primitives import serialization

        if self._store.key is None or self._store.cert is None:
            raise _refused("ssl.keystore.location", f"{self._origin} has no private key")
        key = self._store.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode()
        return KeyStore(self.certificates, key, None, self._origin)


def _der(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.DER)


def _pkcs12(origin: str, password_key: str, data: bytes, password: str | None) -> _Pkcs12:
    try:
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise ConfigError(
            f"{origin} is not a JKS file, and to read PKCS#12 the package cryptography is "
            f"needed: {pip_install('security')}, or use PEM files"
        ) from None
    try:
        store = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError as error:
        raise ConfigError(
            f"{origin} cannot be read as a PKCS#12 key store, or {password_key} is wrong: {error}"
        ) from None
    return _Pkcs12(origin, store)


# Settings.


def _store_type(settings: Mapping[str, Any], key: str) -> str:
    kind = str(settings[key] or "JKS").upper().replace("#", "")
    if kind not in _TYPES:
        raise ConfigError.invalid(key, settings[key], f"use one of {', '.join(_TYPES)}")
    return kind


def _only_pem(key: str, what: str, store: str, kind: str) -> None:
    if kind != _PEM:
        raise _refused(
            key,
            f"{what} can be specified only for PEM, but {store} type is {kind}.",
        )


def _secret(settings: Mapping[str, Any], key: str) -> str | None:
    value = settings[key]
    return value.value if isinstance(value, Password) else value


def _read(key: str, location: str) -> bytes:
    try:
        with open(location, "rb") as file:
            return file.read()
    except OSError as error:
        raise ConfigError(
            f"{key}={location} cannot be read: {error.strerror}", key=key, value=location
        ) from None


def _refused(key: str, message: str) -> ConfigError:
    return ConfigError(message, key=key)
