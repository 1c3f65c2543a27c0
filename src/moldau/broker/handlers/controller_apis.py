"""The APIs that the controller alone decides: CreateTopics (19, v2-7), DeleteTopics (20, v1-6),
CreatePartitions (37, v0-3), and the controller's part of AlterConfigs and IncrementalAlterConfigs.

`ControllerApis` answers on a controller's listener. A broker forwards what its clients ask;
`NewPartitionsApis` waits, after that, until the broker can serve what was created.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Final, TypeVar

from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.wire.message import Message
from moldau.wire.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

#: How long an answer about new partitions waits for this broker to hear of them.
HEARD_MS_MAX: Final = 1_000

R = TypeVar("R", bound=Message)
Forward = Callable[[RequestContext, Message], Awaitable[Message]]
#: Waits until a condition is true of this node's metadata and its partitions are open, bounded.
Settled = Callable[[Callable[[MetadataImage], bool], int], Awaitable[object]]


class ControllerApis:
    """Returns when the records are committed."""

    def __init__(self, metadata: MetadataShell) -> None:
        self._metadata = metadata

    async def create_topics(
        self, context: RequestContext, request: CreateTopicsRequest
    ) -> CreateTopicsResponse:
        return await self._metadata.run(lambda controller: controller.create_topics(request))

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
        return await self._metadata.run(lambda controller: controller.create_partitions(request))

    async def alter_configs(
        self, context: RequestContext, request: AlterConfigsRequest
    ) -> AlterConfigsResponse:
        return await self._metadata.run(lambda controller: controller.alter_configs(request))

    async def incremental_alter_configs(
        self, context: RequestContext, request: IncrementalAlterConfigsRequest
    ) -> IncrementalAlterConfigsResponse:
        return await self._metadata.run(
            lambda controller: controller.incremental_alter_configs(request)
        )


class NewPartitionsApis:
    """Answers about new partitions wait until this broker can serve them: clients use them next."""

    def __init__(self, forward: Forward, settled: Settled) -> None:
        self._forward = forward
        self._settled = settled

    async def create_topics(self, context: RequestContext, request: CreateTopicsRequest) -> Message:
        response = await self._forward(context, request)
        if isinstance(response, CreateTopicsResponse) and not request.validate_only:
            created = [each.name for each in response.topics if not each.error_code]
            await self._settled(_has_topics(created), HEARD_MS_MAX)
        return response

    async def create_partitions(
        self, context: RequestContext, request: CreatePartitionsRequest
    ) -> Message:
        response = await self._forward(context, request)
        if isinstance(response, CreatePartitionsResponse) and not request.validate_only:
            counts = {topic.name: topic.count for topic in request.topics}
            grown = {
                each.name: counts[each.name] for each in response.results if not each.error_code
            }
            await self._settled(_has_partitions(grown), HEARD_MS_MAX)
        return response


def _has_topics(names: Collection[str]) -> Callable[[MetadataImage], bool]:
    return lambda image: all(name in image.topics_by_name for name in names)


def _has_partitions(counts: dict[str, int]) -> Callable[[MetadataImage], bool]:
    def has(image: MetadataImage) -> bool:
        for name, count in counts.items():
            topic = image.topics_by_name.get(name)
            # A topic that is gone again is not waited for.
            if topic is not None and len(topic.partitions) < count:
                return False
        return True

    return has
