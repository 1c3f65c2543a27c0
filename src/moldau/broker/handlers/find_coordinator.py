"""FindCoordinator (10), v0-6: which broker coordinates a group.

v1 key types; v4 many keys at once; v6 the share coordinator's key type. Only groups have a
coordinator here: transactions are answered as not available for now, which clients retry.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from moldau.broker.coordinator.group.coordinator import GroupCoordinator
from moldau.broker.coordinator.topics import Node, Topics
from moldau.broker.network.context import RequestContext
from moldau.broker.topics import GROUP_OFFSETS_TOPIC
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import FindCoordinatorRequest, FindCoordinatorResponse

_MANY_KEYS_FROM = 4

_GROUP = 0
_TRANSACTION = 1

_NO_NODE = Node(-1, "", -1)

EnsureInternalTopic = Callable[[str], Awaitable[None]]
"""Creates the topic if it does not exist; raises ApiError where that cannot be done now."""


class FindCoordinatorHandler:
    def __init__(
        self,
        coordinator: GroupCoordinator,
        topics: Topics,
        ensure_internal_topic: EnsureInternalTopic,
    ) -> None:
        self._coordinator = coordinator
        self._topics = topics
        self._ensure_internal_topic = ensure_internal_topic

    async def handle(
        self, context: RequestContext, request: FindCoordinatorRequest
    ) -> FindCoordinatorResponse:
        if context.api_version >= _MANY_KEYS_FROM:
            return FindCoordinatorResponse(
                coordinators=[
                    await self._coordinator_of(context, request.key_type, key)
                    for key in request.coordinator_keys
                ]
            )
        found = await self._coordinator_of(context, request.key_type, request.key)
        return FindCoordinatorResponse(
            error_code=found.error_code,
            # These versions name even the absence of an error.
            error_message=found.error_message or ErrorCode.NONE.name,
            node_id=found.node_id,
            host=found.host,
            port=found.port,
        )

    async def _coordinator_of(
        self, context: RequestContext, key_type: int, key: str
    ) -> FindCoordinatorResponse.Coordinator:
        node, error, message = _NO_NODE, ErrorCode.NONE, ""
        try:
            node = await self._find(context, key_type, key)
        except ApiError as failure:
            error, message = failure.code, failure.message
        return FindCoordinatorResponse.Coordinator(
            key=key,
            node_id=node.node_id,
            host=node.host,
            port=node.port,
            error_code=error,
            error_message=message,
        )

    async def _find(self, context: RequestContext, key_type: int, key: str) -> Node:
        if key_type == _TRANSACTION:
            raise ApiError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, "the transaction coordinator is not available"
            )
        if key_type != _GROUP:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"there is no coordinator of key type {key_type}"
            )
        if self._topics.partition_count(GROUP_OFFSETS_TOPIC) is None:
            try:
                await self._ensure_internal_topic(GROUP_OFFSETS_TOPIC)
            except ApiError as failure:
                raise ApiError(
                    ErrorCode.COORDINATOR_NOT_AVAILABLE,
                    f"{GROUP_OFFSETS_TOPIC} could not be created: {failure.message}",
                ) from failure
        node = self._topics.leader(
            GROUP_OFFSETS_TOPIC, self._coordinator.partition_for(key), context.listener_name
        )
        if node is None:
            raise ApiError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                f"the partition of {GROUP_OFFSETS_TOPIC} that holds the group has no leader",
            )
        return node
