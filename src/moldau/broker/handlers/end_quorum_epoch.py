"""EndQuorumEpoch (key 54), v0-1: the leader of the quorum leaves and names its successors."""

from __future__ import annotations

from moldau.broker.network.context import RequestContext
from moldau.broker.raft.service import RaftService
from moldau.wire.messages import EndQuorumEpochRequest, EndQuorumEpochResponse


class EndQuorumEpochHandler:
    def __init__(self, raft: RaftService) -> None:
        self._raft = raft

    async def handle(
        self, context: RequestContext, request: EndQuorumEpochRequest
    ) -> EndQuorumEpochResponse:
        return await self._raft.end_quorum_epoch(request, context.listener_name)
