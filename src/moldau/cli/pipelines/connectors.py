"""Connectors in `moldau pipelines list`: those of the worker groups that the cluster has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.connect.runtime.listing import ListedConnector
    from moldau.pipelines.api import PipelineInfo

__all__ = ["as_json", "condition", "connectors_of", "reason"]

#: The topics of a worker that is started without a file.
_DEFAULT_TOPICS = ("connect-configs", "connect-status")


def connectors_of(
    client: Mapping[str, Any], pipelines: Iterable[PipelineInfo]
) -> list[ListedConnector]:
    """Of workers that run as applications, and of those with the usual topics."""
    # Imported late: other commands need no Connect.
    from moldau.client.config import known_keys
    from moldau.connect.runtime.listing import connectors_in

    topics = dict.fromkeys([*_topics_of_applications(pipelines), _DEFAULT_TOPICS])
    settings = {key: str(value) for key, value in known_keys(dict(client)).items()}
    return [each for group in topics for each in connectors_in(settings, *group)]


def _topics_of_applications(pipelines: Iterable[PipelineInfo]) -> list[tuple[str, str]]:
    found = []
    for info in pipelines:
        application = info.definition.get("application", {})
        settings = application.get("settings", {})
        if application.get("kind") == "connect" and "config.storage.topic" in settings:
            found.append((settings["config.storage.topic"], settings["status.storage.topic"]))
    return found


def condition(connector: ListedConnector) -> str:
    """The state in the words of pipelines: a connector with a failed task fails."""
    if "FAILED" in (connector.state, *connector.tasks):
        return "failed"
    return connector.state.lower()


def reason(connector: ListedConnector) -> str | None:
    """Why it failed: the last line of the trace."""
    if connector.trace is None:
        return None
    return connector.trace.strip().splitlines()[-1]


def as_json(connector: ListedConnector) -> dict[str, Any]:
    return {
        "name": connector.name,
        "kind": "connector",
        "state": condition(connector),
        "class": connector.class_name,
        "tasks": dict(connector.tasks),
    }
