"""ConsoleService: wires the Control Center and runs it. Start reading here."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Final

from moldau.http.application import Application, Service
from moldau.http.machine.routes import Route
from moldau.http.server import HttpServer
from moldau.services.console.api.audit import AuditHandlers
from moldau.services.console.api.brokers import BrokerHandlers
from moldau.services.console.api.clusters import ClusterHandlers
from moldau.services.console.api.dead_letters import DeadLetterHandlers
from moldau.services.console.api.groups import GroupHandlers
from moldau.services.console.api.messages import MessageHandlers
from moldau.services.console.api.oidc import OidcHandlers
from moldau.services.console.api.security import SecurityHandlers
from moldau.services.console.api.sending import SendingHandlers
from moldau.services.console.api.services import SERVICE_SECTIONS
from moldau.services.console.api.session import SessionHandlers
from moldau.services.console.api.topics import TopicHandlers
from moldau.services.console.api.transactions import TransactionHandlers
from moldau.services.console.audit import Audit
from moldau.services.console.backend import Backend
from moldau.services.console.clients import Clients
from moldau.services.console.config import ConsoleConfig
from moldau.services.console.login import Login
from moldau.services.console.machine.errors import console_error
from moldau.services.console.pages import page_routes
from moldau.services.console.values import Values
from moldau.services.console.watcher import Watcher

__all__ = ["SECTIONS", "ConsoleService"]

#: Sections of the API; a new one is added here.
SECTIONS: Final = (
    SessionHandlers,
    OidcHandlers,
    ClusterHandlers,
    BrokerHandlers,
    TopicHandlers,
    MessageHandlers,
    SendingHandlers,
    GroupHandlers,
    DeadLetterHandlers,
    TransactionHandlers,
    SecurityHandlers,
    AuditHandlers,
    *SERVICE_SECTIONS,
)


class ConsoleService:
    """Made on the loop that it runs on. Clusters that cannot be reached do not stop it."""

    def __init__(self, config: ConsoleConfig) -> None:
        """Raises ConfigError."""
        self._clients = Clients(config)
        self._login = Login(config, self._clients)
        self.backend = Backend(
            config,
            self._clients,
            self._login,
            Audit(self._clients, config["audit.topic"]),
            {
                name: Watcher(
                    each,
                    refresh_ms=config["refresh.ms"],
                    points_max=config["history.points.max"],
                )
                for name, each in config.clusters.items()
            },
            {name: Values(each) for name, each in config.clusters.items()},
            _version(),
        )
        service = Service(
            name="console",
            title="Control Center",
            version=_version(),
            description="The API of the Control Center; its pages use nothing else.",
            routes=tuple(_routes(self.backend)),
            map_error=console_error,
        )
        self.application = Application(service, config.http, authentication=self._login)
        self.server = HttpServer(self.application)
        metrics = self.application.metrics
        metrics.gauge("sessions", "Logged-in users.", lambda: len(self._login.sessions))
        metrics.gauge(
            "client_sets", "Users with clients of their own.", lambda: self._clients.count
        )
        metrics.gauge("streams", "Searches and live views.", lambda: self.backend.streams)

    @property
    def urls(self) -> list[str]:
        return self.server.urls

    async def start(self) -> None:
        """Raises ConfigError for a listener that cannot be had."""
        await self.server.start()
        for each in self.backend.watchers.values():
            each.start()

    async def stop(self) -> None:
        """Finish requests within `shutdown.graceful.ms`, then close all clients."""
        await self.server.stop()
        for each in self.backend.watchers.values():
            await each.stop()
        await self.backend.audit.close()
        await self._clients.close()
        for values in self.backend.values.values():
            values.close()


def _routes(backend: Backend) -> list[Route]:
    routes = page_routes()
    for section in SECTIONS:
        routes += section(backend).routes()
    return routes


def _version() -> str:
    try:
        return version("moldau")
    except PackageNotFoundError:
        return "0"
