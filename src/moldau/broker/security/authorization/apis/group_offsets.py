"""APIs of committed offsets and of the search for coordinators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from moldau.broker.security.authorization.permissions import (
    Answer,
    Handle,
    Permissions,
    cluster_denied,
    split,
    then,
)
from moldau.wire.acls import AclOperation, ResourceType
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)

_TOPIC_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_GROUP_DENIED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
_NO_ID: Final = UUID(int=0)
#: From these versions on there are several groups or keys in a request.
_GROUPS_SINCE, _KEYS_SINCE = 8, 4
_SHARE_KEY: Final = 2


def _topic_name(permissions: Permissions, topic: Any) -> str | None:
    """The name of a topic in a request that may have its id instead; None if nobody has the id."""
    if topic.name or topic.topic_id == _NO_ID:
        return str(topic.name)
    return permissions.topics.name_of(topic.topic_id)


def _may_or_unknown(permissions: Permissions, operation: AclOperation, topic: Any) -> bool:
    """A topic that does not exist is left to the handler, which says so."""
    name = _topic_name(permissions, topic)
    return name is None or permissions.may_topic(operation, name)


def offset_commit(permissions: Permissions, request: OffsetCommitRequest, handle: Handle) -> Answer:
    """READ on the group and on each topic."""
    if not permissions.may_group(AclOperation.READ, request.group_id):
        return OffsetCommitResponse(topics=_not_committed(request.topics, _GROUP_DENIED))
    request.topics, denied = split(
        request.topics, lambda topic: _may_or_unknown(permissions, AclOperation.READ, topic)
    )
    if not denied:
        return handle(request)

    def add(response: OffsetCommitResponse) -> Message:
        response.topics[:0] = _not_committed(denied, _TOPIC_DENIED)
        return response

    return then(handle(request), add)


def _not_committed(
    topics: Iterable[OffsetCommitRequest.OffsetCommitRequestTopic], code: ErrorCode
) -> list[OffsetCommitResponse.OffsetCommitResponseTopic]:
    result = OffsetCommitResponse.OffsetCommitResponsePartition
    return [
        OffsetCommitResponse.OffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                result(partition_index=each.partition_index, error_code=code)
                for each in topic.partitions
            ],
        )
        for topic in topics
    ]


def offset_delete(permissions: Permissions, request: OffsetDeleteRequest, handle: Handle) -> Answer:
    """DELETE on the group and READ on each topic."""
    permissions.require_group(AclOperation.DELETE, request.group_id)
    request.topics, denied = split(
        request.topics, lambda topic: permissions.may_topic(AclOperation.READ, topic.name)
    )
    if not denied:
        return handle(request)

    def add(response: OffsetDeleteResponse) -> Message:
        if response.error_code:
            return response
        result = OffsetDeleteResponse.OffsetDeleteResponsePartition
        response.topics[:0] = [
            OffsetDeleteResponse.OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    result(partition_index=each.partition_index, error_code=_TOPIC_DENIED)
                    for each in topic.partitions
                ],
            )
            for topic in denied
        ]
        return response

    return then(handle(request), add)


# OffsetFetch. -------------------------------------------------------------------------------------


def offset_fetch(permissions: Permissions, request: OffsetFetchRequest, handle: Handle) -> Answer:
    """DESCRIBE on each group and on each topic; if all topics are asked for, those that may not be
    described are left out."""
    if permissions.version < _GROUPS_SINCE:
        return _offset_fetch_of_one(permissions, request, handle)
    request.groups, denied = split(
        request.groups, lambda each: permissions.may_group(AclOperation.DESCRIBE, each.group_id)
    )
    hidden: dict[str, list[Any]] = {}
    everything: set[str] = set()
    for group in request.groups:
        if group.topics is None:
            everything.add(group.group_id)
            continue
        group.topics, hidden[group.group_id] = split(
            group.topics, lambda topic: _may_or_unknown(permissions, AclOperation.DESCRIBE, topic)
        )

    def merge(response: OffsetFetchResponse) -> Message:
        for group in response.groups:
            if group.group_id in everything:
                group.topics = _visible(permissions, group.topics)
            elif not group.error_code:
                group.topics += _not_fetched(
                    hidden.get(group.group_id, ()),
                    OffsetFetchResponse.OffsetFetchResponseTopics,
                    OffsetFetchResponse.OffsetFetchResponsePartitions,
                )
        response.groups += [
            OffsetFetchResponse.OffsetFetchResponseGroup(
                group_id=each.group_id, error_code=_GROUP_DENIED
            )
            for each in denied
        ]
        return response

    if not request.groups:
        return merge(OffsetFetchResponse())
    return then(handle(request), merge)


def _offset_fetch_of_one(
    permissions: Permissions, request: OffsetFetchRequest, handle: Handle
) -> Answer:
    topic_result = OffsetFetchResponse.OffsetFetchResponseTopic
    partition_result = OffsetFetchResponse.OffsetFetchResponsePartition
    if not permissions.may_group(AclOperation.DESCRIBE, request.group_id):
        if permissions.version >= 2:
            return OffsetFetchResponse(error_code=_GROUP_DENIED)
        topics = _not_fetched(request.topics or (), topic_result, partition_result, _GROUP_DENIED)
        return OffsetFetchResponse(topics=topics)
    if request.topics is None:

        def keep(response: OffsetFetchResponse) -> Message:
            response.topics = _visible(permissions, response.topics)
            return response

        return then(handle(request), keep)
    request.topics, denied = split(
        request.topics, lambda topic: permissions.may_topic(AclOperation.DESCRIBE, topic.name)
    )
    if not denied:
        return handle(request)

    def add(response: OffsetFetchResponse) -> Message:
        if not response.error_code:
            response.topics += _not_fetched(denied, topic_result, partition_result)
        return response

    return then(handle(request), add)


def _visible(permissions: Permissions, topics: Iterable[Any]) -> list[Any]:
    found = []
    for topic in topics:
        name = topic.name or permissions.topics.name_of(topic.topic_id)
        if name is not None and permissions.may_topic(AclOperation.DESCRIBE, name):
            found.append(topic)
    return found


def _not_fetched(
    topics: Iterable[Any],
    topic_result: Any,
    partition_result: Any,
    code: ErrorCode = _TOPIC_DENIED,
) -> list[Any]:
    found = []
    for topic in topics:
        partitions = [
            partition_result(
                partition_index=index, committed_offset=-1, metadata="", error_code=code
            )
            for index in topic.partition_indexes
        ]
        result = topic_result(name=topic.name, partitions=partitions)
        if hasattr(topic, "topic_id"):
            result.topic_id = topic.topic_id
        found.append(result)
    return found


# FindCoordinator. ---------------------------------------------------------------------------------

#: By the type of the key: what must be described, and the error.
_DESCRIBED: Final = {
    0: (ResourceType.GROUP, _GROUP_DENIED),
    1: (ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}


def find_coordinator(
    permissions: Permissions, request: FindCoordinatorRequest, handle: Handle
) -> Answer:
    """DESCRIBE on each group or transactional id; for share partitions CLUSTER_ACTION."""
    if request.key_type == _SHARE_KEY:
        if not permissions.may_cluster(AclOperation.CLUSTER_ACTION):
            return _coordinator_errors(
                permissions,
                request,
                request.coordinator_keys,
                cluster_denied(permissions.context).code,
            )
        return handle(request)
    if request.key_type not in _DESCRIBED:
        return handle(request)
    kind, code = _DESCRIBED[request.key_type]
    if permissions.version < _KEYS_SINCE:
        if permissions.may(AclOperation.DESCRIBE, kind, request.key):
            return handle(request)
        return _coordinator_errors(permissions, request, (), code)
    asked = request.coordinator_keys
    request.coordinator_keys, denied = split(
        asked, lambda key: permissions.may(AclOperation.DESCRIBE, kind, key)
    )
    if not denied:
        return handle(request)

    def merge(response: FindCoordinatorResponse) -> Message:
        allowed = iter(response.coordinators)
        refused = iter(_coordinator_errors(permissions, request, denied, code).coordinators)
        response.coordinators = [next(refused if key in denied else allowed) for key in asked]
        return response

    if not request.coordinator_keys:
        return merge(FindCoordinatorResponse())
    return then(handle(request), merge)


def _coordinator_errors(
    permissions: Permissions, request: FindCoordinatorRequest, keys: Iterable[str], code: ErrorCode
) -> FindCoordinatorResponse:
    if permissions.version < _KEYS_SINCE:
        return FindCoordinatorResponse(error_code=code, node_id=-1, port=-1)
    return FindCoordinatorResponse(
        coordinators=[
            FindCoordinatorResponse.Coordinator(key=key, node_id=-1, port=-1, error_code=code)
            for key in keys
        ]
    )
