"""DeleteTopics (key 20), v1-6: delete topics by name or, from v6, by topic id.

A controller answers; brokers forward the request.
"""

from __future__ import annotations

from moldau.broker.metadata.machine.topics import delete_topics
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import DeleteTopicsRequest, DeleteTopicsResponse


class DeleteTopicsHandler:
    def __init__(self, metadata: MetadataShell) -> None:
        self._metadata = metadata

    async def handle(
        self, context: RequestContext, request: DeleteTopicsRequest
    ) -> DeleteTopicsResponse:
        version = context.api_version
        return await self._metadata.run(delete_topics, request, api_version=version)
