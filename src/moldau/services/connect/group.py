"""GroupMember: this worker in the group of workers, a classic one of the protocol type `connect`.

`ClassicGroup` sends the requests. The leader computes who runs what
(`moldau.connect.machine.assignment`). A worker keeps running its work while it joins
again; what is revoked is stopped first, and then it joins once more, so that others can have it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from moldau.client.classic_group import ClassicGroup, Generation
from moldau.connect.api import ConnectError
from moldau.connect.machine import protocol
from moldau.connect.machine.config_state import ConfigState
from moldau.connect.machine.ids import TaskId
from moldau.connect.machine.leading import Leading
from moldau.connect.machine.protocol import NOTHING, Assignment, Work, WorkerState
from moldau.connect.runtime.clients import worker_client
from moldau.connect.runtime.worker_config import WorkerConfig

__all__ = ["GroupMember"]

logger = logging.getLogger(__name__)


class GroupMember:
    """`on_work(revoked, added)` starts and stops, and returns when what was revoked has ended."""

    protocol_type = protocol.PROTOCOL_TYPE

    def __init__(
        self,
        config: WorkerConfig,
        url: str,
        worker_id: str,
        *,
        state: Callable[[], ConfigState],
        configured: Callable[[], Work],
        refresh: Callable[[], Awaitable[None]],
        on_work: Callable[[Work, Work], Awaitable[None]],
        on_leading: Callable[[], Awaitable[None]],
    ) -> None:
        values = config.values
        self.worker_id = worker_id
        self._url = url
        self._group_id: str = values["group.id"]
        self._offered = protocol.OFFERED[values["connect.protocol"].lower()]
        self._state = state
        self._configured = configured
        self._refresh = refresh
        self._on_work = on_work
        self._on_leading = on_leading
        self._session_ms: int = values["session.timeout.ms"]
        self._group = ClassicGroup(
            self._group_id,
            self,
            settings=worker_client(config.settings, "admin"),
            client_id=f"connect-{self._group_id}",
            session_ms=self._session_ms,
            heartbeat_ms=values["heartbeat.interval.ms"],
            rebalance_ms=values["rebalance.timeout.ms"],
            failures=(ConnectError,),
        )
        self._leading = Leading(values["scheduled.rebalance.max.delay.ms"])
        self._assignment: Assignment | None = None
        self._work = NOTHING
        self._last_generation = -1
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stopping_work: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.joined = asyncio.Event()

    # What the herder asks.

    @property
    def is_leader(self) -> bool:
        found = self._assignment
        return found is not None and found.leader == self._group.member_id

    @property
    def leader_url(self) -> str | None:
        return None if self._assignment is None else self._assignment.leader_url

    @property
    def generation(self) -> int:
        return self._group.generation_id

    def owner_url(self, id: str | TaskId) -> str | None:
        return self._leading.owners.get(id)

    def request_rejoin(self, reason: str) -> None:
        self._group.request_rejoin(reason)

    # Life.

    def start(self) -> None:
        self._group.start()

    async def stop(self) -> None:
        """Leave the group, so that others need not wait for the session to end."""
        if self._timer is not None:
            self._timer.cancel()
        for task in tuple(self._tasks):
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task
        await self._group.stop("the worker stops")

    # What the group asks.

    async def protocols(self) -> Sequence[tuple[str, bytes]]:
        await self._let_go()
        mine = WorkerState(self._url, self._state().offset, self._owned())
        return [(name, protocol.encode_state(mine, name)) for name in self._offered]

    async def _let_go(self) -> None:
        """Before joining: what was revoked has ended; with the eager protocol, everything has."""
        if self._stopping_work is not None:
            await self._stopping_work
            self._stopping_work = None
        if self._assignment is not None and self._assignment.version == 0 and self._work:
            await self._on_work(self._work, NOTHING)
            self._work = NOTHING

    def _owned(self) -> Assignment:
        found = self._assignment
        if found is None:
            return Assignment(1)
        return replace(found, version=1, work=self._work, revoked=NOTHING, delay_ms=0)

    async def lead(self, members: Mapping[str, bytes], generation: Generation) -> dict[str, bytes]:
        """What each worker runs, as bytes by member."""
        states: dict[str, WorkerState] = {}
        for member_id, data in members.items():
            try:
                states[member_id] = protocol.decode_state(data)
            except protocol.ProtocolError as error:
                logger.error("worker %s is left out: %s", member_id, error)
        newest = max(each.offset for each in states.values())
        if self._state().offset < newest:
            with suppress(ConnectError):
                await self._refresh()
        name = generation.protocol_name or protocol.EAGER
        version = protocol.VERSIONS[name]
        base = Assignment(
            version,
            leader=generation.member_id,
            leader_url=self._url,
            offset=max(newest, self._state().offset),
        )
        if self._state().offset < newest:
            wrong = replace(base, error=protocol.CONFIG_MISMATCH)
            return {each: protocol.encode_assignment(wrong, version) for each in states}
        return self._leading.distribute(
            states,
            base,
            self._configured(),
            last_generation=self._last_generation,
            generation=generation.generation_id,
            now_ms=int(time.monotonic() * 1000),
        )

    async def take(self, assignment: bytes, generation: Generation) -> None:
        try:
            found = protocol.decode_assignment(assignment)
        except protocol.ProtocolError as error:
            raise ConnectError(f"no assignment: {error}") from None
        if found.error != protocol.NO_ERROR or self._state().offset < found.offset:
            await self._refresh()
        self._last_generation = generation.generation_id
        if found.error != protocol.NO_ERROR:
            self.request_rejoin("the leader had not read the whole config topic")
            return
        self._assignment = found
        revoked = found.revoked & self._work
        added = found.work - (self._work - revoked)
        self._work = (self._work - revoked) | found.work
        logger.info(
            "group %s, generation %d: leader %s; %d added, %d revoked, %d in all, delay %d ms",
            self._group_id,
            generation.generation_id,
            found.leader_url,
            len(added),
            len(revoked),
            len(self._work),
            found.delay_ms,
        )
        self._schedule(found.delay_ms)
        self._stopping_work = self._spawn(self._apply(revoked, added))
        if self.is_leader:
            self._spawn(self._on_leading())
        self.joined.set()

    async def _apply(self, revoked: Work, added: Work) -> None:
        await self._on_work(revoked, added)
        if revoked:
            self.request_rejoin("revoked work has ended")

    def _schedule(self, delay_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if delay_ms > 0:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(
                delay_ms / 1000, lambda: self.request_rejoin("the scheduled delay is over")
            )

    def _spawn(self, coroutine: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("group %s", self._group_id, exc_info=task.exception())

    async def on_session_ended(self) -> None:
        """Others may run this worker's work by now, or soon: it must not run twice."""
        if self._work:
            logger.error(
                "group %s: no heartbeat was answered for %d ms; all connectors and tasks stop",
                self._group_id,
                self._session_ms,
            )
            await self._on_work(self._work, NOTHING)
            self._work = NOTHING

    def on_failure(self) -> None: ...
