"""StreamsGroupHeartbeat (key 88), v0: a member of a streams group joins, reports or leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from moldau.broker.coordinator.group.coordinator import GroupCoordinator
from moldau.broker.machine.topics import INTERNAL_TOPICS, topic_name_problem
from moldau.broker.network.context import RequestContext
from moldau.broker.security.authorization.authorization import Authorization
from moldau.wire.acls import CLUSTER_NAME, AclOperation, ResourceType
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse


class StreamsGroupHeartbeatHandler:
    def __init__(
        self,
        groups: GroupCoordinator,
        *,
        enabled: bool = True,
        authorization: Authorization | None = None,
    ) -> None:
        """`enabled`: streams is among `group.coordinator.rebalance.protocols`."""
        self._authorization = authorization
        self._groups = groups
        self._enabled = enabled

    async def handle(
        self, context: RequestContext, request: StreamsGroupHeartbeatRequest
    ) -> StreamsGroupHeartbeatResponse:
        if not self._enabled:
            return StreamsGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        try:
            if request.topology is not None:
                check_topic_names(request.topology)
            return await self._groups.streams_group_heartbeat(
                context, request, self._denied_creations(context)
            )
        except ApiError as error:
            return StreamsGroupHeartbeatResponse(
                error_code=error.code, error_message=error.message or None
            )

    def _denied_creations(
        self, context: RequestContext
    ) -> Callable[[Sequence[str]], list[str]] | None:
        """CREATE on the cluster or on every internal topic, which the broker creates itself."""
        authorization = self._authorization
        if authorization is None:
            return None
        allows = partial(authorization.allows, context, AclOperation.CREATE)

        def denied(names: Sequence[str]) -> list[str]:
            if allows(ResourceType.CLUSTER, CLUSTER_NAME, logged=False):
                return []
            return [name for name in names if not allows(ResourceType.TOPIC, name)]

        return denied


def check_topic_names(topology: StreamsGroupHeartbeatRequest.Topology) -> None:
    """STREAMS_INVALID_TOPOLOGY if it names topics that no application may have."""
    names = dict.fromkeys(
        name
        for subtopology in topology.subtopologies or ()
        for name in (
            *subtopology.source_topics,
            *subtopology.repartition_sink_topics,
            *(info.name for info in subtopology.repartition_source_topics),
            *(info.name for info in subtopology.state_changelog_topics),
        )
    )
    internal = [name for name in names if name in INTERNAL_TOPICS]
    if internal:
        raise ApiError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            f"no application may use the broker's own topics: {', '.join(internal)}",
        )
    invalid = [name for name in names if topic_name_problem(name) is not None]
    if invalid:
        raise ApiError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            f"these are no legal topic names: {', '.join(invalid)}",
        )
