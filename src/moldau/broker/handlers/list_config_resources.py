"""ListConfigResources (key 74), v0-1: which resources have configs (v0: client metrics only)."""

from __future__ import annotations

from collections.abc import Callable

from moldau.broker.metadata.machine.configs import list_config_resources
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import ResourceType
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import ListConfigResourcesRequest, ListConfigResourcesResponse


class ListConfigResourcesHandler:
    def __init__(self, image: Callable[[], MetadataImage]) -> None:
        self._image = image

    def handle(
        self, context: RequestContext, request: ListConfigResourcesRequest
    ) -> ListConfigResourcesResponse:
        if context.api_version == 0:
            request = ListConfigResourcesRequest(resource_types=[ResourceType.CLIENT_METRICS])
        return list_config_resources(self._image(), request)
