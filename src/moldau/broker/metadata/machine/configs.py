"""Altering the configs of topics, brokers, groups and client metrics.

Each resource succeeds or fails as a whole. What is checked is the resource's configuration as it
would be afterwards, so settings that are legal only together are judged together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any

from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import ResourceType
from moldau.broker.metadata.machine.view import ControllerView
from moldau.config import ConfigError
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    ClearElrRecord,
    ConfigRecord,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

MIN_INSYNC_REPLICAS = "min.insync.replicas"
CONFIG_VALUE_SIZE_MAX = 32767


class ConfigOperation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


# Key, ConfigOperation, operand.
Operation = tuple[str, int, str | None]


def incremental_alter_configs(
    controller: ControllerView,
    request: IncrementalAlterConfigsRequest,
    *,
    receiver_id: int | None = None,
) -> Decision[IncrementalAlterConfigsResponse]:
    """`receiver_id` is the broker the client asked: it answers only for its own configs."""
    counts = Counter((item.resource_type, item.resource_name) for item in request.resources)
    records: list[Any] = []
    responses = []
    for item in request.resources:
        result = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
            resource_type=item.resource_type, resource_name=item.resource_name, error_message=None
        )
        try:
            operations = [
                (config.name, config.config_operation, config.value) for config in item.configs
            ]
            _check_resource(
                item.resource_type,
                counts[item.resource_type, item.resource_name],
                [name for name, _, _ in operations],
                [
                    name
                    for name, operation, value in operations
                    if value is None and operation != ConfigOperation.DELETE
                ],
            )
            _check_receiver(item.resource_type, item.resource_name, receiver_id)
            records += _alter(controller, item.resource_type, item.resource_name, operations)
        except ApiError as error:
            result.error_code = error.code
            result.error_message = error.message or None
        responses.append(result)
    response = IncrementalAlterConfigsResponse(responses=responses)
    return Decision(() if request.validate_only else tuple(records), response)


def alter_configs(
    controller: ControllerView, request: AlterConfigsRequest, *, receiver_id: int | None = None
) -> Decision[AlterConfigsResponse]:
    """Replace all of a resource's settings: what is not named is deleted."""
    counts = Counter((item.resource_type, item.resource_name) for item in request.resources)
    records: list[Any] = []
    responses = []
    for item in request.resources:
        result = AlterConfigsResponse.AlterConfigsResourceResponse(
            resource_type=item.resource_type, resource_name=item.resource_name, error_message=None
        )
        try:
            values = {config.name: config.value for config in item.configs}
            _check_resource(
                item.resource_type,
                counts[item.resource_type, item.resource_name],
                [config.name for config in item.configs],
                [name for name, value in values.items() if value is None],
            )
            current = controller.image.configs.get((item.resource_type, item.resource_name), {})
            operations: list[Operation] = [
                (name, ConfigOperation.SET, value) for name, value in values.items()
            ]
            operations += [
                (name, ConfigOperation.DELETE, None) for name in current if name not in values
            ]
            _check_receiver(item.resource_type, item.resource_name, receiver_id)
            records += _alter(controller, item.resource_type, item.resource_name, operations)
        except ApiError as error:
            result.error_code = error.code
            result.error_message = error.message or None
        responses.append(result)
    response = AlterConfigsResponse(responses=responses)
    return Decision(() if request.validate_only else tuple(records), response)


def topic_config_records(
    controller: ControllerView, name: str, values: Mapping[str, str]
) -> list[ConfigRecord]:
    """The records of a topic that is being created; ApiError if a value is not allowed."""
    for value in values.values():
        _check_value_size(value)
    _validate(controller, ResourceType.TOPIC, name, values)
    return [
        ConfigRecord(resource_type=ResourceType.TOPIC, resource_name=name, name=key, value=value)
        for key, value in values.items()
    ]


def list_config_resources(
    image: MetadataImage, request: ListConfigResourcesRequest, *, groups: Iterable[str] = ()
) -> ListConfigResourcesResponse:
    """Everything that has or may have a config. `groups`: groups the coordinators know."""
    known = {
        ResourceType.TOPIC,
        ResourceType.BROKER,
        ResourceType.BROKER_LOGGER,
        ResourceType.CLIENT_METRICS,
        ResourceType.GROUP,
    }
    wanted = set(request.resource_types) or set(known)
    if not wanted <= known:
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    brokers = [str(broker_id) for broker_id in image.brokers]
    names: dict[int, Iterable[str]] = {
        ResourceType.TOPIC: image.topics_by_name,
        ResourceType.BROKER: brokers,
        ResourceType.BROKER_LOGGER: brokers,
        ResourceType.CLIENT_METRICS: _configured(image, ResourceType.CLIENT_METRICS),
        ResourceType.GROUP: dict.fromkeys([*_configured(image, ResourceType.GROUP), *groups]),
    }
    return ListConfigResourcesResponse(
        config_resources=[
            ListConfigResourcesResponse.ConfigResource(
                resource_name=name, resource_type=resource_type
            )
            for resource_type in sorted(wanted)
            for name in names[resource_type]
        ]
    )


def _configured(image: MetadataImage, resource_type: ResourceType) -> list[str]:
    return [name for kind, name in image.configs if kind == resource_type]


