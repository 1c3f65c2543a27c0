"""The flows of the mirror's file (`mirror.file`), as the pages see them.

A cluster of the file is one of the console's if it has its name or one of its addresses; it is then
read with the login of the user who asks. Another cluster is read with what the file says, which may
be more than that user may read: so that needs ALTER on the cluster of the page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from moldau.config.errors import ConfigError
from moldau.config.properties import load_properties
from moldau.http.machine.errors import HttpError
from moldau.http.request import Request
from moldau.mirror.machine.settings import FlowName, FlowSettings
from moldau.mirror.runner import read_flows
from moldau.services.console.backend import Backend, Call
from moldau.services.console.clients import ClientSet
from moldau.services.console.config import ClusterConfig, ConsoleConfig
from moldau.services.console.remote import require_management

__all__ = ["Flows", "MirrorFile"]

_FILE_BYTES_MAX: Final = 4 * 1024 * 1024
_SIDES: Final = ("source", "target")


class Flows:
    """The flows of a file, and which of the console's clusters are in it."""

    def __init__(self, found: Mapping[FlowName, FlowSettings], config: ConsoleConfig) -> None:
        self.found = found
        self._config = config

    def cluster(self, alias: str) -> ClusterConfig | None:
        """The console's cluster that the file calls so."""
        named = self._config.clusters.get(alias)
        if named is not None:
            return named
        addresses = set(self._addresses(alias))
        for each in self._config.clusters.values():
            if addresses & set(each.bootstrap_servers):
                return each
        return None

    def _addresses(self, alias: str) -> Iterator[str]:
        for name, settings in self.found.items():
            for side in _SIDES:
                if getattr(name, side) == alias:
                    text = settings.properties[f"{side}.cluster.bootstrap.servers"]
                    yield from (each.strip() for each in text.split(","))

    def of(self, cluster: ClusterConfig, side: str) -> list[FlowSettings]:
        """Those that write to a cluster (`side` is target) or read from it (source)."""
        return [
            settings
            for name, settings in self.found.items()
            if self.cluster(getattr(name, side)) is cluster
        ]

    def into(self, cluster: ClusterConfig, source: str) -> FlowSettings | None:
        for settings in self.of(cluster, "target"):
            if settings.name.source == source:
                return settings
        return None


class MirrorFile:
    """Reads `mirror.file` for each request: it may have changed."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.path: str | None = backend.config["mirror.file"]

    async def read(self) -> Flows:
        """No flows if there is no file. Raises HttpError."""
        if self.path is None:
            return Flows({}, self._backend.config)
        try:
            found = await asyncio.to_thread(_read, Path(self.path))
        except (OSError, UnicodeDecodeError, ConfigError) as error:
            raise HttpError(500, f"mirror.file={self.path} cannot be used: {error}") from None
        return Flows(found, self._backend.config)

    @contextmanager
    def _as_user(
        self, request: Request, flows: Flows, settings: FlowSettings
    ) -> Iterator[FlowSettings]:
        with ExitStack() as stack:
            for side in _SIDES:
                cluster = flows.cluster(getattr(settings.name, side))
                if cluster is not None:
                    found = self._backend.clients.of(request.principal, cluster.name)
                    settings = _with_clients(settings, side, stack.enter_context(found))
            yield settings

    @contextmanager
    def clients(self, request: Request, flows: Flows) -> Iterator[dict[FlowName, FlowSettings]]:
        """All flows, with the user's own login where the console knows the cluster."""
        with ExitStack() as stack:
            yield {
                name: stack.enter_context(self._as_user(request, flows, settings))
                for name, settings in flows.found.items()
            }

    async def admit(self, call: Call, flows: Flows, settings: FlowSettings) -> None:
        """Raises HttpError if the flow's source is read with more than the user's own rights."""
        if flows.cluster(settings.name.source) is None:
            await require_management(call)


def _read(path: Path) -> dict[FlowName, FlowSettings]:
    with path.open("rb") as file:
        return read_flows(load_properties(file.read(_FILE_BYTES_MAX).decode()))


def _with_clients(settings: FlowSettings, side: str, clients: ClientSet) -> FlowSettings:
    dropped = tuple(f"{side}.{each}." for each in ("cluster", "admin", "consumer"))
    kept: dict[str, Any] = {
        key: value
        for key, value in settings.properties.items()
        if key == f"{side}.cluster.alias" or not key.startswith(dropped)
    }
    for kind in ("admin", "consumer"):
        own = clients.settings(kind)
        kept[f"{side}.cluster.bootstrap.servers"] = own["bootstrap.servers"]
        kept |= {f"{side}.{kind}.{key}": value for key, value in own.items()}
    return FlowSettings.of(kept)
