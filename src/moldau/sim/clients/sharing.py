"""Members of a share group: acquire records, accept, release or keep them too long."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from moldau.sim.clients.actor import Actor, Refused, check
from moldau.sim.clients.groups import GROUP_KEYS
from moldau.sim.clients.history import History
from moldau.sim.clients.rpc import RETRIABLE, Address, Lost
from moldau.sim.cluster import Cluster
from moldau.sim.network import End
from moldau.sim.world import Invariant, require
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    IncrementalAlterConfigsRequest as AlterRequest,
)
from moldau.wire.messages import (
    IncrementalAlterConfigsResponse as AlterResponse,
)
from moldau.wire.messages import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

TopicPartition = tuple[str, int]
Place = tuple[int, int]

LOCK_S = 4.0
DELIVERIES_MAX = 10
ACCEPT, RELEASE = 1, 2
GROUP_RESOURCE = 32


@dataclass(frozen=True, slots=True)
class Hold:
    """Who has a record, as far as nothing has gone wrong since."""

    member: str
    until_s: float
    boots: int
    end: End

    def lasts(self, now_s: float, boots: int) -> bool:
        return intact(self.end) and now_s < self.until_s and boots == self.boots


def intact(end: End) -> bool:
    """Whether neither side has lost the connection: with it the session's records go back."""
    return not any(side.broken or side.ended or side.closed for side in (end, end.peer))


@dataclass(slots=True)
class Queue:
    """What the members of one share group know together."""

    accepted: dict[Place, tuple[str, float]] = field(default_factory=dict)
    """By whom, and when that was known."""
    accept_sent: set[Place] = field(default_factory=set)
    deliveries: dict[Place, int] = field(default_factory=dict)
    held: dict[Place, Hold] = field(default_factory=dict)
    lost_fetches: int = 0
    last_s: float = 0.0
    """When a record was last delivered, or the end began."""


