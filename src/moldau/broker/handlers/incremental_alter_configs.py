"""IncrementalAlterConfigs (key 44), v0-1: set, delete, append to and subtract from configs.

Log levels (resource type broker logger) belong to this process and are changed here; everything
else is the controller's.
"""

from __future__ import annotations

from moldau.broker.config import ConfigResourceType
from moldau.broker.loggers import BrokerLoggers
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse

Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
Result = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse


class IncrementalAlterConfigsHandler:
    def __init__(self, metadata: MetadataShell, loggers: BrokerLoggers, *, node_id: int) -> None:
        self._metadata = metadata
        self._loggers = loggers
        self._node_id = node_id

    async def handle(
        self, context: RequestContext, request: IncrementalAlterConfigsRequest
    ) -> IncrementalAlterConfigsResponse:
        logger_type = ConfigResourceType.BROKER_LOGGER
        ours = [item for item in request.resources if item.resource_type == logger_type]
        answers = [self._alter_loggers(item, request.validate_only) for item in ours]
        if ours and len(ours) == len(request.resources):
            return IncrementalAlterConfigsResponse(responses=answers)
        others = IncrementalAlterConfigsRequest(
            resources=[item for item in request.resources if item.resource_type != logger_type],
            validate_only=request.validate_only,
        )
        response = await self._metadata.run(
            lambda controller: controller.incremental_alter_configs(others)
        )
        response.responses += answers
        return response

    def _alter_loggers(self, resource: Resource, validate_only: bool) -> Result:
        result = Result(
            resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        try:
            if resource.resource_name != str(self._node_id):
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    f"log levels are this broker's own: name resource {self._node_id}, "
                    f"not {resource.resource_name!r}",
                )
            changes = [(item.name, item.config_operation, item.value) for item in resource.configs]
            self._loggers.alter(changes, validate_only=validate_only)
        except ApiError as error:
            result.error_code, result.error_message = error.code, error.message
        return result
