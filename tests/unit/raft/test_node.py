"""Nodes of a quorum over real logs and Kafka's messages."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from moldau.broker.log.background import InlineBackground
from moldau.broker.log.disk import OsDisk
from moldau.broker.raft.log import RaftLog, RaftLogConfig
from moldau.broker.raft.machine.batches import MetadataBatch, encode_records
from moldau.broker.raft.machine.errors import MetadataError
from moldau.broker.raft.machine.quorum import events as e
from moldau.broker.raft.machine.rpcs import Peer
from moldau.broker.raft.machine.settings import QuorumSettings
from moldau.broker.raft.machine.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet
from moldau.broker.raft.node import RaftNode
from moldau.broker.raft.service import RaftService
from moldau.broker.raft.snapshots import Snapshot, SnapshotId, snapshot_parts
from moldau.clock import LoopClock
from moldau.peers.channel import ChannelError
from moldau.wire.apis import ApiKey
from moldau.wire.codec import decode, encode
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    AddRaftVoterRequest,
    ApiVersionsResponse,
    DescribeQuorumRequest,
    FeatureLevelRecord,
    RemoveRaftVoterRequest,
    VoteRequest,
)
from moldau.wire.records import encode_batch

LISTENER = "CONTROLLER"
CLUSTER = "the-cluster"
METADATA_VERSION = 29


class Network:
    """Calls reach the service at a port, through bytes, unless it is down."""

    def __init__(self) -> None:
        self.services: dict[int, RaftService] = {}

    def channel(self, node_id: int, host: str, port: int, listener_name: str) -> Any:
        return _Channel(self, port)


class _Channel:
    def __init__(self, network: Network, port: int) -> None:
        self._network = network
        self._port = port

    async def call(
        self, key: ApiKey, request: Message, *, timeout_ms: int, max_version: int | None = None
    ) -> Message:
        await asyncio.sleep(0)
        service = self._network.services.get(self._port)
        if service is None:
            raise ChannelError(f"{self._port} is down")
        version = type(request).HIGHEST_VERSION
        message: Any = decode(type(request), version, encode(request, version))
        try:
            response = await asyncio.wait_for(_serve(service, key, message), timeout_ms / 1000)
        except TimeoutError as error:
            raise ChannelError("timed out") from error
        return decode(type(response), version, encode(response, version))

    def close(self) -> None:
        pass


async def _serve(service: RaftService, key: ApiKey, message: Any) -> Message:
    match key:
        case ApiKey.VOTE:
            return await service.vote(message, LISTENER)
        case ApiKey.BEGIN_QUORUM_EPOCH:
            return await service.begin_quorum_epoch(message, LISTENER)
        case ApiKey.END_QUORUM_EPOCH:
            return await service.end_quorum_epoch(message, LISTENER)
        case ApiKey.FETCH:
            return await service.fetch(message, LISTENER)
        case ApiKey.FETCH_SNAPSHOT:
            return await service.fetch_snapshot(message, LISTENER)
        case ApiKey.UPDATE_RAFT_VOTER:
            return await service.update_voter(message, LISTENER)
        case _:
            feature = ApiVersionsResponse.SupportedFeatureKey(
                name="kraft.version", min_version=0, max_version=1
            )
            return ApiVersionsResponse(supported_features=[feature])


class Listener:
    def __init__(self) -> None:
        self.names: list[str] = []
        self.leader = (0, -1)
        self.snapshots: list[SnapshotId] = []
        self.failure: BaseException | None = None

    def on_committed(self, batches: Sequence[MetadataBatch]) -> None:
        self.names += [record.name for batch in batches for record in batch.records]

    def on_snapshot(self, snapshot_id: SnapshotId, snapshot: Snapshot) -> None:
        self.names = [record.name for record in snapshot.records]
        self.snapshots.append(snapshot_id)

    def on_leader(self, epoch: int, leader_id: int) -> None:
        self.leader = (epoch, leader_id)

    def on_step_down(self, epoch: int) -> None:
        pass

    def on_failure(self, error: BaseException) -> None:
        self.failure = error


def voter(node_id: int, *, dynamic: bool) -> Voter:
    end = VoterEndpoint(name=LISTENER, host="localhost", port=node_id)
    key = ReplicaKey(node_id, UUID(int=node_id * 7)) if dynamic else ReplicaKey(node_id)
    return Voter(key=key, endpoints=(end,))


class Cluster:
    def __init__(self, folder: Path, count: int, *, dynamic: bool) -> None:
        self.folder = folder
        self.network = Network()
        self.nodes: dict[int, RaftNode] = {}
        self.listeners: dict[int, Listener] = {}
        self.dynamic = dynamic
        self.voters = VoterSet.of(voter(i, dynamic=dynamic) for i in range(1, count + 1))
        if dynamic:
            for node_id in self.voters.voters:
                directory = folder / str(node_id) / "__cluster_metadata-0"
                directory.mkdir(parents=True)
                parts = snapshot_parts(
                    (),
                    epoch=0,
                    now_ms=1,
                    metadata_version=METADATA_VERSION,
                    last_contained_log_timestamp=1,
                    kraft_version=1,
                    voters=self.voters,
                )
                (directory / SnapshotId(0, 0).file_name).write_bytes(b"".join(parts))

    def start(self, node_id: int, background: Any = None) -> RaftNode:
        log = RaftLog.open(
            str(self.folder / str(node_id)),
            disk=OsDisk(),
            background=background or InlineBackground(),
            config=RaftLogConfig(),
            now_ms=1,
        )
        end = voter(node_id, dynamic=True)
        self.listeners[node_id] = Listener()
        node = RaftNode(
            log,
            local=end,
            static_voters=VoterSet() if self.dynamic else self.voters,
            newest_snapshot=log.latest_snapshot(),
            settings=QuorumSettings(
                listener_name=LISTENER,
                election_timeout_ms=200,
                fetch_timeout_ms=4000,
                election_backoff_max_ms=50,
                request_timeout_ms=8000,
                fetch_max_wait_ms=50,
                fetch_snapshot_max_bytes=100,
                bootstrap=tuple(
                    Peer(id=-2 - i, host="localhost", port=i) for i in (1, 2, 3) if i != node_id
                ),
            ),
            cluster_id=CLUSTER,
            transport=self.network,
            clock=LoopClock(),
            random=random.Random(node_id),
            listener=self.listeners[node_id],
        )
        self.nodes[node_id] = node
        self.network.services[node_id] = RaftService(node)
        node.start()
        return node

    async def stop(self, node_id: int) -> None:
        node = self.nodes.pop(node_id)
        self.network.services.pop(node_id)
        await node.stop()
        node.log.close()

    async def leader(self) -> RaftNode:
        def found() -> RaftNode | None:
            return next(
                (n for n in self.nodes.values() if n.machine.established_high_watermark), None
            )

        leader: RaftNode = await until(found)
        return leader

    def service(self, node: RaftNode) -> RaftService:
        return self.network.services[node.machine.local.id]


async def until(found: Callable[[], Any]) -> Any:
    """What `found` gives as soon as it gives anything."""
    deadline = asyncio.get_running_loop().time() + 60
    while True:
        value = found()
        if value:
            return value
        assert asyncio.get_running_loop().time() < deadline, "it never became true"
        await asyncio.sleep(0.005)


def write(node: RaftNode, name: str) -> int:
    data = encode_records(
        [FeatureLevelRecord(name=name, feature_level=1)],
        base_offset=node.log.end_offset,
        epoch=node.epoch,
        now_ms=1,
        metadata_version=METADATA_VERSION,
    )
    return node.append(data, epoch=node.epoch)


@asynccontextmanager
async def cluster(folder: Path, count: int, *, dynamic: bool) -> AsyncIterator[Cluster]:
    made = Cluster(folder, count, dynamic=dynamic)
    for node_id in range(1, count + 1):
        made.start(node_id)
    try:
        yield made
    finally:
        for listener in made.listeners.values():
            assert listener.failure is None
        for node_id in list(made.nodes):
            await made.stop(node_id)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(scenario())  # type: ignore[arg-type]


@pytest.mark.parametrize("dynamic", [False, True])
def test_what_a_majority_has_survives_its_leader(tmp_path: Path, dynamic: bool) -> None:
    async def scenario() -> None:
        async with cluster(tmp_path, 3, dynamic=dynamic) as nodes:
            first = await nodes.leader()
            write(first, "a")
            await until(lambda: all(x.names == ["a"] for x in nodes.listeners.values()))
            with pytest.raises(ApiError) as refused:
                write(next(n for n in nodes.nodes.values() if n is not first), "b")
            assert refused.value.code is ErrorCode.NOT_CONTROLLER
            first_id = first.machine.local.id
            await nodes.stop(first_id)
            second = await nodes.leader()
            assert second.epoch > first.epoch
            write(second, "c")
            nodes.start(first_id)
            await until(lambda: all(x.names == ["a", "c"] for x in nodes.listeners.values()))
            quorum = nodes.service(second).describe_quorum(_describe())
            partition = quorum.topics[0].partitions[0]
            assert partition.leader_id == second.machine.local.id
            assert {each.replica_id for each in partition.current_voters} == {1, 2, 3}
            assert partition.observers == []

    run(scenario)


def _describe() -> DescribeQuorumRequest:
    partition = DescribeQuorumRequest.PartitionData(partition_index=0)
    topic = DescribeQuorumRequest.TopicData(topic_name="__cluster_metadata", partitions=[partition])
    return DescribeQuorumRequest(topics=[topic])


def test_a_new_voter_joins_and_the_first_leaves(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with cluster(tmp_path, 1, dynamic=True) as nodes:
            first = await nodes.leader()
            write(first, "a")
            nodes.start(2)
            await until(lambda: nodes.listeners[2].names == ["a"])
            added = await nodes.service(first).add_voter(_addition(2))
            assert added.error_code == ErrorCode.NONE, added.error_message
            again = await nodes.service(first).add_voter(_addition(2))
            assert again.error_code == ErrorCode.DUPLICATE_VOTER
            unknown = await nodes.service(first).remove_voter(_removal(3))
            assert unknown.error_code == ErrorCode.VOTER_NOT_FOUND
            removed = await nodes.service(first).remove_voter(_removal(1))
            assert removed.error_code == ErrorCode.NONE, removed.error_message
            second = await until(lambda: nodes.nodes[2] if nodes.nodes[2].is_leader else None)
            write(second, "b")
            await until(lambda: nodes.listeners[1].names == ["a", "b"])
            assert list(second.machine.voters.voters) == [2]

    run(scenario)


def _addition(node_id: int) -> AddRaftVoterRequest:
    listener = AddRaftVoterRequest.Listener(name=LISTENER, host="localhost", port=node_id)
    return AddRaftVoterRequest(
        cluster_id=CLUSTER,
        timeout_ms=60_000,
        voter_id=node_id,
        voter_directory_id=voter(node_id, dynamic=True).key.directory_id,
        listeners=[listener],
    )


def _removal(node_id: int) -> RemoveRaftVoterRequest:
    directory = voter(node_id, dynamic=True).key.directory_id
    return RemoveRaftVoterRequest(
        cluster_id=CLUSTER, voter_id=node_id, voter_directory_id=directory
    )


def test_who_comes_late_begins_with_a_snapshot(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with cluster(tmp_path, 1, dynamic=False) as nodes:
            leader = await nodes.leader()
            end_offset = [write(leader, name) for name in "abc"][-1]
            await until(lambda: leader.high_watermark >= end_offset)
            snapshot_id = SnapshotId(end_offset, leader.epoch)
            writer = leader.log.start_snapshot(snapshot_id)
            records = [FeatureLevelRecord(name=name, feature_level=1) for name in "abc"]
            for part in snapshot_parts(
                records,
                epoch=leader.epoch,
                now_ms=1,
                metadata_version=METADATA_VERSION,
                last_contained_log_timestamp=1,
            ):
                writer.append(part)
            await leader.log.finish_snapshot(writer, snapshot_id)
            write(leader, "d")
            late = nodes.start(2)
            await until(lambda: nodes.listeners[2].names == ["a", "b", "c", "d"])
            assert nodes.listeners[2].snapshots == [snapshot_id]
            assert late.log.start_offset == end_offset

    run(scenario)


def test_another_cluster_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with cluster(tmp_path, 1, dynamic=False) as nodes:
            node = await nodes.leader()
            service = nodes.service(node)
            stranger = await service.vote(VoteRequest(cluster_id="other"), LISTENER)
            assert stranger.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
            empty = await service.vote(VoteRequest(cluster_id=CLUSTER), LISTENER)
            assert empty.error_code == ErrorCode.INVALID_REQUEST

    run(scenario)


class SlowDisk:
    """fsyncs end when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], object], Callable[[BaseException | None], None]]] = []

    async def run(self, work: Callable[..., Any], *args: Any) -> Any:
        return work(*args)

    def submit(
        self, work: Callable[[], object], done: Callable[[BaseException | None], None]
    ) -> None:
        self.waiting.append((work, done))

    async def finish(self) -> None:
        waiting, self.waiting = self.waiting, []
        for work, done in waiting:
            work()
            done(None)
        for _ in range(5):
            await asyncio.sleep(0)


