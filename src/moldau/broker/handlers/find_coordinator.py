"""FindCoordinator (key 10), v0-6: which broker coordinates a group, a transactional id, a share
partition.

The coordinator is the leader of the internal topic's partition that has the key's state; the
request creates the topic. v1 key types; v4 many keys at once; v6 the share coordinator's key type.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from moldau.broker.coordinator.machine.hashing import partition_for
from moldau.broker.coordinator.machine.topics import Topics
from moldau.broker.machine.topics import (
    GROUP_OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from moldau.broker.metadata.machine.model import Node
from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import FindCoordinatorRequest, FindCoordinatorResponse
from moldau.wire.uuids import uuid_from_text

_MANY_KEYS_FROM = 4

_SHARE_FROM = 6

_GROUP = 0
_TRANSACTION = 1
_SHARE = 2
_TOPICS = {
    _GROUP: GROUP_OFFSETS_TOPIC,
    _TRANSACTION: TRANSACTION_STATE_TOPIC,
    _SHARE: SHARE_STATE_TOPIC,
}

_NO_NODE = Node(-1, "", -1)

EnsureInternalTopic = Callable[[str], Awaitable[None]]
"""Creates the topic if it does not exist; raises ApiError where that cannot be done now."""


class FindCoordinatorHandler:
    def __init__(
        self,
        topics: Topics,
        ensure_internal_topic: EnsureInternalTopic,
    ) -> None:
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
        topic = _TOPICS.get(key_type)
        if topic is None or (key_type == _SHARE and context.api_version < _SHARE_FROM):
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"there is no coordinator of key type {key_type}"
            )
        if key_type == _SHARE:
            key = _checked_share_key(key)
        if self._topics.partition_count(topic) is None:
            try:
                await self._ensure_internal_topic(topic)
            except ApiError as failure:
                raise ApiError(
                    ErrorCode.COORDINATOR_NOT_AVAILABLE,
                    f"{topic} could not be created: {failure.message}",
                ) from failure
        count = self._topics.partition_count(topic)
        node = None
        if count is not None:
            node = self._topics.leader(topic, partition_for(key, count), context.listener_name)
        if node is None:
            raise ApiError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                f"the partition of {topic} that coordinates {key} has no leader",
            )
        return node


def _checked_share_key(key: str) -> str:
    """A share partition's key, group:topicId:partition; group ids may hold colons."""
    parts = key.rsplit(":", 2)
    try:
        group_id, topic_id, partition = parts
        uuid_from_text(topic_id)
        if not group_id.strip() or int(partition) < 0:
            raise ValueError(key)
    except ValueError:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"{key!r} is not of the form groupId:topicId:partition"
        ) from None
    return f"{group_id}:{topic_id}:{int(partition)}"
