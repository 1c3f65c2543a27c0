"""Decides which client metrics are requested, and which pushed ones are accepted (KIP-714).

A client requests its subscription, gets an id, a list of metric name prefixes and an interval, and
pushes at that interval.

Invariants: a client that keeps to its interval is never rejected (the first push after a new
subscription may come at any time, because clients spread it at random), one that does not is
throttled, and a change of the subscriptions gives matching clients a new subscription id, which
makes them request it again. At most CLIENTS_MAX clients are remembered.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from moldau.broker.config.resource_keys import CLIENT_METRICS_SELECTORS
from moldau.times import ElapsedMs
from moldau.wire.checksums import crc32c
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.uuids import ONE_UUID, ZERO_UUID, uuid_to_text

CLIENTS_MAX: Final = 16_384
INTERVAL_MS_DEFAULT: Final = 300_000
#: A client is forgotten after three intervals of silence, but not sooner than this.
EXPIRY_MS_MIN: Final = 60_000
EXPIRED_PER_CALL_MAX: Final = 16
#: zstd, lz4, gzip, snappy: the ids of record batches, the best first.
ACCEPTED_COMPRESSION_TYPES: Final = (4, 3, 1, 2)
NO_COMPRESSION: Final = 0
ALL_METRICS: Final = "*"


@dataclass(frozen=True, slots=True)
class Client:
    """The properties of a client that subscriptions can match."""

    client_id: str
    software_name: str
    software_version: str
    source_address: str
    source_port: int


@dataclass(frozen=True, slots=True)
class Granted:
    """The response to a client that requests its subscription."""

    client_instance_id: UUID
    subscription_id: int
    metrics: tuple[str, ...]
    push_interval_ms: int


@dataclass(frozen=True, slots=True)
class Payload:
    """Accepted metrics: OTLP bytes, still compressed."""

    client_instance_id: UUID
    client: Client
    push_interval_ms: int
    terminating: bool
    compression_type: int
    metrics: bytes


@dataclass(frozen=True, slots=True)
class _Subscription:
    metrics: tuple[str, ...]
    interval_ms: int
    match: Mapping[str, re.Pattern[str]]


class _Instance:
    """One client instance as last granted."""

    __slots__ = (
        "client",
        "granted",
        "last_error",
        "last_get_ms",
        "last_push_ms",
        "revision",
        "seen_ms",
        "terminating",
    )

    def __init__(self, client: Client, granted: Granted, revision: int, now_ms: ElapsedMs) -> None:
        self.client = client
        self.granted = granted
        self.revision = revision
        self.seen_ms = now_ms
        self.last_get_ms: int | None = None
        self.last_push_ms: int | None = None
        self.last_error = ErrorCode.NONE
        self.terminating = False

    def expired(self, now_ms: ElapsedMs) -> bool:
        return now_ms - self.seen_ms >= max(EXPIRY_MS_MIN, 3 * self.granted.push_interval_ms)

    def may_get(self, now_ms: ElapsedMs) -> bool:
        """Whether a request for the subscription is due, or the last response asked for it."""
        last_ms = max(_or_never(self.last_get_ms), _or_never(self.last_push_ms))
        return now_ms - last_ms >= self.granted.push_interval_ms or self.last_error in (
            ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        )

    def may_push(self, now_ms: ElapsedMs) -> bool:
        """Whether a push is due: the first one of a subscription always is."""
        last_push_ms = _or_never(self.last_push_ms)
        return (
            _or_never(self.last_get_ms) > last_push_ms
            or now_ms - last_push_ms >= self.granted.push_interval_ms
        )


class ClientTelemetry:
    """See the module. Pure: the caller passes the time and random ids, and forwards the metrics."""

    def __init__(self, *, telemetry_max_bytes: int) -> None:
        self.telemetry_max_bytes = telemetry_max_bytes
        self._subscriptions: dict[str, _Subscription] = {}
        self._revision = 0
        # The least recently seen comes first.
        self._instances: OrderedDict[UUID, _Instance] = OrderedDict()

    @property
    def client_count(self) -> int:
        return len(self._instances)

    def update_subscription(self, name: str, configs: Mapping[str, str]) -> None:
        """Apply a client-metrics resource (keys metrics, interval.ms, match); no configs mean
        that it was deleted. Raises INVALID_CONFIG."""
        if configs:
            self._subscriptions[name] = _parse_subscription(name, configs)
        elif self._subscriptions.pop(name, None) is None:
            return
        self._revision += 1

    @property
    def is_wanted(self) -> bool:
        """Whether there is any subscription."""
        return bool(self._subscriptions)

    def subscription_names(self) -> list[str]:
        return sorted(self._subscriptions)

    def get(
        self, client_instance_id: UUID, client: Client, *, now_ms: ElapsedMs, fresh_id: UUID
    ) -> Granted:
        """A client requests its subscription; `fresh_id` is used if it has no id yet."""
        if client_instance_id == ZERO_UUID:
            client_instance_id = fresh_id
        instance = self._instance(client_instance_id, client, now_ms)
        if not instance.may_get(now_ms):
            raise _too_early(client_instance_id)
        instance.last_get_ms = now_ms
        instance.last_error = ErrorCode.NONE
        return instance.granted

    def push(
        self,
        client_instance_id: UUID,
        client: Client,
        *,
        now_ms: ElapsedMs,
        subscription_id: int,
        terminating: bool,
        compression_type: int,
        metrics: bytes,
    ) -> Payload | None:
        """A client pushes metrics. Returns what is to be forwarded, or None."""
        if client_instance_id in (ZERO_UUID, ONE_UUID):
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"client instance id {uuid_to_text(client_instance_id)} is reserved: "
                "ask for a subscription first",
            )
        instance = self._instance(client_instance_id, client, now_ms)
        try:
            self._check_push(
                instance,
                now_ms=now_ms,
                subscription_id=subscription_id,
                terminating=terminating,
                compression_type=compression_type,
                size=len(metrics),
            )
        except ApiError as error:
            instance.last_error = error.code
            raise
        finally:
            instance.terminating = terminating
        instance.last_error = ErrorCode.NONE
        if not metrics:
            return None
        return Payload(
            client_instance_id,
            instance.client,
            instance.granted.push_interval_ms,
            terminating,
            compression_type,
            metrics,
        )

    def _check_push(
        self,
        instance: _Instance,
        *,
        now_ms: ElapsedMs,
        subscription_id: int,
        terminating: bool,
        compression_type: int,
        size: int,
    ) -> None:
        name = uuid_to_text(instance.granted.client_instance_id)
        if instance.terminating:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"client {name} has said that it terminates: no push is taken after that",
            )
        # A client that terminates pushes its last metrics immediately.
        if not terminating and not instance.may_push(now_ms):
            raise _too_early(instance.granted.client_instance_id)
        instance.last_push_ms = now_ms
        if subscription_id != instance.granted.subscription_id:
            raise ApiError(
                ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
                f"client {name} pushes for subscription {subscription_id}, "
                f"its subscription is {instance.granted.subscription_id}",
            )
        if compression_type not in (NO_COMPRESSION, *ACCEPTED_COMPRESSION_TYPES):
            raise ApiError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                f"client {name} pushes with unknown compression type {compression_type}",
            )
        if size > self.telemetry_max_bytes:
            raise ApiError(
                ErrorCode.TELEMETRY_TOO_LARGE,
                f"client {name} pushes {size} bytes, over the limit of "
                f"{self.telemetry_max_bytes} (telemetry.max.bytes)",
            )

    def _instance(self, client_instance_id: UUID, client: Client, now_ms: ElapsedMs) -> _Instance:
        """The client's state, created if it is unknown or its subscription may have changed."""
        self._forget_expired(now_ms)
        instance = self._instances.get(client_instance_id)
        if instance is None or instance.expired(now_ms):
            instance = self._make(client_instance_id, client, now_ms)
        elif instance.revision != self._revision:
            instance = self._make(client_instance_id, instance.client, now_ms)
        instance.seen_ms = now_ms
        self._instances[client_instance_id] = instance
        self._instances.move_to_end(client_instance_id)
        if len(self._instances) > CLIENTS_MAX:
            self._instances.popitem(last=False)
        return instance

    def _make(self, client_instance_id: UUID, client: Client, now_ms: ElapsedMs) -> _Instance:
        attributes = {
            "client_id": client.client_id,
            "client_instance_id": uuid_to_text(client_instance_id),
            "client_software_name": client.software_name,
            "client_software_version": client.software_version,
            "client_source_address": client.source_address,
            "client_source_port": str(client.source_port),
        }
        interval_ms = INTERVAL_MS_DEFAULT
        wanted: set[str] = set()
        for subscription in self._subscriptions.values():
            if all(
                pattern.fullmatch(attributes[selector])
                for selector, pattern in subscription.match.items()
            ):
                wanted.update(subscription.metrics)
                interval_ms = min(interval_ms, subscription.interval_ms)
        metrics = (ALL_METRICS,) if ALL_METRICS in wanted else tuple(sorted(wanted))
        granted = Granted(
            client_instance_id,
            _subscription_id(metrics, interval_ms, client_instance_id),
            metrics,
            interval_ms,
        )
        return _Instance(client, granted, self._revision, now_ms)

    def _forget_expired(self, now_ms: ElapsedMs) -> None:
        """A few per call are enough: at most one is added per call."""
        for _ in range(min(EXPIRED_PER_CALL_MAX, len(self._instances))):
            oldest = next(iter(self._instances.values()))
            if not oldest.expired(now_ms):
                return
            self._instances.popitem(last=False)


