"""HttpServer: serves an application on its listeners with uvicorn's protocol.

uvicorn's own start serves one kind of socket and takes over signals; a service has several
listeners, plain and TLS, and a certificate that may change. A changed certificate takes effect by
replacing the asyncio server behind the socket, which stays open: no connection is refused
meanwhile, and those that exist go on.

A stop closes the listeners, sets the application's `stopping`, so that long polls return, waits for
running requests at most `shutdown.graceful.ms`, and cancels what is left.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from dataclasses import replace
from email.utils import formatdate
from typing import Final

import uvicorn
from uvicorn.server import ServerState

from moldau.config.errors import ConfigError
from moldau.http.application import Application
from moldau.http.http2 import ALPN, Http2Connection
from moldau.http.machine.listeners import Listener
from moldau.http.protocol import LimitedProtocol
from moldau.security.server_contexts import ServerContexts

__all__ = ["HttpServer"]

logger = logging.getLogger(__name__)

BACKLOG: Final = 1024
TICK_S: Final = 1.0
_CANCEL_S: Final = 5.0


class _Bound:
    """A listener's socket and what accepts on it now."""

    def __init__(
        self, listener: Listener, bound: socket.socket, tls: ServerContexts | None
    ) -> None:
        self.listener = listener
        self.socket = bound
        self.tls = tls
        self.context: ssl.SSLContext | None = None
        self.server: asyncio.Server | None = None


class HttpServer:
    """See the module. `start` and `stop` are called once, on the loop that serves."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self._state = ServerState()
        self._bound: list[_Bound] = []
        self._ticking: asyncio.Task[None] | None = None
        config = application.config
        self._config = uvicorn.Config(
            application.asgi,
            http=LimitedProtocol,
            ws="wsproto" if application.service.websockets else "none",
            ws_max_size=config.request_body_bytes_max,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=max(1, config.idle_timeout_ms // 1000),
        )
        limits = {
            "connections_max": config.connections_max,
            "header_bytes_max": config.request_header_bytes_max,
            "idle_s": config.idle_timeout_ms / 1000,
        }
        http2 = type("ServiceConnection", (Http2Connection,), limits)
        self._protocol = type("ServiceProtocol", (LimitedProtocol,), {**limits, "http2": http2})

    @property
    def urls(self) -> list[str]:
        """Where it listens, with the ports that were chosen for port 0."""
        return [each.listener.url for each in self._bound]

    @property
    def port(self) -> int:
        """Of the first listener."""
        return self._bound[0].listener.port

    async def start(self) -> None:
        """Raises ConfigError for a listener that cannot be had."""
        self._config.load()
        self._set_date()
        try:
            for listener in self.application.config.listeners:
                self._bound.append(self._bind(listener))
            for each in self._bound:
                await self._serve(each)
        except BaseException:
            for each in self._bound:
                each.socket.close()
            raise
        self._ticking = asyncio.create_task(self._tick())

    async def stop(self) -> None:
        """Within `shutdown.graceful.ms` and what cancelling takes."""
        if self._ticking is not None:
            self._ticking.cancel()
        self.application.stopping.set()
        for each in self._bound:
            if each.server is not None:
                each.server.close()
            each.socket.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        tasks = set(self._state.tasks)
        if tasks:
            grace_s = self.application.config.shutdown_graceful_ms / 1000
            _, late = await asyncio.wait(tasks, timeout=grace_s)
            if late:
                logger.warning("%d requests did not end in time and are cancelled", len(late))
                for task in late:
                    task.cancel()
                await asyncio.wait(late, timeout=_CANCEL_S)
        for connection in list(self._state.connections):
            if connection.transport is not None:
                connection.transport.close()

    # Listeners.

    def _bind(self, listener: Listener) -> _Bound:
        config = self.application.config
        tls = None
        if listener.secure:
            tls = ServerContexts(listener.name, config.settings, client_auth=config.client_auth)
        try:
            found = socket.getaddrinfo(
                listener.host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
            family, kind, protocol, _, address = found[0]
            bound = socket.socket(family, kind, protocol)
            try:
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                bound.bind(address)
                bound.listen(BACKLOG)
                bound.setblocking(False)
            except BaseException:
                bound.close()
                raise
        except OSError as error:
            raise ConfigError(
                f"The listener {listener.url} cannot be opened: {error.strerror or error}. Choose "
                "another port with listeners, or stop what uses it",
                key="listeners",
                value=listener.url,
            ) from None
        port = bound.getsockname()[1]
        return _Bound(replace(listener, port=port), bound, tls)

    async def _serve(self, each: _Bound) -> None:
        context = each.tls.current() if each.tls is not None else None
        if context is not None:
            context.set_alpn_protocols(list(ALPN))
        # A server closes the socket that it was given: it gets a copy.
        server = await asyncio.get_running_loop().create_server(
            self._new_connection, sock=each.socket.dup(), ssl=context, backlog=BACKLOG
        )
        previous, each.server, each.context = each.server, server, context
        if previous is not None:
            previous.close()

    def _new_connection(self) -> asyncio.Protocol:
        return self._protocol(  # type: ignore[no-any-return]
            config=self._config, server_state=self._state, app_state={}
        )

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._set_date()
            for each in self._bound:
                if each.tls is not None and each.tls.current() is not each.context:
                    await self._serve(each)

    def _set_date(self) -> None:
        date = formatdate(time.time(), usegmt=True).encode()
        self._state.default_headers = [(b"date", date)]
