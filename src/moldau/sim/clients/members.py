"""Members of consumer groups: they read what they were assigned, and commit how far they came."""

from __future__ import annotations

import struct

from moldau.sim.clients.actor import Actor, Refused, check
from moldau.sim.clients.groups import (
    GROUP_KEYS,
    OFFSETS_TOPIC,
    commit_offset,
    fetch_offset,
)
from moldau.sim.clients.history import History
from moldau.sim.clients.rpc import RETRIABLE, Lost
from moldau.sim.cluster import Cluster
from moldau.sim.world import Invariant, require
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

TopicPartition = tuple[str, int]

SESSION_MS = 6_000
REBALANCE_MS = 300_000
_PARTITION = struct.Struct(">i")


class Ownership:
    """Who owns what, by what the members of one group know themselves."""

    def __init__(self) -> None:
        self.by_generation: dict[tuple[int, TopicPartition], str] = {}
        self.newest_generation = -1
        # Of the consumer protocol: what each member has and when the group last answered it.
        self.owned: dict[str, frozenset[TopicPartition]] = {}
        self.answered_s: dict[str, float] = {}
        self.reached: set[TopicPartition] = set()


class Member(Actor):
    """What members of both protocols share."""

    def __init__(
        self,
        cluster: Cluster,
        history: History,
        name: str,
        partitions: list[TopicPartition],
        *,
        group: str,
        ownership: Ownership,
    ) -> None:
        super().__init__(cluster, history, name)
        self.topic = partitions[0][0]
        self.all_partitions = partitions
        self.group = group
        self.ownership = ownership
        self.member_id = ""
        self.positions: dict[TopicPartition, int] = {}

    async def consume(self, generation: int) -> None:
        """Read a little and commit; raises Refused when this is not its any more."""
        for where in list(self.positions):
            if self.positions[where] < 0:
                offset = await fetch_offset(self, self.group, where, stable=False)
                self.positions[where] = max(offset, 0)
            fetched = await self.fetch(where, self.positions[where], committed=True, max_wait_ms=20)
            if fetched.next_offset > self.positions[where]:
                self.positions[where] = fetched.next_offset
                await commit_offset(
                    self,
                    self.group,
                    where,
                    fetched.next_offset,
                    member_id=self.member_id,
                    generation=generation,
                )
            if fetched.next_offset >= fetched.high_watermark:
                self.ownership.reached.add(where)

    def done(self) -> bool:
        return self.stopping and self.ownership.reached >= set(self.all_partitions)

    async def run(self) -> None:
        notified = False
        while not self.done():
            if self.stopping and not notified:
                # From here on all members have to reach the end once more.
                notified = True
                self.ownership.reached.clear()
            try:
                await self.live()
            except Lost:
                pass
            except Refused as error:
                self.on_refused(error)
            await self.rest(0.3)

    async def live(self) -> None:
        raise AssertionError("each protocol has its own")

    def on_refused(self, error: Refused) -> None:
        raise AssertionError("each protocol has its own")


class ClassicMember(Member):
    """Joins, syncs, beats; the leader gives the partitions to the members in turn."""

    generation = -1
    leave_chance = 0.02

    async def live(self) -> None:
        if self.generation < 0:
            await self._join()
            return
        await self._heartbeat()
        await self.consume(self.generation)
        if self.random.random() < self.leave_chance and not self.stopping:
            await self._leave()

    def on_refused(self, error: Refused) -> None:
        code = error.code
        self.note(f"generation {self.generation}: {code.name}")
        if code in RETRIABLE:
            self.wire.forget()
            return
        self.positions.clear()
        self.generation = -1
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_id = ""
        elif code not in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
            if code is ErrorCode.OFFSET_OUT_OF_RANGE and self.history.power_fails:
                return
            raise self.surprised("a classic member", error)

    async def _join(self) -> None:
        response = await self._ask_to_join()
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            response = await self._ask_to_join()
        check(response.error_code)
        self.member_id = response.member_id
        assignments: dict[str, bytes] = {}
        if response.leader == self.member_id:
            members = sorted(each.member_id for each in response.members)
            for number, where in enumerate(self.all_partitions):
                mine = assignments.setdefault(members[number % len(members)], b"")
                assignments[members[number % len(members)]] = mine + _PARTITION.pack(where[1])
        await self._sync(response.generation_id, assignments)

    async def _ask_to_join(self) -> JoinGroupResponse:
        address = await self.wire.coordinator(self.group, GROUP_KEYS)
        return await self.wire.call(
            address,
            JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=10_000,
                member_id=self.member_id,
                protocol_type="consumer",
                protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="turns", metadata=b"")],
            ),
            JoinGroupResponse,
            timeout_ms=20_000,
        )

    async def _sync(self, generation: int, assignments: dict[str, bytes]) -> None:
        address = await self.wire.coordinator(self.group, GROUP_KEYS)
        response = await self.wire.call(
            address,
            SyncGroupRequest(
                group_id=self.group,
                generation_id=generation,
                member_id=self.member_id,
                protocol_type="consumer",
                protocol_name="turns",
                assignments=[
                    SyncGroupRequest.SyncGroupRequestAssignment(member_id=member, assignment=given)
                    for member, given in assignments.items()
                ],
            ),
            SyncGroupResponse,
            timeout_ms=20_000,
        )
        check(response.error_code)
        self.generation = generation
        owned = [index for (index,) in _PARTITION.iter_unpack(response.assignment)]
        self.note(f"generation {generation}: owns {owned}")
        for index in owned:
            where = (self.topic, index)
            owner = self.ownership.by_generation.setdefault((generation, where), self.member_id)
            require(
                owner == self.member_id,
                Invariant.OWNED_ONCE,
                lambda where=where, owner=owner: (  # type: ignore[misc]
                    f"{where} is {self.member_id}'s and {owner}'s in generation {generation}"
                ),
            )
        self.positions = {(self.topic, index): -1 for index in owned}

    async def _heartbeat(self) -> None:
        address = await self.wire.coordinator(self.group, GROUP_KEYS)
        response = await self.wire.call(
            address,
            HeartbeatRequest(
                group_id=self.group, generation_id=self.generation, member_id=self.member_id
            ),
            HeartbeatResponse,
        )
        check(response.error_code)

    async def _leave(self) -> None:
        address = await self.wire.coordinator(self.group, GROUP_KEYS)
        self.positions.clear()
        member_id, self.member_id, self.generation = self.member_id, "", -1
        await self.wire.call(
            address,
            LeaveGroupRequest(
                group_id=self.group,
                members=[LeaveGroupRequest.MemberIdentity(member_id=member_id)],
            ),
            LeaveGroupResponse,
        )


class ConsumerMember(Member):
    """KIP-848: owns its assignment until it has reported its release to the coordinator."""

    epoch = 0
    _acknowledged: frozenset[TopicPartition] = frozenset()
    _changed = True
    _boot = 0

    async def live(self) -> None:
        if not self.member_id or self.epoch == 0:
            self._boot += 1
            self.member_id = f"{self.name}-{self._boot}"
            self.epoch = 0
        await self._heartbeat()
        await self.consume(self.epoch)
        if self.random.random() < 0.02 and not self.stopping:
            await self._leave()

    def on_refused(self, error: Refused) -> None:
        code = error.code
        self.note(f"epoch {self.epoch}: {code.name}")
        if code in RETRIABLE:
            self.wire.forget()
        elif code is ErrorCode.STALE_MEMBER_EPOCH:
            # The next heartbeat brings the new one.
            return
        elif code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            self._forget()
        elif code is ErrorCode.OFFSET_OUT_OF_RANGE and self.history.power_fails:
            self.positions = dict.fromkeys(self.positions, -1)
        else:
            raise self.surprised("a member of a consumer group", error)

    def _forget(self) -> None:
        self.ownership.owned.pop(self.member_id, None)
        self.epoch = 0
        self.positions.clear()

    async def _heartbeat(self) -> None:
        loop = self.cluster.loop
        address = await self.wire.coordinator(self.group, GROUP_KEYS)
        topic_id = await self.wire.topic_id(self.topic)
        request = ConsumerGroupHeartbeatRequest
        owned = sorted(index for _, index in self.positions)
        # What it no longer names it has let go, from the moment that it says so.
        self.ownership.owned[self.member_id] = frozenset(self.positions)
        sent_s = loop.time()
        reign = self.cluster.reign(OFFSETS_TOPIC)
        response = await self.wire.call(
            address,
            request(
                group_id=self.group,
                member_id=self.member_id,
                member_epoch=self.epoch,
                rebalance_timeout_ms=REBALANCE_MS,
                subscribed_topic_names=[self.topic],
                topic_partitions=[request.TopicPartitions(topic_id=topic_id, partitions=owned)]
                if owned
                else [],
            ),
            ConsumerGroupHeartbeatResponse,
        )
        check(response.error_code)
        if reign == self.cluster.reign(OFFSETS_TOPIC) and reign[0] == address[0]:
            self.ownership.answered_s[self.member_id] = sent_s
        self.epoch = response.member_epoch
        if response.assignment is None:
            return
        given = frozenset(
            (self.topic, index)
            for topic in response.assignment.topic_partitions
            for index in topic.partitions
        )
        self._take(given)

    def _take(self, given: frozenset[TopicPartition]) -> None:
        self.note(f"epoch {self.epoch}: owns {sorted(index for _, index in given)}")
        new = given - set(self.positions)
        now_s = self.cluster.loop.time()
        for other, owned in self.ownership.owned.items():
            both = new & owned
            answered_s = self.ownership.answered_s.get(other)
            if other == self.member_id or not both or answered_s is None:
                continue
            require(
                now_s >= answered_s + SESSION_MS / 1000,
                Invariant.OWNED_ONCE,
                lambda other=other, both=both: (  # type: ignore[misc]
                    f"{self.member_id} is given {sorted(both)}, which {other} has not let go"
                ),
            )
        self.positions = {where: self.positions.get(where, -1) for where in sorted(given)}
        self.ownership.owned[self.member_id] = (
            self.ownership.owned.get(self.member_id, frozenset()) | given
        )

    async def _leave(self) -> None:
        address = await self.wire.coordinator(self.group, GROUP_KEYS)
        member_id = self.member_id
        self._forget()
        self.note("leaves")
        await self.wire.call(
            address,
            ConsumerGroupHeartbeatRequest(
                group_id=self.group, member_id=member_id, member_epoch=-1
            ),
            ConsumerGroupHeartbeatResponse,
        )
