"""MqttService: wires the proxy and runs it. Start reading here."""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from moldau.client import KafkaError
from moldau.clock import LoopClock
from moldau.config.errors import ConfigError
from moldau.http.machine.listeners import Listener
from moldau.security.server_contexts import ServerContexts
from moldau.services.mqtt.backend import Backend
from moldau.services.mqtt.clients import Clients
from moldau.services.mqtt.config import MqttConfig, listener_url
from moldau.services.mqtt.connection import Connection
from moldau.services.mqtt.publishing import Publisher
from moldau.services.mqtt.retained import RetainedStore
from moldau.services.mqtt.sessions import Sessions

__all__ = ["MqttService"]

logger = logging.getLogger(__name__)

_BACKLOG: Final = 4096
_TICK_S: Final = 10.0
_STOP_S: Final = 10.0


@dataclass(slots=True)
class _Bound:
    listener: Listener
    socket: socket.socket
    server: asyncio.Server | None = None


class MqttService:
    """The proxy; made on the loop that it runs on."""

    def __init__(self, config: MqttConfig) -> None:
        """Raises ConfigError."""
        clock = LoopClock()
        clients = Clients(config)
        retained = RetainedStore(config, clock)
        publisher = Publisher(config, clients, retained, clock)
        sessions = Sessions(config, clock, publisher.publish_will)
        self.backend = Backend(config, clock, clients, retained, publisher, sessions)
        self._bound: list[_Bound] = []
        self._ticking: asyncio.Task[None] | None = None

    @property
    def urls(self) -> list[str]:
        return [listener_url(each.listener) for each in self._bound]

    async def start(self) -> None:
        """Raises ConfigError for a listener that cannot be had, KafkaError."""
        backend = self.backend
        for listener in backend.config.listeners:
            self._bound.append(_bind(listener))
        await backend.clients.own.start()
        await backend.retained.start(backend.clients.own.admin)
        await backend.sessions.start(backend.clients.own.admin)
        loop = asyncio.get_running_loop()
        for each in self._bound:
            tls = None
            if each.listener.secure:
                values = backend.config.values
                auth = str(values["ssl.client.authentication"]).lower()
                tls = ServerContexts(each.listener.name, values, client_auth=auth)
            each.server = await loop.create_server(
                lambda: Connection(backend),
                sock=each.socket,
                ssl=None if tls is None else tls.current(),
                backlog=_BACKLOG,
            )
        self._ticking = loop.create_task(self._tick())

    async def stop(self) -> None:
        """Clients get DISCONNECT; their sessions are stored."""
        if self._ticking is not None:
            self._ticking.cancel()
        for each in self._bound:
            if each.server is not None:
                each.server.close()
            each.socket.close()
        await self.backend.sessions.close_all()
        if self.backend.tasks:
            _, late = await asyncio.wait(self.backend.tasks, timeout=_STOP_S)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=_STOP_S)
        await self.backend.sessions.stop()
        await self.backend.retained.stop()
        await self.backend.clients.close()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            with suppress(KafkaError):
                await self.backend.retained.remove_expired()


def _bind(listener: Listener) -> _Bound:
    try:
        found = socket.getaddrinfo(
            listener.host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = found[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
            bound.listen(_BACKLOG)
            bound.setblocking(False)
        except BaseException:
            bound.close()
            raise
    except OSError as error:
        raise ConfigError(
            f"The listener {listener_url(listener)} cannot be opened: {error.strerror or error}. "
            "Choose another port with listeners, or stop what uses it",
            key="listeners",
        ) from None
    return _Bound(replace(listener, port=bound.getsockname()[1]), bound)
