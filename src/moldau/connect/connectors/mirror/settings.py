"""The settings of the three connectors, and the loop that their administrative work runs on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

from moldau.client import AsyncAdmin
from moldau.client.errors import KafkaError
from moldau.client.loop_thread import LoopThread
from moldau.connect.api import ConfigDef, ConfigError, ConnectError
from moldau.mirror.machine import keys
from moldau.mirror.machine.settings import FlowSettings
from moldau.mirror.plugins import Plugins

logger = logging.getLogger(__name__)

_RETRY_S: Final = 2.0
T = TypeVar("T")


def config_of(rows: tuple[keys.Row, ...]) -> ConfigDef:
    made = ConfigDef()
    for row in rows:
        made.define(
            row.name,
            row.type,
            row.default,
            validator=row.validator,
            importance=row.importance,
            doc=row.doc,
        )
    return made


SOURCE: Final = config_of((*keys.SOURCE, *(r for r in keys.OWN if "offset.map" in r.name)))
CHECKPOINT: Final = config_of(keys.CHECKPOINT)
HEARTBEAT: Final = config_of(keys.HEARTBEAT)


def flow_of(props: Mapping[str, str]) -> FlowSettings:
    try:
        return FlowSettings.of(props)
    except ConfigError as error:
        raise ConnectError(str(error)) from error


class Backstage:
    """Clients of both clusters, and calls that are repeated, in a thread of its own."""

    def __init__(self, settings: FlowSettings, name: str) -> None:
        self.settings = settings
        self.plugins = Plugins(settings)
        self._thread = LoopThread(f"mirror {settings.name} {name}")
        self.source, self.target = self._thread.call(self._admins())

    async def _admins(self) -> tuple[AsyncAdmin, AsyncAdmin]:
        # Made on the loop that they are used on.
        return (
            AsyncAdmin(self.settings.client("source", "admin")),
            AsyncAdmin(self.settings.client("target", "admin")),
        )

    def call(self, make: Callable[[], Awaitable[T]]) -> T:
        """Await something; errors of the cluster become the connector's."""

        async def awaited() -> T:
            return await make()

        try:
            return self._thread.call(awaited())
        except KafkaError as error:
            raise ConnectError(f"{self.settings.name}: {error}") from error

    def repeat(self, what: str, make: Callable[[], Awaitable[None]]) -> None:
        """As often as the settings say, after a first pause."""
        interval_s = self.settings.interval_s(what)
        if interval_s is None:
            return
        pause_s = max(interval_s, 0.1)

        async def again() -> None:
            while True:
                await asyncio.sleep(pause_s)
                try:
                    await make()
                except KafkaError as error:
                    logger.warning("%s: %s: %s", self.settings.name, what, error)
                    await asyncio.sleep(_RETRY_S)

        self._thread.submit(again())

    def close(self) -> None:
        async def close() -> None:
            await self.source.close()
            await self.target.close()

        self._thread.call(close())
        self._thread.stop()
