"""A consumer's settings, checked together as Kafka checks them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from moldau.client.config import CONSUMER_KEYS, gather, no_effect, parse_settings
from moldau.client.consumer.machine.positions import ResetKind, ResetStrategy
from moldau.client.consumer.membership import check_settings
from moldau.client.errors import ConfigError
from moldau.client.interceptors import Interceptors, resolve_interceptors
from moldau.client.serialization import Deserialize, resolve_deserializer
from moldau.config.durations import parse_duration_ms
from moldau.config.section import Section

__all__ = ["ConsumerSettings", "consumer_settings"]

SYSTEM_BUFFER = -1

_NUMBERS = itertools.count(1)
# What each protocol leaves to the other, or to the broker.
_NOT_FOR_CONSUMER_PROTOCOL: tuple[str, ...] = (
    "partition.assignment.strategy",
    "heartbeat.interval.ms",
    "session.timeout.ms",
)
_NOT_FOR_CLASSIC_PROTOCOL: tuple[str, ...] = ("group.remote.assignor",)


class ConsumerSettings(Section, keys=CONSUMER_KEYS):
    """Kafka's keys as the consumer uses them; `values` has all of them by Kafka's names."""

    values: Mapping[str, Any]
    client_id: str
    group_id: str | None
    group_instance_id: str | None
    is_consumer_protocol: bool
    auto_offset_reset: ResetStrategy
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    read_committed: bool
    check_crcs: bool
    client_rack: str
    default_api_timeout_ms: int
    exclude_internal_topics: bool
    allow_auto_create_topics: bool
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    fetch_min_bytes: int
    max_partition_fetch_bytes: int
    max_poll_interval_ms: int
    max_poll_records: int
    receive_buffer_bytes: int
    key_deserializer: Deserialize | None
    value_deserializer: Deserialize | None
    interceptors: Interceptors


def consumer_settings(
    config: Mapping[str, Any] | None, arguments: Mapping[str, Any]
) -> ConsumerSettings:
    """From what the application gave; raises ConfigError."""
    given = gather(CONSUMER_KEYS, config, arguments)
    values = parse_settings(CONSUMER_KEYS, given, no_effect=no_effect.CONSUMER)
    is_consumer_protocol = values["group.protocol"].lower() == "consumer"
    _check_protocol(given, is_consumer_protocol)
    group_id = _group_id(values)
    enable_auto_commit = values["enable.auto.commit"]
    if group_id is None:
        if "enable.auto.commit" in given and enable_auto_commit:
            raise ConfigError(
                "enable.auto.commit cannot be set to true when default group id (null) is used."
                " Set group.id",
                key="enable.auto.commit",
            )
        enable_auto_commit = False
    else:
        check_settings(values, values["partition.assignment.strategy"])
    client_id = values["client.id"] or _made_client_id(group_id, values["group.instance.id"])
    values["client.id"] = client_id
    return ConsumerSettings.read(
        values.__getitem__,
        values=values,
        client_id=client_id,
        group_id=group_id,
        is_consumer_protocol=is_consumer_protocol,
        auto_offset_reset=parse_reset(values["auto.offset.reset"]),
        enable_auto_commit=enable_auto_commit,
        read_committed=values["isolation.level"] == "read_committed",
        # Kafka's default of 64 KB holds back the broker while the application's thread has
        # the interpreter; the system's own measure grows with what is received.
        receive_buffer_bytes=(
            values["receive.buffer.bytes"] if "receive.buffer.bytes" in given else SYSTEM_BUFFER
        ),
        key_deserializer=resolve_deserializer(values["key.deserializer"], True, given),
        value_deserializer=resolve_deserializer(values["value.deserializer"], False, given),
        interceptors=resolve_interceptors(
            values["interceptor.classes"], {**given, "client.id": client_id}
        ),
    )


def parse_reset(text: str) -> ResetStrategy:
    """`auto.offset.reset`, which the key's own rule has found sound."""
    kind, _, duration = text.partition(":")
    return ResetStrategy(ResetKind(kind), parse_duration_ms(duration) or 0 if duration else 0)


def _group_id(values: Mapping[str, Any]) -> str | None:
    group_id = values["group.id"]
    if group_id is None:
        return None
    if not group_id.strip():
        raise ConfigError(
            "The configured group.id should not be an empty string or whitespace.", key="group.id"
        )
    return str(group_id)


def _check_protocol(given: Mapping[str, Any], is_consumer_protocol: bool) -> None:
    name = "CONSUMER" if is_consumer_protocol else "CLASSIC"
    refused = _NOT_FOR_CONSUMER_PROTOCOL if is_consumer_protocol else _NOT_FOR_CLASSIC_PROTOCOL
    found = [key for key in refused if given.get(key) is not None and str(given[key]).strip()]
    if found:
        raise ConfigError(
            f"{', '.join(found)} cannot be set when group.protocol={name}", key=found[0]
        )


def _made_client_id(group_id: str | None, instance_id: str | None) -> str:
    if group_id is None:
        return f"consumer-null-{next(_NUMBERS)}"
    return f"consumer-{group_id}-{instance_id or next(_NUMBERS)}"
