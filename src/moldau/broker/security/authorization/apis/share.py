"""APIs of share groups: fetching and acknowledging, offsets, and the state that brokers keep."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from moldau.broker.security.authorization.permissions import (
    Answer,
    Handle,
    Permissions,
    Rule,
    split,
    then,
)
from moldau.wire.acls import AclOperation
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupStateResponse,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    InitializeShareGroupStateResponse,
    ReadShareGroupStateResponse,
    ReadShareGroupStateSummaryResponse,
    ShareAcknowledgeResponse,
    ShareFetchResponse,
    WriteShareGroupStateResponse,
)

_TOPIC_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_GROUP_DENIED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
_TOPIC_MESSAGE: Final = "Topic authorization failed."
_GROUP_MESSAGE: Final = "Not authorized to access group: Group authorization failed."
_CLUSTER_DENIED: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def share_fetch(permissions: Permissions, request: Any, handle: Handle) -> Answer:
    """READ on the group and on each topic."""
    permissions.require_group(AclOperation.READ, request.group_id or "")
    request.topics, denied = _split_by_id(permissions, request.topics)
    if not denied:
        return handle(request)

    def add(response: ShareFetchResponse) -> Message:
        if response.error_code:
            return response
        part = ShareFetchResponse.PartitionData
        response.responses += [
            ShareFetchResponse.ShareFetchableTopicResponse(
                topic_id=topic.topic_id,
                partitions=[
                    part(
                        partition_index=each.partition_index,
                        error_code=_TOPIC_DENIED,
                        acknowledge_error_code=(
                            _TOPIC_DENIED if each.acknowledgement_batches else ErrorCode.NONE
                        ),
                        records=b"",
                    )
                    for each in topic.partitions
                ],
            )
            for topic in denied
        ]
        return response

    return then(handle(request), add)


def share_acknowledge(permissions: Permissions, request: Any, handle: Handle) -> Answer:
    """READ on the group and on each topic."""
    permissions.require_group(AclOperation.READ, request.group_id or "")
    request.topics, denied = _split_by_id(permissions, request.topics)
    if not denied:
        return handle(request)

    def add(response: ShareAcknowledgeResponse) -> Message:
        if response.error_code:
            return response
        part = ShareAcknowledgeResponse.PartitionData
        response.responses += [
            ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse(
                topic_id=topic.topic_id,
                partitions=[
                    part(partition_index=each.partition_index, error_code=_TOPIC_DENIED)
                    for each in topic.partitions
                ],
            )
            for topic in denied
        ]
        return response

    return then(handle(request), add)


def _split_by_id(permissions: Permissions, topics: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    def may_read(topic: Any) -> bool:
        name = permissions.topics.name_of(topic.topic_id)
        # The handler says that nobody has this id.
        return name is None or permissions.may_topic(AclOperation.READ, name)

    return split(topics, may_read)


# Offsets. -----------------------------------------------------------------------------------------


def describe_share_group_offsets(
    permissions: Permissions, request: DescribeShareGroupOffsetsRequest, handle: Handle
) -> Answer:
    """DESCRIBE on each group and on each topic; if all topics are asked for, those that may not be
    described are left out."""
    asked = request.groups
    request.groups, denied = split(
        asked, lambda each: permissions.may_group(AclOperation.DESCRIBE, each.group_id)
    )
    hidden: dict[str, list[Any]] = {}
    for group in request.groups:
        if group.topics is not None:
            group.topics, hidden[group.group_id] = split(
                group.topics,
                lambda topic: permissions.may_topic(AclOperation.DESCRIBE, topic.topic_name),
            )

    def merge(response: DescribeShareGroupOffsetsResponse) -> Message:
        for group in response.groups:
            if group.group_id in hidden:
                group.topics += _hidden_offsets(hidden[group.group_id])
            else:
                group.topics = [
                    topic
                    for topic in group.topics
                    if permissions.may_topic(AclOperation.DESCRIBE, topic.topic_name)
                ]
        allowed = iter(response.groups)
        refused = {id(each) for each in denied}
        response.groups = [
            DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup(
                group_id=each.group_id, error_code=_GROUP_DENIED, error_message=_GROUP_MESSAGE
            )
            if id(each) in refused
            else next(allowed)
            for each in asked
        ]
        return response

    if not request.groups:
        return merge(DescribeShareGroupOffsetsResponse())
    return then(handle(request), merge)


def _hidden_offsets(topics: Iterable[Any]) -> list[Any]:
    response = DescribeShareGroupOffsetsResponse
    return [
        response.DescribeShareGroupOffsetsResponseTopic(
            topic_name=topic.topic_name,
            partitions=[
                response.DescribeShareGroupOffsetsResponsePartition(
                    partition_index=index,
                    start_offset=-1,
                    error_code=_TOPIC_DENIED,
                    error_message=_TOPIC_MESSAGE,
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


def alter_share_group_offsets(
    permissions: Permissions, request: AlterShareGroupOffsetsRequest, handle: Handle
) -> Answer:
    """READ on the group and on each topic."""
    permissions.require_group(AclOperation.READ, request.group_id)
    request.topics, denied = split(
        request.topics, lambda topic: permissions.may_topic(AclOperation.READ, topic.topic_name)
    )
    if not denied:
        return handle(request)

    def add(response: AlterShareGroupOffsetsResponse) -> Message:
        if response.error_code:
            return response
        part = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition
        response.responses[:0] = [
            AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name,
                topic_id=permissions.topics.id_of(topic.topic_name),
                partitions=[
                    part(
                        partition_index=each.partition_index,
                        error_code=_TOPIC_DENIED,
                        error_message=_TOPIC_MESSAGE,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in denied
        ]
        return response

    return then(handle(request), add)


def delete_share_group_offsets(
    permissions: Permissions, request: DeleteShareGroupOffsetsRequest, handle: Handle
) -> Answer:
    """DELETE on the group and READ on each topic."""
    permissions.require_group(AclOperation.DELETE, request.group_id)
    request.topics, denied = split(
        request.topics, lambda topic: permissions.may_topic(AclOperation.READ, topic.topic_name)
    )
    if not denied:
        return handle(request)

    def add(response: DeleteShareGroupOffsetsResponse) -> Message:
        if response.error_code:
            return response
        response.responses[:0] = [
            DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name,
                error_code=_TOPIC_DENIED,
                error_message=_TOPIC_MESSAGE,
            )
            for topic in denied
        ]
        return response

    return then(handle(request), add)


# State, which only brokers send. ------------------------------------------------------------------


def _state(response: Any, topic_result: str) -> Rule:
    """CLUSTER_ACTION; else every partition has the error."""

    def rule(permissions: Permissions, request: Any, handle: Handle) -> Answer:
        if permissions.may_cluster(AclOperation.CLUSTER_ACTION):
            return handle(request)
        result = getattr(response, topic_result)
        denied: Message = response(
            results=[
                result(
                    topic_id=topic.topic_id,
                    partitions=[
                        response.PartitionResult(
                            partition=each.partition, error_code=_CLUSTER_DENIED
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )
        return denied

    return rule


initialize_share_group_state: Final = _state(
    InitializeShareGroupStateResponse, "InitializeStateResult"
)
read_share_group_state: Final = _state(ReadShareGroupStateResponse, "ReadStateResult")
write_share_group_state: Final = _state(WriteShareGroupStateResponse, "WriteStateResult")
delete_share_group_state: Final = _state(DeleteShareGroupStateResponse, "DeleteStateResult")
read_share_group_state_summary: Final = _state(
    ReadShareGroupStateSummaryResponse, "ReadStateSummaryResult"
)
