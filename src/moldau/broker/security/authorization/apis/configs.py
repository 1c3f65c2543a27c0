"""APIs of configurations, by resource: topics, groups, and the cluster for all others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from moldau.broker.config import ConfigResourceType
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
    AlterConfigsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsResponse,
)

_ERRORS: Final = {
    ConfigResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ConfigResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
}


def _may(permissions: Permissions, operation: AclOperation, resource: Any) -> bool:
    match resource.resource_type:
        case ConfigResourceType.TOPIC:
            return permissions.may_topic(operation, resource.resource_name)
        case ConfigResourceType.GROUP:
            return permissions.may_group(operation, resource.resource_name)
        case (
            ConfigResourceType.BROKER
            | ConfigResourceType.BROKER_LOGGER
            | ConfigResourceType.CLIENT_METRICS
        ):
            return permissions.may_cluster(operation)
        case _:
            # The handler says that there is no such type.
            return True


def _refused(resources: Iterable[Any], result: Callable[..., Any]) -> list[Any]:
    return [
        result(
            resource_type=each.resource_type,
            resource_name=each.resource_name,
            error_code=_ERRORS.get(each.resource_type, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
            error_message=None,
        )
        for each in resources
    ]


def describe_configs(
    permissions: Permissions, request: DescribeConfigsRequest, handle: Handle
) -> Answer:
    """DESCRIBE_CONFIGS on each resource."""
    request.resources, denied = split(
        request.resources, lambda each: _may(permissions, AclOperation.DESCRIBE_CONFIGS, each)
    )
    if not denied:
        return handle(request)

    def add(response: DescribeConfigsResponse) -> Message:
        response.results += _refused(denied, DescribeConfigsResponse.DescribeConfigsResult)
        return response

    return then(handle(request), add)


def _altering(response: Any) -> Rule:
    """ALTER_CONFIGS on each resource."""

    def rule(permissions: Permissions, request: Any, handle: Handle) -> Answer:
        request.resources, denied = split(
            request.resources, lambda each: _may(permissions, AclOperation.ALTER_CONFIGS, each)
        )
        if not denied:
            return handle(request)

        def add(answer: Any) -> Message:
            answer.responses += _refused(denied, response.AlterConfigsResourceResponse)
            return answer  # type: ignore[no-any-return]

        return then(handle(request), add)

    return rule


alter_configs: Final = _altering(AlterConfigsResponse)
incremental_alter_configs: Final = _altering(IncrementalAlterConfigsResponse)


def incremental_alter_configs_of_broker(
    permissions: Permissions, request: Any, handle: Handle
) -> Answer:
    """Log levels are changed here, so they are checked here; the controller checks all others."""
    asked = request.resources
    request.resources, denied = split(
        asked,
        lambda each: (
            each.resource_type != ConfigResourceType.BROKER_LOGGER
            or permissions.may_cluster(AclOperation.ALTER_CONFIGS)
        ),
    )
    if not denied:
        return handle(request)

    def add(response: IncrementalAlterConfigsResponse) -> Message:
        response.responses += _refused(
            denied, IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
        )
        return response

    return then(handle(request), add)
