"""ClassicGroup: a member of a classic group whose protocol is not a consumer's.

Services form such groups: registries elect a primary (protocol type `sr`), Connect's workers share
out their work (`connect`). `ClassicMember` decides when to join and beat; here its requests are
sent, and a `Participant` says what the members agree on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

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
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
)

__all__ = ["ClassicGroup", "Generation", "Participant"]

logger = logging.getLogger(__name__)

_LANE_JOIN: Final = "join"
_JOIN_LAPSE_MS: Final = 5_000
_LEAVE_MS: Final = 2_000
#: There is no poll that could be late.
_POLL_MS: Final = 2**31 - 1


class Participant(Protocol):
    """What a kind of group has of its own. All calls come from one coroutine."""

    @property
    def protocol_type(self) -> str: ...

    async def protocols(self) -> Sequence[tuple[str, bytes]]:
        """Before joining: the names of protocols that are offered, each with this member's data."""

    async def lead(self, members: Mapping[str, bytes], generation: Generation) -> dict[str, bytes]:
        """This member leads: the assignment of each member, from the data of all."""

    async def take(self, assignment: bytes, generation: Generation) -> None:
        """This member's part, as the leader has decided."""

    async def on_session_ended(self) -> None:
        """No heartbeat was answered for so long that the group may have gone on without it."""

    def on_failure(self) -> None:
        """A request has failed; the member joins again."""


class ClassicGroup:
    """`failures` are errors of the participant after which the member joins again."""

    def __init__(
        self,
        group_id: str,
        participant: Participant,
        *,
        settings: Mapping[str, str],
        client_id: str,
        session_ms: int,
        heartbeat_ms: int,
        rebalance_ms: int,
        failures: tuple[type[Exception], ...] = (),
    ) -> None:
        values = parse_settings(
            ADMIN_KEYS, gather(ADMIN_KEYS, dict(settings), {}), no_effect=no_effect.ADMIN
        )
        self.group_id = group_id
        self._participant = participant
        self._session_ms = session_ms
        self._rebalance_ms = rebalance_ms
        self._failures: tuple[type[Exception], ...] = (KafkaError, *failures)
        self._cluster = ClusterClient(NetworkSettings.of(values, client_id=client_id))
        self._clock = self._cluster.clock
        self._member = ClassicMember(ClassicSettings(session_ms, heartbeat_ms, _POLL_MS))
        self._wake = asyncio.Event()
        self._requested: str | None = None
        self._running: asyncio.Task[None] | None = None

    @property
    def member_id(self) -> str:
        return self._member.generation.member_id

    @property
    def generation_id(self) -> int:
        return self._member.generation.generation_id

    def request_rejoin(self, reason: str) -> None:
        self._requested = reason
        self._member.request_rejoin(reason)
        self._wake.set()

    # Life.

    def start(self) -> None:
        self._running = asyncio.get_running_loop().create_task(self._run())

    async def stop(self, reason: str) -> None:
        """Leave the group, so that others need not wait for the session to end."""
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await self._running
        member_id = self._member.leave(remain=False, reason=reason)
        if member_id is not None:
            request = LeaveGroupRequest(
                group_id=self.group_id,
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
            except self._failures as error:
                failures += 1
                logger.warning("group %s: %s", self.group_id, error)
                self._member.on_call_failed(type(error).__name__)
                self._participant.on_failure()
                self._forget_coordinator()
                delay_ms = self._cluster.backoff.delay_ms(failures, self._cluster.random)
                await pause(self._clock, delay_ms)

    # Joining.

    async def _join(self) -> None:
        offered = await self._participant.protocols()
        self._requested = None
        sent = self._member.begin_join(self._clock.elapsed_ms())
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self._session_ms,
            rebalance_timeout_ms=self._rebalance_ms,
            member_id=sent.member_id,
            protocol_type=self._participant.protocol_type,
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=data)
                for name, data in offered
            ],
            reason=self._member.reason_to_send,
        )
        response: JoinGroupResponse = await self._call(
            request, timeout_ms=self._rebalance_ms + _JOIN_LAPSE_MS, lane=_LANE_JOIN
        )
        code = code_of(response.error_code)
        if code is not ErrorCode.NONE:
            self._after(self._member.on_join_failed(code, sent, response.member_id), code)
            return
        generation = Generation(
            response.generation_id, response.member_id, response.protocol_name or ""
        )
        if not self._member.on_joined(generation, self._clock.elapsed_ms()):
            return
        assignments: dict[str, bytes] = {}
        if response.leader == response.member_id:
            members = {each.member_id: bytes(each.metadata) for each in response.members}
            assignments = await self._participant.lead(members, generation)
        await self._sync(generation, assignments)

    async def _sync(self, generation: Generation, assignments: Mapping[str, bytes]) -> None:
        kind = SyncGroupRequest.SyncGroupRequestAssignment
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=generation.generation_id,
            member_id=generation.member_id,
            protocol_type=self._participant.protocol_type,
            protocol_name=generation.protocol_name,
            assignments=[
                kind(member_id=member_id, assignment=data)
                for member_id, data in assignments.items()
            ],
        )
        response = await self._call(request, lane=_LANE_JOIN)
        code = code_of(response.error_code)
        if code is not ErrorCode.NONE:
            self._after(self._member.on_sync_failed(code, generation), code)
            return
        if self._member.on_synced(response.protocol_name) is not None:
            return
        await self._participant.take(bytes(response.assignment), generation)
        if self._requested is not None:
            # Since this round began: the leader may not have known what it is about.
            self._member.request_rejoin(self._requested)

    def _after(self, after: After, code: ErrorCode) -> None:
        if after is not After.RETRY:
            raise error_for(code, f"group {self.group_id}")

    # Heartbeats.

    async def _beat(self) -> None:
        beat, wait_ms = self._member.next_beat(self._clock.elapsed_ms(), 0)
        if beat is Beat.WAIT:
            self._wake.clear()
            if not self._member.rejoin_needed:
                with suppress(TimeoutError):
                    async with asyncio.timeout((wait_ms or 0) / 1000):
                        await self._wake.wait()
        elif beat is Beat.SEND:
            await self._send_beat()
        elif beat is Beat.FIND_COORDINATOR:
            self._forget_coordinator()
            await self._participant.on_session_ended()
            self.request_rejoin("the session ended")
        else:
            self._member.request_rejoin("not a member of the group")

    async def _send_beat(self) -> None:
        sent = self._member.on_beat_sent(self._clock.elapsed_ms())
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=sent.generation_id,
            member_id=sent.member_id,
        )
        try:
            response = await self._call(request, timeout_ms=self._session_ms)
        except KafkaError:
            self._forget_coordinator()
            delay_ms = self._cluster.backoff.delay_ms(
                self._member.beat_failures + 1, self._cluster.random
            )
            self._member.on_beat_failed(self._clock.elapsed_ms(), delay_ms)
            return
        code = code_of(response.error_code)
        after = self._member.on_beat_answered(code, sent, self._clock.elapsed_ms())
        if after is not None:
            self._after(after, code)

    def _forget_coordinator(self) -> None:
        self._cluster.forget_coordinator(CoordinatorType.GROUP, self.group_id)

    async def _call(
        self, request: Message, *, timeout_ms: int | None = None, lane: str = LANE_COORDINATOR
    ) -> Any:
        return await self._cluster.call_coordinator(
            CoordinatorType.GROUP, self.group_id, request, timeout_ms=timeout_ms, lane=lane
        )
