"""A certificate authority of one's own, for clusters on one machine and for tests.

Keys are P-256: every client knows them, and a handshake costs a tenth of what RSA's does. Needs the
package cryptography, which is imported when an authority is made.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

__all__ = ["Authority", "write_secret"]

# Clocks of machines differ.
_EARLIER = datetime.timedelta(hours=1)


class Authority:
    """Signs certificates for nodes and clients. ImportError without the package cryptography."""

    def __init__(self, name: str, *, life: datetime.timedelta) -> None:
        from cryptography import x509

        self._life = life
        self._key = _new_key()
        usage = _key_usage(signs_certificates=True)
        self._certificate = self._signed(
            _name_of({"CN": name}),
            self._key,
            [(x509.BasicConstraints(ca=True, path_length=0), True), (usage, True)],
        )

    @property
    def certificate(self) -> bytes:
        """In PEM, for trust stores."""
        return _pem(self._certificate)

    @property
    def key(self) -> bytes:
        """In PEM, not encrypted."""
        return _key_pem(self._key)

    def issue(self, subject: dict[str, str], hosts: Iterable[str]) -> bytes:
        """A PEM key store: a new key and its certificate, valid for these names and addresses.

        `subject` has attributes of a distinguished name, such as CN, the most specific first.
        """
        from cryptography import x509
        from cryptography.x509.oid import ExtendedKeyUsageOID

        # Nodes are clients of one another.
        purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        key = _new_key()
        certificate = self._signed(
            _name_of(subject),
            key,
            [
                (x509.BasicConstraints(ca=False, path_length=None), True),
                (_key_usage(signs_certificates=False), True),
                (x509.ExtendedKeyUsage(purposes), False),
                (x509.SubjectAlternativeName([_general_name(host) for host in hosts]), False),
                (
                    x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                    False,
                ),
            ],
        )
        return _key_pem(key) + _pem(certificate)

    def _signed(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        extensions: Iterable[tuple[x509.ExtensionType, bool]],
    ) -> x509.Certificate:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes

        issuer = subject if key is self._key else self._certificate.subject
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _EARLIER)
            .not_valid_after(now + self._life)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        )
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        return builder.sign(self._key, hashes.SHA256())


def write_secret(path: Path, data: bytes) -> None:
    """A new file that only its owner can read; FileExistsError if there is one."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(number, "wb") as file:
        file.write(data)


def _new_key() -> ec.EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _name_of(attributes: dict[str, str]) -> x509.Name:
    from cryptography import x509

    # A certificate has the most general one first.
    shown = ",".join(f"{key}={value}" for key, value in attributes.items())
    return x509.Name.from_rfc4514_string(shown)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
