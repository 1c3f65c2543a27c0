"""ListPartitionReassignments (key 46), v0: the ongoing reassignments."""

from __future__ import annotations

from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.reassignments import list_partition_reassignments
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


class ListPartitionReassignmentsHandler:
    def __init__(self, metadata: MetadataShell) -> None:
        self._metadata = metadata

    async def handle(
        self, context: RequestContext, request: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        # Through the log although nothing is written: only the active controller knows, and what
        # it says must be committed.
        return await self._metadata.run(
            lambda controller: Decision((), list_partition_reassignments(controller, request))
        )
