"""Decisions through the log: committed before answered, shared fsyncs, restarts, torn writes."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from moldau.broker.config import BrokerConfig
from moldau.broker.log.background import InlineBackground
from moldau.broker.log.disk import OsDisk
from moldau.broker.metadata.formatting import format_storage
from moldau.broker.metadata.machine.brokers import register_broker
from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.features import SUPPORTED_FEATURES
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import Endpoint
from moldau.broker.metadata.machine.producer_ids import allocate_producer_ids
from moldau.broker.metadata.machine.topics import create_topics, delete_topics
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.raft.machine.errors import MetadataError
from moldau.broker.raft.snapshots import SnapshotId, list_snapshots
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    AllocateProducerIdsRequest,
    BrokerRegistrationRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    FeatureLevelRecord,
)
from moldau.wire.uuids import uuid_from_text
from support.broker_decisions import unfence_broker

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
CONTROLLER = Endpoint(name="CONTROLLER", host="127.0.0.1", port=9093)
LOG = "__cluster_metadata-0/00000000000000000000.log"


class SlowBackground:
    """fsyncs end when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], object], Callable[[BaseException | None], None]]] = []
        self.count = 0

    async def run(self, work: Callable[..., Any], *args: Any) -> Any:
        return work(*args)

    def submit(
        self, work: Callable[[], object], done: Callable[[BaseException | None], None]
    ) -> None:
        self.count += 1
        self.waiting.append((work, done))

    def finish(self, error: BaseException | None = None) -> None:
        waiting, self.waiting = self.waiting, []
        for work, done in waiting:
            if error is None:
                work()
            done(error)


