"""What the config topic says: connectors, tasks, target states, keys, in Connect's record formats.

`replay` is the only mutator. Task configurations count once the commit record after them says how
many there are; after compaction a set may be incomplete, and then the connector is `inconsistent`
until its leader writes its tasks again.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moldau.config.variables import variables_in
from moldau.connect.machine.ids import TargetState, TaskId

Record = tuple[str, bytes | None]
Config = dict[str, str | None]

_CONNECTOR = "connector-"
_TASK = "task-"
_COMMIT = "commit-"
_TARGET = "target-state-"
_FENCING = "tasks-fencing-"
_RESTART = "restart-connector-"
_LOGGER = "logger-cluster-"
_SESSION_KEY = "session-key"


@dataclass(frozen=True, slots=True)
class SessionKey:
    """Signs requests between workers."""

    key: bytes
    algorithm: str
    created_ms: int


@dataclass(frozen=True, slots=True)
class RestartRequest:
    connector: str
    include_tasks: bool
    only_failed: bool


# Records to write.


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def connector_record(name: str, config: Mapping[str, str | None]) -> Record:
    return _CONNECTOR + name, _json({"properties": dict(config)})


def removal_records(name: str) -> list[Record]:
    return [
        (_CONNECTOR + name, None),
        (_TARGET + name, None),
    ]


def with_variables(
    connector: Mapping[str, str | None], tasks: Sequence[Mapping[str, str | None]]
) -> list[Config]:
    """Task configurations with the connector's variables (`${file:...}`) in place of the values
    that the connector was started with: what providers keep secret does not go into a topic."""
    hidden = {key: text for key, text in connector.items() if text and variables_in(text)}
    return [{**each, **{key: hidden[key] for key in hidden if key in each}} for each in tasks]


def task_records(name: str, configs: list[Config]) -> list[Record]:
    """All tasks of a connector, and the record that makes them count."""
    tasks = [
        (f"{_TASK}{name}-{index}", _json({"properties": config}))
        for index, config in enumerate(configs)
    ]
    return [*tasks, (_COMMIT + name, _json({"tasks": len(configs)}))]


def target_state_record(name: str, state: TargetState) -> Record:
    # Workers before 3.5 do not know STOPPED: they read `state`, where PAUSED stands for it.
    old = TargetState.PAUSED if state is TargetState.STOPPED else state
    return _TARGET + name, _json({"state": old.value, "state.v2": state.value})


def fencing_record(name: str, task_count: int) -> Record:
    return _FENCING + name, _json({"task-count": task_count})


def restart_record(request: RestartRequest) -> Record:
    return _RESTART + request.connector, _json(
        {"include-tasks": request.include_tasks, "only-failed": request.only_failed}
    )


def session_key_record(key: SessionKey) -> Record:
    return _SESSION_KEY, _json(
        {
            "key": base64.b64encode(key.key).decode(),
            "algorithm": key.algorithm,
            "creation-timestamp": key.created_ms,
        }
    )


def logger_record(namespace: str, level: str) -> Record:
    return _LOGGER + namespace, _json({"level": level})


# What a record changed.


@dataclass(frozen=True, slots=True)
class ConnectorUpdated:
    name: str


@dataclass(frozen=True, slots=True)
class ConnectorRemoved:
    name: str


@dataclass(frozen=True, slots=True)
class TasksUpdated:
    name: str


@dataclass(frozen=True, slots=True)
class TargetStateChanged:
    name: str


@dataclass(frozen=True, slots=True)
class RestartRequested:
    request: RestartRequest


@dataclass(frozen=True, slots=True)
class LoggerLevelSet:
    namespace: str
    level: str


Change = (
    ConnectorUpdated
    | ConnectorRemoved
    | TasksUpdated
    | TargetStateChanged
    | RestartRequested
    | LoggerLevelSet
)


@dataclass(slots=True)
class ConfigState:
    """`offset` is the one after the last record that was read."""

    offset: int = -1
    connectors: dict[str, Config] = field(default_factory=dict)
    tasks: dict[TaskId, Config] = field(default_factory=dict)
    task_counts: dict[str, int] = field(default_factory=dict)
    targets: dict[str, TargetState] = field(default_factory=dict)
    fenced_counts: dict[str, int] = field(default_factory=dict)
    pending_fencing: set[str] = field(default_factory=set)
    generations: dict[str, int] = field(default_factory=dict)
    applied: dict[str, Config] = field(default_factory=dict)
    """The connector's configuration when its tasks were written."""
    inconsistent: set[str] = field(default_factory=set)
    session_key: SessionKey | None = None
    _deferred: dict[str, dict[TaskId, Config]] = field(default_factory=dict)

    def task_ids(self, name: str) -> list[TaskId]:
        if name in self.inconsistent:
            return []
        return [TaskId(name, index) for index in range(self.task_counts.get(name, 0))]

    def target(self, name: str) -> TargetState:
        return self.targets.get(name, TargetState.STARTED)

    def replay(self, key: str | None, value: bytes | None, offset: int) -> Change | None:
        """Apply one record. A record that makes no sense is passed over, as in Connect."""
        self.offset = offset + 1
        if key is None:
            return None
        try:
            node = None if value is None else json.loads(value)
        except ValueError:
            return None
        if node is not None and not isinstance(node, dict):
            return None
        for prefix, apply in (
            (_TARGET, self._target),
            (_CONNECTOR, self._connector),
            (_FENCING, self._fencing),
            (_TASK, self._task),
            (_COMMIT, self._commit),
            (_RESTART, self._restart),
            (_LOGGER, self._logger),
        ):
            if key.startswith(prefix):
                found: Change | None = apply(key.removeprefix(prefix), node)
                return found
        if key == _SESSION_KEY and node is not None:
            self._session_key(node)
        return None

    def _target(self, name: str, node: Any) -> Change | None:
        if node is None:
            self.targets.pop(name, None)
            return None
        text = node.get("state.v2") or node.get("state")
        try:
            state = TargetState(text)
        except ValueError:
            return None
        previous = self.targets.get(name)
        self.targets[name] = state
        if name in self.connectors and state is not previous:
            return TargetStateChanged(name)
        return None

    def _connector(self, name: str, node: Any) -> Change | None:
        if node is None:
            known = name in self.connectors
            self._remove(name)
            return ConnectorRemoved(name) if known else None
        properties = _properties(node)
        if properties is None:
            return None
        self.connectors[name] = properties
        self.targets.setdefault(name, TargetState.STARTED)
        return ConnectorUpdated(name)

    def _remove(self, name: str) -> None:
        self.connectors.pop(name, None)
        self.targets.pop(name, None)
        self._deferred.pop(name, None)
        self.applied.pop(name, None)
        for index in range(self.task_counts.pop(name, 0)):
            self.tasks.pop(TaskId(name, index), None)

    def _task(self, text: str, node: Any) -> Change | None:
        name, _, index = text.rpartition("-")
        properties = None if node is None else _properties(node)
        if name and index.isdigit() and properties is not None:
            self._deferred.setdefault(name, {})[TaskId(name, int(index))] = properties
        return None

    def _commit(self, name: str, node: Any) -> Change | None:
        deferred = self._deferred.pop(name, {})
        if name not in self.connectors:
            # The connector was deleted, and compaction has removed every trace of that.
            self._remove(name)
            return None
        count = None if node is None else node.get("tasks")
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            return None
        # Only what was written before this record counts: older tasks may be of another time.
        if {each.task for each in deferred} >= set(range(count)):
            self.tasks.update(deferred)
            for each in [each for each in self.tasks if each.connector == name]:
                if each.task >= count:
                    del self.tasks[each]
            self.generations[name] = self.generations.get(name, -1) + 1
            self.inconsistent.discard(name)
            self.applied[name] = self.connectors[name]
        else:
            self.inconsistent.add(name)
        self.task_counts[name] = count
        self.pending_fencing.add(name)
        return TasksUpdated(name)

    def _fencing(self, name: str, node: Any) -> Change | None:
        count = None if node is None else node.get("task-count")
        if isinstance(count, int):
            self.fenced_counts[name] = count
            self.pending_fencing.discard(name)
        return None

    def _restart(self, name: str, node: Any) -> Change | None:
        if node is None:
            return None
        return RestartRequested(
            RestartRequest(name, node.get("include-tasks") is True, node.get("only-failed") is True)
        )

    def _logger(self, namespace: str, node: Any) -> Change | None:
        level = None if node is None else node.get("level")
        return LoggerLevelSet(namespace, level) if isinstance(level, str) else None

    def _session_key(self, node: Mapping[str, Any]) -> None:
        text, algorithm = node.get("key"), node.get("algorithm")
        created = node.get("creation-timestamp")
        if isinstance(text, str) and isinstance(algorithm, str) and isinstance(created, int):
            try:
                key = base64.b64decode(text, validate=True)
            except binascii.Error:
                return
            self.session_key = SessionKey(key, algorithm, created)


def _properties(node: Mapping[str, Any]) -> Config | None:
    found = node.get("properties")
    if not isinstance(found, dict):
        return None
    return {str(key): None if each is None else str(each) for key, each in found.items()}
