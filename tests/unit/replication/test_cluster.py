"""Three nodes with real logs, leaders, fetchers and handlers: what happens to them, and that
nothing committed is lost by it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.broker.handlers.produce import ProduceHandler
from moldau.broker.log_moves import LogMoves
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.network.context import RequestContext
from moldau.wire.apis import ApiKey
from moldau.wire.codec import decode, encode
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import AlterPartitionResponse, ProduceRequest, ProduceResponse
from support.hosting import batch_of
from support.replica_cluster import (
    TOPIC,
    Node,
    ReplicaCluster,
    registration,
    replica_cluster,
    until,
    values,
)

Story = Callable[[ReplicaCluster], Awaitable[None]]


def play(folder: Path, story: Story, **options: Any) -> None:
    async def run() -> None:
        async with replica_cluster(folder, **options) as cluster:
            await story(cluster)

    asyncio.run(run())


def isr(node: Node) -> frozenset[int]:
    leadership = node.partition().leadership
    assert leadership is not None
    return leadership.isr


def committed(cluster: ReplicaCluster, count: int, *nodes: int) -> Callable[[], bool]:
    return lambda: all(
        cluster.nodes[each].partition().high_watermark == count for each in nodes or cluster.nodes
    )


def test_a_record_is_committed_when_all_in_sync_have_it(tmp_path: Path) -> None:
    async def story(cluster: ReplicaCluster) -> None:
        cluster.create()
        cluster.cut = {(3, 1)}
        first = cluster.nodes[1]
        first.append(b"a")
        await until(lambda: cluster.nodes[2].partition().log.log_end_offset == 1)
        assert first.partition().high_watermark == 0
        cluster.heal()
        await until(committed(cluster, 1))

    play(tmp_path, story)


def test_the_leader_dies_and_nothing_committed_is_lost(tmp_path: Path) -> None:
    async def story(cluster: ReplicaCluster) -> None:
        cluster.create(config={"min.insync.replicas": "2"})
        first, second, third = cluster.nodes.values()
        first.append(b"a")
        await until(committed(cluster, 1))
        cluster.isolate(1)
        first.append(b"lost")
        outcomes: list[ErrorCode] = []
        first.partition().when_committed(2, outcomes.append)
        # The controller has seen it; the old leader has not.
        for node in (second, third):
            node.host.change_partition(cluster.topic_id, leader=2, isr=[2, 3])
        second.append(b"b")
        await until(committed(cluster, 2, 2, 3))
        assert first.partition().high_watermark == 1
        cluster.heal()
        # It is refused by nobody before it knows better, and commits nothing.
        await asyncio.sleep(0.02)
        assert (outcomes, first.partition().high_watermark) == ([], 1)
        first.host.change_partition(cluster.topic_id, leader=2, isr=[2, 3])
        assert outcomes == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        await until(committed(cluster, 2))
        assert [values(node.partition()) for node in cluster.nodes.values()] == [[b"a", b"b"]] * 3
        await until(lambda: isr(second) == {1, 2, 3})

    play(tmp_path, story)


def test_after_an_unclean_election_all_have_what_the_new_leader_has(tmp_path: Path) -> None:
    async def story(cluster: ReplicaCluster) -> None:
        cluster.create()
        first, _, third = cluster.nodes.values()
        first.append(b"a")
        await until(committed(cluster, 1))
        cluster.cut = {(3, 1)}
        # So that nobody waits for the third to come back into the ISR.
        cluster.lag_ms_max = 1
        cluster.change(isr=[1, 2])
        for value in (b"b", b"c"):
            first.append(value)
        await until(committed(cluster, 3, 1, 2))
        cluster.change(leader=3, isr=[3])
        third.append(b"d")
        await until(lambda: isr(third) == {1, 2, 3})
        await until(committed(cluster, 2))
        assert [values(node.partition()) for node in cluster.nodes.values()] == [[b"a", b"d"]] * 3
        assert first.partition().log.leader_epochs.entries() == [(0, 0), (1, 1)]

    play(tmp_path, story)


def test_a_follower_that_knows_more_than_the_leader_asks_again(tmp_path: Path) -> None:
    """It hears of the new epoch first; the leader does not know what it talks about."""

    async def story(cluster: ReplicaCluster) -> None:
        cluster.create(leader=2)
        first, second, third = cluster.nodes.values()
        await until(lambda: bool(cluster.fetches))
        third.host.change_partition(cluster.topic_id, leader=1)
        await asyncio.sleep(0.02)
        for node in (first, second):
            node.host.change_partition(cluster.topic_id, leader=1)
        first.append(b"a")
        await until(committed(cluster, 1))

    play(tmp_path, story)


# Who is in sync.


@pytest.mark.parametrize("answer", ["metadata first", "answer first", "twice"])
def test_whichever_news_of_the_isr_comes_first(tmp_path: Path, answer: str) -> None:
    async def story(cluster: ReplicaCluster) -> None:
        released = asyncio.Event()

        async def late(wanted: Any) -> Any:
            made = cluster.accept(wanted)
            await released.wait()
            return made

        def unheard(wanted: Any) -> Any:
            """The answer comes; the metadata log tells of it later."""
            state = cluster.nodes[1].host.image.partition(cluster.topic_id, 0)
            assert state is not None
            return AlterPartitionResponse.PartitionData(
                leader_id=1,
                leader_epoch=state.leader_epoch,
                partition_epoch=state.partition_epoch + 1,
                isr=[each.broker_id for each in wanted.new_isr_with_epochs],
            )

        cluster.decide = unheard if answer == "answer first" else late
        cluster.create(isr=(1, 2))
        first = cluster.nodes[1]
        first.append(b"a")
        await until(lambda: isr(first) == {1, 2, 3})
        if answer == "answer first":
            cluster.change(isr=[1, 2, 3])
        released.set()
        if answer == "twice":
            cluster.change(isr=[1, 2, 3])
        await until(committed(cluster, 1))
        assert isr(first) == {1, 2, 3}

    play(tmp_path, story)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.INELIGIBLE_REPLICA,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.NOT_CONTROLLER,
    ],
)
def test_a_refused_replica_joins_later_and_holds_nobody_up(tmp_path: Path, code: ErrorCode) -> None:
    async def story(cluster: ReplicaCluster) -> None:
        def refusing(wanted: Any) -> Any:
            if len(cluster.asked) < 3:
                return cluster.refuse(wanted, code)
            return cluster.accept(wanted)

        cluster.decide = refusing
        cluster.create(isr=(1, 2))
        first = cluster.nodes[1]
        for number in range(5):
            first.append(b"%d" % number)
            await until(committed(cluster, number + 1, 1, 2))
        await until(lambda: isr(first) == {1, 2, 3})
        assert len(cluster.asked) >= 3

    play(tmp_path, story)


def test_who_is_away_leaves_and_what_is_left_commits(tmp_path: Path) -> None:
    async def story(cluster: ReplicaCluster) -> None:
        cluster.create(config={"min.insync.replicas": "2"})
        first = cluster.nodes[1]
        first.append(b"a")
        await until(committed(cluster, 1))
        cluster.isolate(3)
        cluster.lag_ms_max = 30
        first.append(b"b")

        def shrunk() -> bool:
            first.host.replicas.check_isrs()
            return isr(first) == {1, 2}

        await until(shrunk)
        await until(committed(cluster, 2, 1, 2))
        cluster.lag_ms_max = 30_000
        cluster.heal()
        await until(lambda: isr(first) == {1, 2, 3})
        await until(committed(cluster, 2))

    play(tmp_path, story)


# What producers are told.


async def produce(node: Node, value: bytes, *, timeout_ms: int = 5_000) -> tuple[int, int]:
    """(error code, base offset) of one batch with acks=all."""
    handler = ProduceHandler(
        node.host.replicas,
        loop=asyncio.get_running_loop(),
        clock=node.host.loop.clock,
    )
    request = ProduceRequest(
        acks=-1,
        timeout_ms=timeout_ms,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=TOPIC,
                partition_data=[ProduceRequest.PartitionProduceData(records=batch_of(value))],
            )
        ],
    )
    frame = memoryview(bytearray(b"head" + encode(request, 12)))
    reply: Any = handler.handle(
        RequestContext(ApiKey.PRODUCE, 12, 42, listener_name="PLAINTEXT"), frame, 4
    )
    if asyncio.isfuture(reply):
        reply = await reply
    data = b"".join(reply) if isinstance(reply, list) else reply
    (topic,) = decode(ProduceResponse, 12, data, 9).responses
    (partition,) = topic.partition_responses
    if partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        current = partition.current_leader
        assert (current.leader_id, current.leader_epoch) == (2, 1)
    return partition.error_code, partition.base_offset


def test_acks_all_means_all_in_sync(tmp_path: Path) -> None:
    async def story(cluster: ReplicaCluster) -> None:
        cluster.create(config={"min.insync.replicas": "2"})
        first = cluster.nodes[1]
        assert await produce(first, b"a") == (0, 0)
        assert all(node.partition().log.log_end_offset == 1 for node in cluster.nodes.values())
        # Too few from the start: nothing is appended.
        cluster.isolate(2)
        cluster.isolate(3)
        cluster.change(isr=[1])
        assert await produce(first, b"b") == (ErrorCode.NOT_ENOUGH_REPLICAS, -1)
        assert first.partition().log.log_end_offset == 1

    play(tmp_path, story)


def test_who_was_appended_before_too_few_were_left_waits_on(tmp_path: Path) -> None:
    async def story(cluster: ReplicaCluster) -> None:
        cluster.create(config={"min.insync.replicas": "2"})
        first = cluster.nodes[1]
        assert await produce(first, b"a") == (0, 0)
        cluster.isolate(2)
        cluster.isolate(3)
        waiting = asyncio.ensure_future(produce(first, b"b"))
        await until(lambda: first.partition().log.log_end_offset == 2)
        cluster.change(isr=[1])
        assert not waiting.done()
        # Whoever comes now is refused before; who came before waits on.
        assert await produce(first, b"c") == (ErrorCode.NOT_ENOUGH_REPLICAS, -1)
        cluster.heal()
        cluster.decide = lambda wanted: cluster.refuse(wanted, ErrorCode.INVALID_UPDATE_VERSION)
        cluster.change(isr=[1, 2])
        code, offset = await waiting
        assert (code, offset) == (0, 1)

    play(tmp_path, story)


def test_a_producer_at_the_wrong_node_is_told_where_to_go(tmp_path: Path) -> None:
    async def story(cluster: ReplicaCluster) -> None:
        cluster.create()
        cluster.isolate(1)
        waiting = asyncio.ensure_future(produce(cluster.nodes[1], b"a"))
        await until(lambda: cluster.nodes[1].partition().log.log_end_offset == 1)
        cluster.change(leader=2, isr=[2, 3])
        assert (await waiting)[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (await produce(cluster.nodes[1], b"b"))[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER

    play(tmp_path, story)


# Fetchers.


def test_a_partition_that_is_added_does_not_wait_for_the_others(tmp_path: Path) -> None:
    """The fetcher's request waits at the leader for a minute; a new leader would wait with it."""

    async def story(cluster: ReplicaCluster) -> None:
        cluster.create("idle")
        await until(lambda: cluster.waiting.get((2, 1)) == 1 and cluster.waiting.get((3, 1)) == 1)
        cluster.create()
        cluster.nodes[1].append(b"a")
        async with asyncio.timeout(30):
            await until(lambda: cluster.nodes[1].partition().high_watermark == 1)
        # And the others go on in the new session.
        cluster.nodes[1].append(b"x", topic="idle")
        async with asyncio.timeout(30):
            await until(lambda: cluster.nodes[1].partition("idle").high_watermark == 1)

    play(tmp_path, story, replica_fetch_wait_max_ms=60_000)


