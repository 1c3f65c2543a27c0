"""The heartbeats of a member of a classic group, which notice when the application stays away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from moldau.client.consumer.membership.classic_rounds import ClassicRounds
from moldau.client.consumer.membership.machine.classic import After, Beat, ClassicMember
from moldau.client.consumer.membership.waiting import Doorbell, warn_late
from moldau.client.consumer.membership_interface import GroupHost
from moldau.client.errors import KafkaError, code_of, error_for
from moldau.times import ElapsedMs
from moldau.wire.messages import HeartbeatRequest, LeaveGroupRequest

__all__ = ["ClassicHeartbeats"]

_log = logging.getLogger(__name__)


class ClassicHeartbeats:
    """One task, which decides by `ClassicMember.next_beat` what it does."""

    def __init__(
        self,
        host: GroupHost,
        member: ClassicMember,
        rounds: ClassicRounds,
        doorbell: Doorbell,
        *,
        on_changed: Callable[[], None],
        on_error: Callable[[BaseException | None], None],
    ) -> None:
        """`on_error` takes what the next poll is to raise."""
        values = host.values
        self._host = host
        self._member = member
        self._rounds = rounds
        self._doorbell = doorbell
        self._on_changed = on_changed
        self._on_error = on_error
        self._cluster = host.cluster
        self._clock = host.cluster.clock
        self._group_id: str = values["group.id"]
        self._instance_id: str | None = values["group.instance.id"]
        self._session_timeout_ms: int = values["session.timeout.ms"]
        self._max_poll_interval_ms: int = values["max.poll.interval.ms"]
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Unless they are under way."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
            self._task.add_done_callback(self._on_ended)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        while True:
            now_ms = self._clock.elapsed_ms()
            beat, wait_ms = self._member.next_beat(now_ms, self._host.poll_idle_ms())
            if beat is Beat.SLEEP or beat is Beat.WAIT:
                await self._doorbell.wait(wait_ms)
            elif beat is Beat.FIND_COORDINATOR:
                _log.warning(
                    "group %s: no heartbeat was answered within session.timeout.ms", self._group_id
                )
                self._rounds.forget_coordinator()
            elif beat is Beat.LEAVE:
                await self._leave_late_application()
            else:
                await self._send_beat(now_ms)

    def _on_ended(self, task: asyncio.Task[None]) -> None:
        if task is self._task:
            self._task = None
        if not task.cancelled():
            # A fault of ours: the application must not go on as if it was a member.
            self._on_error(task.exception())

    async def _send_beat(self, now_ms: ElapsedMs) -> None:
        sent = self._member.on_beat_sent(now_ms)
        request = HeartbeatRequest(
            group_id=self._group_id,
            generation_id=sent.generation_id,
            member_id=sent.member_id,
            group_instance_id=self._instance_id,
        )
        limit_ms = min(self._session_timeout_ms, self._cluster.settings.request_timeout_ms)
        self._host.metrics.heartbeat_sent()
        try:
            response = await self._rounds.call(request, timeout_ms=limit_ms)
        except KafkaError as error:
            if not error.retriable:
                self._on_error(error)
            self._retry_beat()
            return
        code = code_of(response.error_code)
        answered_ms = self._clock.elapsed_ms()
        self._host.metrics.heartbeat_answered(answered_ms - now_ms)
        after = self._member.on_beat_answered(code, sent, answered_ms)
        if after is After.FAIL:
            self._on_error(error_for(code, f"Heartbeat of group {self._group_id}"))
        elif after is After.FIND_COORDINATOR:
            self._rounds.forget_coordinator()
        if after is not None:
            self._retry_beat()
        self._on_changed()

    def _retry_beat(self) -> None:
        failures = self._member.beat_failures + 1
        delay_ms = self._cluster.backoff.delay_ms(failures, self._cluster.random)
        self._member.on_beat_failed(self._clock.elapsed_ms(), delay_ms)

    async def _leave_late_application(self) -> None:
        warn_late(self._group_id, self._max_poll_interval_ms)
        member_id = self._member.leave(remain=self._instance_id is not None)
        self._on_changed()
        await self.send_leave(
            member_id,
            "consumer poll timeout has expired.",
            self._cluster.settings.request_timeout_ms,
        )

    async def send_leave(self, member_id: str | None, reason: str, limit_ms: int) -> None:
        """Once: if it does not arrive, the group notices when the session ends."""
        if member_id is None or limit_ms <= 0:
            return
        identity = LeaveGroupRequest.MemberIdentity(member_id=member_id, reason=reason)
        limit_ms = min(limit_ms, self._cluster.settings.request_timeout_ms)
        request = LeaveGroupRequest(group_id=self._group_id, members=[identity])
        try:
            async with asyncio.timeout(limit_ms / 1000):
                await self._rounds.call(request, timeout_ms=limit_ms)
        except (KafkaError, TimeoutError) as error:
            _log.info("group %s: LeaveGroup failed: %s", self._group_id, error)
