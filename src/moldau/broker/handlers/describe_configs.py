"""DescribeConfigs (key 32), v1-4: what a topic, broker, group, log level or metrics subscription
is set to, and where each value comes from.

v3 added types and documentation. A resource that cannot be described gets an error of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moldau.broker.config import (
    ConfigEntry,
    ConfigResourceType,
    DynamicBrokerConfig,
    describe_broker,
    describe_broker_defaults,
    describe_client_metrics,
    describe_group,
    describe_loggers,
    describe_topic,
    documentation,
)
from moldau.broker.loggers import BrokerLoggers
from moldau.broker.machine.topics import check_topic_name
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import DescribeConfigsRequest, DescribeConfigsResponse

Resource = DescribeConfigsRequest.DescribeConfigsResource
Result = DescribeConfigsResponse.DescribeConfigsResult
Config = DescribeConfigsResponse.DescribeConfigsResourceResult
Synonym = DescribeConfigsResponse.DescribeConfigsSynonym


class DescribeConfigsHandler:
    def __init__(
        self,
        image: Callable[[], MetadataImage],
        configs: DynamicBrokerConfig,
        loggers: BrokerLoggers,
        *,
        node_id: int,
    ) -> None:
        self._image = image
        self._configs = configs
        self._loggers = loggers
        self._node_id = node_id
        self._describers: Final[dict[int, Callable[[str], list[ConfigEntry]]]] = {
            ConfigResourceType.TOPIC: self._topic,
            ConfigResourceType.BROKER: self._broker,
            ConfigResourceType.BROKER_LOGGER: self._broker_logger,
            ConfigResourceType.CLIENT_METRICS: self._client_metrics,
            ConfigResourceType.GROUP: self._group,
        }

    def handle(
        self, context: RequestContext, request: DescribeConfigsRequest
    ) -> DescribeConfigsResponse:
        return DescribeConfigsResponse(
            results=[self._describe(resource, request) for resource in request.resources]
        )

    def _describe(self, resource: Resource, request: DescribeConfigsRequest) -> Result:
        result = Result(resource_type=resource.resource_type, resource_name=resource.resource_name)
        try:
            entries = self._entries(resource)
        except ApiError as error:
            result.error_code, result.error_message = error.code, error.message
            return result
        keys = resource.configuration_keys
        wanted = None if keys is None else set(keys)
        result.configs = [
            _config(entry, request) for entry in entries if wanted is None or entry.name in wanted
        ]
        return result

    def _entries(self, resource: Resource) -> list[ConfigEntry]:
        describer = self._describers.get(resource.resource_type)
        if describer is None:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"resource type {resource.resource_type} has no configs: known are "
                + ", ".join(f"{kind.value} ({kind.name})" for kind in ConfigResourceType),
            )
        return describer(resource.resource_name)

    def _topic(self, name: str) -> list[ConfigEntry]:
        check_topic_name(name)
        image = self._image()
        if image.topic(name) is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
        return describe_topic(self._configs.layers, image.topic_configs(name))

    def _broker(self, name: str) -> list[ConfigEntry]:
        if name == "":
            return describe_broker_defaults(self._configs.layers)
        self._check_own(name)
        return describe_broker(self._configs.layers)

    def _broker_logger(self, name: str) -> list[ConfigEntry]:
        self._check_own(name)
        return describe_loggers(self._loggers.levels())

    def _client_metrics(self, name: str) -> list[ConfigEntry]:
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "a client metrics subscription has a name")
        values = self._image().configs.get((ConfigResourceType.CLIENT_METRICS, name), {})
        return describe_client_metrics(values)

    def _group(self, name: str) -> list[ConfigEntry]:
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "a group has a name")
        values = self._image().configs.get((ConfigResourceType.GROUP, name), {})
        return describe_group(self._configs.layers, values)

    def _check_own(self, name: str) -> None:
        if name != str(self._node_id):
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"this is broker {self._node_id}: ask broker {name!r} itself, if it exists",
            )


def _config(entry: ConfigEntry, request: DescribeConfigsRequest) -> Config:
    synonyms = [
        Synonym(name=synonym.name, value=synonym.value, source=synonym.source)
        for synonym in (entry.synonyms if request.include_synonyms else ())
    ]
    return Config(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=synonyms,
        config_type=entry.type,
        documentation=documentation(entry.name) if request.include_documentation else None,
    )
