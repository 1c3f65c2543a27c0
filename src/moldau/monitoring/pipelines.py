"""The states of pipelines, for the monitor. Reads their registry only where there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from moldau.client import Admin

__all__ = ["pipeline_states"]

_TOPIC = "__moldau_pipelines"


def pipeline_states(cluster: Mapping[str, str]) -> Callable[[], dict[str, str]]:
    """Reads the state of each pipeline by name; nothing on a cluster without pipelines."""

    def read() -> dict[str, str]:
        config = dict(cluster)
        with Admin(config) as admin:
            if _TOPIC not in admin.list_topics(timeout=5, list_internal=True):
                return {}
        from moldau.pipelines.registry import Registry

        with Registry(config["bootstrap.servers"], config=config, timeout=10) as registry:
            view = registry.read()
            return {name: str(status.state) for name, status in view.statuses.items()}

    return read
