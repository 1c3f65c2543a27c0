"""The pipelines of the worker's cluster, for those who look at Connect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.client import Admin, KafkaError
from moldau.connect.api import ConnectError

__all__ = ["pipelines_in"]


def pipelines_in(client: Mapping[str, str]) -> list[dict[str, Any]]:
    """All by name, from their registry; none if there never was one. Raises ConnectError."""
    # A worker starts without them.
    from moldau.pipelines.errors import PipelineError
    from moldau.pipelines.registry import TOPIC, Registry

    try:
        with Admin(client) as admin:
            if TOPIC not in admin.list_topics():
                return []
        with Registry(client["bootstrap.servers"], config=client) as registry:
            view = registry.read()
    except (KafkaError, PipelineError) as error:
        raise ConnectError(f"The pipelines cannot be read: {error}") from error
    found = []
    for name in sorted(view.pipelines):
        status = view.statuses.get(name)
        last = None if status is None else status.last_error
        found.append(
            {
                "name": name,
                "desired": view.pipelines[name].desired.value,
                "state": "stopped" if status is None else status.state.value,
                "error": None if last is None else str(last),
            }
        )
    return found
