"""AddressRates: passes the quotas of IP addresses to the network, and resolves those of host names.

A host name has the addresses that it had when a quota was last changed, as in Kafka.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from moldau.broker.metadata.machine.quotas import is_address
from moldau.broker.security.quotas.machine.entities import QuotaEntity, address_rates

#: Takes the default and the limits of single addresses.
Update = Callable[[float | None, Mapping[str, float]], None]

logger = logging.getLogger(__name__)


class AddressRates:
    def __init__(self, update: Update) -> None:
        self._update = update
        self._resolving: asyncio.Task[None] | None = None

    def update(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """These are all quotas that are set now."""
        self.close()
        default, limits = address_rates(quotas)
        by_address = {host: rate for host, rate in limits.items() if is_address(host)}
        self._update(default, by_address)
        if by_address != limits:
            work = self._resolve(default, by_address, limits)
            self._resolving = asyncio.get_running_loop().create_task(work)

    def close(self) -> None:
        if self._resolving is not None:
            self._resolving.cancel()
            self._resolving = None

    async def _resolve(
        self, default: float | None, by_address: dict[str, float], limits: Mapping[str, float]
    ) -> None:
        loop = asyncio.get_running_loop()
        for host in limits.keys() - by_address.keys():
            try:
                found = await loop.getaddrinfo(host, None)
            except (OSError, UnicodeError) as error:
                logger.error("the quota of host %s has no effect: %s", host, error)
                continue
            for *_, address in found:
                by_address.setdefault(str(address[0]), limits[host])
        self._update(default, by_address)
