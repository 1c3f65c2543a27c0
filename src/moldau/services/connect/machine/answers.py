"""What the REST interface answers about connectors and tasks, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.connect.machine.config_state import ConfigState
from moldau.connect.machine.ids import TaskId
from moldau.connect.machine.status_state import Status, StatusState


def connector_info(state: ConfigState, name: str, kind: str) -> dict[str, Any]:
    return {
        "name": name,
        "config": dict(state.connectors[name]),
        "tasks": [task_id(each) for each in state.task_ids(name)],
        "type": kind,
    }


def task_id(id: TaskId) -> dict[str, Any]:
    return {"connector": id.connector, "task": id.task}


def task_infos(state: ConfigState, name: str) -> list[dict[str, Any]]:
    return [
        {"id": task_id(each), "config": dict(state.tasks.get(each, {}))}
        for each in state.task_ids(name)
    ]


def _state(status: Status, version: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {"state": status.state.value, "worker_id": status.worker_id}
    if status.trace is not None:
        found["trace"] = status.trace
    if version is not None:
        found["version"] = version
    return found


def connector_status(
    statuses: StatusState, name: str, kind: str, version: str | None
) -> dict[str, Any]:
    return {
        "name": name,
        "connector": _state(statuses.connectors[name], version),
        "tasks": [
            {"id": id.task, **_state(status, version)} for id, status in statuses.tasks_of(name)
        ],
        "type": kind,
    }


def task_status(id: TaskId, status: Status, version: str | None) -> dict[str, Any]:
    return {"id": id.task, **_state(status, version)}


def offsets_answer(pairs: list[tuple[Mapping[str, Any], Any]]) -> dict[str, Any]:
    return {"offsets": [{"partition": dict(each), "offset": offset} for each, offset in pairs]}
