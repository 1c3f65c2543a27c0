"""DeleteTopics (key 20), v1-6: delete topics by name or, from v6, by topic id.

A controller answers; brokers forward the request.
"""

from __future__ import annotations

from moldau.broker.metadata.machine.topics import delete_topics
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.broker.security.quotas.shell import ClientQuotas
from moldau.wire.messages import DeleteTopicsRequest, DeleteTopicsResponse


class DeleteTopicsHandler:
    def __init__(self, metadata: MetadataShell, quotas: ClientQuotas) -> None:
        self._metadata = metadata
        self._quotas = quotas

    async def handle(
        self, context: RequestContext, request: DeleteTopicsRequest
    ) -> DeleteTopicsResponse:
        mutations = self._quotas.mutations(context, strict_since=5)
        response = await self._metadata.run(
            delete_topics, request, api_version=context.api_version, mutate=mutations.record
        )
        response.throttle_time_ms = mutations.throttle_ms
        return response
