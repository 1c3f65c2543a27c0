"""Configurations of topics, brokers, loggers, groups and client metrics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from moldau.client.admin.base import AdminBase, several
from moldau.client.admin.config_values import (
    AlterConfigOp,
    ConfigEntry,
    ConfigEntryType,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigSynonym,
)
from moldau.client.admin.driver import Answer, Call
from moldau.client.admin.routes import AnyRoute, BrokerRoute
from moldau.client.errors import UnsupportedVersionError, error_for
from moldau.client.results import Results
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

__all__ = ["ConfigOperations"]

_OWN_BROKER = (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER)


class ConfigOperations(AdminBase):
    """Configurations."""

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[ConfigResource, dict[str, ConfigEntry]]:
        """The values of all keys of each resource, by key.

        Synonyms are the other places that the value could come from, nearest first.

        >>> topic = ConfigResource.topic("orders")
        >>> print((await admin.describe_configs([topic]))[topic]["retention.ms"].value)
        """

        async def ask(
            call: Call, keys: Sequence[ConfigResource]
        ) -> Answer[ConfigResource, dict[str, ConfigEntry]]:
            request = DescribeConfigsRequest
            response: DescribeConfigsResponse = await call(
                request(
                    resources=[
                        request.DescribeConfigsResource(
                            resource_type=key.type,
                            resource_name=key.name,
                            configuration_keys=None,
                        )
                        for key in keys
                    ],
                    include_synonyms=include_synonyms,
                    include_documentation=include_documentation,
                )
            )
            answer: Answer[ConfigResource, dict[str, ConfigEntry]] = Answer()
            for found in response.results:
                key = ConfigResource(ConfigResourceType(found.resource_type), found.resource_name)
                if found.error_code != ErrorCode.NONE:
                    answer.fail(key, found.error_code, found.error_message)
                else:
                    answer.put(key, {each.name: _entry(each) for each in found.configs})
            return answer

        return await self._run(
            "DescribeConfigs",
            resources,
            BrokerRoute(_broker_of, of_controllers=True),
            ask,
            timeout=timeout,
            check=check,
        )

    async def incremental_alter_configs(
        self,
        configs: Mapping[ConfigResource, Iterable[AlterConfigOp]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[ConfigResource, None]:
        """Change single keys; all operations on one resource take effect together.

        >>> change = AlterConfigOp("retention.ms", "3600000")
        >>> await admin.incremental_alter_configs({ConfigResource.topic("orders"): [change]})
        """
        wanted = {key: _operations(key, operations) for key, operations in configs.items()}

        async def ask(call: Call, keys: Sequence[ConfigResource]) -> Answer[ConfigResource, None]:
            request = IncrementalAlterConfigsRequest
            response: IncrementalAlterConfigsResponse = await call(
                request(
                    resources=[
                        request.AlterConfigsResource(
                            resource_type=key.type,
                            resource_name=key.name,
                            configs=[
                                request.AlterableConfig(
                                    name=each.name,
                                    config_operation=each.op_type,
                                    value=None if each.value is None else str(each.value),
                                )
                                for each in wanted[key]
                            ],
                        )
                        for key in keys
                    ],
                    validate_only=validate_only,
                )
            )
            answer: Answer[ConfigResource, None] = Answer()
            for found in response.responses:
                key = ConfigResource(ConfigResourceType(found.resource_type), found.resource_name)
                answer.settle(key, found.error_code, found.error_message, None)
            return answer

        return await self._run(
            "IncrementalAlterConfigs",
            wanted,
            BrokerRoute(self._alters_at, of_controllers=True),
            ask,
            timeout=timeout,
            check=check,
        )

    def _alters_at(self, resource: ConfigResource) -> int | None:
        # Controllers take the changes of brokers' configurations themselves.
        controllers = self._driver.cluster.settings.controllers
        if controllers and resource.type is ConfigResourceType.BROKER:
            return None
        return _broker_of(resource)

    async def list_config_resources(
        self,
        types: Collection[ConfigResourceType] = (),
        *,
        timeout: float | None = None,
    ) -> list[ConfigResource]:
        """What has configurations, of the given types or of all.

        >>> print(await admin.list_config_resources([ConfigResourceType.GROUP]))
        """

        async def ask(call: Call) -> list[ConfigResource]:
            request = ListConfigResourcesRequest(resource_types=sorted(types))
            try:
                response: ListConfigResourcesResponse = await call(request)
            except UnsupportedVersionError:
                if set(types) != {ConfigResourceType.CLIENT_METRICS}:
                    raise
                response = await call(ListConfigResourcesRequest(), max_version=0)
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, "ListConfigResources")
            return [
                ConfigResource(ConfigResourceType(each.resource_type), each.resource_name)
                for each in response.config_resources
            ]

        return await self._run_one("ListConfigResources", AnyRoute(), ask, timeout=timeout)

    async def list_client_metrics_resources(self, *, timeout: float | None = None) -> list[str]:
        """The names of all subscriptions to client metrics.

        >>> print(await admin.list_client_metrics_resources())
        """
        types = [ConfigResourceType.CLIENT_METRICS]
        return [each.name for each in await self.list_config_resources(types, timeout=timeout)]


def _operations(resource: ConfigResource, given: Iterable[AlterConfigOp]) -> list[AlterConfigOp]:
    if not isinstance(resource, ConfigResource):
        raise TypeError(
            f"configs are given by resource, such as ConfigResource.topic({str(resource)!r}), "
            f"not by {resource!r}"
        )
    if isinstance(given, Mapping):
        how = ", ".join(f"AlterConfigOp({name!r}, {value!r})" for name, value in given.items())
        raise TypeError(f"the changes of {resource.name} are a list: [{how}], not {given!r}")
    changes = several(given)
    for each in changes:
        if not isinstance(each, AlterConfigOp):
            raise TypeError(f"a change is an AlterConfigOp(name, value), not {each!r}")
    return changes


def _broker_of(resource: ConfigResource) -> int | None:
    """The broker that alone answers for a resource, None if any does."""
    if resource.type not in _OWN_BROKER or not resource.name:
        return None
    try:
        return int(resource.name)
    except ValueError:
        raise error_for(
            ErrorCode.INVALID_REQUEST, f"a broker has a number, {resource.name!r} is none"
        ) from None


def _entry(found: DescribeConfigsResponse.DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        found.name,
        found.value,
        ConfigSource(found.config_source),
        found.is_sensitive,
        found.read_only,
        tuple(
            ConfigSynonym(each.name, each.value, ConfigSource(each.source))
            for each in found.synonyms
        ),
        ConfigEntryType(found.config_type),
        found.documentation,
    )
