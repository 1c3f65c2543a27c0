"""A listener's TLS contexts: the current one, and when another takes its place.

A new one is made when the settings change, and when the files of the stores do. Files are looked at
when a client connects, at most once a second: nothing has to run between connections. What cannot
be loaded, or would make the broker another one (Kafka's rules on names of a certificate), is logged
once and the current context stays.
"""

from __future__ import annotations

import logging
import os
import ssl
import time
from collections.abc import Mapping
from typing import Any, Final

from moldau.config.errors import ConfigError
from moldau.security.keystores import KeyStore, load_key_store, store_files
from moldau.security.machine.distinguished_names import alternative_names, subject_name
from moldau.security.tls import server_context

__all__ = ["ServerContexts"]

CHECK_INTERVAL_S: Final = 1.0

logger = logging.getLogger(__name__)


class ServerContexts:
    """See the module."""

    def __init__(self, listener: str, settings: Mapping[str, Any], *, client_auth: str) -> None:
        self._listener = listener
        self._settings = settings
        self._client_auth = client_auth
        self._stamps = _stamps(settings)
        self._checked_s = time.monotonic()
        try:
            self._store = load_key_store(settings)
            self._context = server_context(settings, client_auth=client_auth, store=self._store)
        except ConfigError as error:
            raise ConfigError(f"listener {listener}: {error}", key=error.key) from None

    def current(self) -> ssl.SSLContext:
        """For a connection that begins now."""
        now_s = time.monotonic()
        if now_s - self._checked_s >= CHECK_INTERVAL_S:
            self._checked_s = now_s
            if _stamps(self._settings) != self._stamps:
                self._load(self._settings, self._client_auth, "its files changed")
        return self._context

    def update(self, settings: Mapping[str, Any], *, client_auth: str) -> None:
        if settings == self._settings and client_auth == self._client_auth:
            return
        self._load(settings, client_auth, "its settings changed")

    def check(self, settings: Mapping[str, Any], *, client_auth: str) -> None:
        """ConfigError if `update` would keep the current context."""
        if settings != self._settings or client_auth != self._client_auth:
            self._make(settings, client_auth)

    def _make(
        self, settings: Mapping[str, Any], client_auth: str
    ) -> tuple[KeyStore | None, ssl.SSLContext]:
        store = load_key_store(settings)
        context = server_context(settings, client_auth=client_auth, store=store)
        _check_names(self._store, store, settings)
        return store, context

    def _load(self, settings: Mapping[str, Any], client_auth: str, why: str) -> None:
        # Before loading: files that change while they are read are read again.
        self._stamps = _stamps(settings)
        try:
            store, context = self._make(settings, client_auth)
        except ConfigError as error:
            logger.error(
                "listener %s keeps its certificate and trust although %s: %s",
                self._listener,
                why,
                error,
            )
            return
        self._context, self._store = context, store
        self._settings, self._client_auth = settings, client_auth
        logger.info("listener %s has loaded its certificate and trust: %s", self._listener, why)


def _check_names(old: KeyStore | None, new: KeyStore | None, settings: Mapping[str, Any]) -> None:
    """A new certificate has the same names, so that clients that verified the old one accept it,
    unless ssl.allow.dn.changes or ssl.allow.san.changes is set."""
    if old is None or new is None:
        return
    before, after = old.certificates[0], new.certificates[0]
    names = subject_name(before), subject_name(after)
    if names[0] != names[1] and not settings["ssl.allow.dn.changes"]:
        raise ConfigError(
            f"Keystore DistinguishedName does not match: existing={names[0]}, new={names[1]}. Use "
            "a certificate with the same name, or set ssl.allow.dn.changes=true"
        )
    if (
        not alternative_names(before) <= alternative_names(after)
        and not (settings["ssl.allow.san.changes"])
    ):
        raise ConfigError(
            "Keystore SubjectAltNames do not match: the new certificate lacks some of the existing "
            "one. Use a certificate with the same names, or set ssl.allow.san.changes=true"
        )


def _stamps(settings: Mapping[str, Any]) -> tuple[tuple[int, int, int] | None, ...]:
    return tuple(_stamp(path) for path in store_files(settings))


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
