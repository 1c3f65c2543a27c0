"""ListConfigResources (key 74), v0-1: which resources have configs (v0: client metrics only)."""

from __future__ import annotations

from moldau.broker.metadata.model import ResourceType
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import ListConfigResourcesRequest, ListConfigResourcesResponse


class ListConfigResourcesHandler:
    def __init__(self, metadata: MetadataShell) -> None:
        self._metadata = metadata

    def handle(
        self, context: RequestContext, request: ListConfigResourcesRequest
    ) -> ListConfigResourcesResponse:
        if context.api_version == 0:
            request = ListConfigResourcesRequest(resource_types=[ResourceType.CLIENT_METRICS])
        return self._metadata.controller.list_config_resources(request)
