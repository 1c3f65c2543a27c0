"""IncrementalAlterConfigs (key 44), v0-1: set, delete, append to or subtract from single configs.

Log levels (resource type broker logger) belong to this process and are changed here. Of the rest a
node first rejects what it can check itself; the controller decides about the others. Results are in
the order of the request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, cast

from moldau.broker.config import ConfigResourceType
from moldau.broker.handlers.support.config_resources import check_resource, fill, split
from moldau.broker.loggers import BrokerLoggers
from moldau.broker.metadata.machine.configs import incremental_alter_configs
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.invariant import invariant
from moldau.wire.message import Message
from moldau.wire.messages import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse

SET: Final = 0
DELETE: Final = 1

Decide = Callable[[RequestContext, IncrementalAlterConfigsRequest], Awaitable[Message]]


def deciding_controller(metadata: MetadataShell) -> Decide:
    async def decide(context: RequestContext, request: IncrementalAlterConfigsRequest) -> Message:
        return await metadata.run(incremental_alter_configs, request)

    return decide


class IncrementalAlterConfigsHandler:
    def __init__(
        self,
        decide: Decide,
        loggers: BrokerLoggers,
        *,
        node_id: int,
        is_controller: bool = False,
        check_own: Callable[[Mapping[str, str | None]], None] = lambda changes: None,
    ) -> None:
        """`decide` has the active controller decide. `check_own` gets what is set (None: deleted)
        in this broker's own configuration, and raises ApiError for what it cannot use."""
        self._decide = decide
        self._loggers = loggers
        self._node_id = node_id
        self._is_controller = is_controller
        self._check_own = check_own

    async def handle(
        self, context: RequestContext, request: IncrementalAlterConfigsRequest
    ) -> IncrementalAlterConfigsResponse:
        validate_only = request.validate_only
        decided, rest = split(
            request.resources, lambda resource: self._is_decided(resource, validate_only)
        )
        response = IncrementalAlterConfigsResponse()
        if rest:
            forwarded = IncrementalAlterConfigsRequest(resources=rest, validate_only=validate_only)
            answer = await self._decide(context, forwarded)
            invariant(
                isinstance(answer, IncrementalAlterConfigsResponse),
                "a request has its own response",
            )
            response = cast(IncrementalAlterConfigsResponse, answer)
        for position, error in decided.items():
            result = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse()
            response.responses.insert(position, fill(result, request.resources[position], error))
        return response

    def _is_decided(
        self, resource: IncrementalAlterConfigsRequest.AlterConfigsResource, validate_only: bool
    ) -> bool:
        check_resource(
            resource.resource_type,
            resource.resource_name,
            node_id=self._node_id,
            is_controller=self._is_controller,
        )
        own = resource.resource_name == str(self._node_id)
        if resource.resource_type == ConfigResourceType.BROKER and own:
            self._check_own(
                {
                    item.name: item.value if item.config_operation == SET else None
                    for item in resource.configs
                    if item.config_operation in (SET, DELETE)
                }
            )
        if resource.resource_type != ConfigResourceType.BROKER_LOGGER:
            return False
        changes = [(item.name, item.config_operation, item.value) for item in resource.configs]
        self._loggers.alter(changes, validate_only=validate_only)
        return True
