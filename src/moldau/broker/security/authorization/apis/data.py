"""APIs about the records of partitions, by topic. Produce and Fetch ask in their handlers."""

from __future__ import annotations

from moldau.broker.security.authorization.permissions import (
    Answer,
    Handle,
    Permissions,
    split,
    then,
)
from moldau.wire.acls import AclOperation
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DescribeProducersRequest,
    DescribeProducersResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def list_offsets(permissions: Permissions, request: ListOffsetsRequest, handle: Handle) -> Answer:
    """DESCRIBE on each topic."""
    request.topics, denied = split(
        request.topics, lambda topic: permissions.may_topic(AclOperation.DESCRIBE, topic.name)
    )
    if not denied:
        return handle(request)

    def add(response: ListOffsetsResponse) -> Message:
        result = ListOffsetsResponse.ListOffsetsPartitionResponse
        response.topics += [
            ListOffsetsResponse.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    result(partition_index=each.partition_index, error_code=_DENIED)
                    for each in topic.partitions
                ],
            )
            for topic in denied
        ]
        return response

    return then(handle(request), add)


def delete_records(
    permissions: Permissions, request: DeleteRecordsRequest, handle: Handle
) -> Answer:
    """DELETE on each topic."""
    request.topics, denied = split(
        request.topics, lambda topic: permissions.may_topic(AclOperation.DELETE, topic.name)
    )
    if not denied:
        return handle(request)

    def add(response: DeleteRecordsResponse) -> Message:
        result = DeleteRecordsResponse.DeleteRecordsPartitionResult
        response.topics += [
            DeleteRecordsResponse.DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    result(
                        partition_index=each.partition_index, low_watermark=-1, error_code=_DENIED
                    )
                    for each in topic.partitions
                ],
            )
            for topic in denied
        ]
        return response

    return then(handle(request), add)


def offset_for_leader_epoch(
    permissions: Permissions, request: OffsetForLeaderEpochRequest, handle: Handle
) -> Answer:
    """CLUSTER_ACTION, which brokers have, or DESCRIBE on each topic."""
    if permissions.may_cluster(AclOperation.CLUSTER_ACTION, logged=False):
        return handle(request)
    request.topics, denied = split(
        request.topics, lambda topic: permissions.may_topic(AclOperation.DESCRIBE, topic.topic)
    )
    if not denied:
        return handle(request)

    def add(response: OffsetForLeaderEpochResponse) -> Message:
        result = OffsetForLeaderEpochResponse.EpochEndOffset
        response.topics += [
            OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    result(partition=each.partition, error_code=_DENIED)
                    for each in topic.partitions
                ],
            )
            for topic in denied
        ]
        return response

    return then(handle(request), add)


def describe_producers(
    permissions: Permissions, request: DescribeProducersRequest, handle: Handle
) -> Answer:
    """READ on each topic; results stay in the order of the request."""
    asked = request.topics
    request.topics, denied = split(
        asked, lambda topic: permissions.may_topic(AclOperation.READ, topic.name)
    )
    if not denied:
        return handle(request)

    def add(response: DescribeProducersResponse) -> Message:
        result = DescribeProducersResponse.PartitionResponse
        allowed = iter(response.topics)
        response.topics = [
            DescribeProducersResponse.TopicResponse(
                name=topic.name,
                partitions=[
                    result(partition_index=index, error_code=_DENIED, error_message=_MESSAGE)
                    for index in topic.partition_indexes
                ],
            )
            if any(topic is each for each in denied)
            else next(allowed)
            for topic in asked
        ]
        return response

    return then(handle(request), add)


_MESSAGE = "Topic authorization failed."


def write_txn_markers(
    permissions: Permissions, request: WriteTxnMarkersRequest, handle: Handle
) -> Answer:
    """ALTER or CLUSTER_ACTION on the cluster; else every partition has the error."""
    if permissions.may_cluster(AclOperation.ALTER, logged=False) or permissions.may_cluster(
        AclOperation.CLUSTER_ACTION
    ):
        return handle(request)
    response = WriteTxnMarkersResponse
    return response(
        markers=[
            response.WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    response.WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            response.WritableTxnMarkerPartitionResult(
                                partition_index=index,
                                error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )
