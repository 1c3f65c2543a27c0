"""A member that joins a group, takes its share, and leaves: so a test forces a rebalance.

It has nothing to read: what it is assigned is nobody's for a moment, as with a member that starts
and stops. However it ends, it leaves.
"""

from __future__ import annotations

import asyncio
import struct
import uuid
from contextlib import suppress
from typing import Any, Final

from moldau.client.cluster import ClusterClient
from moldau.client.deadline import Deadline
from moldau.client.errors import KafkaError, error_for
from moldau.client.machine.coordinators import CoordinatorType
from moldau.testing.machine.group_values import GroupDescription
from moldau.wire.codec import decode, encode
from moldau.wire.errors import COORDINATOR_MOVED, ErrorCode, WireError
from moldau.wire.message import Message
from moldau.wire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerProtocolSubscription,
    JoinGroupRequest,
    LeaveGroupRequest,
    ShareGroupHeartbeatRequest,
    SyncGroupRequest,
)

__all__ = ["intrude"]

#: A connection of its own: a coordinator holds a join back until all members have joined.
_LANE: Final = "intruder"
_JOIN_MS_MAX: Final = 60_000
_SESSION_MS: Final = 30_000
_HEARTBEATS_MAX: Final = 600
_HEARTBEAT_S: Final = 0.1
_LEAVE_EPOCH: Final = -1
_VERSION: Final = struct.Struct(">h")


async def intrude(client: ClusterClient, group_id: str, group: GroupDescription) -> None:
    """Join, stay until the share is there, leave."""
    if group.type == "classic":
        await _Classic(client, group_id, group).run()
    else:
        await _Heartbeating(client, group_id, group).run()


class _Classic:
    def __init__(self, client: ClusterClient, group_id: str, group: GroupDescription) -> None:
        self._client = client
        self._group_id = group_id
        self._protocol = group.protocol
        self._metadata = _subscription(group)
        self._member_id = ""

    async def run(self) -> None:
        try:
            joined = await self._join()
            if joined.leader != joined.member_id:
                # A leader would have to assign; it had better go, and the others do it again.
                await self._sync(joined.generation_id)
        finally:
            if self._member_id:
                await asyncio.shield(self._leave())

    async def _join(self) -> Any:
        for _ in range(_HEARTBEATS_MAX):
            request = JoinGroupRequest(
                group_id=self._group_id,
                session_timeout_ms=_SESSION_MS,
                rebalance_timeout_ms=_JOIN_MS_MAX,
                member_id=self._member_id,
                protocol_type="consumer",
                protocols=[
                    JoinGroupRequest.JoinGroupRequestProtocol(
                        name=self._protocol, metadata=self._metadata
                    )
                ],
                reason="the test forces a rebalance",
            )
            answer = await self._call(request)
            if answer.error_code == ErrorCode.NONE:
                self._member_id = answer.member_id
                return answer
            if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self._member_id = answer.member_id
                continue
            await _pause_or_raise(self._client, answer.error_code, self._group_id)
        raise error_for(ErrorCode.REBALANCE_IN_PROGRESS, f"group {self._group_id}")

    async def _sync(self, generation_id: int) -> None:
        request = SyncGroupRequest(
            group_id=self._group_id,
            generation_id=generation_id,
            member_id=self._member_id,
            protocol_type="consumer",
            protocol_name=self._protocol,
        )
        # Whatever comes of it: the rebalance has taken place.
        await self._call(request)

    async def _leave(self) -> None:
        identity = LeaveGroupRequest.MemberIdentity(member_id=self._member_id)
        with suppress(KafkaError):
            await _call_group(
                self._client,
                self._group_id,
                LeaveGroupRequest(group_id=self._group_id, members=[identity]),
                lane="coordinator",
            )

    async def _call(self, request: Message) -> Any:
        return await _call_group(self._client, self._group_id, request)


class _Heartbeating:
    """A member of the consumer or the share protocol."""

    def __init__(self, client: ClusterClient, group_id: str, group: GroupDescription) -> None:
        self._client = client
        self._group_id = group_id
        self._is_share = group.type == "share"
        self._topics = sorted({topic for member in group.members for topic in member.topics})
        self._member_id = str(uuid.uuid4())

    async def run(self) -> None:
        epoch = 0
        try:
            for _ in range(_HEARTBEATS_MAX):
                answer = await self._beat(epoch)
                if answer.error_code != ErrorCode.NONE:
                    await _pause_or_raise(self._client, answer.error_code, self._group_id)
                    continue
                epoch = answer.member_epoch
                if answer.assignment is not None and answer.assignment.topic_partitions:
                    return
                await asyncio.sleep(_HEARTBEAT_S)
        finally:
            with suppress(KafkaError):
                await asyncio.shield(self._beat(_LEAVE_EPOCH))

    async def _beat(self, epoch: int) -> Any:
        request: Message
        if self._is_share:
            request = ShareGroupHeartbeatRequest(
                group_id=self._group_id,
                member_id=self._member_id,
                member_epoch=epoch,
                subscribed_topic_names=self._topics if epoch == 0 else None,
            )
        else:
            request = ConsumerGroupHeartbeatRequest(
                group_id=self._group_id,
                member_id=self._member_id,
                member_epoch=epoch,
                rebalance_timeout_ms=_JOIN_MS_MAX if epoch == 0 else -1,
                subscribed_topic_names=self._topics if epoch == 0 else None,
                topic_partitions=[] if epoch == 0 else None,
            )
        return await _call_group(self._client, self._group_id, request)


async def _call_group(
    client: ClusterClient, group_id: str, request: Message, lane: str = _LANE
) -> Any:
    """The coordinator's answer; one that is gone is looked for again."""
    return await client.retrying(
        lambda: client.call_coordinator(
            CoordinatorType.GROUP, group_id, request, timeout_ms=_JOIN_MS_MAX, lane=lane
        ),
        deadline=Deadline(client.clock, _JOIN_MS_MAX),
        what=f"a rebalance of group {group_id}",
    )


async def _pause_or_raise(client: ClusterClient, code: int, group_id: str) -> None:
    if code in COORDINATOR_MOVED:
        client.forget_coordinator(CoordinatorType.GROUP, group_id)
    error = error_for(code, f"group {group_id}")
    if not error.retriable and code != ErrorCode.REBALANCE_IN_PROGRESS:
        raise error
    await asyncio.sleep(_HEARTBEAT_S)


def _subscription(group: GroupDescription) -> bytes:
    """What the others subscribe to, with nothing owned yet."""
    topics: set[str] = set()
    for member in group.members:
        with suppress(WireError, struct.error):
            (version,) = _VERSION.unpack_from(member.metadata)
            known = min(version, ConsumerProtocolSubscription.HIGHEST_VERSION)
            sent = decode(ConsumerProtocolSubscription, known, member.metadata, _VERSION.size)
            topics.update(sent.topics)
    # Version 1 is the first that can say that nothing is owned, and the last that all clients know.
    own = ConsumerProtocolSubscription(topics=sorted(topics), owned_partitions=[])
    return _VERSION.pack(1) + encode(own, 1)
