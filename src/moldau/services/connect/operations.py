"""Operations: what users can do with connectors. Writes happen on the leader only."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from moldau.config import ConfigError
from moldau.connect.api import (
    AlreadyExistsError,
    ConfigDef,
    ConnectError,
    NotFoundError,
)
from moldau.connect.built_in import PluginKind
from moldau.connect.connector_config import SINK, SOURCE
from moldau.connect.machine import config_state as cs
from moldau.connect.machine.dialects import remarks
from moldau.connect.machine.ids import State, TargetState, TaskId
from moldau.connect.machine.status_state import topic_key
from moldau.connect.plugins import CONNECTOR_KINDS, PluginInfo, Plugins, named_plugin
from moldau.connect.runtime.worker_config import WorkerConfig
from moldau.connect.validation import (
    Validated,
    converter_type,
    key_info,
    unread_settings,
    validate_connector,
)
from moldau.services.connect.herder import Herder, RestartConnector, RestartTask
from moldau.services.connect.machine import answers
from moldau.services.connect.machine.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    RequestTarget,
    invalid_config,
)
from moldau.services.connect.offsets import ConnectorOffsets, Pairs

logger = logging.getLogger(__name__)


class Operations:
    def __init__(self, herder: Herder, config: WorkerConfig, plugins: Plugins) -> None:
        self.herder = herder
        self.config = config
        self.plugins = plugins
        self._offsets = ConnectorOffsets(herder.worker)
        self._lock = asyncio.Lock()

    # Who does it.

    def _require_leader(self, message: str) -> None:
        if not self.herder.membership.is_leader:
            raise RequestTarget(message, self.herder.membership.leader_url)

    @property
    def _state(self) -> cs.ConfigState:
        return self.herder.configs.state

    def _known(self, name: str) -> cs.Config:
        found = self._state.connectors.get(name)
        if found is None:
            raise NotFoundError(f"Connector {name} not found")
        return found

    # Reading.

    def connectors(self) -> list[str]:
        return sorted(self._state.connectors)

    def kind_of(self, name: str) -> str:
        config = self._state.connectors.get(name) or {}
        kind = self.plugins.kind_of(*named_plugin(config))
        return kind.value if kind in CONNECTOR_KINDS else "unknown"

    def info(self, name: str) -> dict[str, Any]:
        self._known(name)
        return answers.connector_info(self._state, name, self.kind_of(name))

    def connector_config(self, name: str) -> dict[str, str | None]:
        return dict(self._known(name))

    def task_infos(self, name: str) -> list[dict[str, Any]]:
        self._known(name)
        return answers.task_infos(self._state, name)

    def status(self, name: str) -> dict[str, Any]:
        statuses = self.herder.statuses.state
        if name not in statuses.connectors or name not in self._state.connectors:
            raise NotFoundError(f"No status found for connector {name}")
        found = answers.connector_status(statuses, name, self.kind_of(name), self._version(name))
        # A state may be written by a worker that does not know yet that the task is gone.
        known = {each.task for each in self._state.task_ids(name)}
        found["tasks"] = [each for each in found["tasks"] if each["id"] in known]
        return found

    def _version(self, name: str) -> str | None:
        config = self._state.connectors.get(name)
        if config is None:
            return None
        return self.plugins.version_of(*named_plugin(config))

    def task_status(self, name: str, task: int) -> dict[str, Any]:
        id = TaskId(name, task)
        status = self.herder.statuses.state.tasks.get(id)
        if status is None or id not in self._state.task_ids(name):
            raise NotFoundError(f"No status found for task {id}")
        return answers.task_status(id, status, self._version(name))

    # Creating and changing.

    async def put_config(
        self,
        name: str,
        config: Mapping[str, str | None],
        *,
        replace: bool,
        initial: TargetState | None = None,
    ) -> tuple[bool, dict[str, Any]]:
        """Whether the connector is new, and what it is now."""
        validated = await self.validate(config)
        if validated.errors:
            raise invalid_config(len(validated.errors), validated.errors)
        self._check_group(name, config)
        given = {key: each for key, each in config.items() if each is not None}
        for remark in remarks(given, sorted(unread_settings(validated, given))):
            logger.warning("connector %s: %s", name, remark)
        async with self._lock:
            self._require_leader("Only the leader can set connector configs.")
            exists = name in self._state.connectors
            if exists and not replace:
                raise AlreadyExistsError(f"Connector {name} already exists")
            records = []
            if initial is not None:
                records.append(cs.target_state_record(name, initial))
            records.append(cs.connector_record(name, config))
            await self.herder.write(records)
        return not exists, self.info(name)

    def _check_group(self, name: str, config: Mapping[str, str | None]) -> None:
        own = self.config.values.get("group.id")
        kind = self.plugins.kind_of(*named_plugin(config))
        group = config.get("consumer.override.group.id") or f"connect-{name}"
        if kind is PluginKind.SINK and own is not None and own == group:
            raise BadRequest(
                f"Consumer group for sink connector named {name} conflicts with Connect worker "
                f"group {own}"
            )

    async def patch_config(self, name: str, patch: Mapping[str, str | None]) -> dict[str, Any]:
        self._require_leader("Only the leader can set connector configs.")
        changed = {**self._known(name), **patch}
        config = {key: each for key, each in changed.items() if each is not None}
        _, info = await self.put_config(name, config, replace=True)
        return info

    async def delete(self, name: str) -> None:
        async with self._lock:
            self._require_leader("Only the leader can delete connector configs.")
            self._known(name)
            await self.herder.write(cs.removal_records(name))
        await self.herder.flush()

    # States.

    async def set_target(self, name: str, target: TargetState) -> None:
        if name not in self._state.connectors:
            raise NotFoundError(f"Unknown connector {name}")
        await self.herder.write([cs.target_state_record(name, target)])

    async def stop(self, name: str) -> None:
        async with self._lock:
            if name not in self._state.connectors:
                raise NotFoundError(f"Unknown connector {name}")
            self._require_leader("Only the leader can transition connectors to the STOPPED state.")
            await self.herder.write(
                [
                    cs.target_state_record(name, TargetState.STOPPED),
                    *cs.task_records(name, []),
                ]
            )
        await self.herder.flush()

    async def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> Any:
        """None for the connector alone, else its state."""
        if name not in self._state.connectors:
            raise NotFoundError(f"Unknown connector: {name}")
        if not include_tasks and not only_failed:
            await self._restart_connector(name)
            return None
        self._require_leader("Only the leader can process restart requests.")
        if name not in self.herder.statuses.state.connectors:
            raise NotFoundError(f"Status for connector {name} not found")
        shown = self.status(name)
        for part in (shown["connector"], *(shown["tasks"] if include_tasks else ())):
            if not only_failed or part["state"] == State.FAILED.value:
                part["state"] = State.RESTARTING.value
        request = cs.RestartRequest(name, include_tasks, only_failed)
        await self.herder.write([cs.restart_record(request)])
        return shown

    async def _restart_connector(self, name: str) -> None:
        if name not in self.herder.assigned.connectors:
            raise self._not_assigned(name, "connector")
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.herder.post(RestartConnector(name, done))
        await done

    async def restart_task(self, name: str, task: int) -> None:
        id = TaskId(name, task)
        if name not in self._state.connectors:
            raise NotFoundError(f"Unknown connector: {name}")
        if id not in self._state.tasks:
            raise NotFoundError(f"Unknown task: {id}")
        if id not in self.herder.assigned.tasks:
            raise self._not_assigned(id, "task")
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.herder.post(RestartTask(id, done))
        await done

    def _not_assigned(self, id: str | TaskId, what: str) -> Exception:
        member = self.herder.membership
        text = f"Cannot restart {what} since it is not assigned to this member"
        if member.is_leader:
            url = member.owner_url(id)
            return (
                RequestTarget(text, url)
                if url is not None
                else Conflict(f"{text}, and no other worker runs it yet. Try again")
            )
        return RequestTarget(text, member.leader_url)

    # Topics.

    def topics(self, name: str) -> dict[str, Any]:
        if not self.config.values["topic.tracking.enable"]:
            raise Forbidden("Topic tracking is disabled.")
        found = self.herder.statuses.state.topics.get(name, {})
        return {name: {"topics": sorted(found)}}

    def reset_topics(self, name: str) -> None:
        if not self.config.values["topic.tracking.enable"]:
            raise Forbidden("Topic tracking is disabled.")
        if not self.config.values["topic.tracking.allow.reset"]:
            raise Forbidden("Topic tracking reset is disabled.")
        for topic in list(self.herder.statuses.state.topics.get(name, {})):
            self.herder.statuses.send((topic_key(name, topic), None))

    # Offsets.

    async def offsets(self, name: str) -> dict[str, Any]:
        config = self._known(name)
        pairs = await asyncio.to_thread(self._offsets.read, name, config)
        return answers.offsets_answer(list(pairs))

    async def modify_offsets(self, name: str, pairs: Pairs | None) -> str:
        async with self._lock:
            self._require_leader(
                "Only the leader can process external offsets modification requests"
            )
            config = self._known(name)
            if (
                self._state.target(name) is not TargetState.STOPPED
                or self._state.task_counts.get(name, 0) != 0
            ):
                raise BadRequest(
                    "Connectors must be in the STOPPED state before their offsets can be "
                    "modified. This can be done for the specified connector by issuing a 'PUT' "
                    f"request to the '/connectors/{name}/stop' endpoint"
                )
            await self.herder.flush()
            # A task that is stuck elsewhere must not commit over what is set now.
            await self.herder.fence(name)
            return await asyncio.to_thread(self._offsets.modify, name, config, pairs)

    # Plug-ins.

    def plugin_list(self, *, connectors_only: bool) -> list[PluginInfo]:
        return [
            each
            for each in self.plugins.list()
            if not connectors_only or each.kind in CONNECTOR_KINDS
        ]

    def plugin_config(self, class_name: str, version: str | None = None) -> list[dict[str, Any]]:
        kind = self.plugins.kind_of(class_name)
        if kind is None:
            raise NotFoundError(f"Unknown plugin {class_name}.")
        try:
            definition: ConfigDef = self.plugins.find(class_name, [kind], version).config()
        except ConnectError as error:
            raise BadRequest(str(error)) from None
        if kind is PluginKind.SOURCE:
            definition = SOURCE.including(definition)
        elif kind is PluginKind.SINK:
            definition = SINK.including(definition)
        elif kind is PluginKind.CONVERTER:
            definition = converter_type(definition)
        return [key_info(each) for each in definition.values()]

    async def validate(self, config: Mapping[str, str | None]) -> Validated:
        given = dict(config)
        try:
            resolved = self.config.resolved(given)
        except ConfigError:
            resolved = {key: each for key, each in given.items() if each is not None}
        merged: dict[str, str | None] = {
            **{k: v for k, v in given.items() if v is None},
            **resolved,
        }
        try:
            return await asyncio.to_thread(
                validate_connector,
                merged,
                self.plugins,
                policy=self.config.values["connector.client.config.override.policy"],
                allowlist=self.config.values["connector.client.config.override.allowlist"],
                exactly_once=self.config.exactly_once,
                worker=self.config.settings,
            )
        except ConnectError as error:
            raise BadRequest(str(error)) from None

    # Internal requests.

    async def write_tasks(self, name: str, configs: list[dict[str, str]]) -> None:
        self._require_leader("Only the leader may write task configurations.")
        self._known(name)
        if self._state.target(name) is TargetState.STOPPED and configs:
            raise BadRequest(
                f"Cannot submit non-empty set of task configs for stopped connector {name}"
            )
        await self.herder.write_tasks(name, configs)
