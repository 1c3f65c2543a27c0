"""A share consumer's settings, checked together as Kafka checks them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from moldau.client.config import CONSUMER_KEYS, gather, parse_settings
from moldau.client.errors import ConfigError
from moldau.client.serialization import Deserialize, resolve_deserializer

__all__ = ["ShareSettings"]

_NUMBERS = itertools.count(1)
# The group or the broker decides what these would.
REFUSED: Final = (
    "auto.offset.reset",
    "enable.auto.commit",
    "group.instance.id",
    "isolation.level",
    "partition.assignment.strategy",
    "interceptor.classes",
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "group.protocol",
    "group.remote.assignor",
)
BATCH_OPTIMIZED: Final = 0
RECORD_LIMIT: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareSettings:
    """Kafka's keys as the share consumer uses them; `values` has all of them by Kafka's names."""

    values: Mapping[str, Any]
    client_id: str
    group_id: str
    client_rack: str
    is_explicit: bool
    share_acquire_mode: int
    check_crcs: bool
    default_api_timeout_ms: int
    allow_auto_create_topics: bool
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    fetch_min_bytes: int
    max_poll_interval_ms: int
    max_poll_records: int
    key_deserializer: Deserialize | None
    value_deserializer: Deserialize | None

    @classmethod
    def of(cls, config: Mapping[str, Any] | None, arguments: Mapping[str, Any]) -> ShareSettings:
        """From what the application gave; raises ConfigError."""
        given = gather(CONSUMER_KEYS, config, arguments)
        refused = [key for key in REFUSED if given.get(key) is not None]
        if refused:
            raise ConfigError(
                f"{', '.join(refused)} cannot be set when using a share group.", key=refused[0]
            )
        values = parse_settings(CONSUMER_KEYS, given)
        group_id = values["group.id"]
        if group_id is None or not group_id.strip():
            raise ConfigError(
                "You must provide a valid group.id in the consumer configuration.", key="group.id"
            )
        client_id = values["client.id"] or f"consumer-{group_id}-{next(_NUMBERS)}"
        values["client.id"] = client_id
        mode = values["share.acquire.mode"].lower()
        return cls(
            values=values,
            client_id=client_id,
            group_id=group_id,
            client_rack=values["client.rack"],
            is_explicit=values["share.acknowledgement.mode"] == "explicit",
            share_acquire_mode=RECORD_LIMIT if mode == "record_limit" else BATCH_OPTIMIZED,
            check_crcs=values["check.crcs"],
            default_api_timeout_ms=values["default.api.timeout.ms"],
            allow_auto_create_topics=values["allow.auto.create.topics"],
            fetch_max_bytes=values["fetch.max.bytes"],
            fetch_max_wait_ms=values["fetch.max.wait.ms"],
            fetch_min_bytes=values["fetch.min.bytes"],
            max_poll_interval_ms=values["max.poll.interval.ms"],
            max_poll_records=values["max.poll.records"],
            key_deserializer=resolve_deserializer(values["key.deserializer"], True, given),
            value_deserializer=resolve_deserializer(values["value.deserializer"], False, given),
        )
