"""Copies from leaders on other nodes: one task and one connection per leader and fetcher number.

`ReplicaFetchers` decides which fetcher copies which partition (num.replica.fetchers for each
leader, by topic and partition), a `Fetcher` (pure) decides what to request and what to do with the
responses, and the task between them waits.

Invariants: a fetcher has one request in flight; one without partitions ends; appends and
truncations happen within one turn of the loop, on the newest state.

A request that waits at the leader for records does not include partitions that were added since. A
new leader may be waiting for exactly these to be copied, so such a request is soon abandoned for
one that names them.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from moldau.broker.config.broker_keys import BROKER_KEYS
from moldau.broker.replication.machine.fetch_data import PartitionFetch
from moldau.broker.replication.machine.fetch_response import decode_fetch_response
from moldau.broker.replication.machine.fetch_session import PartitionKey, SessionRequest
from moldau.broker.replication.machine.follower import FetchedPartition, Fetcher, Reset
from moldau.broker.replication.machine.names import NodeEndpoint
from moldau.broker.replication.machine.throttle import ReplicationThrottle, is_throttled_replica
from moldau.broker.replication.offsets import EARLIEST, LATEST
from moldau.broker.replication.partition import Partition
from moldau.broker.replication.replica import FollowerReplica
from moldau.clock import Alarm, Clock
from moldau.config.section import Section
from moldau.metrics import Meter
from moldau.peers.channel import Channel, ChannelError, Transport
from moldau.times import ElapsedMs
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode, WireError
from moldau.wire.messages import FetchRequest, ListOffsetsRequest, ListOffsetsResponse

logger = logging.getLogger(__name__)

#: How long added partitions wait for the request in flight to end by itself, and how long a request
#: lasts at least before it is abandoned for a new one.
ADDED_WAIT_MS: Final = 20
GIVEN_UP_EVERY_MS: Final = 250


class FetcherSettings(Section, keys=BROKER_KEYS):
    """The replica.* section of a broker's configuration."""

    num_replica_fetchers: int
    replica_fetch_backoff_ms: int
    replica_fetch_max_bytes: int
    replica_fetch_response_max_bytes: int
    replica_fetch_min_bytes: int
    replica_fetch_wait_max_ms: int
    replica_socket_timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetcherNode:
    """What fetchers need from the node they copy for."""

    node_id: int
    transport: Transport
    clock: Clock
    listener_name: str
    settings: Callable[[], FetcherSettings]
    broker_epoch: Callable[[], int]
    throttle: ReplicationThrottle | None = None
    copied: Meter | None = None
    """Counts the bytes that are copied."""


