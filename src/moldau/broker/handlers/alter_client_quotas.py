"""AlterClientQuotas (key 49), v0-1: set or remove quotas of users, client ids and IP addresses.

A controller answers; brokers forward the request.
"""

from __future__ import annotations

import asyncio

from moldau.broker.metadata.machine.quotas import addresses_named, alter_client_quotas
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import AlterClientQuotasRequest, AlterClientQuotasResponse


class AlterClientQuotasHandler:
    def __init__(self, metadata: MetadataShell) -> None:
        self._metadata = metadata

    async def handle(
        self, context: RequestContext, request: AlterClientQuotasRequest
    ) -> AlterClientQuotasResponse:
        resolvable = {name for name in addresses_named(request) if await _resolves(name)}
        return await self._metadata.run(alter_client_quotas, request, resolvable=resolvable)


async def _resolves(host: str) -> bool:
    try:
        return bool(await asyncio.get_running_loop().getaddrinfo(host, None))
    except (OSError, UnicodeError):
        return False