class ShareMember(Actor):
    def __init__(
        self,
        cluster: Cluster,
        history: History,
        name: str,
        partitions: list[TopicPartition],
        *,
        group: str,
        queue: Queue,
    ) -> None:
        super().__init__(cluster, history, name)
        self._topic = partitions[0][0]
        self._partitions = partitions
        self._group = group
        self._queue = queue
        self._boot = 0
        self._epoch = 0
        self._session = 0
        self._member_id = ""
        self._assigned: list[int] = []
        self._address: Address | None = None
        self._mine: list[Place] = []

    async def run(self) -> None:
        await self.patiently(self._from_the_start)
        while not self._nothing_left():
            try:
                await self._live()
            except Lost:
                self._queue.lost_fetches += 1
                self._drop_session()
            except Refused as error:
                self._on_refused(error)
            await self.rest(0.3)

    def _nothing_left(self) -> bool:
        """Nothing came for longer than any lock lasts."""
        now_s = self.cluster.loop.time()
        if not self.stopping:
            self._queue.last_s = now_s
        return not self._mine and now_s > self._queue.last_s + 3 * LOCK_S

    async def _from_the_start(self) -> None:
        """The group begins with the first record."""
        response = await self.wire.call(
            self.wire.anybody(),
            AlterRequest(
                resources=[
                    AlterRequest.AlterConfigsResource(
                        resource_type=GROUP_RESOURCE,
                        resource_name=self._group,
                        configs=[
                            AlterRequest.AlterableConfig(
                                name="share.auto.offset.reset",
                                config_operation=0,
                                value="earliest",
                            )
                        ],
                    )
                ]
            ),
            AlterResponse,
        )
        check(response.responses[0].error_code)

    def _drop_session(self) -> None:
        """What it holds is released with the session, or by the lock's time."""
        self._session = 0
        for place in self._mine:
            self._let_go(place)
        self._mine.clear()

    def _let_go(self, place: Place) -> None:
        hold = self._queue.held.get(place)
        if hold is not None and hold.member == self._member_id:
            del self._queue.held[place]

    def _on_refused(self, error: Refused) -> None:
        code = error.code
        self.note(f"epoch {self._epoch} session {self._session}: {code.name}")
        self._drop_session()
        if code in RETRIABLE:
            self.wire.forget()
        elif code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            self._epoch = 0
        elif code not in (
            ErrorCode.SHARE_SESSION_NOT_FOUND,
            ErrorCode.INVALID_SHARE_SESSION_EPOCH,
            ErrorCode.INVALID_RECORD_STATE,
            ErrorCode.SHARE_SESSION_LIMIT_REACHED,
            ErrorCode.FENCED_STATE_EPOCH,
        ):
            raise self.surprised("a member of a share group", error)

    async def _live(self) -> None:
        await self._heartbeat()
        if not self._assigned:
            return
        topic_id = await self.wire.topic_id(self._topic)
        address = await self.wire.leader(self._topic, self._assigned[0])
        if address != self._address:
            self._address = address
            self._drop_session()
        if self._session == 0 or not self._mine:
            await self._fetch(address, topic_id)
        if self._mine and (self.stopping or self.random.random() < 0.7):
            await self._acknowledge(address, topic_id)
        elif self._mine and self.random.random() < 0.3:
            # It forgets them: the locks run out.
            self._drop_session()

    async def _heartbeat(self) -> None:
        if self._epoch == 0:
            self._boot += 1
            self._member_id = f"{self.name}-{self._boot}"
            self._drop_session()
        address = await self.wire.coordinator(self._group, GROUP_KEYS)
        response = await self.wire.call(
            address,
            ShareGroupHeartbeatRequest(
                group_id=self._group,
                member_id=self._member_id,
                member_epoch=self._epoch,
                subscribed_topic_names=[self._topic],
            ),
            ShareGroupHeartbeatResponse,
        )
        check(response.error_code)
        self._epoch = response.member_epoch
        if response.assignment is not None:
            assigned = [
                index
                for topic in response.assignment.topic_partitions
                for index in topic.partitions
            ]
            if assigned != self._assigned:
                self._assigned = assigned
                # A new session names the new partitions.
                self._drop_session()

    async def _fetch(self, address: Address, topic_id: UUID) -> None:
        request = ShareFetchRequest
        sent_s = self.cluster.loop.time()
        boots = self.cluster.boots
        reign = self.cluster.reign(self._topic, self._assigned[0])
        partitions = self._assigned if self._session == 0 else []
        response = await self.wire.call(
            address,
            request(
                group_id=self._group,
                member_id=self._member_id,
                share_session_epoch=self._session,
                max_wait_ms=100,
                min_bytes=1,
                max_bytes=65536,
                max_records=self.random.choice((1, 3, 10)),
                batch_size=10,
                topics=[
                    request.FetchTopic(
                        topic_id=topic_id,
                        partitions=[
                            request.FetchPartition(partition_index=index) for index in partitions
                        ],
                    )
                ]
                if partitions
                else [],
            ),
            ShareFetchResponse,
        )
        check(response.error_code)
        self._session += 1
        now = self.cluster.reign(self._topic, self._assigned[0])
        is_leader = reign == now and reign[0] == address[0]
        for topic in response.responses:
            for partition in topic.partitions:
                check(partition.error_code)
                for acquired in partition.acquired_records:
                    self._queue.last_s = self.cluster.loop.time()
                    for offset in range(acquired.first_offset, acquired.last_offset + 1):
                        place = partition.partition_index, offset
                        self._take(place, sent_s, boots, is_leader=is_leader)

    def _take(self, place: Place, sent_s: float, boots: int, *, is_leader: bool) -> None:
        queue = self._queue
        queue.deliveries[place] = queue.deliveries.get(place, 0) + 1
        if not is_leader:
            # Another may have been given it since, or have accepted it.
            self._mine.append(place)
            return
        accepted_by, accepted_s = queue.accepted.get(place, ("no member", sent_s))
        # An answer that was long on its way may hold records that were released since.
        require(
            accepted_s >= sent_s,
            Invariant.SHARED_ONCE,
            lambda: (
                f"{self._topic}-{place[0]} offset {place[1]} was accepted by {accepted_by} and"
                f" is delivered to {self._member_id}"
            ),
        )
        self._mine.append(place)
        end = self.wire.ends[-1]
        if boots != self.cluster.boots or not intact(end):
            # The broker may have given it to another member since.
            return
        hold = queue.held.get(place)
        now_s = self.cluster.loop.time()
        require(
            hold is None or not hold.lasts(now_s, self.cluster.boots),
            Invariant.HELD_ONCE,
            lambda: (
                f"{self._topic}-{place[0]} offset {place[1]} is held by {hold} and is"
                f" delivered to {self._member_id} at {now_s}"
            ),
        )
        queue.held[place] = Hold(self._member_id, sent_s + LOCK_S, boots, end)

    async def _acknowledge(self, address: Address, topic_id: UUID) -> None:
        request = ShareAcknowledgeRequest
        kind = ACCEPT if self.stopping or self.random.random() < 0.8 else RELEASE
        places, self._mine = self._mine, []
        by_partition: dict[int, list[int]] = {}
        for index, offset in sorted(set(places)):
            by_partition.setdefault(index, []).append(offset)
            self._let_go((index, offset))
            if kind == ACCEPT:
                self._queue.accept_sent.add((index, offset))
        response = await self.wire.call(
            address,
            request(
                group_id=self._group,
                member_id=self._member_id,
                share_session_epoch=self._session,
                topics=[
                    request.AcknowledgeTopic(
                        topic_id=topic_id,
                        partitions=[
                            request.AcknowledgePartition(
                                partition_index=index,
                                acknowledgement_batches=[
                                    request.AcknowledgementBatch(
                                        first_offset=offset,
                                        last_offset=offset,
                                        acknowledge_types=[kind],
                                    )
                                    for offset in offsets
                                ],
                            )
                            for index, offsets in by_partition.items()
                        ],
                    )
                ],
            ),
            ShareAcknowledgeResponse,
        )
        check(response.error_code)
        self._session += 1
        for topic in response.responses:
            for partition in topic.partitions:
                if partition.error_code == ErrorCode.NONE and kind == ACCEPT:
                    for offset in by_partition[partition.partition_index]:
                        place = (partition.partition_index, offset)
                        self._queue.accepted[place] = self._member_id, self.cluster.loop.time()
        self.note(f"{'accepts' if kind == ACCEPT else 'releases'} {sorted(set(places))}")


def check_all_done(queue: Queue, records: dict[Place, bytes]) -> None:
    """Every record was accepted, or given up after as many deliveries as there may be."""
    for place in records:
        if place in queue.accepted or place in queue.accept_sent:
            continue
        tries = queue.deliveries.get(place, 0) + queue.lost_fetches
        require(
            tries >= DELIVERIES_MAX,
            Invariant.SETTLES,
            lambda place=place, tries=tries: (  # type: ignore[misc]
                f"{place} was never accepted, and delivered {tries} times at most"
            ),
        )
