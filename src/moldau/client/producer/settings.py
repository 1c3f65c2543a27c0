"""A producer's settings: Kafka's keys with values, checked together.

Invariants: what Java's client refuses is refused here with a ConfigError. Idempotence that
was not asked for gives way to settings that exclude it, and is refused with them if it was.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping
from typing import Any

from moldau.client.config import PRODUCER_KEYS, gather, no_effect, parse_settings
from moldau.client.errors import ConfigError
from moldau.client.interceptors import Interceptors, resolve_interceptors
from moldau.client.network_settings import NetworkSettings
from moldau.client.producer.machine.partitioners import UniformStickyPartitioner
from moldau.client.producer.partitioner_class import resolve_partitioner
from moldau.client.serialization import Serialize, resolve_serializer
from moldau.config.section import Section
from moldau.wire.compression import Compression
from moldau.wire.constants import ACKS_ALL

__all__ = ["ProducerSettings", "producer_settings"]

_log = logging.getLogger(__name__)

IN_FLIGHT_MAX_WITH_IDEMPOTENCE = 5
_INT32_MAX = 2**31 - 1
_ids = itertools.count(1)


class ProducerSettings(Section, keys=PRODUCER_KEYS):
    """Fields have Kafka's names."""

    network: NetworkSettings
    acks: int
    batch_size: int
    buffer_memory: int
    compression: Compression
    compression_level: int | None
    delivery_timeout_ms: int
    enable_idempotence: bool
    linger_ms: int
    max_block_ms: int
    max_in_flight: int
    max_request_size: int
    metadata_max_age_ms: int
    metadata_max_idle_ms: int
    partitioner: Any
    partitioner_adaptive: bool
    partitioner_availability_timeout_ms: int
    partitioner_ignore_keys: bool
    request_timeout_ms: int
    retries: int
    transaction_timeout_ms: int
    transactional_id: str | None
    key_serializer: Serialize
    value_serializer: Serialize
    interceptors: Interceptors
    client_id: str
    values: Mapping[str, Any]

    @property
    def orders_by_muting(self) -> bool:
        """One request at a time: a partition's next batch waits until the one before is done."""
        return self.max_in_flight == 1


def producer_settings(
    config: Mapping[str, Any] | None, arguments: Mapping[str, Any]
) -> ProducerSettings:
    """From what a user gave; raises ConfigError."""
    given = gather(PRODUCER_KEYS, config, arguments)
    values = parse_settings(PRODUCER_KEYS, given, no_effect=no_effect.PRODUCER)
    explicit = {name for name, value in given.items() if value is not None}
    acks = ACKS_ALL if values["acks"] == "all" else int(values["acks"])
    idempotent = _idempotence(values, explicit, acks)
    _check_transactions(values, explicit, idempotent)
    client_id = _client_id(values, explicit)
    partitioner = resolve_partitioner(values["partitioner.class"], dict(given))
    ignore_keys = values["partitioner.ignore.keys"]
    if isinstance(partitioner, UniformStickyPartitioner):
        partitioner, ignore_keys = None, True
    compression = Compression[values["compression.type"].upper()]
    levels = {
        each: values[f"compression.{each.name.lower()}.level"]
        for each in (Compression.GZIP, Compression.LZ4, Compression.ZSTD)
    }
    return ProducerSettings.read(
        values.__getitem__,
        network=NetworkSettings.of(
            values,
            client_id=client_id,
            # Beside Produce, whose number the sender keeps, there is little else.
            calls_in_flight_max=values["max.in.flight.requests.per.connection"] + 16,
        ),
        acks=acks,
        compression=compression,
        compression_level=levels.get(compression),
        delivery_timeout_ms=_delivery_timeout_ms(values, explicit),
        enable_idempotence=idempotent,
        linger_ms=min(values["linger.ms"], _INT32_MAX),
        max_in_flight=values["max.in.flight.requests.per.connection"],
        partitioner=partitioner,
        partitioner_adaptive=values["partitioner.adaptive.partitioning.enable"],
        partitioner_ignore_keys=ignore_keys,
        key_serializer=resolve_serializer(values["key.serializer"], True, given),
        value_serializer=resolve_serializer(values["value.serializer"], False, given),
        interceptors=resolve_interceptors(values["interceptor.classes"], given),
        client_id=client_id,
        values={**values, "client.id": client_id, "enable.idempotence": idempotent},
    )


def _idempotence(values: Mapping[str, Any], explicit: set[str], acks: int) -> bool:
    if not values["enable.idempotence"]:
        return False
    asked_for = "enable.idempotence" in explicit
    enabled = True
    if values["retries"] == 0:
        if asked_for:
            raise ConfigError(
                "Must set retries to non-zero when using the idempotent producer.", key="retries"
            )
        _log.info("Idempotence is off since retries is 0.")
        enabled = False
    if acks != ACKS_ALL:
        if asked_for:
            raise ConfigError(
                "Must set acks to all in order to use the idempotent producer: without, records "
                "could be lost or come twice.",
                key="acks",
            )
        _log.info("Idempotence is off since acks is %s, not all.", acks)
        enabled = False
    in_flight = values["max.in.flight.requests.per.connection"]
    # Java refuses this also where idempotence was not asked for and is off for another reason.
    if in_flight > IN_FLIGHT_MAX_WITH_IDEMPOTENCE:
        raise ConfigError(
            "To use the idempotent producer, max.in.flight.requests.per.connection must be at most "
            f"{IN_FLIGHT_MAX_WITH_IDEMPOTENCE}, not {in_flight}; or set enable.idempotence to "
            "false.",
            key="max.in.flight.requests.per.connection",
        )
    return enabled


def _check_transactions(values: Mapping[str, Any], explicit: set[str], idempotent: bool) -> None:
    if not idempotent and "transactional.id" in explicit:
        raise ConfigError(
            "Cannot set a transactional.id without also enabling idempotence.",
            key="transactional.id",
        )
    if values["transaction.two.phase.commit.enable"] and "transaction.timeout.ms" in explicit:
        raise ConfigError(
            "Cannot set transaction.timeout.ms when transaction.two.phase.commit.enable is true: "
            "transactions do not expire then.",
            key="transaction.timeout.ms",
        )
    if values["transaction.two.phase.commit.enable"]:
        raise ConfigError.invalid(
            "transaction.two.phase.commit.enable",
            "true",
            "two-phase commit (KIP-939) is not supported: remove the key",
        )


def _delivery_timeout_ms(values: Mapping[str, Any], explicit: set[str]) -> int:
    delivery_ms: int = values["delivery.timeout.ms"]
    least_ms: int = min(values["linger.ms"] + values["request.timeout.ms"], _INT32_MAX)
    if delivery_ms >= least_ms:
        return delivery_ms
    if "delivery.timeout.ms" in explicit:
        raise ConfigError(
            "delivery.timeout.ms should be equal to or larger than linger.ms + request.timeout.ms: "
            f"{delivery_ms} is less than {least_ms}.",
            key="delivery.timeout.ms",
        )
    _log.warning("delivery.timeout.ms is set to %d: linger.ms + request.timeout.ms", least_ms)
    return least_ms


def _client_id(values: Mapping[str, Any], explicit: set[str]) -> str:
    if "client.id" in explicit:
        return str(values["client.id"])
    return f"producer-{values['transactional.id'] or next(_ids)}"
