"""Subjects as Java prints them: the expected texts are those of X500Principal.getName."""

from __future__ import annotations

import ssl

import pytest

from moldau.security.machine.distinguished_names import (
    InvalidCertificate,
    alternative_names,
    subject_name,
)
from support.certificates import Authority, Identity


def der(identity: Identity) -> bytes:
    text = identity.certificate.read_text()
    return ssl.PEM_cert_to_DER_cert(text[text.index("-----BEGIN") :])


@pytest.mark.parametrize(
    ("subject", "printed"),
    [
        ("/C=US/O=Org/OU=ServiceUsers/CN=Duke", "CN=Duke,OU=ServiceUsers,O=Org,C=US"),
        (
            "/CN= lead and trail /emailAddress=a@b.c",
            r"1.2.840.113549.1.9.1=#16056140622e63,CN=\ lead and trail\ ",
        ),
        ("/DC=com/DC=example/UID=u1/CN=#hash", r"CN=\#hash,UID=u1,DC=example,DC=com"),
        (
            r"/CN=a\\b/street=Main/serialNumber=5/title=Mr",
            r"2.5.4.12=#0c024d72,2.5.4.5=#130135,STREET=Main,CN=a\\b",
        ),
        ("/CN=multi+OU=val/O=Org", "O=Org,OU=val+CN=multi"),
        ("/CN=日本/O=Ünï", "O=Ünï,CN=日本"),
        (
            r'/O=my, company/OU=a\+b/CN=D"e; <x>=y#z',
            r"CN=D\"e\; \<x\>\=y\#z,OU=a\+b,O=my\, company",
        ),
    ],
)
def test_a_subject_is_printed_as_by_java(subject: str, printed: str, authority: Authority) -> None:
    assert subject_name(der(authority.issue("named", subject))) == printed


def test_alternative_names_are_compared_as_they_are_encoded(authority: Authority) -> None:
    few = authority.issue("few", "/CN=a", hosts="DNS:a.example")
    many = authority.issue("many", "/CN=a", hosts="DNS:b.example,DNS:a.example,IP:127.0.0.1")
    assert len(alternative_names(der(many))) == 3
    assert alternative_names(der(few)) < alternative_names(der(many))


@pytest.mark.parametrize("data", [b"", b"0", b"0\x03\x02\x01\x05", b"0\x84\xff\xff\xff\xff"])
def test_what_is_no_certificate_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidCertificate):
        subject_name(data)
