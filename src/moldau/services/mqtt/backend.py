"""Backend: what every connection uses."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from moldau.clock import Clock
from moldau.services.mqtt.clients import Clients
from moldau.services.mqtt.config import MqttConfig
from moldau.services.mqtt.publishing import Publisher
from moldau.services.mqtt.retained import RetainedStore
from moldau.services.mqtt.sessions import Sessions

__all__ = ["Backend"]


class Served(Protocol):
    """A connection."""

    worker: asyncio.Task[None] | None


@dataclass(slots=True)
class Backend:
    config: MqttConfig
    clock: Clock
    clients: Clients
    retained: RetainedStore
    publisher: Publisher
    sessions: Sessions
    connections: set[Served] = field(default_factory=set)

    def admit(self, connection: Served) -> bool:
        if len(self.connections) >= self.config["connections.max"]:
            return False
        self.connections.add(connection)
        return True

    def dismiss(self, connection: Served) -> None:
        self.connections.discard(connection)