def test_a_sync_proves_nothing_of_what_was_cut_while_it_ran(tmp_path: Path) -> None:
    async def scenario() -> None:
        nodes = Cluster(tmp_path, 1, dynamic=False)
        disk = SlowDisk()
        node = nodes.start(1, background=disk)
        await asyncio.sleep(0)
        await disk.finish()
        before = node.machine.state.synced_offset
        assert before == node.log.end_offset == node.high_watermark
        write(node, "a")
        write(node, "b")
        await asyncio.sleep(0)
        assert len(disk.waiting) == 1
        # As when another leader says so; then something else comes in its place.
        node._perform(e.TruncateTo(before))
        write(node, "c")
        await disk.finish()
        assert node.machine.state.synced_offset == before
        assert nodes.listeners[1].names == []
        await disk.finish()
        assert node.machine.state.synced_offset == before + 1
        assert nodes.listeners[1].names == ["c"]
        assert nodes.listeners[1].failure is None
        await nodes.stop(1)

    run(scenario)


def test_a_record_of_a_newer_version_ends_the_node(tmp_path: Path) -> None:
    async def scenario() -> None:
        nodes = Cluster(tmp_path, 1, dynamic=False)
        node = nodes.start(1)
        unknown = encode_batch(
            [(None, b"\x01\xff\x7f\x00", 1, ())],
            base_offset=node.log.end_offset,
            partition_leader_epoch=1,
        )
        damaged = bytearray(unknown)
        damaged[-1] ^= 1
        end_offset = node.log.end_offset
        node._append_fetched(bytes(damaged))
        with pytest.raises(MetadataError, match="newer version"):
            node._append_fetched(unknown)
        assert node.log.end_offset == end_offset
        await nodes.stop(1)

    run(scenario)
