"""APIs about the cluster as a whole: one permission for the whole request."""

from __future__ import annotations

from typing import Any

from moldau.broker.security.authorization.permissions import (
    Answer,
    Handle,
    Permissions,
    Rule,
    cluster_denied,
    then,
)
from moldau.wire.acls import AclOperation
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    EnvelopeRequest,
    EnvelopeResponse,
)


def on_cluster(operation: AclOperation) -> Rule:
    """The operation on the cluster; else CLUSTER_AUTHORIZATION_FAILED."""

    def rule(permissions: Permissions, request: Any, handle: Handle) -> Answer:
        permissions.require_cluster(operation)
        return handle(request)

    return rule


def envelope(permissions: Permissions, request: EnvelopeRequest, handle: Handle) -> Answer:
    """CLUSTER_ACTION; the request inside is checked with its own principal."""
    if not permissions.may_cluster(AclOperation.CLUSTER_ACTION):
        return EnvelopeResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return handle(request)


def describe_cluster(
    permissions: Permissions, request: DescribeClusterRequest, handle: Handle
) -> Answer:
    """Anybody, but the authorized operations are those of the client; none without DESCRIBE."""

    def fill(response: DescribeClusterResponse) -> Message:
        if request.include_cluster_authorized_operations and not response.error_code:
            response.cluster_authorized_operations = permissions.cluster_operations()
        return response

    return then(handle(request), fill)


def alter_partition_reassignments(
    permissions: Permissions, request: AlterPartitionReassignmentsRequest, handle: Handle
) -> Answer:
    """ALTER on the cluster; else every partition has the error, too."""
    if permissions.may_cluster(AclOperation.ALTER):
        return handle(request)
    error = cluster_denied(permissions.context)
    response = AlterPartitionReassignmentsResponse
    return response(
        error_code=error.code,
        error_message=error.message,
        responses=[
            response.ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    response.ReassignablePartitionResponse(
                        partition_index=each.partition_index,
                        error_code=error.code,
                        error_message=error.message,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def describe_client_quotas(
    permissions: Permissions, request: DescribeClientQuotasRequest, handle: Handle
) -> Answer:
    """DESCRIBE_CONFIGS on the cluster; else there is not even an empty list."""
    if permissions.may_cluster(AclOperation.DESCRIBE_CONFIGS):
        return handle(request)
    error = cluster_denied(permissions.context)
    return DescribeClientQuotasResponse(
        error_code=error.code, error_message=error.message, entries=None
    )


def describe_log_dirs(
    permissions: Permissions, request: DescribeLogDirsRequest, handle: Handle
) -> Answer:
    """DESCRIBE on the cluster. Before v3 nobody is informed of the reason."""
    if permissions.may_cluster(AclOperation.DESCRIBE):
        return handle(request)
    return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def alter_replica_log_dirs(
    permissions: Permissions, request: AlterReplicaLogDirsRequest, handle: Handle
) -> Answer:
    """ALTER on the cluster; else every partition has the error."""
    if permissions.may_cluster(AclOperation.ALTER):
        return handle(request)
    partition = AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult
    by_topic: dict[str, list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult]] = {}
    for folder in request.dirs:
        for topic in folder.topics:
            by_topic.setdefault(topic.name, []).extend(
                partition(partition_index=index, error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
                for index in topic.partitions
            )
    result = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
    return AlterReplicaLogDirsResponse(
        results=[result(topic_name=name, partitions=found) for name, found in by_topic.items()]
    )
