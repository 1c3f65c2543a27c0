"""RemoveRaftVoter (key 81), v0: a voter of the quorum becomes an observer."""

from __future__ import annotations

from moldau.broker.network.context import RequestContext
from moldau.broker.raft.service import RaftService
from moldau.wire.messages import RemoveRaftVoterRequest, RemoveRaftVoterResponse


class RemoveRaftVoterHandler:
    def __init__(self, raft: RaftService) -> None:
        self._raft = raft

    async def handle(
        self, context: RequestContext, request: RemoveRaftVoterRequest
    ) -> RemoveRaftVoterResponse:
        return await self._raft.remove_voter(request)
