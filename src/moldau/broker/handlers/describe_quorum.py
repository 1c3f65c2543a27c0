"""DescribeQuorum (key 55, v0-2): how far voters and observers of the metadata log are."""

from __future__ import annotations

from moldau.broker.network.context import RequestContext
from moldau.broker.raft.service import RaftService
from moldau.wire.messages import DescribeQuorumRequest, DescribeQuorumResponse


class DescribeQuorumHandler:
    def __init__(self, raft: RaftService) -> None:
        self._raft = raft

    async def handle(
        self, context: RequestContext, request: DescribeQuorumRequest
    ) -> DescribeQuorumResponse:
        return self._raft.describe_quorum(request)
