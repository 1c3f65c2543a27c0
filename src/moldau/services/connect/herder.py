"""Herder: runs what this worker is assigned, and answers what users ask.

All changes come out of the config store, in its order, into one queue; one coroutine takes them out
and starts, restarts and stops what is assigned to this worker. Requests of users only write records
(leader) and read states. So a restart, another worker's write and a user's request take the same
way.

Invariants: a connector or task is started and stopped by the coroutine that owns the queue only; a
user's write is answered after the store has it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from moldau.connect.api import ConnectError
from moldau.connect.machine import config_state as cs
from moldau.connect.machine.config_state import Change
from moldau.connect.machine.ids import State, TargetState, TaskId
from moldau.connect.machine.protocol import NOTHING, Work
from moldau.connect.machine.status_state import (
    Status,
    TopicUse,
    status_record,
    topic_key,
    topic_record,
)
from moldau.connect.runtime.worker import Worker
from moldau.services.connect.logger_levels import set_level
from moldau.services.connect.membership import Membership
from moldau.services.connect.reloading import ProvidedValues, Reload
from moldau.services.connect.stores import ConfigStore, StatusStore

logger = logging.getLogger(__name__)

_RETRY_S = 1.0
_RETRY_S_MAX = 60.0


@dataclass(frozen=True, slots=True)
class Assigned:
    """The group has decided: what to give up first, and what to start then."""

    revoked: Work
    added: Work


@dataclass(frozen=True, slots=True)
class Reconfigure:
    """The connector's tasks may have to change."""

    name: str
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class RestartConnector:
    name: str
    done: asyncio.Future[None]


@dataclass(frozen=True, slots=True)
class RestartTask:
    id: TaskId
    done: asyncio.Future[None]


@dataclass(frozen=True, slots=True)
class Flush:
    """Everything before it is done."""

    done: asyncio.Future[None]


Event = Change | Assigned | Reconfigure | Reload | RestartConnector | RestartTask | Flush
#: Sends task configurations to the leader, from a worker that is not.
ForwardTasks = Callable[[str, list[cs.Config]], Awaitable[None]]
#: Before a source task starts exactly once: older generations are fenced.
Fence = Callable[[str], Awaitable[None]]


