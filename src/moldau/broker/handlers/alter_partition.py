"""AlterPartition (key 56), v2-3: a leader proposes the ISR of its partitions."""

from __future__ import annotations

from moldau.broker.metadata.machine.partitions import alter_partition
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import AlterPartitionRequest, AlterPartitionResponse


class AlterPartitionHandler:
    def __init__(self, metadata: MetadataShell) -> None:
        self._metadata = metadata

    async def handle(
        self, context: RequestContext, request: AlterPartitionRequest
    ) -> AlterPartitionResponse:
        return await self._metadata.run(alter_partition, request)
