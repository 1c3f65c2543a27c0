"""BeginQuorumEpoch (key 53), v0-1: a new leader of the quorum announces itself."""

from __future__ import annotations

from moldau.broker.network.context import RequestContext
from moldau.broker.raft.service import RaftService
from moldau.wire.messages import BeginQuorumEpochRequest, BeginQuorumEpochResponse


class BeginQuorumEpochHandler:
    def __init__(self, raft: RaftService) -> None:
        self._raft = raft

    async def handle(
        self, context: RequestContext, request: BeginQuorumEpochRequest
    ) -> BeginQuorumEpochResponse:
        return await self._raft.begin_quorum_epoch(request, context.listener_name)
