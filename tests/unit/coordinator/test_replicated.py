"""A group coordinator on a partition with a follower: what it says is committed, whatever moves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.broker.coordinator.group.coordinator import GroupCoordinator
from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.partition_log import PartitionLog
from moldau.broker.machine.topics import GROUP_OFFSETS_TOPIC
from moldau.broker.network.context import RequestContext
from moldau.broker.replication.partition import Partition
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from support.channels import HandClock, settle
from support.group_facts import FakeSettings, FakeTopics
from support.hosting import NODE_ID, OTHER_NODE_ID, Host

BOTH = (NODE_ID, OTHER_NODE_ID)
WRITE_TIMEOUT_MS = 5_000


class World:
    """A node that leads the offsets topic, and whose follower does as it is told."""

    def __init__(self, folder: Path, *, isr: tuple[int, ...] = BOTH, **config: str) -> None:
        self.host = Host(folder)
        self.topic_id = self.host.create_topic(
            GROUP_OFFSETS_TOPIC, replicas=BOTH, isr=isr, config=config
        )
        self.clock = HandClock()
        self.bugs: list[Exception] = []
        self.groups = GroupCoordinator(
            GroupConfig(offsets_commit_timeout_ms=WRITE_TIMEOUT_MS),
            topics=FakeTopics(t=2),
            settings=FakeSettings(),
            partition_count=lambda: 1,
            report_bug=self.bugs.append,
            perform=lambda action: None,
            clock=self.clock,
        )

    @property
    def partition(self) -> Partition:
        return self.host.partition(GROUP_OFFSETS_TOPIC)

    async def take_over(self, *, acks_all: bool = False) -> None:
        """As the broker does when the metadata says that it leads."""
        log = PartitionLog(self.partition, acks_all=acks_all)
        self.groups.on_elected(0, self.partition.leader_epoch, log)
        await self.groups.loaded()
        await settle()

    def elect(self, *leaders: int) -> None:
        for leader in leaders:
            self.host.change_partition(self.topic_id, leader=leader)
            if leader != NODE_ID:
                self.groups.on_resigned(0, self.partition.leader_epoch)

    def replicate(self) -> None:
        """The follower asks for what comes next, so it has everything before."""
        partition = self.partition
        partition.follower_fetched(
            OTHER_NODE_ID,
            OTHER_NODE_ID,
            fetch_offset=partition.log.log_end_offset,
            log_start_offset=0,
            last_fetched_epoch=-1,
            current_leader_epoch=partition.leader_epoch,
        )

    def commit(self, offset: int) -> asyncio.Task[ErrorCode]:
        request = OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=-1,
            topics=[
                OffsetCommitRequest.OffsetCommitRequestTopic(
                    name="t",
                    partitions=[
                        OffsetCommitRequest.OffsetCommitRequestPartition(
                            partition_index=0, committed_offset=offset, committed_metadata=""
                        )
                    ],
                )
            ],
        )

        async def ask() -> ErrorCode:
            context = RequestContext(ApiKey.OFFSET_COMMIT, 8, 1, None)
            response = await self.groups.commit_offsets(context, request)
            return ErrorCode(response.topics[0].partitions[0].error_code)

        return asyncio.ensure_future(ask())

    def fetch(self) -> asyncio.Task[int | ErrorCode]:
        request = OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id="g",
            topics=[OffsetFetchRequest.OffsetFetchRequestTopics(name="t", partition_indexes=[0])],
        )

        async def ask() -> int | ErrorCode:
            response = await self.groups.fetch_offsets(request, False)
            if response.error_code:
                return ErrorCode(response.error_code)
            return int(response.topics[0].partitions[0].committed_offset)

        return asyncio.ensure_future(ask())

    def heartbeat(self, epoch: int) -> asyncio.Task[ConsumerGroupHeartbeatResponse]:
        request = ConsumerGroupHeartbeatRequest(
            group_id="c",
            member_id="m",
            member_epoch=epoch,
            rebalance_timeout_ms=60_000 if epoch == 0 else -1,
            subscribed_topic_names=["t"] if epoch == 0 else None,
            topic_partitions=[] if epoch == 0 else None,
        )
        context = RequestContext(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, 1, None)
        return asyncio.ensure_future(self.groups.consumer_group_heartbeat(context, request))

    def views(self) -> dict[str, asyncio.Task[Any]]:
        """What tools see of the groups."""

        async def listed() -> list[str]:
            response = await self.groups.list_groups(ListGroupsRequest())
            return [each.group_id for each in response.groups]

        async def described() -> tuple[str, ErrorCode]:
            group = await self.groups.describe_group("g", 6)
            return group.group_state, ErrorCode(group.error_code)

        async def consumer_described() -> tuple[str, int]:
            group = await self.groups.describe_consumer_group("c")
            return group.group_state, group.group_epoch

        return {
            "list": asyncio.ensure_future(listed()),
            "describe": asyncio.ensure_future(described()),
            "describe consumer": asyncio.ensure_future(consumer_described()),
        }


def play(world: World, scene: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(60):
            await scene(world)
        world.groups.close()

    asyncio.run(run())
    assert not world.bugs


def test_an_offset_is_acknowledged_when_the_follower_has_it(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        await world.take_over()
        committing = world.commit(5)
        reading = world.fetch()
        await settle()
        assert world.partition.log.log_end_offset == 1
        assert not committing.done()
        assert not reading.done(), "what may be lost is not read either"
        world.replicate()
        assert await committing is ErrorCode.NONE
        assert await reading == 5
        assert await world.fetch() == 5

    play(World(tmp_path), scene)


def test_a_follower_that_leaves_the_isr_is_not_waited_for(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        await world.take_over()
        committing = world.commit(5)
        await settle()
        world.host.change_partition(world.topic_id, isr=[NODE_ID])
        assert await committing is ErrorCode.NONE

    play(World(tmp_path), scene)


def test_a_member_is_told_nothing_that_may_be_lost(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        await world.take_over()
        first = world.heartbeat(0)
        await settle()
        # The client has given up on the first answer and asks again: this writes nothing.
        again = world.heartbeat(0)
        await settle()
        assert not first.done()
        assert not again.done()
        world.replicate()
        assert (await again).error_code == ErrorCode.NONE
        assert (await first).member_epoch == (await again).member_epoch

    play(World(tmp_path), scene)


def test_tools_see_no_group_that_may_be_lost(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        await world.take_over()
        changes: list[asyncio.Task[Any]] = [world.commit(5), world.heartbeat(0)]
        await settle()
        views = world.views()
        await settle()
        assert not any(view.done() for view in views.values())
        world.replicate()
        await asyncio.gather(*changes)
        assert {name: await view for name, view in views.items()} == {
            "list": ["g", "c"],
            "describe": ("Empty", ErrorCode.NONE),
            "describe consumer": ("Stable", 2),
        }

    play(World(tmp_path), scene)


def test_tools_see_a_group_until_its_deletion_is_committed(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        await world.take_over()
        committing = world.commit(5)
        await settle()
        world.replicate()
        await committing
        deleting = asyncio.ensure_future(world.groups.delete_groups(["g"]))
        await settle()
        views = world.views()
        await settle()
        assert not views["list"].done()
        assert not views["describe"].done()
        world.replicate()
        await deleting
        assert await views["list"] == []
        assert await views["describe"] == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)

    play(World(tmp_path), scene)


def test_tools_do_not_wait_for_ever(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        await world.take_over()
        committing = world.commit(5)
        await settle()
        listing = asyncio.ensure_future(world.groups.list_groups(ListGroupsRequest()))
        await settle()
        world.clock.advance(WRITE_TIMEOUT_MS)
        assert (await listing).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert await committing is ErrorCode.COORDINATOR_NOT_AVAILABLE

    play(World(tmp_path), scene)


def test_what_is_not_committed_when_leadership_is_lost_has_failed(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        await world.take_over()
        waiting: list[asyncio.Task[Any]] = [world.commit(5), world.fetch()]
        await settle()
        world.elect(OTHER_NODE_ID)
        assert [await each for each in waiting] == [ErrorCode.NOT_COORDINATOR] * 2
        assert await world.commit(6) is ErrorCode.NOT_COORDINATOR

    play(World(tmp_path), scene)


def test_who_is_elected_again_reads_the_log_anew(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        await world.take_over()
        committing = world.commit(5)
        await settle()
        world.replicate()
        await committing
        lost = world.commit(6)
        await settle()
        world.elect(OTHER_NODE_ID)
        assert await lost is ErrorCode.NOT_COORDINATOR
        # The other node never had it: this one cuts its log, as followers do.
        world.partition.log.truncate_to(1, now_ms=0)
        world.elect(NODE_ID)
        await world.take_over()
        world.replicate()
        assert await world.fetch() == 5

    play(World(tmp_path), scene)


def test_a_higher_epoch_of_the_same_node_loads_again(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        await world.take_over()
        committing = world.commit(5)
        await settle()
        # Nobody else has led, so nothing is lost; but it is for the new epoch to say so.
        world.host.change_partition(world.topic_id, leader=NODE_ID)
        await world.take_over()
        assert await committing is ErrorCode.NOT_COORDINATOR
        reading = world.fetch()
        await settle()
        assert not reading.done(), "loaded, but not known to be committed yet"
        world.replicate()
        assert await reading == 5

    play(World(tmp_path), scene)


def test_a_write_that_nobody_copies_in_time(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        await world.take_over()
        committing, reading = world.commit(5), world.fetch()
        await settle()
        world.clock.advance(WRITE_TIMEOUT_MS)
        assert await committing is ErrorCode.COORDINATOR_NOT_AVAILABLE
        # Older clients know no other code that makes them ask again.
        assert await reading is ErrorCode.NOT_COORDINATOR
        world.replicate()
        assert await world.fetch() == 5

    play(World(tmp_path), scene)


@pytest.mark.parametrize("acks_all", [False, True])
def test_too_few_replicas_in_sync(tmp_path: Path, acks_all: bool) -> None:
    async def scene(world: World) -> None:
        await world.take_over(acks_all=acks_all)
        committing = world.commit(5)
        await settle()
        # The transaction log is not even appended to; the others wait for the ISR to grow.
        assert committing.done() is acks_all
        assert world.partition.log.log_end_offset == (0 if acks_all else 1)
        world.clock.advance(WRITE_TIMEOUT_MS)
        assert await committing is ErrorCode.COORDINATOR_NOT_AVAILABLE

    config = {"min.insync.replicas": "2"}
    play(World(tmp_path, isr=(NODE_ID,), **config), scene)
