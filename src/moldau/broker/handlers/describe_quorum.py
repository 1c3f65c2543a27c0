"""DescribeQuorum (key 55), v0-2: the progress of voters and observers of the metadata log."""

from __future__ import annotations

from moldau.broker.network.context import RequestContext
from moldau.broker.raft.service import RaftService
from moldau.wire.messages import DescribeQuorumRequest, DescribeQuorumResponse
from moldau.wire.uuids import ZERO_UUID

FIRST_WITH_DIRECTORIES = 2


class DescribeQuorumHandler:
    def __init__(self, raft: RaftService) -> None:
        self._raft = raft

    async def handle(
        self, context: RequestContext, request: DescribeQuorumRequest
    ) -> DescribeQuorumResponse:
        response = self._raft.describe_quorum(request)
        if context.api_version < FIRST_WITH_DIRECTORIES:
            _leave_out_directories(response)
        return response


def _leave_out_directories(response: DescribeQuorumResponse) -> None:
    """Older versions have no place for directories and addresses of voters."""
    response.nodes = []
    for topic in response.topics:
        for partition in topic.partitions:
            for replica in (*partition.current_voters, *partition.observers):
                replica.replica_directory_id = ZERO_UUID
