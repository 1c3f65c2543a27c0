"""APIs of groups: membership, offsets, listing and describing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from moldau.broker.security.authorization.permissions import (
    Answer,
    Handle,
    Permissions,
    Rule,
    split,
    then,
)
from moldau.wire.acls import AclOperation, ResourceType
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    ConsumerGroupDescribeResponse,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    ShareGroupDescribeResponse,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    SyncGroupRequest,
)

_DENIED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
_NULL_PROTOCOL_SINCE: Final = 7
_PROTOCOL_REQUIRED_SINCE: Final = 5
_HIDDEN_MESSAGE: Final = (
    "The group has described topic(s) that the client is not authorized to describe."
)


def on_group(operation: AclOperation) -> Rule:
    """The operation on the request's group; else GROUP_AUTHORIZATION_FAILED."""

    def rule(permissions: Permissions, request: Any, handle: Handle) -> Answer:
        permissions.require_group(operation, request.group_id)
        return handle(request)

    return rule


def join_group(permissions: Permissions, request: JoinGroupRequest, handle: Handle) -> Answer:
    """READ on the group."""
    if permissions.may_group(AclOperation.READ, request.group_id):
        return handle(request)
    name = None if permissions.version >= _NULL_PROTOCOL_SINCE else ""
    return JoinGroupResponse(error_code=_DENIED, protocol_name=name)


def sync_group(permissions: Permissions, request: SyncGroupRequest, handle: Handle) -> Answer:
    """READ on the group; that the protocol is missing is said before."""
    named = request.protocol_type is not None and request.protocol_name is not None
    if named or permissions.version < _PROTOCOL_REQUIRED_SINCE:
        permissions.require_group(AclOperation.READ, request.group_id)
    return handle(request)


def heartbeat_with_topics(permissions: Permissions, request: Any, handle: Handle) -> Answer:
    """READ on the group and DESCRIBE on every topic that the member subscribes to."""
    permissions.require_group(AclOperation.READ, request.group_id)
    _require_topics(permissions, request.subscribed_topic_names or ())
    return handle(request)


def streams_group_heartbeat(
    permissions: Permissions, request: StreamsGroupHeartbeatRequest, handle: Handle
) -> Answer:
    """READ on the group and DESCRIBE on every topic of the topology."""
    permissions.require_group(AclOperation.READ, request.group_id)
    if request.topology is not None:
        _require_topics(permissions, _topology_topics(request.topology.subtopologies))
    return handle(request)


def _require_topics(permissions: Permissions, names: Iterable[str]) -> None:
    # Every topic is asked for, so that the log has all that are missing.
    allowed = [permissions.may_topic(AclOperation.DESCRIBE, name) for name in dict.fromkeys(names)]
    if not all(allowed):
        raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")


def _topology_topics(subtopologies: Iterable[Any]) -> Iterator[str]:
    for each in subtopologies:
        yield from each.source_topics
        yield from each.repartition_sink_topics
        for info in (*each.repartition_source_topics, *each.state_changelog_topics):
            yield info.name


def list_groups(permissions: Permissions, request: ListGroupsRequest, handle: Handle) -> Answer:
    """DESCRIBE on the cluster; otherwise groups that may not be described are left out."""
    if permissions.may_cluster(AclOperation.DESCRIBE, logged=False):
        return handle(request)

    def keep(response: ListGroupsResponse) -> Message:
        response.groups = [
            group
            for group in response.groups
            if permissions.may_group(AclOperation.DESCRIBE, group.group_id, logged=False)
        ]
        return response

    return then(handle(request), keep)


def describe_groups(
    permissions: Permissions, request: DescribeGroupsRequest, handle: Handle
) -> Answer:
    """DESCRIBE on each group."""
    request.groups, denied = split(
        request.groups, lambda group: permissions.may_group(AclOperation.DESCRIBE, group)
    )

    def merge(response: DescribeGroupsResponse) -> Message:
        if request.include_authorized_operations:
            _fill_operations(permissions, response.groups)
        response.groups[:0] = [
            DescribeGroupsResponse.DescribedGroup(group_id=group, error_code=_DENIED)
            for group in denied
        ]
        return response

    return then(handle(request), merge)


def delete_groups(permissions: Permissions, request: DeleteGroupsRequest, handle: Handle) -> Answer:
    """DELETE on each group."""
    request.groups_names, denied = split(
        request.groups_names, lambda group: permissions.may_group(AclOperation.DELETE, group)
    )
    if not denied:
        return handle(request)

    def add(response: DeleteGroupsResponse) -> Message:
        response.results += [
            DeleteGroupsResponse.DeletableGroupResult(group_id=group, error_code=_DENIED)
            for group in denied
        ]
        return response

    return then(handle(request), add)


# Describing groups whose members' topics are visible. ---------------------------------------------

Topics = Callable[[Any], Iterable[str]]


def _describe_members(described: Callable[..., Any], topics_of: Topics) -> Rule:
    """DESCRIBE on each group, and on every topic that the description shows."""

    def rule(permissions: Permissions, request: Any, handle: Handle) -> Answer:
        request.group_ids, denied = split(
            request.group_ids, lambda group: permissions.may_group(AclOperation.DESCRIBE, group)
        )

        def merge(response: Any) -> Message:
            if request.include_authorized_operations:
                _fill_operations(permissions, response.groups)
            groups = [
                described(group_id=group, error_code=_DENIED, error_message=None)
                for group in denied
            ]
            for group in response.groups:
                names = dict.fromkeys(topics_of(group))
                visible = all(permissions.may_topic(AclOperation.DESCRIBE, name) for name in names)
                groups.append(group if visible else _hidden(group))
            response.groups = groups
            return response  # type: ignore[no-any-return]

        return then(handle(request), merge)

    return rule


def _hidden(group: Any) -> Any:
    group.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    group.error_message = _HIDDEN_MESSAGE
    group.members = []
    if isinstance(group, StreamsGroupDescribeResponse.DescribedGroup):
        group.topology = None
    return group


def _fill_operations(permissions: Permissions, groups: Iterable[Any]) -> None:
    for group in groups:
        if not group.error_code:
            group.authorized_operations = permissions.operations(ResourceType.GROUP, group.group_id)


def _consumer_topics(group: ConsumerGroupDescribeResponse.DescribedGroup) -> Iterator[str]:
    for member in group.members:
        yield from member.subscribed_topic_names
        for assigned in (member.assignment, member.target_assignment):
            yield from (each.topic_name for each in assigned.topic_partitions)


def _share_topics(group: ShareGroupDescribeResponse.DescribedGroup) -> Iterator[str]:
    for member in group.members:
        yield from member.subscribed_topic_names
        yield from (each.topic_name for each in member.assignment.topic_partitions)


def _streams_topics(group: StreamsGroupDescribeResponse.DescribedGroup) -> Iterator[str]:
    if group.topology is not None:
        yield from _topology_topics(group.topology.subtopologies or ())


consumer_group_describe: Final = _describe_members(
    ConsumerGroupDescribeResponse.DescribedGroup, _consumer_topics
)
share_group_describe: Final = _describe_members(
    ShareGroupDescribeResponse.DescribedGroup, _share_topics
)
streams_group_describe: Final = _describe_members(
    StreamsGroupDescribeResponse.DescribedGroup, _streams_topics
)
