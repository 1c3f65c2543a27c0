"""The addresses that a client finds its cluster by, as the names in them resolve.

Decided here: which of the given addresses are used, and when they are looked up. As in Kafka, a
name that does not resolve is left out with a warning, and none that does is a wrong setting: the
blocking clients refuse it when they are made, those for asyncio, which must not keep the loop
waiting for a name server, when they are first used. Invariants: once names did resolve they
are not checked again; what was refused is looked up again by the next use.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import suppress

from moldau.client.environment import ENVIRONMENT
from moldau.client.errors import ConfigError
from moldau.client.network_settings import NetworkSettings
from moldau.client.topics import Node
from moldau.config.addresses import HostPort

__all__ = ["Bootstrap"]

_log = logging.getLogger(__name__)


class Bootstrap:
    """See the module. Used on one event loop."""

    def __init__(self, settings: NetworkSettings) -> None:
        self._given = settings.bootstrap
        self._key = "bootstrap.controllers" if settings.controllers else "bootstrap.servers"
        self._canonical = settings.client_dns_lookup == "resolve_canonical_bootstrap_servers_only"
        self._found: tuple[HostPort, ...] | None = None
        if ENVIRONMENT.get().connect is not None:
            # Whoever makes the connections knows the names.
            self._found = tuple(self._given)
        self._resolving = asyncio.Lock()

    def __str__(self) -> str:
        return ", ".join(f"{host}:{port}" for host, port in self._found or self._given)

    def nodes(self) -> list[Node]:
        """To ask while no real node is known; they have numbers below 0."""
        found = self._found or self._given
        return [Node(-1 - index, host, port) for index, (host, port) in enumerate(found)]

    async def resolve(self) -> None:
        """Once: find out which addresses can be used; raises ConfigError if none can."""
        if self._found is not None:
            return
        async with self._resolving:
            if self._found is None:
                self._found = await self._resolve()

    async def _resolve(self) -> tuple[HostPort, ...]:
        found: list[HostPort] = []
        for given in self._given:
            if not self._canonical:
                if await self._resolves(given.host, given):
                    found.append(given)
                continue
            for name in await _canonical_names(given):
                if await self._resolves(name, given):
                    found.append(HostPort(name, given.port))
        if not found:
            raise ConfigError(
                f"No resolvable bootstrap urls given in {self._key}: {self}",
                key=self._key,
                value=str(self),
                advice="check the names, and the name server",
            )
        return tuple(dict.fromkeys(found))

    async def _resolves(self, name: str, given: HostPort) -> bool:
        if await _addresses(name, given.port):
            return True
        _log.warning(
            "Couldn't resolve server %s:%d from %s as DNS resolution failed for %s",
            *given,
            self._key,
            name,
        )
        return False


async def _canonical_names(given: HostPort) -> list[str]:
    """What each of the host's addresses is called, its digits if it has no name."""
    loop = asyncio.get_running_loop()
    names = []
    for address in await _addresses(given.host, given.port):
        try:
            name, _ = await loop.getnameinfo(address, socket.NI_NUMERICSERV)
        except OSError:
            name = str(address[0])
        names.append(name)
    # The host itself, so that it is what is warned about.
    return names or [given.host]


async def _addresses(host: str, port: int) -> list[tuple[str, int]]:
    """Of a host; none if it does not resolve, for whatever reason."""
    if _is_address(host):
        return [(host, port)]
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        # A UnicodeError: no name that could be asked for, such as one with an empty part.
        return []
    return [(str(address[0]), port) for *_, address in found]


def _is_address(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError):
            socket.inet_pton(family, host)
            return True
    return False
