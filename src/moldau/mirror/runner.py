"""A mirror process: all flows of a file, and their metrics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping

from moldau.config import ConfigError
from moldau.config.providers import resolve
from moldau.metrics.endpoint import MetricsEndpoint
from moldau.mirror.flow import Flow
from moldau.mirror.machine.settings import FlowName, FlowSettings, flows_of
from moldau.mirror.metrics import MirrorMetrics
from moldau.mirror.plugins import Plugins

__all__ = ["Mirror", "read_flows"]

logger = logging.getLogger(__name__)


def read_flows(
    properties: Mapping[str, str], targets: Iterable[str] = ()
) -> dict[FlowName, FlowSettings]:
    """The flows of a file, with variables replaced; raises ConfigError."""
    texts = {key: str(value) for key, value in resolve(properties).items()}
    flows = flows_of(texts, targets)
    for settings in flows.values():
        Plugins(settings)
        if _is_looped(settings, flows) and not settings.is_exactly_once:
            raise ConfigError(
                f"{settings.name}: topics keep their names and are copied both ways, which needs "
                f"exactly once to tell copies from originals. Set {settings.name.target}."
                "exactly.once.source.support=enabled for both clusters",
                key="exactly.once.source.support",
            )
    return flows


def _is_looped(settings: FlowSettings, flows: Mapping[FlowName, FlowSettings]) -> bool:
    """Whether the flow back is enabled as well, and topics keep their names."""
    back = flows.get(FlowName(settings.name.target, settings.name.source))
    if back is None or not back["enabled"] or not settings["enabled"]:
        return False
    return Plugins(settings).keeps_name("any topic")


class Mirror:
    """Runs flows until it is stopped."""

    def __init__(
        self, flows: Mapping[FlowName, FlowSettings], *, metrics_port: int | None = None
    ) -> None:
        self.metrics = MirrorMetrics()
        self.flows = {
            name: Flow(settings, self.metrics, is_looped=_keeps_names(settings))
            for name, settings in flows.items()
        }
        self._endpoint: MetricsEndpoint | None = None
        if metrics_port is not None:
            self._endpoint = MetricsEndpoint(self.metrics.registry, port=metrics_port)

    @property
    def urls(self) -> list[str]:
        if self._endpoint is None:
            return []
        return [f"http://127.0.0.1:{self._endpoint.port}/metrics"]

    async def start(self) -> None:
        if self._endpoint is not None:
            await self._endpoint.start()
        for flow in self.flows.values():
            flow.start()

    async def stop(self) -> None:
        await asyncio.gather(*(flow.stop() for flow in self.flows.values()))
        if self._endpoint is not None:
            await self._endpoint.stop()


def _keeps_names(settings: FlowSettings) -> bool:
    """A flow that keeps names looks for a map of the flow back, whoever runs that one."""
    return bool(settings["enabled"]) and Plugins(settings).keeps_name("any topic")
