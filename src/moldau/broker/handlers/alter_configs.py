"""AlterConfigs (key 33, v0-2: replace all) and IncrementalAlterConfigs (key 44, v0-1: set, delete,
append, subtract).

A node first refuses what it can judge itself: a topic's name, on a broker another broker's id. Log
levels (resource type broker logger) belong to this process and are changed here; everything else
is the controller's. Answers come in the order of the request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar, cast

from moldau.broker.config import ConfigResourceType
from moldau.broker.loggers import BrokerLoggers
from moldau.broker.machine.topics import check_topic_name
from moldau.broker.network.context import RequestContext
from moldau.invariant import invariant
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

Incremental = IncrementalAlterConfigsRequest.AlterConfigsResource
R = TypeVar("R", AlterConfigsRequest.AlterConfigsResource, Incremental)
Result: TypeAlias = (
    AlterConfigsResponse.AlterConfigsResourceResponse
    | IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
)


class AlterConfigsHandler:
    def __init__(
        self,
        alter: Callable[[RequestContext, AlterConfigsRequest], Awaitable[Message]],
        alter_incrementally: Callable[
            [RequestContext, IncrementalAlterConfigsRequest], Awaitable[Message]
        ],
        loggers: BrokerLoggers,
        *,
        node_id: int,
        other_brokers: bool = False,
    ) -> None:
        """`alter` and `alter_incrementally` have the controller decide; `other_brokers`: this is
        the controller, which also decides for brokers that forwarded theirs."""
        self._alter = alter
        self._alter_incrementally = alter_incrementally
        self._loggers = loggers
        self._node_id = node_id
        self._other_brokers = other_brokers

    async def alter(
        self, context: RequestContext, request: AlterConfigsRequest
    ) -> AlterConfigsResponse:
        decided, rest = _split(request.resources, self._refuse_here)
        response = AlterConfigsResponse()
        if rest:
            forwarded = AlterConfigsRequest(resources=rest, validate_only=request.validate_only)
            answer = await self._alter(context, forwarded)
            invariant(isinstance(answer, AlterConfigsResponse), "a request has its own answer")
            response = cast(AlterConfigsResponse, answer)
        for position, error in decided.items():
            result = AlterConfigsResponse.AlterConfigsResourceResponse()
            _fill(result, request.resources[position], error)
            response.responses.insert(position, result)
        return response

    async def alter_incrementally(
        self, context: RequestContext, request: IncrementalAlterConfigsRequest
    ) -> IncrementalAlterConfigsResponse:
        validate_only = request.validate_only
        decided, rest = _split(
            request.resources, lambda resource: self._alter_here(resource, validate_only)
        )
        response = IncrementalAlterConfigsResponse()
        if rest:
            forwarded = IncrementalAlterConfigsRequest(resources=rest, validate_only=validate_only)
            answer = await self._alter_incrementally(context, forwarded)
            invariant(
                isinstance(answer, IncrementalAlterConfigsResponse), "a request has its own answer"
            )
            response = cast(IncrementalAlterConfigsResponse, answer)
        for position, error in decided.items():
            result = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse()
            _fill(result, request.resources[position], error)
            response.responses.insert(position, result)
        return response

    def _refuse_here(self, resource: AlterConfigsRequest.AlterConfigsResource) -> bool:
        self._check(resource.resource_type, resource.resource_name)
        if resource.resource_type == ConfigResourceType.BROKER_LOGGER:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "log levels can only be changed by IncrementalAlterConfigs",
            )
        return False

    def _alter_here(self, resource: Incremental, validate_only: bool) -> bool:
        self._check(resource.resource_type, resource.resource_name)
        if resource.resource_type != ConfigResourceType.BROKER_LOGGER:
            return False
        changes = [(item.name, item.config_operation, item.value) for item in resource.configs]
        self._loggers.alter(changes, validate_only=validate_only)
        return True

    def _check(self, kind: int, name: str) -> None:
        if kind == ConfigResourceType.TOPIC:
            check_topic_name(name)
        of_broker = kind in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER)
        every_broker = kind == ConfigResourceType.BROKER and (name == "" or self._other_brokers)
        if of_broker and not every_broker and name != str(self._node_id):
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"this is broker {self._node_id}: configs of broker {name!r} go to that broker",
            )


def _split(
    resources: list[R], decide: Callable[[R], bool]
) -> tuple[dict[int, ApiError | None], list[R]]:
    """What was decided here, by position (None: done), and the resources for the controller."""
    decided: dict[int, ApiError | None] = {}
    rest = []
    for position, resource in enumerate(resources):
        try:
            if decide(resource):
                decided[position] = None
            else:
                rest.append(resource)
        except ApiError as error:
            decided[position] = error
    return decided, rest


def _fill(
    result: Result,
    resource: AlterConfigsRequest.AlterConfigsResource | Incremental,
    error: ApiError | None,
) -> None:
    result.resource_type = resource.resource_type
    result.resource_name = resource.resource_name
    result.error_message = None
    if error is not None:
        result.error_code, result.error_message = error.code, error.message