def _parse_subscription(name: str, configs: Mapping[str, str]) -> _Subscription:
    interval = configs.get("interval.ms", str(INTERVAL_MS_DEFAULT))
    try:
        interval_ms = int(interval)
    except ValueError:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"client metrics {name}: interval.ms {interval!r} is not a number",
        ) from None
    match = {}
    for entry in _split(configs.get("match", "")):
        selector, separator, pattern = (part.strip() for part in entry.partition("="))
        if not separator or selector not in CLIENT_METRICS_SELECTORS:
            allowed = ", ".join(sorted(CLIENT_METRICS_SELECTORS))
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"client metrics {name}: match {entry!r} is not selector=pattern "
                f"with one of the selectors {allowed}",
            )
        try:
            match[selector] = re.compile(pattern)
        except re.error as error:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"client metrics {name}: match {entry!r} has a bad pattern: {error}",
            ) from None
    return _Subscription(tuple(_split(configs.get("metrics", ""))), interval_ms, match)


def _split(text: str) -> list[str]:
    return [entry for entry in (part.strip() for part in text.split(",")) if entry]


def _subscription_id(metrics: tuple[str, ...], interval_ms: int, client_instance_id: UUID) -> int:
    """The same for the same grant, different for different clients, in an int32."""
    text = f"[{', '.join(metrics)}]{interval_ms}"
    mixed = client_instance_id.int >> 64 ^ client_instance_id.int & (1 << 64) - 1
    value = crc32c(text.encode()) ^ (mixed >> 32 ^ mixed & 0xFFFFFFFF)
    return value - (1 << 32) if value >= 1 << 31 else value


def _or_never(time_ms: int | None) -> float:
    return float("-inf") if time_ms is None else time_ms


def _too_early(client_instance_id: UUID) -> ApiError:
    return ApiError(
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        f"client {uuid_to_text(client_instance_id)} asks before its next push interval",
    )
