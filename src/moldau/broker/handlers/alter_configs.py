"""AlterConfigs (key 33), v0-2: replace all configs of a resource.

A node first rejects what it can check itself; the controller decides about the rest. Results are in
the order of the request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast

from moldau.broker.config import ConfigResourceType
from moldau.broker.handlers.support.config_resources import check_resource, fill, split
from moldau.broker.metadata.machine.configs import alter_configs
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.invariant import invariant
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import AlterConfigsRequest, AlterConfigsResponse

Decide = Callable[[RequestContext, AlterConfigsRequest], Awaitable[Message]]


def deciding_controller(metadata: MetadataShell) -> Decide:
    async def decide(context: RequestContext, request: AlterConfigsRequest) -> Message:
        return await metadata.run(alter_configs, request)

    return decide


class AlterConfigsHandler:
    def __init__(self, decide: Decide, *, node_id: int, is_controller: bool = False) -> None:
        """`decide` has the active controller decide."""
        self._decide = decide
        self._node_id = node_id
        self._is_controller = is_controller

    async def handle(
        self, context: RequestContext, request: AlterConfigsRequest
    ) -> AlterConfigsResponse:
        decided, rest = split(request.resources, self._is_decided)
        response = AlterConfigsResponse()
        if rest:
            forwarded = AlterConfigsRequest(resources=rest, validate_only=request.validate_only)
            answer = await self._decide(context, forwarded)
            invariant(isinstance(answer, AlterConfigsResponse), "a request has its own response")
            response = cast(AlterConfigsResponse, answer)
        for position, error in decided.items():
            result = AlterConfigsResponse.AlterConfigsResourceResponse()
            response.responses.insert(position, fill(result, request.resources[position], error))
        return response

    def _is_decided(self, resource: AlterConfigsRequest.AlterConfigsResource) -> bool:
        check_resource(
            resource.resource_type,
            resource.resource_name,
            node_id=self._node_id,
            is_controller=self._is_controller,
        )
        if resource.resource_type == ConfigResourceType.BROKER_LOGGER:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "log levels can only be changed by IncrementalAlterConfigs",
            )
        return False
