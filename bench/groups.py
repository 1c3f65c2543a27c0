"""What groups cost: commits of many groups, and a big group's way to its assignment."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

import uvloop

from bench.raw import AsyncConnection, Connection, request_frame
from bench.servers import Server
from moldau.wire.apis import ApiKey
from moldau.wire.codec import encode_into
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerProtocolSubscription,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)

IN_FLIGHT = 16
HEARTBEAT_SECONDS = 0.5
STABLE_SECONDS_MAX = 120.0
# A coordinator that is not ready yet: its topic is being made, or read.
_LATER = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


def wait_for_coordinator(server: Server, group: str, key_type: int = 0) -> None:
    """Until `group` has a coordinator; the first request creates the coordinator's topic."""
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[group])
    deadline = time.monotonic() + 60
    with Connection(server) as connection:
        while time.monotonic() < deadline:
            answer = connection.call(ApiKey.FIND_COORDINATOR, 6, request)
            if answer.coordinators[0].error_code == 0:
                return
            time.sleep(0.05)
    raise RuntimeError(f"{server.name} finds no coordinator for {group}")


def offset_commits_per_second(server: Server, topic: str, *, groups: int, count: int) -> float:
    """Commits of one offset each, from each group in turn, a few in flight."""
    frames = [_commit_frame(f"group-{number}", topic) for number in range(groups)]
    wait_for_coordinator(server, "group-0")
    connections = [Connection(server) for _ in range(IN_FLIGHT)]
    for position in range(0, groups, IN_FLIGHT):
        _commit_until_taken(connections[0], frames[position])
    position = 0
    started = time.perf_counter()
    while position < count:
        for offset, connection in enumerate(connections):
            connection.send(frames[(position + offset) % groups])
        answers = [connection.receive() for connection in connections]
        position += IN_FLIGHT
    seconds = time.perf_counter() - started
    # All answers are alike but for the correlation id, which is the same: one is looked at.
    connections[0].send(frames[0])
    if connections[0].receive() != answers[0]:
        raise RuntimeError(f"{server.name} did not take a commit")
    for connection in connections:
        connection.close()
    return position / seconds


def _commit_frame(group: str, topic: str) -> bytes:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1
    )
    data = OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=[partition])
    request = OffsetCommitRequest(
        group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=[data]
    )
    return request_frame(ApiKey.OFFSET_COMMIT, 8, request)


def _commit_until_taken(connection: Connection, frame: bytes) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        connection.send(frame)
        answer = connection.receive_answer(ApiKey.OFFSET_COMMIT, 8)
        error = answer.topics[0].partitions[0].error_code
        if error == 0:
            return
        if error not in _LATER:
            raise RuntimeError(f"a commit is refused with {error}")
        time.sleep(0.02)
    raise RuntimeError("no commit is taken within 30 s")


class Assembly:
    """Knows when a group is complete: all members have reported the same round and a partition."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._told: dict[int, tuple[int, tuple[int, ...]]] = {}
        self.complete = asyncio.Event()

    def tell(self, member: int, round_: int, partitions: tuple[int, ...]) -> None:
        """`member` works on `partitions` since `round_` (equal for all where there are rounds)."""
        self._told[member] = (round_, partitions)
        if len(self._told) < self._size:
            return
        rounds = {each for each, _ in self._told.values()}
        owned = {share for _, share in self._told.values() if len(share) == 1}
        if len(rounds) == 1 and len(owned) == self._size:
            self.complete.set()


Member = Callable[[AsyncConnection, str, str, int, Assembly], Coroutine[Any, Any, None]]


def seconds_to_assignment(server: Server, topic: str, *, members: int, member: Member) -> float:
    """From the first request of `members` members to one partition for each of them."""
    group = f"assembly-{uuid.uuid4()}"
    wait_for_coordinator(server, group)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_assemble(server, group, topic, members, member))


async def _assemble(server: Server, group: str, topic: str, size: int, member: Member) -> float:
    connections = [await AsyncConnection.open(server) for _ in range(size)]
    assembly = Assembly(size)
    started = time.perf_counter()
    tasks = [
        asyncio.create_task(member(connection, group, topic, number, assembly))
        for number, connection in enumerate(connections)
    ]
    complete = asyncio.create_task(assembly.complete.wait())
    await asyncio.wait(
        [complete, *tasks], timeout=STABLE_SECONDS_MAX, return_when=asyncio.FIRST_COMPLETED
    )
    seconds = time.perf_counter() - started
    for task in tasks:
        if task.done():
            task.result()
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for connection in connections:
        connection.close()
    if not complete.done():
        complete.cancel()
        raise RuntimeError(f"{server.name}: no stable group in {STABLE_SECONDS_MAX:.0f} s")
    return seconds


async def classic_member(
    connection: AsyncConnection, group: str, topic: str, number: int, assembly: Assembly
) -> None:
    """Joins, and joins again whenever the group does; the leader deals out the partitions."""
    member_id = ""
    subscription = bytearray(b"\0\0")
    encode_into(ConsumerProtocolSubscription(topics=[topic]), 0, subscription)
    while True:
        join = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(
                    name="range", metadata=bytes(subscription)
                )
            ],
        )
        joined = await connection.call(ApiKey.JOIN_GROUP, 7, join)
        member_id = joined.member_id or member_id
        if joined.error_code in _LATER | {ErrorCode.MEMBER_ID_REQUIRED}:
            continue
        _check(joined.error_code, "JoinGroup")
        shares = []
        if joined.leader == member_id:
            shares = [
                SyncGroupRequest.SyncGroupRequestAssignment(
                    member_id=each.member_id, assignment=b"%d" % index
                )
                for index, each in enumerate(joined.members)
            ]
        sync = SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=shares,
        )
        synced = await connection.call(ApiKey.SYNC_GROUP, 5, sync)
        if synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            continue
        _check(synced.error_code, "SyncGroup")
        assembly.tell(number, joined.generation_id, (int(synced.assignment),))
        beat = HeartbeatRequest(
            group_id=group, generation_id=joined.generation_id, member_id=member_id
        )
        error = 0
        while error == 0:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            error = (await connection.call(ApiKey.HEARTBEAT, 4, beat)).error_code
        if error != ErrorCode.REBALANCE_IN_PROGRESS:
            _check(error, "Heartbeat")


async def consumer_member(
    connection: AsyncConnection, group: str, topic: str, number: int, assembly: Assembly
) -> None:
    """Takes what it is given, gives back what it is asked for, and says so at once."""
    epoch = 0
    owned: list[ConsumerGroupHeartbeatRequest.TopicPartitions] = []
    member_id = str(uuid.uuid4())
    while True:
        beat = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=60_000 if epoch == 0 else -1,
            subscribed_topic_names=[topic] if epoch == 0 else None,
            topic_partitions=owned,
        )
        answer = await connection.call(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, beat)
        if answer.error_code in _LATER:
            continue
        _check(answer.error_code, "ConsumerGroupHeartbeat")
        changed = answer.assignment is not None
        epoch = answer.member_epoch
        if answer.assignment is not None:
            owned = [
                ConsumerGroupHeartbeatRequest.TopicPartitions(
                    topic_id=each.topic_id, partitions=list(each.partitions)
                )
                for each in answer.assignment.topic_partitions
            ]
        assembly.tell(number, 0, tuple(index for each in owned for index in each.partitions))
        if not changed:
            await asyncio.sleep(HEARTBEAT_SECONDS)


def _check(error: int, what: str) -> None:
    if error:
        raise RuntimeError(f"{what} is refused with {ErrorCode(error).name}")
