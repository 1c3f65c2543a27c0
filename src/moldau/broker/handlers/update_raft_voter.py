"""UpdateRaftVoter (key 82), v0: a voter updates its endpoints."""

from __future__ import annotations

from moldau.broker.network.context import RequestContext
from moldau.broker.raft.service import RaftService
from moldau.wire.messages import UpdateRaftVoterRequest, UpdateRaftVoterResponse


class UpdateRaftVoterHandler:
    def __init__(self, raft: RaftService) -> None:
        self._raft = raft

    async def handle(
        self, context: RequestContext, request: UpdateRaftVoterRequest
    ) -> UpdateRaftVoterResponse:
        return await self._raft.update_voter(request, context.listener_name)
