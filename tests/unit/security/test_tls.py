"""Contexts from Kafka's settings: stores in every format, versions, suites and refusals."""

from __future__ import annotations

import shutil
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.broker.config.broker_keys import BROKER_KEYS
from moldau.config.errors import ConfigError
from moldau.config.values import Password
from moldau.security.keystores import load_key_store
from moldau.security.machine.distinguished_names import subject_name
from moldau.security.reasons import explain
from moldau.security.tls import client_context, server_context
from support.certificates import PASSWORD, Authority, Identity

needs_keytool = pytest.mark.skipif(not shutil.which("keytool"), reason="keytool is not here")


def settings(**given: Any) -> dict[str, Any]:
    values = {name: key.default for name, key in BROKER_KEYS.items() if name.startswith("ssl.")}
    for name, value in given.items():
        key = name.replace("_", ".")
        text = str(value)
        values[key] = BROKER_KEYS[key].parse(text)
    return values


def server_settings(server: Identity, **more: Any) -> dict[str, Any]:
    return settings(ssl_keystore_type="PEM", ssl_keystore_location=server.pem, **more)


def trusting(authority: Authority, **more: Any) -> dict[str, Any]:
    store = {"ssl_truststore_type": "PEM", "ssl_truststore_location": authority.certificate}
    return settings(**{**store, **more})