class Herder:
    """`start` and `stop` are called once, on the loop that serves."""

    def __init__(
        self,
        worker: Worker,
        configs: ConfigStore,
        statuses: StatusStore,
        membership: Membership,
        *,
        forward_tasks: ForwardTasks,
        fence: Fence,
        track_topics: bool,
    ) -> None:
        self.worker = worker
        self.configs = configs
        self.statuses = statuses
        self.membership = membership
        self.assigned = NOTHING
        self._forward_tasks = forward_tasks
        self.fence = fence
        self._track_topics = track_topics
        self._values = ProvidedValues(worker.config, lambda: configs.state)
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: asyncio.Task[None] | None = None
        self._later: set[asyncio.TimerHandle] = set()

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._running = self._loop.create_task(self._run())

    async def stop(self) -> None:
        for each in self._later:
            each.cancel()
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
        await asyncio.to_thread(self.worker.stop)

    # Events, from any thread.

    def post(self, event: Event) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._events.put_nowait, event)

    def on_status(self, id: str | TaskId, state: State, trace: str | None) -> None:
        member = self.membership
        status = Status(state, member.worker_id, member.generation, trace)
        # A state that says "nobody runs it" must not hide that another worker has taken over.
        if state is State.UNASSIGNED and not self.statuses.state.can_write(id, status):
            return
        # Nor come back after the leader has removed the states of what was deleted.
        if state is State.UNASSIGNED and not self._is_configured(id):
            return
        self.statuses.send(status_record(id, status))

    def _is_configured(self, id: str | TaskId) -> bool:
        state = self.configs.state
        if isinstance(id, TaskId):
            return id in state.task_ids(id.connector)
        return id in state.connectors

    def on_topic(self, id: TaskId, topic: str) -> None:
        if not self._track_topics:
            return
        if topic not in self.statuses.state.topics.get(id.connector, {}):
            use = TopicUse(topic, id.connector, id.task, int(time.time() * 1000))
            self.statuses.send(topic_record(use))

    def on_reconfiguration(self, name: str) -> None:
        self.post(Reconfigure(name))

    async def flush(self) -> None:
        """Wait until everything that happened so far is done."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.post(Flush(done))
        await done

    # The coroutine.

    async def _run(self) -> None:
        while True:
            event = await self._events.get()
            try:
                await self._handle(event)
            except asyncio.CancelledError:
                raise
            except Exception:
                logger.exception("%s failed", event)

    async def _handle(self, event: Event) -> None:
        match event:
            case Assigned():
                await self._on_assigned(event)
            case cs.ConnectorUpdated(name):
                await self._on_connector_updated(name)
            case cs.ConnectorRemoved(name):
                await self._on_connector_removed(name)
            case cs.TasksUpdated(name):
                await self._on_tasks_updated(name)
            case cs.TargetStateChanged(name):
                await self._on_target_changed(name)
            case cs.RestartRequested(request):
                await self._on_restart_requested(request)
            case cs.LoggerLevelSet(namespace, level):
                set_level(namespace, level)
            case Reconfigure():
                await self._reconfigure(event)
            case Reload():
                await self._reload(event)
            case RestartConnector(name, done):
                await self._complete(done, self._restart_connector(name))
            case RestartTask(id, done):
                await self._complete(done, self._restart_task(id))
            case Flush(done):
                if not done.done():
                    done.set_result(None)

    async def _complete(self, done: asyncio.Future[None], action: Awaitable[None]) -> None:
        try:
            await action
        except Exception as error:
            if not done.done():
                done.set_exception(error)
        else:
            if not done.done():
                done.set_result(None)

    async def _on_assigned(self, event: Assigned) -> None:
        revoked = event.revoked & self.assigned
        await asyncio.to_thread(self._stop_work, revoked)
        self.assigned = (self.assigned - revoked) | event.added
        for name in sorted(event.added.connectors):
            await self._start_connector(name)
        for id in sorted(event.added.tasks):
            await self._start_task(id)

    def _stop_work(self, work: Work) -> None:
        self.worker.stop_tasks(sorted(work.tasks))
        for name in sorted(work.connectors):
            self.worker.stop_connector(name)

    # Connectors and tasks of this worker.

    async def _start_connector(self, name: str) -> None:
        state = self.configs.state
        config = state.connectors.get(name)
        if config is None or name in self.worker.connectors:
            return
        target = state.target(name)
        started = await asyncio.to_thread(self.worker.start_connector, name, config, target)
        if started:
            self._watch(name)
        if started and target is TargetState.STARTED:
            await self._reconfigure(Reconfigure(name))

    async def _start_task(self, id: TaskId) -> None:
        state = self.configs.state
        connector, config = state.connectors.get(id.connector), state.tasks.get(id)
        if connector is None or config is None or id in self.worker.tasks:
            return
        try:
            await self.fence(id.connector)
        except Exception as error:
            self.on_status(id, State.FAILED, f"Failed to fence older tasks: {error}")
            return
        started = await asyncio.to_thread(
            self.worker.start_task, id, connector, config, state.target(id.connector)
        )
        if started:
            self._watch(id)

    def _watch(self, id: str | TaskId) -> None:
        found = self._values.next_look(id)
        if found is not None:
            self._after(*found)

    async def _reload(self, event: Reload) -> None:
        id = event.id
        if id not in (self.worker.tasks if isinstance(id, TaskId) else self.worker.connectors):
            return
        if not self._values.have_changed(event):
            self._watch(id)
            return
        logger.info("values of config providers have changed: %s starts again", id)
        with suppress(ConnectError):
            await (
                self._restart_task(id) if isinstance(id, TaskId) else self._restart_connector(id)
            )

    async def _on_connector_updated(self, name: str) -> None:
        if name not in self.assigned.connectors:
            self.membership.request_rejoin(f"connector {name} is new")
            return
        await asyncio.to_thread(self.worker.stop_connector, name)
        await self._start_connector(name)

    async def _on_connector_removed(self, name: str) -> None:
        # It stays assigned until the group takes it away: if the connector comes back before that,
        # the worker that the group believes to run it must start it.
        await asyncio.to_thread(self._stop_work, self._work_of(name))
        if self.membership.is_leader:
            self._forget_statuses(name)
        self.membership.request_rejoin(f"connector {name} was deleted")

    def _forget_statuses(self, name: str) -> None:
        member = self.membership
        destroyed = Status(State.DESTROYED, member.worker_id, member.generation)
        known = self.statuses.state
        for id, _ in list(known.tasks_of(name)):
            self.statuses.send(status_record(id, destroyed))
        self.statuses.send(status_record(name, destroyed))
        for topic in list(known.topics.get(name, {})):
            self.statuses.send((topic_key(name, topic), None))

    def _work_of(self, name: str) -> Work:
        return Work(
            self.assigned.connectors & {name},
            frozenset(each for each in self.assigned.tasks if each.connector == name),
        )

    async def _on_tasks_updated(self, name: str) -> None:
        """Tasks of this worker start again with their new configurations."""
        wanted = set(self.configs.state.task_ids(name))
        mine = {each for each in self.assigned.tasks if each.connector == name}
        await asyncio.to_thread(self.worker.stop_tasks, sorted(mine))
        if self.membership.is_leader:
            self._forget_tasks(name, wanted)
        for id in sorted(mine & wanted):
            await self._start_task(id)
        self.membership.request_rejoin(f"the tasks of {name} have changed")

    def _forget_tasks(self, name: str, wanted: set[TaskId]) -> None:
        member = self.membership
        destroyed = Status(State.DESTROYED, member.worker_id, member.generation)
        for id, _ in list(self.statuses.state.tasks_of(name)):
            if id not in wanted:
                self.statuses.send(status_record(id, destroyed))

    async def _on_target_changed(self, name: str) -> None:
        target = self.configs.state.target(name)
        await asyncio.to_thread(self.worker.set_target, name, target)
        if target is TargetState.STARTED and name in self.assigned.connectors:
            await self._reconfigure(Reconfigure(name))

    async def _on_restart_requested(self, request: cs.RestartRequest) -> None:
        state = self.statuses.state
        status = state.connectors.get(request.connector)
        failed = status is not None and status.state is State.FAILED
        if request.connector in self.assigned.connectors and (not request.only_failed or failed):
            with suppress(ConnectError):
                await self._restart_connector(request.connector)
        if not request.include_tasks:
            return
        for id in sorted(self._work_of(request.connector).tasks):
            task = state.tasks.get(id)
            if not request.only_failed or (task is not None and task.state is State.FAILED):
                with suppress(ConnectError):
                    await self._restart_task(id)

    async def _restart_connector(self, name: str) -> None:
        self.on_status(name, State.RESTARTING, None)
        await asyncio.to_thread(self.worker.stop_connector, name)
        await self._start_connector(name)
        if name not in self.worker.connectors:
            raise ConnectError(f"Failed to start connector: {name}")

    async def _restart_task(self, id: TaskId) -> None:
        self.on_status(id, State.RESTARTING, None)
        await asyncio.to_thread(self.worker.stop_tasks, [id])
        await self._start_task(id)
        if id not in self.worker.tasks:
            raise ConnectError(f"Failed to start task: {id}")

    # Task configurations.

    async def _reconfigure(self, event: Reconfigure) -> None:
        """Ask the connector for its tasks, and have them written if they changed."""
        name = event.name
        state = self.configs.state
        if name not in self.worker.connectors or state.target(name) is not TargetState.STARTED:
            return
        try:
            found = await asyncio.to_thread(self.worker.task_configs, name)
            wanted = cs.with_variables(state.connectors.get(name) or {}, found)
            if not self._tasks_changed(name, wanted):
                return
            if self.membership.is_leader:
                await self.write_tasks(name, wanted)
            else:
                await self._forward_tasks(name, wanted)
        except Exception as error:
            if "greater than" in str(error) or not isinstance(error, ConnectError | OSError):
                self.on_status(name, State.FAILED, f"{type(error).__name__}: {error}")
                logger.error("connector %s: no tasks: %s", name, error)
                return
            logger.warning("connector %s: its tasks are configured later: %s", name, error)
            self._again(Reconfigure(name, event.attempt + 1))

    def _tasks_changed(self, name: str, wanted: list[cs.Config]) -> bool:
        state = self.configs.state
        if name in state.inconsistent or state.task_counts.get(name, -1) != len(wanted):
            return True
        if state.applied.get(name) != state.connectors.get(name):
            # The tasks see the connector's own settings too, such as its transforms.
            return True
        return any(state.tasks.get(TaskId(name, i)) != each for i, each in enumerate(wanted))

    def _again(self, event: Reconfigure) -> None:
        self._after(min(_RETRY_S * 2 ** min(event.attempt, 6), _RETRY_S_MAX), event)

    def _after(self, delay_s: float, event: Event) -> None:
        loop = asyncio.get_running_loop()

        def fire() -> None:
            self._later.discard(handle)
            self._events.put_nowait(event)

        handle = loop.call_later(delay_s, fire)
        self._later.add(handle)

    async def write_tasks(self, name: str, configs: Sequence[Mapping[str, str | None]]) -> None:
        """Leader only."""
        if name not in self.configs.state.connectors:
            return
        records = cs.task_records(name, [dict(each) for each in configs])
        await asyncio.to_thread(self.configs.write, records)

    async def write(self, records: list[tuple[str, bytes | None]]) -> None:
        await asyncio.to_thread(self.configs.write, records)

    # What is known.

    def all_work(self) -> Work:
        """Everything that is configured."""
        state = self.configs.state
        tasks = {id for name in state.connectors for id in state.task_ids(name)}
        return Work(frozenset(state.connectors), frozenset(tasks))


def as_texts(config: Mapping[str, Any]) -> dict[str, str | None]:
    """A configuration from JSON: numbers and booleans become the texts that they are written as."""
    found: dict[str, str | None] = {}
    for key, value in config.items():
        if value is None or isinstance(value, str):
            found[key] = value
        elif isinstance(value, bool):
            found[key] = "true" if value else "false"
        else:
            found[key] = str(value)
    return found
