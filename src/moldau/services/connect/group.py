"""GroupMember: this worker in the group of workers, a classic one of the protocol type `connect`.

`ClassicMember` decides when to join and beat; here its requests are sent. The leader computes who
runs what (`moldau.connect.machine.assignment`). A worker keeps running its work while it joins
again; what is revoked is stopped first, and then it joins once more, so that others can have it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from moldau.client.cluster import LANE_COORDINATOR, ClusterClient
from moldau.client.config import ADMIN_KEYS, gather, no_effect, parse_settings
from moldau.client.consumer.membership.machine.classic import (
    After,
    Beat,
    ClassicMember,
    ClassicSettings,
    Generation,
)
from moldau.client.errors import KafkaError, code_of, error_for
from moldau.client.machine.coordinators import CoordinatorType
from moldau.client.network_settings import NetworkSettings
from moldau.clock import pause
from moldau.connect.api import ConnectError
from moldau.connect.machine import protocol
from moldau.connect.machine.config_state import ConfigState
from moldau.connect.machine.ids import TaskId
from moldau.connect.machine.leading import Leading
from moldau.connect.machine.protocol import NOTHING, Assignment, Work, WorkerState
from moldau.connect.runtime.clients import worker_client
from moldau.connect.runtime.worker_config import WorkerConfig
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
)

__all__ = ["GroupMember"]

logger = logging.getLogger(__name__)

_LANE_JOIN: Final = "join"
_JOIN_LAPSE_MS: Final = 5_000
_LEAVE_MS: Final = 2_000


class GroupMember:
    """`on_work(revoked, added)` starts and stops, and returns when what was revoked has ended."""

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
        self._session_ms: int = values["session.timeout.ms"]
        self._rebalance_ms: int = values["rebalance.timeout.ms"]
        self._offered = protocol.OFFERED[values["connect.protocol"].lower()]
        self._state = state
        self._configured = configured
        self._refresh = refresh
        self._on_work = on_work
        self._on_leading = on_leading
        clients = worker_client(config.settings, "admin")
        settings = parse_settings(
            ADMIN_KEYS, gather(ADMIN_KEYS, clients, {}), no_effect=no_effect.ADMIN
        )
        self._cluster = ClusterClient(
            NetworkSettings.of(settings, client_id=f"connect-{self._group_id}")
        )
        self._clock = self._cluster.clock
        self._member = ClassicMember(
            ClassicSettings(self._session_ms, values["heartbeat.interval.ms"], 2**31 - 1)
        )
        self._leading = Leading(values["scheduled.rebalance.max.delay.ms"])
        self._assignment: Assignment | None = None
        self._work = NOTHING
        self._last_generation = -1
        self._wake = asyncio.Event()
        self._requested: str | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stopping_work: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._running: asyncio.Task[None] | None = None
        self.joined = asyncio.Event()

    # What the herder asks.

    @property
    def is_leader(self) -> bool:
        found = self._assignment
        return found is not None and found.leader == self._member.generation.member_id

    @property
    def leader_url(self) -> str | None:
        return None if self._assignment is None else self._assignment.leader_url

    @property
    def generation(self) -> int:
        return self._member.generation.generation_id

    def owner_url(self, id: str | TaskId) -> str | None:
        return self._leading.owners.get(id)

    def request_rejoin(self, reason: str) -> None:
        self._requested = reason
        self._member.request_rejoin(reason)
        self._wake.set()

    # Life.

    def start(self) -> None:
        self._running = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Leave the group, so that others need not wait for the session to end."""
        if self._timer is not None:
            self._timer.cancel()
        for task in (self._running, *self._tasks):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await task
        member_id = self._member.leave(remain=False, reason="the worker stops")
        if member_id is not None:
            request = LeaveGroupRequest(
                group_id=self._group_id,
                members=[LeaveGroupRequest.MemberIdentity(member_id=member_id)],
            )
            with suppress(KafkaError, TimeoutError):
                async with asyncio.timeout(_LEAVE_MS / 1000):
                    await self._call(request, timeout_ms=_LEAVE_MS)
        await self._cluster.close()

    async def _run(self) -> None:
        failures = 0
        while True:
            try:
                if self._member.rejoin_needed:
                    await self._join()
                else:
                    await self._beat()
                failures = 0
            except (KafkaError, ConnectError) as error:
                failures += 1
                logger.warning("group %s: %s", self._group_id, error)
                self._member.on_call_failed(type(error).__name__)
                self._cluster.forget_coordinator(CoordinatorType.GROUP, self._group_id)
                delay_ms = self._cluster.backoff.delay_ms(failures, self._cluster.random)
                await pause(self._clock, delay_ms)

    # Joining.

    async def _join(self) -> None:
        await self._let_go()
        self._requested = None
        sent = self._member.begin_join(self._clock.elapsed_ms())
        mine = WorkerState(self._url, self._state().offset, self._owned())
        request = JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=self._session_ms,
            rebalance_timeout_ms=self._rebalance_ms,
            member_id=sent.member_id,
            protocol_type=protocol.PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(
                    name=name, metadata=protocol.encode_state(mine, name)
                )
                for name in self._offered
            ],
            reason=self._member.reason_to_send,
        )
        response: JoinGroupResponse = await self._call(
            request, timeout_ms=self._rebalance_ms + _JOIN_LAPSE_MS, lane=_LANE_JOIN
        )
        code = code_of(response.error_code)
        if code is not ErrorCode.NONE:
            await self._after(self._member.on_join_failed(code, sent, response.member_id), code)
            return
        generation = Generation(
            response.generation_id, response.member_id, response.protocol_name or ""
        )
        if not self._member.on_joined(generation, self._clock.elapsed_ms()):
            return
        assignments: dict[str, bytes] = {}
        if response.leader == response.member_id:
            assignments = await self._lead(response, generation)
        await self._sync(generation, assignments)

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

    async def _lead(self, response: JoinGroupResponse, generation: Generation) -> dict[str, bytes]:
        """What each worker runs, as bytes by member."""
        states: dict[str, WorkerState] = {}
        for each in response.members:
            try:
                states[each.member_id] = protocol.decode_state(bytes(each.metadata))
            except protocol.ProtocolError as error:
                logger.error("worker %s is left out: %s", each.member_id, error)
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

    async def _sync(self, generation: Generation, assignments: dict[str, bytes]) -> None:
        kind = SyncGroupRequest.SyncGroupRequestAssignment
        request = SyncGroupRequest(
            group_id=self._group_id,
            generation_id=generation.generation_id,
            member_id=generation.member_id,
            protocol_type=protocol.PROTOCOL_TYPE,
            protocol_name=generation.protocol_name,
            assignments=[
                kind(member_id=member_id, assignment=data)
                for member_id, data in assignments.items()
            ],
        )
        response = await self._call(request, lane=_LANE_JOIN)
        code = code_of(response.error_code)
        if code is not ErrorCode.NONE:
            await self._after(self._member.on_sync_failed(code, generation), code)
            return
        if self._member.on_synced(response.protocol_name) is None:
            await self._take(bytes(response.assignment), generation)
            if self._requested is not None:
                # Since this round began: the leader may not have known what it is about.
                self._member.request_rejoin(self._requested)

    async def _take(self, data: bytes, generation: Generation) -> None:
        try:
            assignment = protocol.decode_assignment(data)
        except protocol.ProtocolError as error:
            raise ConnectError(f"no assignment: {error}") from None
        if assignment.error != protocol.NO_ERROR or self._state().offset < assignment.offset:
            await self._refresh()
        self._last_generation = generation.generation_id
        if assignment.error != protocol.NO_ERROR:
            self.request_rejoin("the leader had not read the whole config topic")
            return
        self._assignment = assignment
        revoked = assignment.revoked & self._work
        added = assignment.work - (self._work - revoked)
        self._work = (self._work - revoked) | assignment.work
        logger.info(
            "group %s, generation %d: leader %s; %d added, %d revoked, %d in all, delay %d ms",
            self._group_id,
            generation.generation_id,
            assignment.leader_url,
            len(added),
            len(revoked),
            len(self._work),
            assignment.delay_ms,
        )
        self._schedule(assignment.delay_ms)
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

    async def _after(self, after: After, code: ErrorCode) -> None:
        if after is not After.RETRY:
            raise error_for(code, f"group {self._group_id}")

    # Heartbeats.

    async def _beat(self) -> None:
        beat, wait_ms = self._member.next_beat(self._clock.elapsed_ms(), 0)
        if beat is Beat.WAIT:
            self._wake.clear()
            if not self._member.rejoin_needed:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), (wait_ms or 0) / 1000)
        elif beat is Beat.SEND:
            await self._send_beat()
        elif beat is Beat.FIND_COORDINATOR:
            await self._session_ended()
        else:
            self._member.request_rejoin("not a member of the group")

    async def _session_ended(self) -> None:
        """Others may run this worker's work by now, or soon: it must not run twice."""
        self._cluster.forget_coordinator(CoordinatorType.GROUP, self._group_id)
        if self._work:
            logger.error(
                "group %s: no heartbeat was answered for %d ms; all connectors and tasks stop",
                self._group_id,
                self._session_ms,
            )
            await self._on_work(self._work, NOTHING)
            self._work = NOTHING
        self.request_rejoin("the session ended")

    async def _send_beat(self) -> None:
        sent = self._member.on_beat_sent(self._clock.elapsed_ms())
        request = HeartbeatRequest(
            group_id=self._group_id,
            generation_id=sent.generation_id,
            member_id=sent.member_id,
        )
        try:
            response = await self._call(request, timeout_ms=self._session_ms)
        except KafkaError:
            self._cluster.forget_coordinator(CoordinatorType.GROUP, self._group_id)
            delay_ms = self._cluster.backoff.delay_ms(
                self._member.beat_failures + 1, self._cluster.random
            )
            self._member.on_beat_failed(self._clock.elapsed_ms(), delay_ms)
            return
        code = code_of(response.error_code)
        after = self._member.on_beat_answered(code, sent, self._clock.elapsed_ms())
        if after is not None:
            await self._after(after, code)

    async def _call(
        self, request: Message, *, timeout_ms: int | None = None, lane: str = LANE_COORDINATOR
    ) -> Any:
        return await self._cluster.call_coordinator(
            CoordinatorType.GROUP, self._group_id, request, timeout_ms=timeout_ms, lane=lane
        )