def test_a_leader_that_listens_elsewhere_is_found_there(tmp_path: Path) -> None:
    async def story(cluster: ReplicaCluster) -> None:
        cluster.create()
        cluster.nodes[1].append(b"a")
        await until(committed(cluster, 1))
        cluster.ports[1] = 9999
        cluster.nodes[1].append(b"b")
        cluster.apply(registration(1, port=9999))
        await until(committed(cluster, 2))

    play(tmp_path, story)


def test_one_that_nobody_leads_is_not_fetched(tmp_path: Path) -> None:
    async def story(cluster: ReplicaCluster) -> None:
        cluster.create()
        await until(lambda: bool(cluster.fetches))
        cluster.change(leader=-1)
        assert [len(node.fetchers) for node in cluster.nodes.values()] == [0, 0, 0]
        assert cluster.nodes[2].partition().error is ErrorCode.NOT_LEADER_OR_FOLLOWER
        cluster.change(leader=3)
        cluster.nodes[3].append(b"a")
        await until(committed(cluster, 1))

    play(tmp_path, story)


# Replicas come and go.


def test_a_partition_moves_to_other_brokers_while_it_is_written(tmp_path: Path) -> None:
    async def story(cluster: ReplicaCluster) -> None:
        cluster.create(replicas=(1, 2))
        first, second, third = cluster.nodes.values()
        expected: list[bytes] = []

        async def write(node: Node) -> None:
            for _ in range(5):
                expected.append(b"%d" % len(expected))
                node.append(expected[-1])
                await asyncio.sleep(0.001)

        await write(first)
        assert third.host.replicas.find(TOPIC, 0) is None
        directories = [cluster.nodes[2].host.logs.dirs[0].directory_id] * 3
        cluster.change(replicas=[1, 2, 3], directories=directories, adding_replicas=[3])
        await write(first)
        await until(lambda: isr(first) == {1, 2, 3})
        cluster.change(
            replicas=[2, 3], directories=directories[:2], isr=[2, 3], leader=2, adding_replicas=[]
        )
        assert first.host.replicas.find(TOPIC, 0) is None
        assert first.host.logs.get_log(TOPIC, 0) is None
        await write(second)
        await until(committed(cluster, 15, 2, 3))
        assert values(second.partition()) == values(third.partition()) == expected
        with pytest.raises(ApiError) as refused:
            first.host.replicas.get(TOPIC, 0)
        assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER

    play(tmp_path, story)