class ReplicaFetchers:
    """All fetchers of this node."""

    def __init__(self, node: FetcherNode) -> None:
        self._node = node
        self._fetchers: dict[tuple[int, int], _FetcherTask] = {}
        self._by_partition: dict[PartitionKey, _FetcherTask] = {}
        # The last known address of each node that is copied from.
        self._leaders: dict[int, NodeEndpoint] = {}
        self._closed = False

    def __len__(self) -> int:
        return len(self._fetchers)

    def lags(self) -> Iterator[tuple[str, int, int, int]]:
        """Topic, partition, leader and records behind it, of everything that is copied."""
        for (leader_id, _), fetcher in self._fetchers.items():
            for partition, lag in fetcher.lags():
                yield partition.topic, partition.index, leader_id, lag

    @property
    def failed_count(self) -> int:
        """Partitions that are not copied until their leader changes."""
        return sum(fetcher.failed_count for fetcher in self._fetchers.values())

    @property
    def dead_count(self) -> int:
        """Fetchers that have ended although they have partitions."""
        return sum(fetcher.task.done() for fetcher in self._fetchers.values())

    def follow(self, partition: Partition, leader: NodeEndpoint) -> None:
        """Copy the partition from `leader`, in the partition's leader epoch."""
        if self._closed:
            return
        self.relocate(leader)
        key = _key(partition)
        number = self._fetcher_number(partition)
        fetcher = self._fetchers.get((leader.node_id, number))
        former = self._by_partition.get(key)
        if former is not None and former is not fetcher:
            self._remove(key)
        if fetcher is None:
            fetcher = self._start(leader, number)
        self._add(fetcher, key, FollowerReplica(partition, self._node.clock.now_ms))

    def leave(self, partition: Partition) -> None:
        """Stop copying it; responses still in flight are void."""
        self._remove(_key(partition))

    def relocate(self, leader: NodeEndpoint) -> None:
        """Connect to the new address of `leader`."""
        if self._leaders.get(leader.node_id, leader) == leader:
            return
        for (node_id, number), fetcher in list(self._fetchers.items()):
            if node_id == leader.node_id:
                moved = fetcher.abandon()
                fetcher = self._start(leader, number)
                for each in moved:
                    self._add(fetcher, each.key, each.replica)

    def _start(self, leader: NodeEndpoint, number: int) -> _FetcherTask:
        self._leaders[leader.node_id] = leader
        fetcher = self._fetchers[leader.node_id, number] = _FetcherTask(self._node, leader, number)
        return fetcher

    def _add(self, fetcher: _FetcherTask, key: PartitionKey, replica: FollowerReplica) -> None:
        self._by_partition[key] = fetcher
        fetcher.add(key, replica)

    def _remove(self, key: PartitionKey) -> None:
        fetcher = self._by_partition.pop(key, None)
        if fetcher is None:
            return
        fetcher.remove(key)
        if not fetcher.replicas:
            fetcher.abandon()
            self._fetchers = {
                place: each for place, each in self._fetchers.items() if each is not fetcher
            }

    def _fetcher_number(self, partition: Partition) -> int:
        number = 31 * zlib.crc32(partition.topic.encode()) + partition.index
        return number % self._node.settings().num_replica_fetchers

    async def close(self) -> None:
        """Stop all copying; returns when no fetcher uses a log."""
        self._closed = True
        fetchers, self._fetchers = self._fetchers, {}
        self._by_partition = {}
        for fetcher in fetchers.values():
            fetcher.abandon()
        await asyncio.gather(*(each.task for each in fetchers.values()), return_exceptions=True)


@dataclass(frozen=True, slots=True)
class _Moved:
    key: PartitionKey
    replica: FollowerReplica


