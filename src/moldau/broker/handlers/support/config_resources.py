"""Which configuration resources a node decides itself and which it leaves to the controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from moldau.broker.config import ConfigResourceType
from moldau.broker.machine.topics import check_topic_name
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

Resource = TypeVar(
    "Resource",
    AlterConfigsRequest.AlterConfigsResource,
    IncrementalAlterConfigsRequest.AlterConfigsResource,
)
Result = TypeVar(
    "Result",
    AlterConfigsResponse.AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse.AlterConfigsResourceResponse,
)


def check_resource(kind: int, name: str, *, node_id: int, is_controller: bool) -> None:
    """Reject what this node can check: a topic's name, on a broker another broker's id.

    A controller also decides for brokers, which forward their own.
    """
    if kind == ConfigResourceType.TOPIC:
        check_topic_name(name)
    of_broker = kind in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER)
    any_broker = kind == ConfigResourceType.BROKER and (name == "" or is_controller)
    if of_broker and not any_broker and name != str(node_id):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"this is broker {node_id}: configs of broker {name!r} go to that broker",
        )


def split(
    resources: list[Resource], is_decided: Callable[[Resource], bool]
) -> tuple[dict[int, ApiError | None], list[Resource]]:
    """What was decided here, by position (None: done), and the resources for the controller."""
    decided: dict[int, ApiError | None] = {}
    rest = []
    for position, resource in enumerate(resources):
        try:
            if is_decided(resource):
                decided[position] = None
            else:
                rest.append(resource)
        except ApiError as error:
            decided[position] = error
    return decided, rest


def fill(
    result: Result,
    resource: AlterConfigsRequest.AlterConfigsResource
    | IncrementalAlterConfigsRequest.AlterConfigsResource,
    error: ApiError | None,
) -> Result:
    result.resource_type = resource.resource_type
    result.resource_name = resource.resource_name
    result.error_message = None
    if error is not None:
        result.error_code, result.error_message = error.code, error.message
    return result
