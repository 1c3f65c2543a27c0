"""SchemaRegistry: wires one instance. Start reading here.

    registry = SchemaRegistry(RegistryConfig.of(properties))
    await registry.start()

A request comes in by a route (`api/table.py`), reads the state or decides on it (`machine/`), and
if something changes, records go to the topic (`leadership.py`, `log.py`) and back into the state.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from moldau import __version__
from moldau.http.application import Application, Service
from moldau.http.authentication import authentication_of
from moldau.http.machine.routes import Route
from moldau.http.metrics import Metrics
from moldau.http.server import HttpServer
from moldau.services.registry.api.permissions import PermissionsFile, guarded
from moldau.services.registry.api.table import MEDIA_TYPE, SCHEMAS, routes
from moldau.services.registry.config import RegistryConfig
from moldau.services.registry.group import GroupMember
from moldau.services.registry.machine.election import Identity
from moldau.services.registry.machine.parsing import LANGUAGES, Languages
from moldau.services.registry.service import RegistryService, as_http_error

__all__ = ["SchemaRegistry"]

_FIRST_ERROR: Final = 400


class SchemaRegistry:
    """`start` and `stop` are called once, on the loop that serves."""

    def __init__(self, config: RegistryConfig, *, languages: Languages = LANGUAGES) -> None:
        self.config = config
        self.service = RegistryService(config, languages)
        # Confluent's name: what dashboards look for.
        metrics = Metrics("kafka_schema_registry")
        self._server = HttpServer(
            Application(
                Service(
                    name="registry",
                    title="Moldau Schema Registry",
                    version=__version__,
                    routes=_guarded(self.service),
                    description="Schemas of records, with versions and compatibility.",
                    media_type=MEDIA_TYPE,
                    schemas=SCHEMAS,
                    map_error=as_http_error,
                    health=self.service.health,
                ),
                config.http,
                authentication=authentication_of(config.http),
                metrics=metrics,
            )
        )
        self._member: GroupMember | None = None
        self._add_metrics(metrics)

    def _add_metrics(self, metrics: Metrics) -> None:
        """Those of Confluent's registry."""
        requests = metrics.counter("http_requests_total", "Requests answered.")

        def answered(*, failed: bool) -> float:
            return sum(
                amount
                for labels, amount in requests.values.items()
                if (int(labels[-1]) >= _FIRST_ERROR) is failed
            )

        leadership, state = self.service.leadership, self.service.registry.state
        for name, help, read in (
            (
                "master_slave_role",
                "1 if this instance is the primary.",
                lambda: float(leadership.is_primary),
            ),
            (
                "node_count",
                "Instances, as known to the leader of the group.",
                lambda: 1 if self._member is None else self._member.node_count,
            ),
            ("registered_count", "Versions of all subjects.", lambda: state.version_count),
            ("api_success_count", "Requests that succeeded.", lambda: answered(failed=False)),
            ("api_failure_count", "Requests that were refused.", lambda: answered(failed=True)),
        ):
            metrics.gauge(name, help, read)

    @property
    def urls(self) -> list[str]:
        return self._server.urls

    async def start(self) -> None:
        """Raises ConfigError, StoreError or KafkaError."""
        try:
            await self.service.open()
            await self._server.start()
        except BaseException:
            await self.service.close()
            raise
        leadership = self.service.leadership
        bound = [
            replace(listener, port=urlsplit(url).port or 0)
            for listener, url in zip(self.config.http.listeners, self.urls, strict=True)
        ]
        scheme, host, port = self.config.advertised(bound)
        identity = Identity(host, port, self.config.eligible, scheme)
        leadership.identity = identity
        self._member = GroupMember(self.config, identity, leadership.on_primary)
        self._member.start()
        await leadership.wait_settled(self.config.init_timeout_ms)

    async def stop(self) -> None:
        await self._server.stop()
        if self._member is not None:
            await self._member.stop()
        await self.service.close()


def _guarded(service: RegistryService) -> tuple[Route, ...]:
    """Raises ConfigError."""
    path = service.config.permissions_file
    if path is None:
        return routes(service)
    return guarded(routes(service), service, PermissionsFile(path))
