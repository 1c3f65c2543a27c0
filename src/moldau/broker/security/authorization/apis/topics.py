"""APIs of topics: describing, creating, growing and deleting them."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from moldau.broker.machine.topics import INTERNAL_TOPICS
from moldau.broker.security.authorization.permissions import (
    Answer,
    Handle,
    Permissions,
    split,
    then,
)
from moldau.wire.acls import AclOperation, ResourceType
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    MetadataRequest,
    MetadataResponse,
)

_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_NO_ID: Final = UUID(int=0)
_Topic = MetadataResponse.MetadataResponseTopic


def metadata(permissions: Permissions, request: MetadataRequest, handle: Handle) -> Answer:
    """DESCRIBE on each topic; if all are asked for, others are left out. A topic that the request
    would create needs CREATE, on the cluster or on the topic."""
    asked = request.topics
    everything = asked is None or (permissions.version == 0 and not asked)
    hidden: list[_Topic] = []
    if not everything:
        request.topics, denied = split(asked or (), lambda each: _is_visible(permissions, each))
        request.topics, uncreatable = split(
            request.topics, lambda each: _may_create(permissions, request, each.name)
        )
        hidden += [
            _Topic(error_code=_DENIED, name=each.name, is_internal=each.name in INTERNAL_TOPICS)
            for each in _once(uncreatable)
        ]
        hidden += [
            _Topic(error_code=_DENIED, name=each.name, topic_id=each.topic_id)
            for each in _once(denied)
        ]

    def merge(response: MetadataResponse) -> Message:
        if everything:
            response.topics = [
                topic
                for topic in response.topics
                if permissions.may_topic(AclOperation.DESCRIBE, topic.name or "", logged=False)
            ]
        if request.include_topic_authorized_operations:
            for topic in response.topics:
                if topic.name is not None:
                    topic.topic_authorized_operations = permissions.operations(
                        ResourceType.TOPIC, topic.name
                    )
        if request.include_cluster_authorized_operations:
            response.cluster_authorized_operations = permissions.cluster_operations()
        response.topics += hidden
        return response

    if permissions.version == 0 and not everything and not request.topics:
        # An empty list would mean all topics: ask for none.
        request.topics = [MetadataRequest.MetadataRequestTopic(name="")]
        return then(handle(request), lambda response: merge(_without_topics(response)))
    return then(handle(request), merge)


def _without_topics(response: MetadataResponse) -> MetadataResponse:
    response.topics = []
    return response


def _once(
    topics: list[MetadataRequest.MetadataRequestTopic],
) -> list[MetadataRequest.MetadataRequestTopic]:
    return list({(each.name, each.topic_id): each for each in topics}.values())


def _is_visible(permissions: Permissions, topic: MetadataRequest.MetadataRequestTopic) -> bool:
    name = topic.name
    if topic.topic_id != _NO_ID:
        name = permissions.topics.name_of(topic.topic_id)
    # The handler says that a topic id or a name is missing.
    return name is None or permissions.may_topic(AclOperation.DESCRIBE, name)


def _may_create(permissions: Permissions, request: MetadataRequest, name: str | None) -> bool:
    if name is None or name in permissions.topics:
        return True
    if not (request.allow_auto_topic_creation and permissions.topics.auto_created):
        return True
    return permissions.may_cluster(AclOperation.CREATE, logged=False) or permissions.may_topic(
        AclOperation.CREATE, name
    )


def describe_topic_partitions(
    permissions: Permissions, request: DescribeTopicPartitionsRequest, handle: Handle
) -> Answer:
    """DESCRIBE on each topic; if all are asked for, others are left out."""
    topic = DescribeTopicPartitionsRequest.TopicRequest
    everything = not request.topics
    if everything:
        request.topics = [topic(name=name) for name in permissions.topics.names()]
    request.topics, denied = split(
        request.topics, lambda each: permissions.may_topic(AclOperation.DESCRIBE, each.name)
    )

    def merge(response: DescribeTopicPartitionsResponse) -> Message:
        for described in response.topics:
            described.topic_authorized_operations = permissions.operations(
                ResourceType.TOPIC, described.name or ""
            )
        if not everything:
            result = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
            response.topics += [
                result(name=name, error_code=_DENIED)
                for name in dict.fromkeys(each.name for each in denied)
            ]
        return response

    if not request.topics:
        return merge(DescribeTopicPartitionsResponse())
    return then(handle(request), merge)


# On a controller. ---------------------------------------------------------------------------------


def create_topics(permissions: Permissions, request: CreateTopicsRequest, handle: Handle) -> Answer:
    """CREATE on the cluster or on each topic. The configuration in the response needs
    DESCRIBE_CONFIGS on the topic."""
    denied: list[CreateTopicsRequest.CreatableTopic] = []
    if not permissions.may_cluster(AclOperation.CREATE, logged=False):
        request.topics, denied = split(
            request.topics, lambda topic: permissions.may_topic(AclOperation.CREATE, topic.name)
        )

    def merge(response: CreateTopicsResponse) -> Message:
        for created in response.topics:
            if created.error_code or permissions.may_topic(
                AclOperation.DESCRIBE_CONFIGS, created.name, logged=False
            ):
                continue
            created.topic_config_error_code = _DENIED
            created.num_partitions = created.replication_factor = -1
            created.configs = []
        response.topics += [
            CreateTopicsResponse.CreatableTopicResult(
                name=name, error_code=_DENIED, error_message="Authorization failed."
            )
            for name in dict.fromkeys(each.name for each in denied)
        ]
        return response

    return then(handle(request), merge)


def create_partitions(
    permissions: Permissions, request: CreatePartitionsRequest, handle: Handle
) -> Answer:
    """ALTER on each topic."""
    request.topics, denied = split(
        request.topics, lambda topic: permissions.may_topic(AclOperation.ALTER, topic.name)
    )
    if not denied:
        return handle(request)

    def add(response: CreatePartitionsResponse) -> Message:
        response.results[:0] = [
            CreatePartitionsResponse.CreatePartitionsTopicResult(
                name=topic.name, error_code=_DENIED
            )
            for topic in denied
        ]
        return response

    return then(handle(request), add)


def delete_topics(permissions: Permissions, request: DeleteTopicsRequest, handle: Handle) -> Answer:
    """DELETE on the cluster or on each topic. Without DESCRIBE the name that belongs to an id is
    not returned, nor whether a name exists."""
    if permissions.may_cluster(AclOperation.DELETE, logged=False):
        return handle(request)
    refused: list[DeleteTopicsResponse.DeletableTopicResult] = []
    request.topic_names = [
        name for name in request.topic_names if _may_delete(permissions, name, _NO_ID, refused)
    ]
    request.topics = [
        topic
        for topic in request.topics
        if _may_delete(permissions, topic.name, topic.topic_id, refused)
    ]
    if not refused:
        return handle(request)

    def add(response: DeleteTopicsResponse) -> Message:
        response.responses += refused
        return response

    return then(handle(request), add)


def _may_delete(
    permissions: Permissions,
    name: str | None,
    topic_id: UUID,
    refused: list[DeleteTopicsResponse.DeletableTopicResult],
) -> bool:
    by_id = topic_id != _NO_ID
    found = permissions.topics.name_of(topic_id) if by_id and name is None else name
    if found is None or (by_id and name is not None):
        # The handler says what is wrong with it.
        return True
    describable = permissions.may_topic(AclOperation.DESCRIBE, found)
    if permissions.may_topic(AclOperation.DELETE, found):
        return True
    if describable and found not in permissions.topics:
        # That it does not exist may be said.
        return True
    refused.append(
        DeleteTopicsResponse.DeletableTopicResult(
            name=None if by_id and not describable else found,
            topic_id=topic_id,
            error_code=_DENIED,
        )
    )
    return False
