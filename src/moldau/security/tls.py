"""TLS by the standard `ssl` module, set up by Kafka's ssl.* settings.

Invariants: a context never changes; other settings or other files make a new one. Without a trust
store the certificates of the system are trusted, as Java trusts its own. What cannot be set with
Python's `ssl` is refused, never ignored.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from moldau.config.errors import ConfigError
from moldau.security.keystores import KeyStore, load_key_store, load_trusted_certificates
from moldau.security.machine.cipher_suites import TLS_1_3_SUITES, choose_ciphers
from moldau.security.reasons import explain

__all__ = ["CLIENT_AUTH", "check_own_trust", "client_context", "server_context"]

CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def client_context(settings: Mapping[str, Any]) -> ssl.SSLContext:
    """For connections to others. Raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    verify = settings["ssl.endpoint.identification.algorithm"] or ""
    if verify.lower() not in ("https", ""):
        raise ConfigError.invalid(
            "ssl.endpoint.identification.algorithm",
            verify,
            "use https, or an empty value to accept certificates of any host",
        )
    context.check_hostname = bool(verify)
    _set_versions(context, settings)
    if settings["ssl.protocol"] == "TLSv1.2":
        # A client uses no newer version than this, whatever is enabled.
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    _trust(context, load_trusted_certificates(settings))
    store = load_key_store(settings)
    if store is not None:
        _set_identity(context, store)
    return context


def server_context(
    settings: Mapping[str, Any], *, client_auth: str, store: KeyStore | None
) -> ssl.SSLContext:
    """For a listener; `client_auth` is none, requested or required. Raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    _set_versions(context, settings)
    if store is None:
        raise ConfigError(
            "A listener with SSL needs a certificate: set ssl.keystore.location (and "
            "ssl.keystore.type), or ssl.keystore.key and ssl.keystore.certificate.chain",
            key="ssl.keystore.location",
        )
    _set_identity(context, store)
    context.verify_mode = CLIENT_AUTH[client_auth]
    if context.verify_mode is not ssl.CERT_NONE:
        _trust(context, load_trusted_certificates(settings))
    return context


def check_own_trust(settings: Mapping[str, Any], *, client_auth: str) -> None:
    """Whether a client and a server with the same settings accept each other, as the nodes of a
    cluster must; host names are left out. Raises ConfigError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    store = load_key_store(settings)
    context = client_context({**settings, "ssl.endpoint.identification.algorithm": ""})
    client = context.wrap_bio(to_client, to_server)
    server = server_context(settings, client_auth=client_auth, store=store).wrap_bio(
        to_server, to_client, server_side=True
    )
    waiting = [client, server]
    try:
        while waiting:
            for side in tuple(waiting):
                with suppress(ssl.SSLWantReadError):
                    side.do_handshake()
                    waiting.remove(side)
    except ssl.SSLError as error:
        raise ConfigError(
            "A client with these settings cannot connect to a server with the same settings, as "
            f"nodes of a cluster do: {explain(error)}",
            key="ssl.truststore.location",
        ) from None


# Setting up a context.


def _set_versions(context: ssl.SSLContext, settings: Mapping[str, Any]) -> None:
    key = "ssl.enabled.protocols"
    names = settings[key] or tuple(_VERSIONS)
    for name in names:
        if name not in _VERSIONS:
            raise ConfigError.invalid(key, name, f"use {' or '.join(_VERSIONS)}, older are broken")
    versions = sorted(_VERSIONS[name] for name in names)
    suites = settings["ssl.cipher.suites"] or ()
    if suites:
        versions = _set_ciphers(context, suites, versions)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]


def _set_ciphers(
    context: ssl.SSLContext, suites: tuple[str, ...], versions: list[ssl.TLSVersion]
) -> list[ssl.TLSVersion]:
    """Returns the versions that still have a suite."""
    key, given = "ssl.cipher.suites", ",".join(suites)
    choice = choose_ciphers(suites)
    if choice.tls_1_2:
        try:
            context.set_ciphers(":".join(choice.tls_1_2))
        except ssl.SSLError:
            raise ConfigError.invalid(key, given, "OpenSSL knows none of these suites") from None
    if choice.tls_1_3 and set(choice.tls_1_3) != set(TLS_1_3_SUITES):
        choose = getattr(context, "set_ciphersuites", None)
        if choose is None:
            raise ConfigError.invalid(
                key,
                given,
                "this version of Python cannot select among the suites of TLS 1.3: list all of "
                f"{', '.join(TLS_1_3_SUITES)}, or none of them, which turns TLS 1.3 off",
            )
        choose(":".join(choice.tls_1_3))
    wanted = {
        ssl.TLSVersion.TLSv1_2: bool(choice.tls_1_2),
        ssl.TLSVersion.TLSv1_3: bool(choice.tls_1_3),
    }
    remaining = [version for version in versions if wanted[version]]
    if not remaining:
        raise ConfigError.invalid(
            key, given, "none of them belongs to a version in ssl.enabled.protocols"
        )
    return remaining


def _trust(context: ssl.SSLContext, certificates: tuple[bytes, ...] | None) -> None:
    # A certificate in a trust store is trusted as it is, also one that another CA has signed.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if certificates is None:
        context.load_default_certs()
        return
    for certificate in certificates:
        try:
            context.load_verify_locations(cadata=certificate)
        except ssl.SSLError as error:
            raise ConfigError(
                f"The trust store has something that is not a certificate: {explain(error)}",
                key="ssl.truststore.location",
            ) from None


def _set_identity(context: ssl.SSLContext, store: KeyStore) -> None:
    try:
        with _as_file(store.pem.encode()) as path:
            context.load_cert_chain(path, password=store.key_password or "")
    except ssl.SSLError as error:
        reason = error.reason or ""
        if reason == "KEY_VALUES_MISMATCH":
            text = "the private key does not belong to the first certificate"
        elif store.key_password is not None:
            text = f"the private key cannot be read: ssl.key.password is wrong ({explain(error)})"
        else:
            text = f"the private key or a certificate cannot be read: {explain(error)}"
        raise ConfigError(f"{store.origin}: {text}", key="ssl.keystore.location") from None


@contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """A file for OpenSSL, which reads keys from files only: in memory where the system can."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("key")
        try:
            with open(number, "wb", closefd=False) as file:
                file.write(data)
            yield f"/proc/self/fd/{number}"
        finally:
            os.close(number)
        return
    import tempfile

    with tempfile.NamedTemporaryFile() as named:
        named.write(data)
        named.flush()
        yield named.name
