"""MqttService: wires the proxy and runs it. Start reading here."""

from __future__ import annotations

import asyncio
import itertools
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from moldau.client import KafkaError
from moldau.clock import LoopClock
from moldau.config.errors import ConfigError
from moldau.http.machine.listeners import Listener
from moldau.metrics.endpoint import MetricsEndpoint
from moldau.security.server_contexts import ServerContexts
from moldau.services.mqtt.backend import Backend
from moldau.services.mqtt.clients import Clients
from moldau.services.mqtt.config import MqttConfig, is_websocket, listener_url
from moldau.services.mqtt.connection import Connection
from moldau.services.mqtt.publishing import Publisher
from moldau.services.mqtt.retained import RetainedStore
from moldau.services.mqtt.sessions import Sessions

__all__ = ["MqttService"]

logger = logging.getLogger(__name__)

_BACKLOG: Final = 4096
_TICK_S: Final = 1.0
#: How many ticks pass between two looks for retained messages that have expired.
_EXPIRY_TICKS: Final = 10
_STOP_S: Final = 10.0


@dataclass(slots=True)
class _Bound:
    listener: Listener
    socket: socket.socket
    tls: ServerContexts | None = None
    server: asyncio.Server | None = None
    #: What the server was made with.
    context: ssl.SSLContext | None = None


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
        self._endpoint = _endpoint(self.backend)
        self._bound: list[_Bound] = []
        self._ticking: asyncio.Task[None] | None = None

    @property
    def urls(self) -> list[str]:
        return [listener_url(each.listener) for each in self._bound]

    @property
    def metrics_url(self) -> str | None:
        if self._endpoint is None:
            return None
        host = self.backend.config["moldau.metrics.host"]
        return f"http://{host}:{self._endpoint.port}/metrics"

    async def start(self) -> None:
        """Raises ConfigError for a listener that cannot be had, KafkaError."""
        backend = self.backend
        for listener in backend.config.listeners:
            self._bound.append(_bind(listener, backend.config))
        await backend.clients.own.start()
        await backend.retained.start(backend.clients.own.admin)
        await backend.sessions.start(backend.clients.own.admin)
        if self._endpoint is not None:
            await self._open(self._endpoint)
        for each in self._bound:
            await self._serve(each)
        self._ticking = asyncio.get_running_loop().create_task(self._tick())

    async def _open(self, endpoint: MetricsEndpoint) -> None:
        try:
            await endpoint.start()
        except OSError as error:
            raise ConfigError(
                f"The port {endpoint.port} for metrics cannot be opened: "
                f"{error.strerror or error}. Choose another one with moldau.metrics.port",
                key="moldau.metrics.port",
            ) from None

    async def _serve(self, each: _Bound) -> None:
        """With the certificate as it is now; clients that are connected stay."""
        context = None if each.tls is None else each.tls.current()
        # A server closes the socket that it was given: it gets a copy.
        server = await asyncio.get_running_loop().create_server(
            self._maker(each.listener),
            sock=each.socket.dup(),
            ssl=context,
            backlog=_BACKLOG,
        )
        previous, each.server, each.context = each.server, server, context
        if previous is not None:
            previous.close()

    def _maker(self, listener: Listener) -> Callable[[], asyncio.Protocol]:
        if not is_websocket(listener):
            return lambda: Connection(self.backend)
        # Imported late: it needs wsproto, which others do not.
        from moldau.services.mqtt.websocket import WebSocketLine

        origins = frozenset(self.backend.config["websocket.origins"])
        return lambda: WebSocketLine(lambda: Connection(self.backend), origins)

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
        if self._endpoint is not None:
            await self._endpoint.stop()
        await self.backend.sessions.stop()
        await self.backend.retained.stop()
        await self.backend.clients.close()

    async def _tick(self) -> None:
        registry = self.backend.metrics.registry
        for tick in itertools.count(1):
            await asyncio.sleep(_TICK_S)
            registry.advance()
            for each in self._bound:
                if each.tls is not None and each.tls.current() is not each.context:
                    await self._serve(each)
            if tick % _EXPIRY_TICKS == 0:
                with suppress(KafkaError):
                    await self.backend.retained.remove_expired()


def _endpoint(backend: Backend) -> MetricsEndpoint | None:
    metrics = backend.metrics
    metrics.gauge("connections", "open connections", lambda: len(backend.connections))
    metrics.gauge("sessions", "sessions at this proxy", lambda: len(backend.sessions.here))
    metrics.gauge("retained_messages", "retained messages", lambda: len(backend.retained.messages))
    port = backend.config["moldau.metrics.port"]
    if port is None:
        return None
    return MetricsEndpoint(metrics.registry, host=backend.config["moldau.metrics.host"], port=port)


def _bind(listener: Listener, config: MqttConfig) -> _Bound:
    tls = None
    if listener.secure:
        auth = str(config["ssl.client.authentication"]).lower()
        tls = ServerContexts(listener.name, config.values, client_auth=auth)
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
    return _Bound(replace(listener, port=bound.getsockname()[1]), bound, tls)