def _check_resource(
    resource_type: int, times: int, keys: list[str], without_value: list[str]
) -> None:
    if times > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    if len(set(keys)) < len(keys):
        raise ApiError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    if without_value:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : " + ", ".join(without_value),
        )
    # Log levels are not kept in the metadata log: the handler applies them before it asks here.
    if resource_type not in set(ResourceType) - {ResourceType.BROKER_LOGGER}:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")


def _alter(
    controller: ControllerView,
    resource_type: int,
    resource_name: str,
    operations: Sequence[Operation],
) -> list[Any]:
    current = controller.image.configs.get((resource_type, resource_name), {})
    after = dict(current)
    records: list[Any] = []
    for key, operation, operand in operations:
        value = _new_value(controller, resource_type, key, operation, operand, current.get(key))
        if value is None:
            after.pop(key, None)
        else:
            _check_value_size(value)
            after[key] = value
        # A broker's unchanged value is written again on purpose: it makes the broker read files
        # such as key stores again.
        if value != current.get(key) or resource_type == ResourceType.BROKER:
            records.append(
                ConfigRecord(
                    resource_type=resource_type,
                    resource_name=resource_name,
                    name=key,
                    value=value,
                )
            )
    _validate(controller, resource_type, resource_name, after)
    _check_exists(controller, resource_type, resource_name)
    _check_min_isr(controller, resource_type, resource_name, records)
    if controller.elr_enabled and any(record.name == MIN_INSYNC_REPLICAS for record in records):
        # Which replicas are eligible was decided by the old minimum (KIP-966).
        topic_name = resource_name if resource_type == ResourceType.TOPIC else ""
        records.append(ClearElrRecord(topic_name=topic_name))
    return records


def _new_value(
    controller: ControllerView,
    resource_type: int,
    key: str,
    operation: int,
    operand: str | None,
    current: str | None,
) -> str | None:
    match operation:
        case ConfigOperation.SET:
            return operand
        case ConfigOperation.DELETE:
            return None
        case ConfigOperation.APPEND | ConfigOperation.SUBTRACT:
            if not controller.rules.is_list(resource_type, key):
                raise ApiError(
                    ErrorCode.INVALID_CONFIG,
                    f"Can't {ConfigOperation(operation).name} to key {key} because its type is not"
                    " LIST.",
                )
            if current is None:
                current = controller.rules.default_value(resource_type, key)
            parts = [part for part in (current or "").split(",") if part]
            changed = (operand or "").split(",")
            if operation == ConfigOperation.APPEND:
                parts += [part for part in dict.fromkeys(changed) if part not in parts]
            else:
                parts = [part for part in parts if part not in changed]
            return ",".join(parts)
        case _:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {operation}")


def _check_value_size(value: str) -> None:
    if len(value.encode()) > CONFIG_VALUE_SIZE_MAX:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            "The configuration value cannot be added because it exceeds the maximum value size of"
            f" {CONFIG_VALUE_SIZE_MAX} bytes.",
        )


def _validate(
    controller: ControllerView, resource_type: int, name: str, values: Mapping[str, str]
) -> None:
    rules = controller.rules
    try:
        match resource_type:
            case ResourceType.TOPIC:
                if not name:
                    raise ApiError(
                        ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed."
                    )
                rules.validate_topic(values)
            case ResourceType.BROKER:
                _check_broker_name(name)
                rules.validate_broker(values, per_broker=bool(name))
            case ResourceType.GROUP:
                if not name:
                    raise ApiError(
                        ErrorCode.INVALID_REQUEST, "Default group resources are not allowed."
                    )
                rules.validate_group(values)
            case ResourceType.CLIENT_METRICS:
                if not name:
                    raise ApiError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
                rules.validate_client_metrics(values)
    except ConfigError as error:
        # Kafka answers so for brokers, and clients rely on it.
        code = (
            ErrorCode.INVALID_REQUEST
            if resource_type == ResourceType.BROKER
            else ErrorCode.INVALID_CONFIG
        )
        raise ApiError(code, str(error)) from None


def _check_receiver(resource_type: int, name: str, receiver_id: int | None) -> None:
    if resource_type != ResourceType.BROKER or not name or receiver_id is None:
        return
    _check_broker_name(name)
    if int(name) != receiver_id:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {receiver_id}, but received {name}",
        )


def _check_broker_name(name: str) -> None:
    if not name:
        return
    try:
        broker_id = int(name)
    except ValueError:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}"
        ) from None
    if broker_id < 0:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Invalid negative broker ID.")


def _check_exists(controller: ControllerView, resource_type: int, name: str) -> None:
    if resource_type == ResourceType.TOPIC:
        if name not in controller.image.topics_by_name:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
            )
    elif (
        resource_type == ResourceType.BROKER
        and name
        and int(name) not in controller.image.brokers
        and int(name) not in controller.image.controllers
    ):
        raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {name} found.")


def _check_min_isr(
    controller: ControllerView, resource_type: int, name: str, records: list[ConfigRecord]
) -> None:
    if resource_type != ResourceType.BROKER or not controller.elr_enabled:
        return
    for record in records:
        if record.name != MIN_INSYNC_REPLICAS:
            continue
        if name:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
            )
        if record.value is None:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
            )