@pytest.mark.parametrize("mover", [1, 2])
def test_a_replica_moves_between_folders_while_it_is_copied(tmp_path: Path, mover: int) -> None:
    async def story(cluster: ReplicaCluster) -> None:
        cluster.create()
        first = cluster.nodes[1]
        host = cluster.nodes[mover].host
        for number in range(20):
            first.append(b"%d" % number)
        await until(committed(cluster, 20))
        partition = host.partition(TOPIC)
        before = partition.log.dir_state
        other = next(each for each in host.logs.dirs if each is not before)
        moves = LogMoves(host.logs, host.replicas, host.loop.clock.now_ms)
        moves.start(TOPIC, 0, other.path)
        number = 20
        while partition.log.dir_state is before:
            first.append(b"%d" % number)
            number += 1
            await asyncio.sleep(0)
        first.append(b"%d" % number)
        await until(committed(cluster, number + 1))
        assert partition.log.dir_state is other
        expected = [b"%d" % each for each in range(number + 1)]
        assert all(values(node.partition()) == expected for node in cluster.nodes.values())
        assert host.reported[-1] == (cluster.topic_id, 0, other.directory_id)
        await moves.stop()

    play(tmp_path, story, directories=("one", "two"))


def test_a_failed_folder_stops_its_replicas_and_no_others(tmp_path: Path) -> None:
    async def story(cluster: ReplicaCluster) -> None:
        cluster.create(config={"min.insync.replicas": "1"})
        cluster.create("other")
        first, second, _ = cluster.nodes.values()
        partition = second.partition()
        assert partition.log.dir_state is not second.partition("other").log.dir_state
        directory = partition.log.dir_state
        directory.fail("reading", OSError("broken"))  # type: ignore[attr-defined]
        second.host.replicas.on_log_dir_failed(directory)  # type: ignore[arg-type]
        assert partition.error is ErrorCode.KAFKA_STORAGE_ERROR
        cluster.change(isr=[1, 3])
        first.append(b"a")
        await until(committed(cluster, 1, 1, 3))
        first.append(b"x", topic="other")
        await until(lambda: second.partition("other").high_watermark == 1)
        assert partition.log.log_end_offset == 0
        # It stays so whatever the metadata says next.
        cluster.change(leader=3)
        assert partition.error is ErrorCode.KAFKA_STORAGE_ERROR

    play(tmp_path, story, directories=("one", "two"))