class Time:
    """The test's wall time; delays are the loop's, and what the test adds to them."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def now_ms(self) -> int:
        return self._node.now_ms

    def elapsed_ms(self) -> int:
        return round(asyncio.get_running_loop().time() * 1000) + self._node.added_ms

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Any:
        return asyncio.get_running_loop().call_later(delay_ms / 1000, callback)


class NoTransport:
    def channel(self, node_id: int, host: str, port: int, listener_name: str) -> Any:
        raise AssertionError("the only voter has nobody to call")


class Node:
    """A formatted folder and the shells started on it, one after another."""

    def __init__(self, path: Path, rules: Any, *, standalone: bool = True, **props: str) -> None:
        self.path = path
        self.rules = rules
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(path),
        } | props
        if standalone:
            settings["controller.quorum.bootstrap.servers"] = "127.0.0.1:9093"
        else:
            settings["controller.quorum.voters"] = "1@127.0.0.1:9093"
        self.config = BrokerConfig.from_properties(settings)
        self.random = random.Random(5)
        self.now_ms = 1_700_000_000_000
        self.added_ms = 0
        self.incarnation = 1000
        format_storage(
            self.config,
            CLUSTER_ID,
            standalone=standalone,
            random_uuid=lambda: UUID(bytes=self.random.randbytes(16), version=4),
            disk=OsDisk(),
            now_ms=self.now_ms,
        )

    def shell(self, background: Any = None) -> MetadataShell:
        lines = (self.path / "meta.properties").read_text().splitlines()
        meta = dict(line.split("=", 1) for line in lines if "=" in line)
        self.directory_id = uuid_from_text(meta["directory.id"])
        return MetadataShell(
            self.config,
            cluster_id=CLUSTER_ID,
            directory_id=self.directory_id,
            rules=self.rules,
            random=self.random,
            disk=OsDisk(),
            background=background or InlineBackground(),
            clock=Time(self),
            transport=NoTransport(),
            controller_endpoints=(CONTROLLER,),
        )

    async def register(self, shell: MetadataShell, *, previous_broker_epoch: int = -1) -> int:
        """Register the broker of this node as a new incarnation and unfence it; its epoch."""
        self.incarnation += 1
        request = BrokerRegistrationRequest(
            broker_id=1,
            cluster_id=CLUSTER_ID,
            incarnation_id=UUID(int=self.incarnation),
            listeners=[
                BrokerRegistrationRequest.Listener(name="PLAINTEXT", host="localhost", port=9092)
            ],
            features=[
                BrokerRegistrationRequest.Feature(
                    name=name,
                    min_supported_version=levels.min_version,
                    max_supported_version=levels.max_version,
                )
                for name, levels in SUPPORTED_FEATURES.items()
            ],
            log_dirs=[self.directory_id],
            previous_broker_epoch=previous_broker_epoch,
        )
        now_ms = Time(self).elapsed_ms()
        response = await shell.run(register_broker, request, now_ms=now_ms)
        self.broker_epoch = response.broker_epoch
        await shell.run(unfence_broker, broker_id=1, broker_epoch=response.broker_epoch)
        return self.broker_epoch

    async def start(self, shell: MetadataShell, *, previous_broker_epoch: int = -1) -> None:
        await shell.start()
        await self.register(shell, previous_broker_epoch=previous_broker_epoch)

    async def started(self, *, previous_broker_epoch: int = -1) -> MetadataShell:
        shell = self.shell()
        await self.start(shell, previous_broker_epoch=previous_broker_epoch)
        return shell


@pytest.fixture
def node(tmp_path: Path, new_world: Any) -> Node:
    return Node(tmp_path / "data", new_world().controller.rules)


def create(*names: str, partitions: int = 1) -> Callable[[Any], Any]:
    request = CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.CreatableTopic(
                name=name, num_partitions=partitions, replication_factor=1
            )
            for name in names
        ]
    )
    return lambda controller: create_topics(controller, request)


def delete(name: str) -> Callable[[Any], Any]:
    request = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=name)])
    return lambda controller: delete_topics(controller, request)


def run(main: Awaitable[Any]) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(main, 30)

    return asyncio.run(bounded())


@pytest.mark.parametrize("standalone", [True, False])
def test_topics_ids_and_epochs_survive_restarts(
    tmp_path: Path, new_world: Any, standalone: bool
) -> None:
    node = Node(tmp_path / "data", new_world().controller.rules, standalone=standalone)

    async def main() -> None:
        shell = await node.started()
        assert shell.leader_epoch == 1
        assert shell.image.features["metadata.version"] == 30
        assert shell.finalized_features.get("kraft.version") == (1 if standalone else None)
        first_epoch = node.broker_epoch
        created = await shell.run(create("a", "b", partitions=2))
        await shell.run(delete("b"))
        await shell.stop()

        again = await node.started(previous_broker_epoch=first_epoch)
        assert again.leader_epoch == 2
        assert list(again.image.topics_by_name) == ["a"]
        topic = again.image.topics_by_name["a"]
        assert topic.id == created.topics[0].topic_id
        assert [p.leader_epoch for p in topic.partitions.values()] == [0, 0]
        assert node.broker_epoch > first_epoch
        assert again.image.brokers[1].active
        assert again.high_watermark == again.raft.log.end_offset
        assert again.image == again.controller.image
        await again.stop()

        crashed = await node.started()
        topic = crashed.image.topics_by_name["a"]
        assert [p.leader_epoch for p in topic.partitions.values()] == [1, 1]
        await crashed.stop()

    run(main())


def test_listeners_hear_everything_once_and_in_order(node: Node) -> None:
    heard: list[Any] = []

    def listener(delta: MetadataDelta, image: MetadataImage) -> None:
        heard.append(
            (
                delta.from_snapshot,
                [change.topic.name for change in delta.topics.values()],
                [topic.name for topic in delta.deleted_topics.values()],
                sorted(image.topics_by_name),
            )
        )

    async def main() -> None:
        shell = node.shell()
        shell.subscribe(listener)
        await node.start(shell)
        await shell.run(create("a"))
        await shell.run(create("b"))
        await shell.run(delete("a"))
        late: list[Any] = []
        shell.subscribe(lambda delta, image: late.append((delta.from_snapshot, list(delta.topics))))
        assert late == [(True, list(shell.image.topics_by_id))]
        await shell.stop()

    run(main())
    assert heard == [
        (True, [], [], []),
        # What the controller writes first with the broker's registration, and its unfencing.
        (False, [], [], []),
        (False, [], [], []),
        (False, ["a"], [], ["a"]),
        (False, ["b"], [], ["a", "b"]),
        (False, [], ["a"], ["b"]),
    ]


def test_a_failing_listener_does_not_stop_the_others_and_is_named(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[int] = []

    def broken(delta: MetadataDelta, image: MetadataImage) -> None:
        raise ValueError("listener")

    async def main() -> None:
        shell = await node.started()
        shell.subscribe(broken, lambda delta, image: heard.append(len(image.topics_by_id)))
        await shell.run(create("a"))
        await shell.stop()

    run(main())
    assert heard == [0, 1]
    assert "broken failed" in caplog.text


def test_nothing_shows_before_it_is_synced_and_waiters_share_an_fsync(node: Node) -> None:
    background = SlowBackground()

    async def main() -> None:
        shell = node.shell(background)
        starting = asyncio.ensure_future(node.start(shell))
        await asyncio.sleep(0)
        while not starting.done():
            await asyncio.sleep(0)
            background.finish()
        # What the controller writes first shares the fsync of the registration.
        assert background.count == 2
        first = asyncio.ensure_future(shell.run(create("a")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        others = [asyncio.ensure_future(shell.run(create(f"t{i}"))) for i in range(50)]
        twin = asyncio.ensure_future(shell.run(create("a")))
        for _ in range(5):
            await asyncio.sleep(0)
        # Decided in order on the controller's image, but neither answered nor published.
        assert "t49" in shell.controller.image.topics_by_name
        assert shell.image.topics_by_name == {}
        assert not first.done()
        assert not twin.done()
        while not all(task.done() for task in (first, twin, *others)):
            background.finish()
            for _ in range(3):
                await asyncio.sleep(0)
        assert background.count == 4
        assert first.result().topics[0].error_code == 0
        assert twin.result().topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        assert len(shell.image.topics_by_name) == 51
        await shell.stop()

    run(main())


def test_a_cancelled_request_still_takes_effect(node: Node) -> None:
    background = SlowBackground()

    async def main() -> None:
        shell = node.shell(background)
        starting = asyncio.ensure_future(node.start(shell))
        while not starting.done():
            await asyncio.sleep(0)
            background.finish()
        gone = asyncio.ensure_future(shell.run(create("a")))
        await asyncio.sleep(0)
        gone.cancel()
        other = asyncio.ensure_future(shell.run(create("b")))
        while not other.done():
            await asyncio.sleep(0)
            background.finish()
        assert gone.cancelled()
        assert sorted(shell.image.topics_by_name) == ["a", "b"]
        await shell.stop()

    run(main())


def test_a_failed_fsync_answers_nobody_and_ends_it(node: Node) -> None:
    background = SlowBackground()
    failures: list[BaseException] = []

    async def main() -> None:
        shell = node.shell(background)
        shell._on_failure = failures.append
        starting = asyncio.ensure_future(node.start(shell))
        while not starting.done():
            await asyncio.sleep(0)
            background.finish()
        waiting = asyncio.ensure_future(shell.run(create("a")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        background.finish(OSError("disk gone"))
        with pytest.raises(ApiError) as caught:
            await waiting
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        with pytest.raises(ApiError):
            await shell.run(create("b"))
        assert shell.image.topics_by_name == {}
        assert len(failures) == 1
        await shell.stop()

    run(main())


def test_a_refused_decision_leaves_no_trace(node: Node) -> None:
    async def main() -> None:
        shell = await node.started()
        end = shell.raft.log.end_offset
        with pytest.raises(ApiError) as caught:
            await shell.run(
                allocate_producer_ids, AllocateProducerIdsRequest(broker_id=9, broker_epoch=0)
            )
        assert caught.value.code == ErrorCode.STALE_BROKER_EPOCH
        assert shell.raft.log.end_offset == end
        await shell.stop()
        with pytest.raises(ApiError) as caught:
            await shell.run(create("late"))
        assert caught.value.code == ErrorCode.NOT_CONTROLLER

    run(main())


def test_snapshots_replace_the_log_and_old_ones_go(node: Node) -> None:
    async def main() -> None:
        shell = await node.started()
        await shell.run(create("a", partitions=20))
        assert shell._snapshotter is not None
        first = await shell._snapshotter.write()
        await shell.run(create("b"))
        second = await shell._snapshotter.write()
        assert first is not None
        assert second is not None
        await shell.run(create("c"))
        expected = shell.image.copy()
        log = shell.raft.log
        assert log.snapshots == [SnapshotId(0, 0), first, second]
        assert log.clean(node.now_ms) == 0
        assert log.clean(node.now_ms + 10**12) == 2
        assert log.snapshots == [second]
        assert log.start_offset == second.end_offset
        await shell.stop()

        again = node.shell()
        await again.start()
        await again.run(lambda controller: Decision((), None))
        assert again.image == expected
        assert again.voters == shell.voters
        assert again.kraft_version == 1
        await again.stop()

    run(main())


def test_a_snapshot_is_due_by_bytes_and_by_age(tmp_path: Path, new_world: Any) -> None:
    rules = new_world().controller.rules
    node = Node(
        tmp_path / "data",
        rules,
        **{"metadata.log.max.record.bytes.between.snapshots": "3000"},
    )

    async def main() -> None:
        shell = await node.started()
        assert len(shell.raft.log.snapshots) == 1
        await shell.run(create("a", partitions=40))
        assert shell._snapshotter is not None
        await shell._snapshotter.finished()
        assert len(shell.raft.log.snapshots) == 2
        assert not shell._snapshotter.is_due()
        node.added_ms += 3_600_001
        assert not shell._snapshotter.is_due()
        await shell.run(create("b"))
        await shell._snapshotter.finished()
        assert len(shell.raft.log.snapshots) == 3
        await shell.stop()

    run(main())


def test_a_stop_leaves_the_next_start_few_records_to_replay(node: Node) -> None:
    async def main() -> None:
        shell = await node.started()
        for name in ("a", "b", "c"):
            await shell.run(create(name, partitions=400))
        expected, end_offset = shell.image.copy(), shell.high_watermark
        await shell.stop()
        assert node_snapshots(node)[-1].end_offset == end_offset

        again = node.shell()
        await again.start()
        assert again.image == expected
        await again.run(create("d"))
        await again.stop()
        # One more topic is not worth another.
        assert node_snapshots(node)[-1].end_offset == end_offset

    run(main())


@pytest.mark.parametrize("set_by_ms", [3_600_001, -86_400_000])
def test_a_wall_clock_that_is_set_does_not_change_when_a_snapshot_is_due(
    node: Node, set_by_ms: int
) -> None:
    async def main() -> None:
        shell = await node.started()
        count = len(shell.raft.log.snapshots)
        node.now_ms += set_by_ms
        await shell.run(create("a"))
        assert shell._snapshotter is not None
        await shell._snapshotter.finished()
        assert len(shell.raft.log.snapshots) == count
        node.added_ms += 3_600_001
        await shell.run(create("b"))
        await shell._snapshotter.finished()
        assert len(shell.raft.log.snapshots) == count + 1
        await shell.stop()

    run(main())


def node_snapshots(node: Node) -> list[SnapshotId]:
    return list_snapshots(OsDisk(), str(node.path / "__cluster_metadata-0"))


def test_a_torn_last_batch_is_cut_and_what_was_answered_before_it_stays(node: Node) -> None:
    async def write() -> list[int]:
        shell = await node.started()
        sizes = []
        for name in ("a", "b", "c"):
            await shell.run(create(name))
            sizes.append((node.path / LOG).stat().st_size)
        await shell.stop()
        return sizes

    sizes = run(write())
    whole = node.path.with_name("whole")
    shutil.copytree(node.path, whole)

    async def reopen() -> list[str]:
        shell = await node.started()
        names = list(shell.image.topics_by_name)
        await shell.run(create("after"))
        await shell.stop()
        return names

    for cut in range(sizes[0], sizes[2] + 1, 13):
        shutil.rmtree(node.path)
        shutil.copytree(whole, node.path)
        with (node.path / LOG).open("r+b") as file:
            file.truncate(cut)
        complete = sum(size <= cut for size in sizes)
        assert run(reopen()) == ["a", "b", "c"][:complete], cut


def test_a_voters_folder_on_another_disk_is_refused(node: Node) -> None:
    async def main() -> None:
        shell = await node.started()
        await shell.stop()
        stranger = MetadataShell(
            node.config,
            cluster_id=CLUSTER_ID,
            directory_id=UUID(int=4242),
            rules=node.rules,
            random=node.random,
            disk=OsDisk(),
            background=InlineBackground(),
            clock=Time(node),
            transport=NoTransport(),
            controller_endpoints=(CONTROLLER,),
        )
        with pytest.raises(
            MetadataError, match=r"directory id .* Restore the former log directory"
        ):
            await stranger.start()

    run(main())


def test_a_newer_metadata_version_is_refused(node: Node) -> None:
    failures: list[BaseException] = []

    async def main() -> None:
        shell = await node.started()
        shell._on_failure = failures.append
        record = FeatureLevelRecord(name="metadata.version", feature_level=31)
        with pytest.raises(ApiError, match=r"metadata\.version 31"):
            await shell.run(lambda controller: Decision((record,), None))
        assert len(failures) == 1
        await shell.stop()
        with pytest.raises(MetadataError, match=r"metadata\.version 31.*newer"):
            await node.started()

    run(main())