def shake_hands(
    of_server: dict[str, Any],
    of_client: dict[str, Any],
    *,
    host: str = "localhost",
    client_auth: str = "none",
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Both sides of a handshake in memory; raises what either side raises."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = server_context(of_server, client_auth=client_auth, store=load_key_store(of_server))
    server = ours.wrap_bio(to_server, to_client, server_side=True)
    client = client_context(of_client).wrap_bio(to_client, to_server, server_hostname=host)
    open_sides = [client, server]
    for _ in range(10):
        for side in tuple(open_sides):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            open_sides.remove(side)
    assert open_sides == []
    return server, client


@pytest.fixture(params=["PEM", "PEM in properties", "encrypted PEM", "PKCS12", "JKS"])
def stored(request: pytest.FixtureRequest, client: Identity) -> dict[str, Any]:
    """The client's key and certificate, stored in every way."""
    if request.param in ("PKCS12", "JKS"):
        path = client.pkcs12 if request.param == "PKCS12" else client.jks
        return {
            "ssl_keystore_type": request.param,
            "ssl_keystore_location": path,
            "ssl_keystore_password": PASSWORD,
        }
    if request.param == "PEM":
        return {"ssl_keystore_type": "PEM", "ssl_keystore_location": client.pem}
    key = client.encrypted_key if request.param == "encrypted PEM" else client.key
    found = {
        "ssl_keystore_type": "PEM",
        # A value of a properties file is one line.
        "ssl_keystore_key": " ".join(key.read_text().splitlines()),
        "ssl_keystore_certificate_chain": client.certificate.read_text(),
    }
    return found | ({"ssl_key_password": PASSWORD} if key == client.encrypted_key else {})


@needs_keytool
def test_a_client_shows_a_certificate_of_any_store(
    stored: dict[str, Any], authority: Authority, server: Identity
) -> None:
    ours, _ = shake_hands(
        server_settings(
            server, ssl_truststore_type="PEM", ssl_truststore_location=authority.certificate
        ),
        trusting(authority, **stored),
        client_auth="required",
    )
    certificate = ours.getpeercert(binary_form=True)
    assert certificate is not None
    assert subject_name(certificate) == "CN=Duke,OU=ServiceUsers,O=Org,C=US"


@needs_keytool
@pytest.mark.parametrize("kind", ["pkcs12", "jks"])
def test_trust_stores_of_keytool_are_read(
    kind: str, authority: Authority, server: Identity
) -> None:
    trust = settings(
        # Java reads either format whatever the type says.
        ssl_truststore_type="JKS",
        ssl_truststore_location=authority.trust_store(kind),
        ssl_truststore_password=PASSWORD,
    )
    shake_hands(server_settings(server), trust)


def test_a_trusted_certificate_needs_no_ca(server: Identity) -> None:
    trust = settings(
        ssl_truststore_type="PEM", ssl_truststore_certificates=server.certificate.read_text()
    )
    shake_hands(server_settings(server), trust)


@pytest.mark.parametrize(
    ("versions", "used"),
    [("TLSv1.2", "TLSv1.2"), ("TLSv1.3", "TLSv1.3"), ("TLSv1.2,TLSv1.3", "TLSv1.3")],
)
def test_versions(versions: str, used: str, authority: Authority, server: Identity) -> None:
    ours, _ = shake_hands(
        server_settings(server, ssl_enabled_protocols=versions), trusting(authority)
    )
    assert ours.version() == used


def test_a_client_with_an_older_ssl_protocol_uses_no_newer_one(
    authority: Authority, server: Identity
) -> None:
    ours, _ = shake_hands(server_settings(server), trusting(authority, ssl_protocol="TLSv1.2"))
    assert ours.version() == "TLSv1.2"


def test_suites_have_the_names_of_the_standard(authority: Authority, server: Identity) -> None:
    ours, _ = shake_hands(
        server_settings(server, ssl_cipher_suites="TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
        trusting(authority),
    )
    cipher = ours.cipher()
    assert cipher is not None
    assert (cipher[0], cipher[1]) == ("ECDHE-RSA-AES128-GCM-SHA256", "TLSv1.2")


def test_a_certificate_for_another_host_is_rejected(authority: Authority, server: Identity) -> None:
    with pytest.raises(ssl.SSLCertVerificationError) as raised:
        shake_hands(server_settings(server), trusting(authority), host="broker.example.com")
    text = explain(raised.value)
    assert "broker.example.com" in text
    assert "ssl.endpoint.identification.algorithm" in text
    anywhere = trusting(authority, ssl_endpoint_identification_algorithm="")
    shake_hands(server_settings(server), anywhere, host="broker.example.com")


def test_a_certificate_of_an_unknown_ca_is_rejected(server: Identity, tmp_path: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError) as raised:
        shake_hands(server_settings(server), trusting(Authority(tmp_path, "Other CA")))
    assert "ssl.truststore.location" in explain(raised.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"ssl_keystore_type": "BKS"}, "use one of PEM, JKS, PKCS12"),
        ({"ssl_keystore_password": "p"}, "SSL key store is not specified, but key store password"),
        ({"ssl_truststore_password": "p"}, "SSL trust store is not specified, but trust store"),
        ({"ssl_keystore_key": "k"}, "only for PEM, but key store type is JKS"),
        ({"ssl_truststore_certificates": "c"}, "only for PEM, but trust store type is JKS"),
        ({"ssl_keystore_location": "/no/such/file"}, "/no/such/file cannot be read: No such file"),
        ({"ssl_truststore_location": "/no/such/file"}, "/no/such/file cannot be read: No such"),
        ({"ssl_enabled_protocols": "TLSv1.1"}, "use TLSv1.2 or TLSv1.3"),
        ({"ssl_cipher_suites": "TLS_NONSENSE"}, "OpenSSL knows none of these suites"),
        ({"ssl_cipher_suites": "TLS_AES_128_GCM_SHA256"}, "cannot select among the suites"),
        ({"ssl_endpoint_identification_algorithm": "ldaps"}, "use https, or an empty value"),
    ],
)
def test_what_is_wrong_is_said(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        client_context(settings(**given))


def wrong_stores(client: Identity, tmp_path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    text = tmp_path / "text.pem"
    text.write_text("nothing here")
    yield {"ssl_keystore_type": "PEM", "ssl_keystore_location": text}, "0 private keys"
    yield {"ssl_truststore_type": "PEM", "ssl_truststore_location": text}, "no certificate in PEM"
    encrypted = client.encrypted_key.read_text() + client.certificate.read_text()
    text_encrypted = tmp_path / "encrypted.pem"
    text_encrypted.write_text(encrypted)
    pem = {"ssl_keystore_type": "PEM", "ssl_keystore_location": text_encrypted}
    yield pem, "is encrypted: set ssl.key.password"
    yield {**pem, "ssl_key_password": "other-secret"}, "ssl.key.password is wrong"
    java = {"ssl_keystore_location": client.pkcs12, "ssl_keystore_password": "other-secret"}
    yield java, "ssl.keystore.password is wrong"
    if shutil.which("keytool"):
        java = {"ssl_keystore_location": client.jks, "ssl_keystore_password": "other-secret"}
        yield java, "the password is wrong"
        wrong_key = {"ssl_keystore_password": PASSWORD, "ssl_key_password": "other-secret"}
        yield {**java, **wrong_key}, "ssl.key.password .* is wrong"


def test_stores_that_cannot_be_read(client: Identity, tmp_path: Path) -> None:
    for given, words in wrong_stores(client, tmp_path):
        with pytest.raises(ConfigError, match=words) as raised:
            client_context(settings(**given))
        assert "secret" not in str(raised.value)


def test_a_server_needs_a_certificate(client: Identity, server: Identity, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"needs a certificate: set ssl\.keystore\.location"):
        server_context(settings(), client_auth="none", store=None)
    mixed = tmp_path / "mixed.pem"
    mixed.write_text(client.key.read_text() + server.certificate.read_text())
    with pytest.raises(ConfigError, match="does not belong to the first certificate"):
        client_context(settings(ssl_keystore_type="PEM", ssl_keystore_location=mixed))


def test_secrets_stay_out_of_reprs(client: Identity) -> None:
    store = load_key_store(settings(ssl_keystore_type="PEM", ssl_keystore_location=client.pem))
    assert "PRIVATE" not in repr(store)
    assert PASSWORD not in repr(Password(PASSWORD))