def test_a_whole_image_replaces_what_was_known(tmp_path: Path) -> None:
    """A node that was away for long gets a snapshot: what is not in it is not here any more."""

    async def story(cluster: ReplicaCluster) -> None:
        cluster.create()
        cluster.create("gone")
        cluster.create("elsewhere")
        cluster.nodes[1].append(b"a")
        await until(committed(cluster, 1))
        third = cluster.nodes[3].host
        held = third.image
        image = MetadataImage()
        image.brokers.update(held.brokers)
        for name in (TOPIC, "elsewhere"):
            topic = held.topics_by_name[name]
            state = topic.partitions[0]
            changes: dict[str, Any] = {"leader": 2, "leader_epoch": 1, "partition_epoch": 1}
            if name == "elsewhere":
                changes |= {"replicas": (1, 2), "isr": (1, 2), "directories": state.directories[:2]}
            copy = type(topic)(id=topic.id, name=name, partitions={0: state._replace(**changes)})
            image.topics_by_id[topic.id] = image.topics_by_name[name] = copy
        third.image = image
        third.replicas.apply(MetadataDelta(from_snapshot=True), image)
        assert [each.topic for each in third.replicas.partitions()] == [TOPIC]
        assert [log.topic for log in third.logs.logs()] == [TOPIC]
        for each in (1, 2):
            cluster.nodes[each].host.change_partition(cluster.topic_id, leader=2)
        cluster.nodes[2].append(b"b")
        await until(committed(cluster, 2))

    play(tmp_path, story)


def test_a_topic_is_deleted_while_it_is_copied(tmp_path: Path) -> None:
    async def story(cluster: ReplicaCluster) -> None:
        cluster.create()
        cluster.create("other")
        for number in range(3):
            cluster.nodes[1].append(b"%d" % number)
            await asyncio.sleep(0)
        for node in cluster.nodes.values():
            node.host.delete_topic(cluster.topic_id)
            assert node.host.replicas.find(TOPIC, 0) is None
        cluster.nodes[1].append(b"x", topic="other")
        await until(lambda: cluster.nodes[3].partition("other").high_watermark == 1)
        # Its name may be used again at once.
        cluster.create()
        cluster.nodes[1].append(b"new")
        await until(committed(cluster, 1))

    play(tmp_path, story)
