"""The APIs that the controller alone decides: CreateTopics (19, v2-7), DeleteTopics (20, v1-6),
CreatePartitions (37, v0-3).

A broker hands such a request to the controller and gives its answer back once the records are
committed; that is all a handler does here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)


class ControllerApis:
    """Answers about new partitions wait until this broker can serve them: clients use them next."""

    def __init__(self, metadata: MetadataShell, settled: Callable[[], Awaitable[None]]) -> None:
        self._metadata = metadata
        self._settled = settled

    async def create_topics(
        self, context: RequestContext, request: CreateTopicsRequest
    ) -> CreateTopicsResponse:
        response = await self._metadata.run(lambda controller: controller.create_topics(request))
        await self._settled()
        return response

    async def delete_topics(
        self, context: RequestContext, request: DeleteTopicsRequest
    ) -> DeleteTopicsResponse:
        version = context.api_version
        return await self._metadata.run(
            lambda controller: controller.delete_topics(request, api_version=version)
        )

    async def create_partitions(
        self, context: RequestContext, request: CreatePartitionsRequest
    ) -> CreatePartitionsResponse:
        response = await self._metadata.run(
            lambda controller: controller.create_partitions(request)
        )
        await self._settled()
        return response
