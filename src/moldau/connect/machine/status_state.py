"""What the status topic says: states of connectors and tasks, and the topics they use.

A worker may write a state only if nobody has taken over since: a state of an older generation, or
of another worker in the same one, does not replace a newer one (`can_write`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from moldau.connect.machine.ids import State, TaskId

Record = tuple[str, bytes | None]
_CONNECTOR = "status-connector-"
_TASK = "status-task-"
_TOPIC = "status-topic-"
_TOPIC_OWNER = ":connector-"


@dataclass(frozen=True, slots=True)
class Status:
    state: State
    worker_id: str
    generation: int
    trace: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class TopicUse:
    topic: str
    connector: str
    task: int
    discovered_ms: int


def _status_value(status: Status) -> bytes:
    node: dict[str, Any] = {
        "state": status.state.value,
        "trace": status.trace,
        "worker_id": status.worker_id,
        "generation": status.generation,
        "version": status.version,
    }
    return json.dumps(node, separators=(",", ":"), ensure_ascii=False).encode()


def status_record(id: str | TaskId, status: Status) -> Record:
    if isinstance(id, TaskId):
        return f"{_TASK}{id.connector}-{id.task}", _value_or_none(status)
    return _CONNECTOR + id, _value_or_none(status)


def _value_or_none(status: Status) -> bytes | None:
    return None if status.state is State.DESTROYED else _status_value(status)


def topic_record(use: TopicUse) -> Record:
    node = {
        "topic": {
            "name": use.topic,
            "connector": use.connector,
            "task": use.task,
            "discoverTimestamp": use.discovered_ms,
        }
    }
    return topic_key(use.connector, use.topic), json.dumps(node, separators=(",", ":")).encode()


def topic_key(connector: str, topic: str) -> str:
    return f"{_TOPIC}{topic}{_TOPIC_OWNER}{connector}"


@dataclass(slots=True)
class StatusState:
    connectors: dict[str, Status] = field(default_factory=dict)
    tasks: dict[TaskId, Status] = field(default_factory=dict)
    topics: dict[str, dict[str, TopicUse]] = field(default_factory=dict)

    def get(self, id: str | TaskId) -> Status | None:
        return self.tasks.get(id) if isinstance(id, TaskId) else self.connectors.get(id)

    def tasks_of(self, connector: str) -> Iterator[tuple[TaskId, Status]]:
        for id, status in sorted(self.tasks.items()):
            if id.connector == connector:
                yield id, status

    def can_write(self, id: str | TaskId, status: Status) -> bool:
        """Whether a worker that writes this would not hide what another one wrote since."""
        found = self.get(id)
        return (
            found is None
            or found.worker_id == status.worker_id
            or found.generation <= status.generation
        )

    def replay(self, key: str | None, value: bytes | None) -> None:
        if key is None:
            return
        try:
            node = None if value is None else json.loads(value)
        except ValueError:
            return
        if key.startswith(_TOPIC):
            self._topic(key.removeprefix(_TOPIC), node)
        elif key.startswith(_CONNECTOR):
            self._set(key.removeprefix(_CONNECTOR), node)
        elif key.startswith(_TASK):
            name, _, index = key.removeprefix(_TASK).rpartition("-")
            if name and index.isdigit():
                self._set(TaskId(name, int(index)), node)

    def _set(self, id: str | TaskId, node: Any) -> None:
        into: dict[Any, Status] = self.tasks if isinstance(id, TaskId) else self.connectors
        if node is None:
            into.pop(id, None)
            return
        status = _read(node)
        if status is not None:
            into[id] = status

    def _topic(self, text: str, node: Any) -> None:
        topic, _, connector = text.partition(_TOPIC_OWNER)
        if node is None:
            self.topics.get(connector, {}).pop(topic, None)
            return
        found = node.get("topic") if isinstance(node, dict) else None
        if isinstance(found, dict):
            self.topics.setdefault(connector, {})[topic] = TopicUse(
                topic,
                connector,
                _int(found.get("task")),
                _int(found.get("discoverTimestamp")),
            )


def _read(node: Any) -> Status | None:
    if not isinstance(node, dict):
        return None
    try:
        state = State(node.get("state"))
    except ValueError:
        return None
    return Status(
        state,
        str(node.get("worker_id") or ""),
        _int(node.get("generation")),
        node.get("trace"),
        node.get("version"),
    )


def _int(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
