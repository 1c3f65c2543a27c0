"""Sends the heartbeats of an `EpochMember`: when they are due, at once when there is news.

Invariants: one heartbeat is under way at a time; after a failure the next waits for the
backoff, whatever there is to say; the interval is the coordinator's. What the group wants of the
application, and which fields go into a request, the owner knows.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol
from uuid import UUID

from moldau.client.cluster import ClusterClient
from moldau.client.consumer.membership.machine.epoch_member import AfterBeat, EpochMember
from moldau.client.consumer.membership.waiting import Doorbell, warn_late
from moldau.client.errors import KafkaError, UnsupportedVersionError, code_of, error_for
from moldau.client.machine.coordinators import CoordinatorType
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message

__all__ = ["BeatMetrics", "BeatOwner", "Heartbeats"]

_log = logging.getLogger(__name__)

Partitions = Mapping[UUID, frozenset[int]]


class BeatMetrics(Protocol):
    """Where heartbeats are counted."""

    def heartbeat_sent(self) -> None: ...

    def heartbeat_answered(self, latency_ms: float) -> None: ...


class BeatOwner(Protocol):
    """Whose heartbeats they are."""

    def heartbeat(self) -> Message:
        """The next request, with what has not been reported yet."""
        ...

    def on_heartbeat_failed(self) -> None:
        """What was sent may not have arrived: send it again."""
        ...

    def on_membership_changed(self) -> None:
        """The member's state may be another."""
        ...

    def on_error(self, error: BaseException) -> None:
        """For the application."""
        ...

    def poll_idle_ms(self) -> int: ...

    def leave_epoch(self) -> int: ...


class Heartbeats:
    """See the module."""

    def __init__(
        self,
        cluster: ClusterClient,
        group_id: str,
        member: EpochMember,
        owner: BeatOwner,
        metrics: BeatMetrics,
        max_poll_interval_ms: int,
        *,
        read_assignment: Callable[[Any], Partitions | None] | None = None,
    ) -> None:
        """`read_assignment` gets the assignment of a response that has another form."""
        self._read_assignment = read_assignment or _assignment
        self._cluster = cluster
        self._clock = cluster.clock
        self._group_id = group_id
        self._member = member
        self._owner = owner
        self._metrics = metrics
        self._max_poll_interval_ms = max_poll_interval_ms
        self._doorbell = Doorbell(self._clock)
        self._task: asyncio.Task[None] | None = None
        self._due_ms = 0
        self._not_before_ms = 0
        self._failures = 0
        self._news = False

    def start(self) -> None:
        if self._task is None:
            self._due_ms = self._not_before_ms = 0
            self._task = asyncio.get_running_loop().create_task(self._run())
            self._task.add_done_callback(self._on_ended)

    def ring(self) -> None:
        """The state changed: look again."""
        self._doorbell.ring()

    def send_news(self) -> None:
        """There is something to send that is not in the state: another subscription."""
        self._news = True
        self._doorbell.ring()

    def send_within(self, delay_ms: int) -> None:
        """Do not wait for the whole interval: what the coordinator promised may be there sooner."""
        self._due_ms = min(self._due_ms, self._clock.elapsed_ms() + delay_ms)

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _on_ended(self, task: asyncio.Task[None]) -> None:
        if task is self._task:
            self._task = None
            error = None if task.cancelled() else task.exception()
            if error is not None:
                # A fault of ours: the application must not go on as if it was a member.
                self._owner.on_error(error)

    async def _run(self) -> None:
        while True:
            if self._member.is_silent:
                await self._doorbell.wait(None)
                continue
            now_ms = self._clock.elapsed_ms()
            patience_ms = self._max_poll_interval_ms - self._owner.poll_idle_ms()
            if patience_ms <= 0:
                await self._leave_late_application()
                continue
            at_once = self._member.beats_at_once or self._news
            due_ms = max(self._not_before_ms, 0 if at_once else self._due_ms)
            if now_ms < due_ms:
                await self._doorbell.wait(min(due_ms - now_ms, patience_ms))
            else:
                await self._send()

    async def _send(self) -> None:
        self._news = False
        request = self._owner.heartbeat()
        self._member.on_beat_sent()
        self._metrics.heartbeat_sent()
        sent_ms = self._clock.elapsed_ms()
        try:
            response = await self._call(request)
        except UnsupportedVersionError as error:
            self._member.on_failed()
            self._owner.on_error(error)
        except KafkaError as error:
            self._on_failure(error)
            if not error.retriable:
                self._member.on_failed()
                self._owner.on_error(error)
        else:
            self._metrics.heartbeat_answered(self._clock.elapsed_ms() - sent_ms)
            self._on_response(response)
        self._owner.on_membership_changed()

    def _on_response(self, response: Any) -> None:
        code = code_of(response.error_code)
        now_ms = self._clock.elapsed_ms()
        if code is ErrorCode.NONE:
            self._failures = 0
            self._not_before_ms = 0
            self._due_ms = now_ms + response.heartbeat_interval_ms
            assignment = self._read_assignment(response)
            self._member.on_beat_answered(response.member_epoch, assignment)
            return
        error = error_for(code, response.error_message or f"group {self._group_id}")
        after = self._member.on_beat_refused(code)
        _log.info("group %s: heartbeat refused: %s", self._group_id, error)
        self._on_failure(error)
        if after is AfterBeat.FIND_COORDINATOR:
            self._cluster.forget_coordinator(CoordinatorType.GROUP, self._group_id)
        elif after is AfterBeat.REJOIN:
            self._not_before_ms = 0
        elif after is AfterBeat.REPORT or after is AfterBeat.FAIL:
            self._owner.on_error(error)

    def _on_failure(self, error: KafkaError) -> None:
        self._owner.on_heartbeat_failed()
        self._failures += 1
        delay_ms = self._cluster.backoff.delay_ms(self._failures, self._cluster.random)
        self._due_ms = self._not_before_ms = self._clock.elapsed_ms() + delay_ms
        _log.debug("group %s: heartbeat failed: %s", self._group_id, error)

    async def _leave_late_application(self) -> None:
        warn_late(self._group_id, self._max_poll_interval_ms)
        self._member.on_late_application(self._owner.leave_epoch())
        await self.say_leaving(self._cluster.settings.request_timeout_ms)
        self._owner.on_heartbeat_failed()
        self._owner.on_membership_changed()

    async def say_leaving(self, limit_ms: int) -> None:
        """Send the heartbeat that leaves, once: the coordinator notices a silent member anyway."""
        request = self._owner.heartbeat()
        self._member.on_beat_sent()
        if limit_ms <= 0:
            return
        limit_ms = min(limit_ms, self._cluster.settings.request_timeout_ms)
        try:
            async with asyncio.timeout(limit_ms / 1000):
                await self._call(request, limit_ms)
        except (KafkaError, TimeoutError) as error:
            _log.info("group %s: the heartbeat that leaves failed: %s", self._group_id, error)

    async def _call(self, request: Message, timeout_ms: int | None = None) -> Any:
        return await self._cluster.call_coordinator(
            CoordinatorType.GROUP, self._group_id, request, timeout_ms=timeout_ms
        )


def _assignment(response: Any) -> Partitions | None:
    assignment = response.assignment
    if assignment is None:
        return None
    return {each.topic_id: frozenset(each.partitions) for each in assignment.topic_partitions}
