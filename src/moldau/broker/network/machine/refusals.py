"""The response to a request that failed as a whole, also where its API has no error at the top.

Decided here: the response to a request that did not reach the controller, or was rejected there as
a whole. Each topic, resource, user or partition in the request gets the error, as Kafka's own
requests build it; APIs with an error code at the top level need only that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from moldau.broker.network.machine.error_responses import error_response
from moldau.wire.apis import Api, ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    CreateAclsRequest,
    CreateAclsResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def refusal(
    api: Api, version: int, request: Message, code: ErrorCode, message: str
) -> Message | None:
    """The response of `api` with only the error; None if that is not possible."""
    build = _BUILDERS.get(api.key)
    if build is None:
        return error_response(api, version, code, message)
    response = build(request, int(code), message or None)
    if version == 0 and isinstance(response, ElectLeadersResponse):
        response.error_code = 0  # it came with v1; the partitions have their own
    return response


def _create_topics(
    request: CreateTopicsRequest, code: int, message: str | None
) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[
            CreateTopicsResponse.CreatableTopicResult(
                name=topic.name, error_code=code, error_message=message
            )
            for topic in request.topics
        ]
    )


def _delete_topics(
    request: DeleteTopicsRequest, code: int, message: str | None
) -> DeleteTopicsResponse:
    result = DeleteTopicsResponse.DeletableTopicResult
    by_name = [
        result(name=name, error_code=code, error_message=message) for name in request.topic_names
    ]
    by_state = [
        result(name=topic.name, topic_id=topic.topic_id, error_code=code, error_message=message)
        for topic in request.topics
    ]
    return DeleteTopicsResponse(responses=by_name + by_state)


def _create_partitions(
    request: CreatePartitionsRequest, code: int, message: str | None
) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsResponse.CreatePartitionsTopicResult(
                name=topic.name, error_code=code, error_message=message
            )
            for topic in request.topics
        ]
    )


def _create_acls(request: CreateAclsRequest, code: int, message: str | None) -> CreateAclsResponse:
    return CreateAclsResponse(
        results=[
            CreateAclsResponse.AclCreationResult(error_code=code, error_message=message)
            for _ in request.creations
        ]
    )


def _delete_acls(request: DeleteAclsRequest, code: int, message: str | None) -> DeleteAclsResponse:
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsResponse.DeleteAclsFilterResult(error_code=code, error_message=message)
            for _ in request.filters
        ]
    )


def _alter_configs(
    request: AlterConfigsRequest, code: int, message: str | None
) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResponse.AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )


def _incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, code: int, message: str | None
) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[
            IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )


def _elect_leaders(
    request: ElectLeadersRequest, code: int, message: str | None
) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            ElectLeadersResponse.ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    ElectLeadersResponse.PartitionResult(
                        partition_id=partition, error_code=code, error_message=message
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )


def _alter_client_quotas(
    request: AlterClientQuotasRequest, code: int, message: str | None
) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=[
            AlterClientQuotasResponse.EntryData(
                error_code=code,
                error_message=message,
                entity=[
                    AlterClientQuotasResponse.EntityData(
                        entity_type=each.entity_type, entity_name=each.entity_name
                    )
                    for each in entry.entity
                ],
            )
            for entry in request.entries
        ]
    )


def _alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, code: int, message: str | None
) -> AlterUserScramCredentialsResponse:
    users = {each.name for each in request.deletions} | {each.name for each in request.upsertions}
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult(
                user=user, error_code=code, error_message=message
            )
            for user in sorted(users)
        ]
    )


def _describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, code: int, message: str | None
) -> DescribeTopicPartitionsResponse:
    result = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
    return DescribeTopicPartitionsResponse(
        topics=[result(name=topic.name, error_code=code) for topic in request.topics]
    )


_BUILDERS: Final[dict[ApiKey, Callable[[Any, int, str | None], Message]]] = {
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.DELETE_TOPICS: _delete_topics,
    ApiKey.CREATE_PARTITIONS: _create_partitions,
    ApiKey.CREATE_ACLS: _create_acls,
    ApiKey.DELETE_ACLS: _delete_acls,
    ApiKey.ALTER_CONFIGS: _alter_configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _incremental_alter_configs,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _describe_topic_partitions,
    ApiKey.ELECT_LEADERS: _elect_leaders,
    ApiKey.ALTER_CLIENT_QUOTAS: _alter_client_quotas,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _alter_user_scram_credentials,
}
