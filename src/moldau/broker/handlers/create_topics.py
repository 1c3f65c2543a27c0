"""CreateTopics (key 19), v2-7: create topics, or only check whether they could be."""

from __future__ import annotations

from collections.abc import Callable, Collection

from moldau.broker.handlers.support.forwarded import SETTLED_MS_MAX, Forward, Settled
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.topics import create_topics
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.broker.security.quotas.shell import ClientQuotas
from moldau.wire.message import Message
from moldau.wire.messages import CreateTopicsRequest, CreateTopicsResponse


class CreateTopicsHandler:
    """On a controller: responds when the records are committed."""

    def __init__(self, metadata: MetadataShell, quotas: ClientQuotas) -> None:
        self._metadata = metadata
        self._quotas = quotas

    async def handle(
        self, context: RequestContext, request: CreateTopicsRequest
    ) -> CreateTopicsResponse:
        mutations = self._quotas.mutations(context, strict_since=6)
        response = await self._metadata.run(create_topics, request, mutate=mutations.record)
        response.throttle_time_ms = mutations.throttle_ms
        return response


class ForwardedCreateTopicsHandler:
    """On a broker: responds when this broker can serve the topics, which clients use next."""

    def __init__(self, forward: Forward, settled: Settled) -> None:
        self._forward = forward
        self._settled = settled

    async def handle(self, context: RequestContext, request: CreateTopicsRequest) -> Message:
        response = await self._forward(context, request)
        if isinstance(response, CreateTopicsResponse) and not request.validate_only:
            created = [each.name for each in response.topics if not each.error_code]
            await self._settled(_has_topics(created), SETTLED_MS_MAX)
        return response


def _has_topics(names: Collection[str]) -> Callable[[MetadataImage], bool]:
    return lambda image: all(name in image.topics_by_name for name in names)
