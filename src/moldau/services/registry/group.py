"""GroupMember: this instance in the group that elects the primary.

The group is a classic one of the protocol type `sr`, as Confluent's registry has it, so that both
can be in one. `ClassicMember` decides when to join and beat; here its requests are sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
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
from moldau.services.registry.config import RegistryConfig
from moldau.services.registry.machine.election import (
    PROTOCOL_NAME,
    PROTOCOL_TYPE,
    Assignment,
    Identity,
    assign,
)
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
_DUPLICATES: Final = (
    "two instances have one URL: set host.name to a name by which the others reach each"
)


class GroupMember:
    """`on_primary` is called with the primary, and with None while none is known."""

    def __init__(
        self,
        config: RegistryConfig,
        identity: Identity,
        on_primary: Callable[[Identity | None], None],
    ) -> None:
        values = parse_settings(
            ADMIN_KEYS, gather(ADMIN_KEYS, dict(config.clients), {}), no_effect=no_effect.ADMIN
        )
        self._config = config
        self._identity = identity
        self._on_primary = on_primary
        self._cluster = ClusterClient(
            NetworkSettings.of(values, client_id=f"{config.group_id}-member")
        )
        self._clock = self._cluster.clock
        self._member = ClassicMember(
            ClassicSettings(
                config.session_timeout_ms,
                config.heartbeat_interval_ms,
                # There is no poll that could be late.
                2**31 - 1,
            )
        )
        self._running: asyncio.Task[None] | None = None
        self.node_count = 1
        """How many instances there are, if this one leads the group."""

    def start(self) -> None:
        self._running = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Leave the group, so that another instance takes over at once."""
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
        member_id = self._member.leave(remain=False, reason="the registry stops")
        if member_id is not None:
            request = LeaveGroupRequest(
                group_id=self._config.group_id,
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
            except KafkaError as error:
                failures += 1
                logger.warning("group %s: %s", self._config.group_id, error)
                self._member.on_call_failed(type(error).__name__)
                self._on_primary(None)
                self._cluster.forget_coordinator(CoordinatorType.GROUP, self._config.group_id)
                delay_ms = self._cluster.backoff.delay_ms(failures, self._cluster.random)
                await pause(self._clock, delay_ms)

    # Joining.

    async def _join(self) -> None:
        sent = self._member.begin_join(self._clock.elapsed_ms())
        request = JoinGroupRequest(
            group_id=self._config.group_id,
            session_timeout_ms=self._config.session_timeout_ms,
            rebalance_timeout_ms=self._config.rebalance_timeout_ms,
            member_id=sent.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(
                    name=PROTOCOL_NAME, metadata=self._identity.encode()
                )
            ],
            reason=self._member.reason_to_send,
        )
        response: JoinGroupResponse = await self._call(
            request,
            timeout_ms=self._config.rebalance_timeout_ms + _JOIN_LAPSE_MS,
            lane=_LANE_JOIN,
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
            assignments = self._lead(response)
        await self._sync(generation, assignments)

    def _lead(self, response: JoinGroupResponse) -> dict[str, bytes]:
        members: dict[str, Identity] = {}
        for each in response.members:
            try:
                members[each.member_id] = Identity.decode(bytes(each.metadata))
            except ValueError as error:
                logger.error("member %s is left out: %s", each.member_id, error)
        self.node_count = len(members)
        chosen = assign(members, sticky=self._config.sticky).encode()
        return {each.member_id: chosen for each in response.members}

    async def _sync(self, generation: Generation, assignments: dict[str, bytes]) -> None:
        kind = SyncGroupRequest.SyncGroupRequestAssignment
        request = SyncGroupRequest(
            group_id=self._config.group_id,
            generation_id=generation.generation_id,
            member_id=generation.member_id,
            protocol_type=PROTOCOL_TYPE,
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
        if self._member.on_synced(response.protocol_name) is not None:
            return
        self._take(bytes(response.assignment))

    def _take(self, data: bytes) -> None:
        try:
            assignment = Assignment.decode(data)
        except ValueError as error:
            logger.error("group %s: no assignment: %s", self._config.group_id, error)
            self._on_primary(None)
            return
        if assignment.has_duplicate_urls:
            logger.error("group %s: %s", self._config.group_id, _DUPLICATES)
        primary = assignment.primary
        self._identity = replace(self._identity, is_leader=self._identity.same_instance(primary))
        self._on_primary(primary)

    async def _after(self, after: After, code: ErrorCode) -> None:
        if after is After.RETRY:
            return
        raise error_for(code, f"group {self._config.group_id}")

    # Heartbeats.

    async def _beat(self) -> None:
        now_ms = self._clock.elapsed_ms()
        beat, wait_ms = self._member.next_beat(now_ms, 0)
        if beat is Beat.WAIT:
            await pause(self._clock, wait_ms or 0)
        elif beat is Beat.SEND:
            await self._send_beat()
        elif beat is Beat.FIND_COORDINATOR:
            # The session has ended: the group may have chosen another primary.
            self._on_primary(None)
            self._cluster.forget_coordinator(CoordinatorType.GROUP, self._config.group_id)
        else:
            self._member.request_rejoin("not a member of the group")

    async def _send_beat(self) -> None:
        sent = self._member.on_beat_sent(self._clock.elapsed_ms())
        request = HeartbeatRequest(
            group_id=self._config.group_id,
            generation_id=sent.generation_id,
            member_id=sent.member_id,
        )
        try:
            response = await self._call(request, timeout_ms=self._config.session_timeout_ms)
        except KafkaError:
            self._cluster.forget_coordinator(CoordinatorType.GROUP, self._config.group_id)
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
            CoordinatorType.GROUP,
            self._config.group_id,
            request,
            timeout_ms=timeout_ms,
            lane=lane,
        )
