"""Vote (key 52), v0-2: a candidate requests this node's vote."""

from __future__ import annotations

from moldau.broker.network.context import RequestContext
from moldau.broker.raft.service import RaftService
from moldau.wire.messages import VoteRequest, VoteResponse


class VoteHandler:
    def __init__(self, raft: RaftService) -> None:
        self._raft = raft

    async def handle(self, context: RequestContext, request: VoteRequest) -> VoteResponse:
        return await self._raft.vote(request, context.listener_name)
