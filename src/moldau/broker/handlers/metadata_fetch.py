"""Fetch (key 1) on a controller's listener: voters and observers follow the metadata log."""

from __future__ import annotations

from moldau.broker.network.context import RequestContext
from moldau.broker.raft.service import RaftService
from moldau.wire.messages import FetchRequest, FetchResponse


class MetadataFetchHandler:
    def __init__(self, raft: RaftService) -> None:
        self._raft = raft

    async def handle(self, context: RequestContext, request: FetchRequest) -> FetchResponse:
        return await self._raft.fetch(request, context.listener_name)
