"""LdapUsers: has an LDAP directory check the passwords of SASL/PLAIN.

Named in `sasl.server.callback.handler.class`. Each login is one simple bind as the user, over TLS
unless the settings say otherwise, on a connection of its own: nothing of a user is kept.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from moldau.config.errors import ConfigError
from moldau.security.machine.ldap import (
    LdapError,
    bind_name,
    bind_request,
    is_canonical,
    length_of,
    result_of,
    start_tls_request,
    unbind_request,
)

__all__ = ["LdapUsers"]

URL: Final = "ldap.url"
USER_DN: Final = "ldap.user.dn"
START_TLS: Final = "ldap.start.tls"
CA: Final = "ldap.ca.location"
TIMEOUT_MS: Final = "ldap.timeout.ms"
ANY_SPELLING: Final = "ldap.user.any.spelling"

_PORTS: Final = {"ldap": 389, "ldaps": 636}
_TIMEOUT_MS_DEFAULT: Final = 10_000
#: How many users are checked at the same time; others wait.
_BINDS_MAX: Final = 16

logger = logging.getLogger(__name__)


class LdapUsers:
    """See the module."""

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Raises ConfigError."""
        url = str(settings.get(URL) or "")
        parts = urlsplit(url)
        try:
            self._port = parts.port or _PORTS[parts.scheme]
        except (KeyError, ValueError):
            raise ConfigError.invalid(URL, url, "use ldaps://host or ldap://host") from None
        if not parts.hostname:
            raise ConfigError.invalid(URL, url, "use ldaps://host or ldap://host")
        self._host = parts.hostname
        self._template = str(settings.get(USER_DN) or "")
        if "{user}" not in self._template:
            raise ConfigError.invalid(
                USER_DN, self._template, "use a name with {user} in it, such as "
                "uid={user},ou=people,dc=example,dc=com",
            )  # fmt: skip
        encrypted = parts.scheme == "ldaps"
        self._start_tls = not encrypted and _flag(settings, START_TLS, default=True)
        self._any_spelling = _flag(settings, ANY_SPELLING, default=False)
        timeout = str(settings.get(TIMEOUT_MS) or _TIMEOUT_MS_DEFAULT)
        if not timeout.isdecimal() or not int(timeout):
            raise ConfigError.invalid(TIMEOUT_MS, timeout, "must be at least 1")
        self._timeout_s = int(timeout) / 1000
        self._context: ssl.SSLContext | None = None
        if encrypted or self._start_tls:
            location = settings.get(CA)
            try:
                self._context = ssl.create_default_context(cafile=location)
            except OSError as error:
                raise ConfigError.invalid(
                    CA, location, f"certificates cannot be read: {error.strerror or error}"
                ) from None
        self._binds = asyncio.Semaphore(_BINDS_MAX)

    async def authenticate(self, username: str, password: str) -> bool:
        """Raises LdapError if the directory cannot be asked."""
        if not password or not (self._any_spelling or is_canonical(username)):
            return False
        name = bind_name(self._template, username)
        async with self._binds:
            try:
                return await asyncio.to_thread(self._bind, name, password)
            except (OSError, LdapError) as error:
                reason = f"{type(error).__name__}: {error}".rstrip(": ")
                logger.error(
                    "users cannot be checked by the LDAP server %s:%d: %s",
                    self._host,
                    self._port,
                    reason,
                )
                raise LdapError(reason) from None

    def _bind(self, name: str, password: str) -> bool:
        connection = socket.create_connection((self._host, self._port), self._timeout_s)
        try:
            if self._start_tls:
                # Nothing but this answer is received before TLS begins: what somebody else may have
                # sent after it in the clear is never taken for the answer to the bind.
                connection.sendall(start_tls_request(1))
                if not result_of(_receive(connection), 1):
                    raise LdapError("StartTLS was refused")
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_hostname=self._host)
            connection.sendall(bind_request(2, name, password))
            is_right = result_of(_receive(connection), 2)
            connection.sendall(unbind_request(3))
            return is_right
        finally:
            connection.close()


def _receive(connection: socket.socket) -> bytes:
    """The content of the next message."""
    header = _exactly(connection, 2)
    while (found := length_of(header)) is None:
        header += _exactly(connection, 1)
    return _exactly(connection, found)


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        received = connection.recv(count - len(data))
        if not received:
            raise LdapError("the connection was closed")
        data += received
    return data


def _flag(settings: Mapping[str, Any], key: str, *, default: bool) -> bool:
    text = str(settings.get(key) or default).strip().lower()
    if text not in ("true", "false"):
        raise ConfigError.invalid(key, text, "use true or false")
    return text == "true"
