"""RestService: wires the proxy and runs it. Start reading here."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from moldau.http.application import Application, Service
from moldau.http.authentication import authentication_of
from moldau.http.machine.routes import Route
from moldau.http.request import Answer, Request
from moldau.http.server import HttpServer
from moldau.services.rest.backend import Backend
from moldau.services.rest.clients import Clients
from moldau.services.rest.config import RestConfig
from moldau.services.rest.instances import Instances
from moldau.services.rest.machine.errors import rest_error
from moldau.services.rest.machine.page import PAGE, POLICY
from moldau.services.rest.machine.schemas import V3_SCHEMAS
from moldau.services.rest.registry_formats import RegistryFormats
from moldau.services.rest.schema_formats import SchemaFormats
from moldau.services.rest.v2.consumers import ConsumerHandlers
from moldau.services.rest.v2.media import METADATA
from moldau.services.rest.v2.topics import TopicHandlers
from moldau.services.rest.v3.acls import AclHandlers
from moldau.services.rest.v3.configs import ConfigHandlers
from moldau.services.rest.v3.consuming import ConsumeHandlers
from moldau.services.rest.v3.groups import GroupHandlers
from moldau.services.rest.v3.metadata import MetadataHandlers
from moldau.services.rest.v3.records import RecordHandlers
from moldau.services.rest.v3.routing import both_prefixes

__all__ = ["RestService", "rest_routes"]


class RestService:
    """The proxy; made on the loop that it runs on. Brokers are asked when they are needed."""

    def __init__(self, config: RestConfig, *, schemas: SchemaFormats | None = None) -> None:
        """Raises ConfigError."""
        if schemas is None and config["schema.registry.url"]:
            schemas = RegistryFormats(config.texts)
        self._schemas = schemas
        clients = Clients(config)
        self.instances = Instances(config, clients)
        self._clients = clients
        backend = Backend(config, clients, self.instances, schemas)
        service = Service(
            name="rest",
            title="REST Proxy",
            version=_version(),
            description="Kafka over HTTP.",
            routes=tuple(rest_routes(backend)),
            schemas=V3_SCHEMAS,
            map_error=rest_error,
        )
        authentication = authentication_of(config.http, passes_on=config.passes_on)
        self.application = Application(service, config.http, authentication=authentication)
        self.server = HttpServer(self.application)
        metrics = self.application.metrics
        metrics.gauge("consumer_instances", "Instances of v2.", lambda: self.instances.count)
        metrics.gauge("client_sets", "Users with clients of their own.", lambda: clients.count)

    @property
    def urls(self) -> list[str]:
        return self.server.urls

    async def start(self) -> None:
        """Raises ConfigError for a listener that cannot be had."""
        await self.server.start()
        self.instances.start()

    async def stop(self) -> None:
        """Finish requests within `shutdown.graceful.ms`, then close all clients."""
        await self.server.stop()
        await self.instances.stop()
        await self._clients.close()
        if self._schemas is not None:
            self._schemas.close()


def rest_routes(backend: Backend) -> list[Route]:
    config = backend.config
    routes = [
        Route(
            method="GET", path="/", handler=_root, tag="v2",
            summary="Nothing; for browsers a page that sends and shows records",
            produces=(*METADATA, "text/html; qs=0.1"), responses={200: {"type": "object"}},
        )
    ]  # fmt: skip
    if config["api.v2.enable"]:
        routes += TopicHandlers(backend).routes()
        routes += ConsumerHandlers(backend).routes()
    if config["api.v3.enable"]:
        for handlers in (
            MetadataHandlers(backend),
            ConfigHandlers(backend),
            GroupHandlers(backend),
            AclHandlers(backend),
            RecordHandlers(backend),
            ConsumeHandlers(backend),
        ):
            routes += both_prefixes(handlers.routes())
    return routes


def _root(request: Request) -> Any:
    if request.media_type != "text/html":
        return {}
    headers: Mapping[str, str] = {"Content-Security-Policy": POLICY}
    return Answer(body=PAGE.encode(), media_type="text/html; charset=utf-8", headers=headers)


def _version() -> str:
    try:
        return version("moldau")
    except PackageNotFoundError:
        return "0"
