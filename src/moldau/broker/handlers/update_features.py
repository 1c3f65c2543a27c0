"""UpdateFeatures (key 57), v0-2: raise or lower feature levels."""

from __future__ import annotations

from moldau.broker.metadata.machine.feature_updates import update_features
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import UpdateFeaturesRequest, UpdateFeaturesResponse


class UpdateFeaturesHandler:
    def __init__(self, metadata: MetadataShell) -> None:
        self._metadata = metadata

    async def handle(
        self, context: RequestContext, request: UpdateFeaturesRequest
    ) -> UpdateFeaturesResponse:
        version = context.api_version
        return await self._metadata.run(update_features, request, api_version=version)
