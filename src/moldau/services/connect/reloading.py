"""Whether values of config providers have changed since a connector or task started (KIP-297)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from moldau.config import ConfigError
from moldau.connect.machine.config_state import Config, ConfigState
from moldau.connect.machine.ids import TaskId
from moldau.connect.runtime.worker_config import WorkerConfig

logger = logging.getLogger(__name__)

_DELAY_S_MIN = 1.0


@dataclass(frozen=True, slots=True)
class Reload:
    """Time to look again: `values` are those that the connector or task was started with."""

    id: str | TaskId
    values: tuple[dict[str, str], ...]


class ProvidedValues:
    def __init__(self, config: WorkerConfig, state: Callable[[], ConfigState]) -> None:
        self._config = config
        self._state = state

    def next_look(self, id: str | TaskId) -> tuple[float, Reload] | None:
        """In how many seconds to look again; None if nothing can change, or must not matter."""
        name = id.connector if isinstance(id, TaskId) else id
        raw = self._state().connectors.get(name) or {}
        if str(raw.get("config.action.reload") or "restart").lower() != "restart":
            return None
        found = [self._config.resolved_for_a_time(each) for each in self._configs(id)]
        times = [ttl_ms for _, ttl_ms in found if ttl_ms is not None]
        if not times:
            return None
        values = tuple(each for each, _ in found)
        return max(min(times) / 1000, _DELAY_S_MIN), Reload(id, values)

    def have_changed(self, event: Reload) -> bool:
        try:
            now = tuple(self._config.resolved(each) for each in self._configs(event.id))
        except ConfigError as error:
            logger.warning("%s keeps its settings: %s", event.id, error)
            return False
        return now != event.values

    def _configs(self, id: str | TaskId) -> list[Config]:
        """What a connector or task is started with."""
        state = self._state()
        if isinstance(id, TaskId):
            found = [state.connectors.get(id.connector), state.tasks.get(id)]
        else:
            found = [state.connectors.get(id)]
        return [each for each in found if each is not None]
