"""AssignReplicasToDirs (key 73), v0: a broker reports the log directories of its replicas."""

from __future__ import annotations

from moldau.broker.metadata.machine.partitions import assign_replicas_to_dirs
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse


class AssignReplicasToDirsHandler:
    def __init__(self, metadata: MetadataShell) -> None:
        self._metadata = metadata

    async def handle(
        self, context: RequestContext, request: AssignReplicasToDirsRequest
    ) -> AssignReplicasToDirsResponse:
        return await self._metadata.run(assign_replicas_to_dirs, request)
