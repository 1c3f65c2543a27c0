"""SASL/GSSAPI (RFC 4752): Kerberos, by the system's own library through the package `gssapi`.

Both sides of the exchange. After the tickets are checked, both agree on no further protection of
the connection, as Kafka does: TLS is there for that. Tickets come from the keytab of the JAAS line,
and the library gets new ones when they end, or from a ticket cache.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from moldau.config.errors import ConfigError
from moldau.installation import pip_install
from moldau.security.machine.jaas import JaasEntry
from moldau.security.machine.outcomes import AuthenticationFailed, SaslError
from moldau.security.sasl_client import SaslClient

__all__ = ["GssapiLogin", "GssapiServer", "acceptor_credentials", "default_realm"]

#: No layer, and no buffer for one.
_NO_LAYER: Final = b"\x01\0\0\0"
_LAYERS_BYTES: Final = 4


def _library() -> Any:
    try:
        import gssapi
    except ImportError:
        raise ConfigError(f"GSSAPI needs the package gssapi: {pip_install('kerberos')}") from None
    except OSError as error:
        raise ConfigError(f"GSSAPI needs the system's Kerberos library: {error}") from None
    return gssapi


def default_realm(entry: JaasEntry) -> str:
    """That of the node's own principal, or of krb5.conf."""
    realm = entry.options.get("principal", "").rpartition("@")[2]
    if "@" in entry.options.get("principal", "") and realm:
        return realm
    path = Path(os.environ.get("KRB5_CONFIG", "/etc/krb5.conf").split(":")[0])
    try:
        found = re.search(r"^\s*default_realm\s*=\s*(\S+)", path.read_text(), re.MULTILINE)
    except OSError:
        found = None
    return "" if found is None else found[1]


def _keytab(entry: JaasEntry, key: str) -> str | None:
    if entry.options.get("useKeyTab", "false").lower() != "true":
        return None
    path = entry.options.get("keyTab", "").removeprefix("file:")
    if not path:
        raise ConfigError(f'{key} has useKeyTab=true and no keyTab="/path/to/file"', key=key)
    if not os.access(path, os.R_OK):
        raise ConfigError(f"{key}: the key tab {path} cannot be read", key=key)
    return path


def _name(principal: str) -> Any:
    library = _library()
    return library.Name(principal, library.NameType.kerberos_principal)


def acceptor_credentials(entry: JaasEntry, key: str) -> Any:
    """Of a broker; raises ConfigError."""
    library = _library()
    path, principal = _keytab(entry, key), entry.options.get("principal")
    try:
        return library.Credentials(
            name=_name(principal) if principal else None,
            usage="accept",
            store={"keytab": path} if path else None,
        )
    except library.exceptions.GSSError as error:
        raise ConfigError(f"{key}: no Kerberos credentials: {_reason(error)}", key=key) from None


class GssapiServer:
    """A server's side of one exchange: the client's tokens, the offer of no layer, its answer."""

    expires_at_ms = None
    token_authenticated = False

    def __init__(self, credentials: Any) -> None:
        self._library = _library()
        self._context = self._library.SecurityContext(creds=credentials, usage="accept")
        self._offered = False
        self.authorization_id = ""
        self.complete = False

    def evaluate(self, token: bytes) -> bytes:
        try:
            if self._offered:
                return self._finish(token)
            if not self._context.complete:
                answer: bytes = self._context.step(token) or b""
                if answer or not self._context.complete:
                    return answer
            self._offered = True
            offer: bytes = self._context.wrap(_NO_LAYER, False).message
            return offer
        except self._library.exceptions.GSSError as error:
            raise SaslError(_reason(error)) from None

    def _finish(self, token: bytes) -> bytes:
        chosen = self._context.unwrap(token).message
        if len(chosen) < _LAYERS_BYTES or chosen[0] != _NO_LAYER[0]:
            raise SaslError("the client wants a security layer that was not offered")
        # As in Kafka the ticket alone says who it is: clients put various names behind the layer.
        self.authorization_id = str(self._context.initiator_name)
        self.complete = True
        return b""


class GssapiClient:
    """A client's side of one exchange; its first token is made before."""

    def __init__(self, context: Any, first: bytes, library: Any) -> None:
        self._context = context
        self._first: bytes | None = first
        self._library = library
        self.complete = False

    def evaluate(self, challenge: bytes) -> bytes | None:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        try:
            if not self._context.complete:
                return self._context.step(challenge) or b""
            offered = self._context.unwrap(challenge).message
            if len(offered) < _LAYERS_BYTES or not offered[0] & _NO_LAYER[0]:
                raise SaslError("the server wants a security layer, which is not supported")
            answer: bytes = self._context.wrap(_NO_LAYER, False).message
        except self._library.exceptions.GSSError as error:
            raise SaslError(_reason(error)) from None
        self.complete = True
        return answer


class GssapiLogin:
    """Implements `Login`."""

    mechanism = "GSSAPI"

    def __init__(self, entry: JaasEntry, service_name: str, key: str) -> None:
        self._library = _library()
        self._service = service_name
        self._store = self._ticket_store(entry, key)
        self._principal = entry.options.get("principal")

    def _ticket_store(self, entry: JaasEntry, key: str) -> Mapping[str, str] | None:
        path = _keytab(entry, key)
        if path is not None:
            return {"client_keytab": path, "ccache": f"MEMORY:moldau-{id(self)}"}
        cache = entry.options.get("ticketCache")
        return {"ccache": cache} if cache else None

    async def client(self, host: str) -> SaslClient:
        # Tickets come from the network.
        try:
            context, first = await asyncio.to_thread(self._begin, host)
        except self._library.exceptions.GSSError as error:
            raise AuthenticationFailed(f"no Kerberos ticket: {_reason(error)}") from None
        return GssapiClient(context, first, self._library)

    def _begin(self, host: str) -> tuple[Any, bytes]:
        library = self._library
        credentials = library.Credentials(
            name=_name(self._principal) if self._principal else None,
            usage="initiate",
            store=dict(self._store) if self._store else None,
        )
        target = library.Name(f"{self._service}@{host}", library.NameType.hostbased_service)
        context = library.SecurityContext(
            name=target,
            creds=credentials,
            mech=library.MechType.kerberos,
            flags=library.RequirementFlag.mutual_authentication
            | library.RequirementFlag.out_of_sequence_detection
            | library.RequirementFlag.integrity,
            usage="initiate",
        )
        return context, context.step() or b""


def _reason(error: Any) -> str:
    """In one line."""
    return " ".join(str(error).split())
