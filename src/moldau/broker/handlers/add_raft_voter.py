"""AddRaftVoter (key 80), v0-1: an observer that has caught up becomes a voter."""

from __future__ import annotations

from moldau.broker.network.context import RequestContext
from moldau.broker.raft.service import RaftService
from moldau.wire.messages import AddRaftVoterRequest, AddRaftVoterResponse


class AddRaftVoterHandler:
    def __init__(self, raft: RaftService) -> None:
        self._raft = raft

    async def handle(
        self, context: RequestContext, request: AddRaftVoterRequest
    ) -> AddRaftVoterResponse:
        return await self._raft.add_voter(request)
