"""FetchSnapshot (key 59), v0-1: a replica that is too far behind copies a snapshot."""

from __future__ import annotations

from moldau.broker.network.context import RequestContext
from moldau.broker.raft.service import RaftService
from moldau.wire.messages import FetchSnapshotRequest, FetchSnapshotResponse


class FetchSnapshotHandler:
    def __init__(self, raft: RaftService) -> None:
        self._raft = raft

    async def handle(
        self, context: RequestContext, request: FetchSnapshotRequest
    ) -> FetchSnapshotResponse:
        return await self._raft.fetch_snapshot(request, context.listener_name)
