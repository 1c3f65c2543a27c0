"""The admin client: every operation of Kafka's Admin, on an event loop."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Unpack
from uuid import UUID

from moldau.client.admin.acls import AclOperations
from moldau.client.admin.cluster import ClusterOperations
from moldau.client.admin.configs import ConfigOperations
from moldau.client.admin.driver import Driver
from moldau.client.admin.group_listings import GroupListingOperations
from moldau.client.admin.group_offsets import GroupOffsetOperations
from moldau.client.admin.groups import GroupOperations
from moldau.client.admin.log_dirs import LogDirOperations
from moldau.client.admin.partitions import PartitionOperations
from moldau.client.admin.security import SecurityOperations
from moldau.client.admin.share_offsets import ShareOffsetOperations
from moldau.client.admin.topics import TopicOperations
from moldau.client.admin.transactions import TransactionOperations
from moldau.client.cluster import ClusterClient
from moldau.client.config import ADMIN_KEYS, gather, parse_settings
from moldau.client.config.keywords import AdminKeywords
from moldau.client.errors import ConfigError, IllegalStateError
from moldau.client.metrics import (
    ADMIN,
    KafkaMetric,
    MetricName,
    Metrics,
    NetworkMetrics,
    add_app_info,
)
from moldau.client.network_settings import NetworkSettings
from moldau.client.other_clients import ADMIN_NAMES, point_from
from moldau.client.telemetry import TelemetryReporter

__all__ = ["AsyncAdmin"]

_NUMBERS = itertools.count(1)


@point_from(ADMIN_NAMES)
class AsyncAdmin(
    TopicOperations,
    ConfigOperations,
    ClusterOperations,
    GroupListingOperations,
    GroupOperations,
    GroupOffsetOperations,
    ShareOffsetOperations,
    PartitionOperations,
    LogDirOperations,
    TransactionOperations,
    AclOperations,
    SecurityOperations,
):
    """Administers a cluster; made and used on one event loop.

    Operations on several things give `Results`, by thing. They raise the first error (its
    `results` holds what became of the others), or with `check=False` leave that to the caller.
    Each retries what passes until its `timeout` (seconds), `default.api.timeout.ms` if None.
    """

    def __init__(
        self, config: Mapping[str, Any] | None = None, **settings: Unpack[AdminKeywords]
    ) -> None:
        values = parse_settings(ADMIN_KEYS, gather(ADMIN_KEYS, config, settings))
        self._values = values
        client_id = values["client.id"] or f"adminclient-{next(_NUMBERS)}"
        self._metrics = Metrics.of(values, client_id=client_id)
        add_app_info(self._metrics)
        self._cluster = ClusterClient(
            NetworkSettings.of(values, client_id=client_id),
            observer=NetworkMetrics(self._metrics, ADMIN),
        )
        self._telemetry = TelemetryReporter.of(values, self._cluster, self._metrics)
        self._driver = Driver(
            self._cluster,
            timeout_ms=_api_timeout_ms(values, config, settings),
            retries=values["retries"],
            on_use=self._telemetry.start if self._telemetry is not None else lambda: None,
        )
        self._closed = False

    def __repr__(self) -> str:
        return f"<AsyncAdmin at {self._described()}>"

    def _described(self) -> str:
        """Where the cluster is, and whether the client is closed."""
        return f"{self._cluster.bootstrap}{', closed' if self._closed else ''}"

    async def __aenter__(self) -> AsyncAdmin:
        """Raises ConfigError if no name in `bootstrap.servers` resolves, as the first call does
        otherwise."""
        await self._cluster.bootstrap.resolve()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self, timeout: float | None = None) -> None:
        """Let go of all connections. Operations under way fail.

        >>> await admin.close()
        """
        if self._closed:
            return
        self._closed = True
        try:
            async with asyncio.timeout(timeout):
                if self._telemetry is not None:
                    await self._telemetry.close()
        except TimeoutError:
            pass
        finally:
            await self._cluster.close()
            self._metrics.close()

    def metrics(self) -> dict[MetricName, KafkaMetric]:
        """What the client has measured, by Kafka's names.

        >>> rates = {name.name: metric.value for name, metric in admin.metrics().items()}
        """
        return self._metrics.metrics()

    async def client_instance_id(self, timeout: float | None = None) -> UUID:
        """The id under which the cluster knows this client's metrics; always the same one.

        >>> print(await admin.client_instance_id(timeout=5))
        """
        if self._telemetry is None:
            raise IllegalStateError(
                "this client pushes no metrics", advice="set enable.metrics.push to true"
            )
        timeout_ms = self._driver.deadline(timeout).timeout_ms
        return await self._telemetry.client_instance_id(timeout_ms=timeout_ms)

    def register_metric_for_subscription(self, metric: KafkaMetric) -> None:
        """Push a metric of the application too, if the cluster subscribes to it.

        >>> admin.register_metric_for_subscription(metric)
        """
        if self._telemetry is not None:
            self._telemetry.register(metric)

    def unregister_metric_from_subscription(self, metric: KafkaMetric) -> None:
        """Push it no longer.

        >>> admin.unregister_metric_from_subscription(metric)
        """
        if self._telemetry is not None:
            self._telemetry.unregister(metric)


def _api_timeout_ms(
    values: Mapping[str, Any], config: Mapping[str, Any] | None, settings: Mapping[str, Any]
) -> int:
    """`default.api.timeout.ms`, at least `request.timeout.ms` unless it was set lower."""
    api_ms: int = values["default.api.timeout.ms"]
    request_ms: int = values["request.timeout.ms"]
    if api_ms >= request_ms:
        return api_ms
    if "default.api.timeout.ms" in (config or {}) or "default_api_timeout_ms" in settings:
        raise ConfigError(
            f"default.api.timeout.ms ({api_ms}) must be at least request.timeout.ms ({request_ms})",
            key="default.api.timeout.ms",
        )
    return request_ms