class _FetcherTask:
    """Drives one `Fetcher` over one channel."""

    def __init__(self, node: FetcherNode, leader: NodeEndpoint, number: int) -> None:
        self.leader = leader
        self.replicas: dict[PartitionKey, FollowerReplica] = {}
        self._node = node
        self._name = f"fetcher {number} from broker {leader.node_id}"
        self._channel = self._connect()
        self._is_fetching = False
        self._giving_up: Alarm | None = None
        self._given_up = False
        self._given_up_ms = -GIVEN_UP_EVERY_MS
        self._fetcher = Fetcher(
            backoff_ms=lambda: node.settings().replica_fetch_backoff_ms,
            max_bytes=lambda: node.settings().replica_fetch_max_bytes,
            is_throttled=self._is_held_up,
            on_failed=self._on_failed,
            on_fenced=self._on_fenced,
        )
        self._wake = asyncio.Event()
        self.task: asyncio.Task[None] = asyncio.get_running_loop().create_task(self._guarded())

    def _connect(self) -> Channel:
        leader = self.leader
        return self._node.transport.channel(
            leader.node_id, leader.host, leader.port, self._node.listener_name
        )

    def lags(self) -> Iterator[tuple[Partition, int]]:
        for key, replica in self.replicas.items():
            state = self._fetcher.state(key)
            if state is not None and state.lag is not None:
                yield replica.partition, max(0, state.lag)

    @property
    def failed_count(self) -> int:
        return len(self._fetcher.failed)

    def add(self, key: PartitionKey, replica: FollowerReplica) -> None:
        partition = replica.partition
        self.replicas[key] = replica
        self._fetcher.add(key, partition.topic, replica, leader_epoch=partition.leader_epoch)
        self._wake.set()
        if self._is_fetching and self._giving_up is None:
            allowed_ms = self._given_up_ms + GIVEN_UP_EVERY_MS - self._now_ms()
            self._giving_up = self._node.clock.call_later(
                max(ADDED_WAIT_MS, allowed_ms), self._give_up
            )

    def _give_up(self) -> None:
        """Abandon the request in flight; the next one follows immediately."""
        self._giving_up = None
        self._given_up = True
        self._given_up_ms = self._now_ms()
        self._channel.close()
        self._channel = self._connect()

    def remove(self, key: PartitionKey) -> None:
        self.replicas.pop(key, None)
        self._fetcher.remove(key)

    def abandon(self) -> list[_Moved]:
        """Stop; returns the partitions it still had."""
        moved = [_Moved(key, replica) for key, replica in self.replicas.items()]
        self.replicas = {}
        self.task.cancel()
        self._is_answered()
        self._channel.close()
        return moved

    def _on_failed(self, key: PartitionKey, reason: str) -> None:
        partition = self.replicas[key].partition
        logger.warning(
            "%s: %r is not copied until its leader changes: %s", self._name, partition, reason
        )

    def _on_fenced(self, key: PartitionKey, leader_epoch: int) -> None:
        partition = self.replicas[key].partition
        logger.info("%s: leader epoch %d of %r has ended", self._name, leader_epoch, partition)

    def _is_throttled(self, key: PartitionKey) -> bool:
        replica = self.replicas.get(key)
        return replica is not None and is_throttled_replica(
            replica.partition.log.config.follower_replication_throttled_replicas,
            key[1],
            self._node.node_id,
        )

    def _is_held_up(self, key: PartitionKey) -> bool:
        throttle = self._node.throttle
        return (
            throttle is not None
            and self._is_throttled(key)
            and throttle.is_exceeded(self._now_ms())
        )

    def _count(self, partitions: Mapping[PartitionKey, FetchedPartition]) -> None:
        if self._node.copied is not None:
            self._node.copied.mark(sum(len(each.records or b"") for each in partitions.values()))
        throttle = self._node.throttle
        if throttle is None:
            return
        size = sum(
            len(fetched.records)
            for key, fetched in partitions.items()
            if fetched.records and self._is_throttled(key)
        )
        if size:
            throttle.record(size, self._now_ms())

    async def _guarded(self) -> None:
        try:
            await self._run()
        except asyncio.CancelledError:
            raise
        except Exception:
            logger.exception("%s has stopped", self._name)

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            await self._reset()
            request = self._fetcher.request(self._now_ms())
            if request is None:
                await self._pause()
            else:
                await self._fetch(request)

    def _now_ms(self) -> ElapsedMs:
        return self._node.clock.elapsed_ms()

    async def _pause(self) -> None:
        """Wait until a pause is over or a partition is added."""
        delay_ms = self._node.settings().replica_fetch_backoff_ms
        due_ms = self._fetcher.next_due_ms()
        if due_ms is not None:
            delay_ms = min(delay_ms, max(due_ms - self._now_ms(), 1))
        alarm = self._node.clock.call_later(max(delay_ms, 1), self._wake.set)
        try:
            await self._wake.wait()
        finally:
            alarm.cancel()

    async def _fetch(self, request: SessionRequest) -> None:
        settings = self._node.settings()
        self._is_fetching = True
        self._given_up = False
        try:
            raw = await self._channel.call_raw(
                ApiKey.FETCH,
                self._message(request, settings),
                timeout_ms=settings.replica_socket_timeout_ms,
            )
            response = decode_fetch_response(raw.version, raw.body)
        except (ChannelError, WireError) as failure:
            if self._given_up:
                self._fetcher.on_given_up()
            else:
                logger.info("%s: %s", self._name, failure)
                self._fetcher.on_failure(self._now_ms())
            return
        finally:
            self._is_answered()
        self._count(response.partitions)
        self._fetcher.on_response(
            error=response.error,
            session_id=response.session_id,
            partitions=response.partitions,
            now_ms=self._now_ms(),
        )

    def _is_answered(self) -> None:
        self._is_fetching = False
        if self._giving_up is not None:
            self._giving_up.cancel()
            self._giving_up = None

    def _message(self, request: SessionRequest, settings: FetcherSettings) -> FetchRequest:
        node = self._node
        return FetchRequest(
            replica_state=FetchRequest.ReplicaState(
                replica_id=node.node_id, replica_epoch=node.broker_epoch()
            ),
            max_wait_ms=settings.replica_fetch_wait_max_ms,
            min_bytes=settings.replica_fetch_min_bytes,
            max_bytes=settings.replica_fetch_response_max_bytes,
            session_id=request.session_id,
            session_epoch=request.session_epoch,
            topics=self._topics(request.partitions),
            forgotten_topics_data=_forgotten(request.forgotten),
        )

    def _topics(
        self, partitions: dict[PartitionKey, PartitionFetch]
    ) -> list[FetchRequest.FetchTopic]:
        topics: dict[UUID, list[FetchRequest.FetchPartition]] = {}
        for key, wanted in partitions.items():
            topics.setdefault(self.replicas[key].partition.topic_id, []).append(
                FetchRequest.FetchPartition(
                    partition=wanted.partition,
                    current_leader_epoch=wanted.current_leader_epoch,
                    fetch_offset=wanted.fetch_offset,
                    last_fetched_epoch=wanted.last_fetched_epoch,
                    log_start_offset=wanted.log_start_offset,
                    partition_max_bytes=wanted.max_bytes,
                )
            )
        return [
            FetchRequest.FetchTopic(topic_id=topic_id, partitions=wanted)
            for topic_id, wanted in topics.items()
        ]

    async def _reset(self) -> None:
        """Request the leader's first and last offsets where it does not have the fetched one."""
        resets = self._fetcher.resets(self._now_ms())
        if not resets:
            return
        latest = await self._offsets(resets, LATEST)
        earliest = await self._offsets(resets, EARLIEST)
        for reset in resets:
            place = reset.topic, reset.partition
            error, last = latest.get(place, (ErrorCode.UNKNOWN_SERVER_ERROR, -1))
            second_error, first = earliest.get(place, (ErrorCode.UNKNOWN_SERVER_ERROR, -1))
            self._fetcher.on_reset(
                reset,
                error=error or second_error,
                latest=last,
                earliest=first,
                now_ms=self._now_ms(),
            )

    async def _offsets(
        self, resets: list[Reset], timestamp: int
    ) -> dict[tuple[str, int], tuple[ErrorCode, int]]:
        request = ListOffsetsRequest(
            replica_id=self._node.node_id,
            topics=[
                ListOffsetsRequest.ListOffsetsTopic(
                    name=reset.topic,
                    partitions=[
                        ListOffsetsRequest.ListOffsetsPartition(
                            partition_index=reset.partition,
                            current_leader_epoch=reset.leader_epoch,
                            timestamp=timestamp,
                        )
                    ],
                )
                for reset in resets
            ],
        )
        try:
            response = await self._channel.call(
                ApiKey.LIST_OFFSETS,
                request,
                timeout_ms=self._node.settings().replica_socket_timeout_ms,
            )
        except ChannelError as failure:
            logger.info("%s: %s", self._name, failure)
            return {}
        if not isinstance(response, ListOffsetsResponse):
            return {}
        return {
            (topic.name, part.partition_index): (ErrorCode(part.error_code), part.offset)
            for topic in response.topics
            for part in topic.partitions
        }


def _key(partition: Partition) -> PartitionKey:
    return partition.topic_id.bytes, partition.index


def _forgotten(keys: Iterable[PartitionKey]) -> list[FetchRequest.ForgottenTopic]:
    topics: dict[bytes, list[int]] = {}
    for topic_id, index in keys:
        topics.setdefault(topic_id, []).append(index)
    return [
        FetchRequest.ForgottenTopic(topic_id=UUID(bytes=topic_id), partitions=indexes)
        for topic_id, indexes in topics.items()
    ]
