"""CreatePartitions (key 37), v0-3: give topics more partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from moldau.broker.handlers.support.forwarded import SETTLED_MS_MAX, Forward, Settled
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.topics import create_partitions
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.broker.security.quotas.shell import ClientQuotas
from moldau.wire.message import Message
from moldau.wire.messages import CreatePartitionsRequest, CreatePartitionsResponse


class CreatePartitionsHandler:
    """On a controller: responds when the records are committed."""

    def __init__(self, metadata: MetadataShell, quotas: ClientQuotas) -> None:
        self._metadata = metadata
        self._quotas = quotas

    async def handle(
        self, context: RequestContext, request: CreatePartitionsRequest
    ) -> CreatePartitionsResponse:
        mutations = self._quotas.mutations(context, strict_since=3)
        response = await self._metadata.run(create_partitions, request, mutate=mutations.record)
        response.throttle_time_ms = mutations.throttle_ms
        return response


class ForwardedCreatePartitionsHandler:
    """On a broker: responds when this broker can serve the partitions, which clients use next."""

    def __init__(self, forward: Forward, settled: Settled) -> None:
        self._forward = forward
        self._settled = settled

    async def handle(self, context: RequestContext, request: CreatePartitionsRequest) -> Message:
        response = await self._forward(context, request)
        if isinstance(response, CreatePartitionsResponse) and not request.validate_only:
            counts = {topic.name: topic.count for topic in request.topics}
            grown = {
                each.name: counts[each.name] for each in response.results if not each.error_code
            }
            await self._settled(_has_partitions(grown), SETTLED_MS_MAX)
        return response


def _has_partitions(counts: Mapping[str, int]) -> Callable[[MetadataImage], bool]:
    def has(image: MetadataImage) -> bool:
        for name, count in counts.items():
            topic = image.topics_by_name.get(name)
            # A topic that was deleted meanwhile is not waited for.
            if topic is not None and len(topic.partitions) < count:
                return False
        return True

    return has
