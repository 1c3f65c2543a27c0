"""What an admin client has beside its operations: settings, connections, metrics and a driver.

Invariants: `close` ends everything that was opened here, once; the driver runs no operation
afterwards.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from moldau.client.admin.driver import Driver
from moldau.client.cluster import ClusterClient
from moldau.client.config import ADMIN_KEYS, gather, no_effect, parse_settings
from moldau.client.errors import ConfigError, IllegalStateError
from moldau.client.metrics import ADMIN, Metrics, NetworkMetrics, add_app_info
from moldau.client.network_settings import NetworkSettings
from moldau.client.telemetry import TelemetryReporter

__all__ = ["AdminConnection"]

_NUMBERS = itertools.count(1)


class AdminConnection:
    """A client's end of a cluster, for areas of operations; created and used on one event loop."""

    def __init__(self, config: Mapping[str, Any] | None, settings: Mapping[str, Any]) -> None:
        values = parse_settings(
            ADMIN_KEYS, gather(ADMIN_KEYS, config, settings), no_effect=no_effect.ADMIN
        )
        client_id = values["client.id"] or f"adminclient-{next(_NUMBERS)}"
        self.metrics = Metrics.of(values, client_id=client_id)
        add_app_info(self.metrics)
        self.cluster = ClusterClient(
            NetworkSettings.of(values, client_id=client_id),
            observer=NetworkMetrics(self.metrics, ADMIN),
        )
        self.telemetry = TelemetryReporter.of(values, self.cluster, self.metrics)
        self.driver = Driver(
            self.cluster,
            timeout_ms=_api_timeout_ms(values, config, settings),
            retries=values["retries"],
            on_use=self.telemetry.start if self.telemetry is not None else lambda: None,
        )
        self.closed = False

    async def client_instance_id(self, timeout: float | None) -> UUID:
        """The id under which the cluster knows this client's metrics; always the same one."""
        if self.telemetry is None:
            raise IllegalStateError(
                "this client pushes no metrics", advice="set enable.metrics.push to true"
            )
        timeout_ms = self.driver.deadline(timeout).timeout_ms
        return await self.telemetry.client_instance_id(timeout_ms=timeout_ms)

    async def close(self, timeout: float | None) -> None:
        """Close all connections. Operations under way fail."""
        if self.closed:
            return
        self.closed = True
        try:
            async with asyncio.timeout(timeout):
                if self.telemetry is not None:
                    await self.telemetry.close()
        except TimeoutError:
            pass
        finally:
            await self.cluster.close()
            self.metrics.close()


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
