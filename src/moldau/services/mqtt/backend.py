"""Backend: what every connection uses."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from moldau.clock import Clock
from moldau.services.mqtt.clients import Clients
from moldau.services.mqtt.config import MqttConfig
from moldau.services.mqtt.proxy_metrics import ProxyMetrics
from moldau.services.mqtt.publishing import Publisher
from moldau.services.mqtt.retained import RetainedStore
from moldau.services.mqtt.sessions import Sessions

__all__ = ["Backend"]


@dataclass(slots=True)
class Backend:
    config: MqttConfig
    clock: Clock
    clients: Clients
    retained: RetainedStore
    publisher: Publisher
    sessions: Sessions
    metrics: ProxyMetrics = field(default_factory=ProxyMetrics)
    connections: set[object] = field(default_factory=set)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def admit(self, connection: object) -> bool:
        if len(self.connections) >= self.config["connections.max"]:
            self.metrics.connections_refused_total += 1
            return False
        self.metrics.connections_opened_total += 1
        self.connections.add(connection)
        return True

    def dismiss(self, connection: object) -> None:
        self.connections.discard(connection)

    def run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """In a task that is waited for when the proxy stops."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task
