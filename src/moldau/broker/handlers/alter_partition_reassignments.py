"""AlterPartitionReassignments (key 45), v0-1: partitions move to other brokers."""

from __future__ import annotations

from moldau.broker.metadata.machine.reassignments import alter_partition_reassignments
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)


class AlterPartitionReassignmentsHandler:
    def __init__(self, metadata: MetadataShell) -> None:
        self._metadata = metadata

    async def handle(
        self, context: RequestContext, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        return await self._metadata.run(alter_partition_reassignments, request)
