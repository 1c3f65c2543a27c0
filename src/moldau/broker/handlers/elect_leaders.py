"""ElectLeaders (key 43), v0-2: elect the preferred leader of partitions, or any (unclean)."""

from __future__ import annotations

from moldau.broker.metadata.machine.leadership import elect_leaders
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ApiError
from moldau.wire.messages import ElectLeadersRequest, ElectLeadersResponse


class ElectLeadersHandler:
    def __init__(self, metadata: MetadataShell) -> None:
        self._metadata = metadata

    async def handle(
        self, context: RequestContext, request: ElectLeadersRequest
    ) -> ElectLeadersResponse:
        try:
            response = await self._metadata.run(elect_leaders, request)
        except ApiError as error:
            response = _refused(request, error)
        if context.api_version == 0:
            response.error_code = 0
        return response


def _refused(request: ElectLeadersRequest, error: ApiError) -> ElectLeadersResponse:
    """An error of the whole request, which version 0 can only return per partition."""
    results = [
        ElectLeadersResponse.ReplicaElectionResult(
            topic=topic.topic,
            partition_result=[
                ElectLeadersResponse.PartitionResult(
                    partition_id=index,
                    error_code=error.code,
                    error_message=error.message or None,
                )
                for index in topic.partitions
            ],
        )
        for topic in request.topic_partitions or ()
    ]
    return ElectLeadersResponse(error_code=error.code, replica_election_results=results)
