"""Nodes that do not belong, folders that are not theirs, a quorum without its majority.

Such a node refuses to start, or serves nothing, says in one line what to do, and overwrites
nothing; the cluster goes on. `--against-kafka` runs the same against Apache Kafka, whose words are
its own.
"""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.wire.errors import ErrorCode
from moldau.wire.messages import FeatureLevelRecord
from moldau.wire.record_values import encode_metadata_record
from moldau.wire.records import encode_batch, iterate_headers
from support import asking
from support.cluster import (
    BROKER,
    CONTROLLER,
    SEPARATE,
    ClusterNode,
    ClusterUnderTest,
    Shape,
    always_whole,
    cluster_for,
)
from support.processes import write_properties
from support.raw import RawConnection
from support.scenarios.members import Place
from support.scenarios.workers import write

TOPIC = "kept"
BATCH = encode_batch([(None, b"value", time.time_ns() // 1_000_000, ())])
OTHER_CLUSTER = "T3RoZXJDbHVzdGVyMDAwMA"


@pytest.fixture(scope="module")
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterUnderTest]:
    with cluster_for(request, tmp_path_factory.mktemp("cluster")) as cluster:
        cluster.create_topic(TOPIC, 3)
        write(cluster.bootstrap, [Place(TOPIC, index) for index in range(3)], 30)
        yield cluster


@pytest.fixture
def cluster(shared: ClusterUnderTest) -> Iterator[ClusterUnderTest]:
    with always_whole(shared) as cluster:
        yield cluster


def newcomer(
    cluster: ClusterUnderTest, folder: Path, node_id: int, cluster_id: str, **settings: str
) -> ClusterNode:
    """A broker with a folder of its own that wants to join; formatted, not started."""
    node = ClusterNode(node_id, (BROKER,), cluster.kind, folder, with_proxy=False)
    port = node.listeners["PLAINTEXT"]
    model = cluster.nodes[1].properties
    node.properties = model | {
        "process.roles": BROKER,
        "node.id": str(node_id),
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": str(node.data),
        "initial.broker.registration.timeout.ms": "4000",
        **settings,
    }
    write_properties(node.config, node.properties)
    node.format("--no-initial-controllers", cluster_id=cluster_id)
    return node


def said_by(node: ClusterNode) -> str:
    """All that a node printed."""
    return node.log.read_text(errors="replace")


def check_last_line(node: ClusterNode, *patterns: str) -> None:
    """The line that an operator reads first has all of these; Kafka has its own words for them."""
    if node.kind == "moldau":
        lines = said_by(node).strip().splitlines()
        assert "Traceback" not in said_by(node)
        for pattern in patterns:
            assert re.search(pattern, lines[-1]), f"{pattern} is not in {lines[-1]!r}"


def content_of(folder: Path) -> Mapping[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def changed_files(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def check_serving(cluster: ClusterUnderTest) -> None:
    """Every partition takes records, though its leader may just be moving."""

    def taken(index: int) -> bool:
        with RawConnection(cluster.nodes[cluster.leader(TOPIC, index)].port) as to:
            return bool(asking.produce(to, TOPIC, index, BATCH).error_code == ErrorCode.NONE)

    for index in range(3):
        cluster.eventually(lambda index=index: taken(index), what=f"{TOPIC}-{index} is served")


def test_a_second_broker_with_the_same_id(cluster: ClusterUnderTest, tmp_path: Path) -> None:
    taken = cluster.others(cluster.active_controller())[0]
    node = newcomer(cluster, tmp_path, taken, "MkU3OEVBNTcwNTJENDM2Qg")
    node.spawn()
    try:
        assert node.ends() != 0
    finally:
        node.kill()
    check_last_line(node, rf"\b{taken}\b", "DUPLICATE_BROKER_REGISTRATION|same id", "node.id|stop")
    # The one that was there is still the one that clients are sent to.
    cluster.wait_until_whole()
    check_serving(cluster)


def test_a_node_of_another_cluster(cluster: ClusterUnderTest, tmp_path: Path) -> None:
    node = newcomer(cluster, tmp_path, 7, OTHER_CLUSTER)
    node.spawn()
    try:
        assert node.ends() != 0
    finally:
        node.kill()
    check_last_line(node, OTHER_CLUSTER, "cluster", "format|controller.quorum")
    cluster.wait_for_brokers()
    check_serving(cluster)


@pytest.mark.long("one folder twice; test_scripts refuses it on one node")
def test_a_node_is_started_twice(cluster: ClusterUnderTest) -> None:
    """With the same file: the folder is in use, and so are the ports."""
    original = cluster.nodes[2]
    twin = ClusterNode(2, original.roles, original.kind, original.folder, with_proxy=False)
    twin.log = original.folder / "twin.log"
    twin.spawn()
    try:
        assert twin.ends() != 0
    finally:
        twin.kill()
    check_last_line(twin, "in use|lock", "[Ss]top|another")
    check_serving(cluster)


def started_in_vain(cluster: ClusterUnderTest, node_id: int, *command: str) -> ClusterNode:
    """A node that must refuse to start."""
    node = cluster.nodes[node_id]
    kept = node.command
    node.command = list(command) or kept
    node.spawn()
    try:
        assert node.ends() != 0, said_by(node)
    finally:
        node.kill()
        node.command = kept
    return node


def test_a_deleted_data_folder(cluster: ClusterUnderTest) -> None:
    """A voter that formatted itself anew would have forgotten its vote: it must not."""
    cluster.stop(3)
    aside = cluster.nodes[3].folder / "aside"
    data = cluster.nodes[3].data
    data.rename(aside)
    try:
        node = started_in_vain(cluster, 3)
        check_last_line(node, re.escape(str(data)), "format")
        if cluster.kind == "moldau":
            start = [sys.executable, "-m", "moldau.cli", "start", str(node.config)]
            check_last_line(started_in_vain(cluster, 3, *start), "format")
        assert not data.exists() or content_of(data) == {}
    finally:
        shutil.rmtree(data, ignore_errors=True)
        aside.rename(data)
    cluster.start_node(3)
    cluster.wait_until_whole()
    check_serving(cluster)


@pytest.mark.long("a mix-up of folders; that of another cluster is refused above")
def test_the_data_folder_of_another_node(cluster: ClusterUnderTest) -> None:
    cluster.stop(3)
    own, others = cluster.nodes[3].data, cluster.folder / "copy-of-node-1"
    # A copy, as from a backup that was mixed up: node 1 works on meanwhile.
    shutil.copytree(cluster.nodes[1].data, others, ignore=shutil.ignore_patterns("__*", TOPIC))
    aside = cluster.nodes[3].folder / "aside"
    own.rename(aside)
    others.rename(own)
    before = content_of(own)
    try:
        node = started_in_vain(cluster, 3)
        check_last_line(node, re.escape(str(own)), r"\b1\b", r"\b3\b", "node.id|folder|log.dirs")
        assert changed_files(before, content_of(own)) == set()
    finally:
        shutil.rmtree(own)
        aside.rename(own)
    cluster.start_node(3)
    cluster.wait_until_whole()
    check_serving(cluster)


@pytest.mark.long("a mix-up of folders; that of another cluster is refused above")
def test_folders_of_two_clusters_in_one_node(cluster: ClusterUnderTest) -> None:
    cluster.stop(3)
    node = cluster.nodes[3]
    foreign = cluster.folder / "foreign"
    foreign.mkdir()
    meta = (node.data / "meta.properties").read_text()
    meta = meta.replace("MkU3OEVBNTcwNTJENDM2Qg", OTHER_CLUSTER)
    meta = re.sub(r"directory.id=.*", "directory.id=Rm9yZWlnbkRpcmVjdG9yeQ", meta)
    (foreign / "meta.properties").write_text(meta)
    before = {**content_of(foreign), **content_of(node.data)}
    write_properties(node.config, node.properties | {"log.dirs": f"{node.data},{foreign}"})
    try:
        started_in_vain(cluster, 3)
        check_last_line(node, re.escape(str(foreign)), OTHER_CLUSTER)
        assert changed_files(before, {**content_of(foreign), **content_of(node.data)}) == set()
    finally:
        write_properties(node.config, node.properties)
        shutil.rmtree(foreign)
    cluster.start_node(3)
    cluster.wait_until_whole()


def test_one_folder_of_several_is_empty(cluster: ClusterUnderTest) -> None:
    """Perhaps a disk that is not mounted: what would be written there is not meant to be there."""
    cluster.stop(3)
    node = cluster.nodes[3]
    empty = cluster.folder / "empty"
    empty.mkdir()
    before = content_of(node.data)
    write_properties(node.config, node.properties | {"log.dirs": f"{node.data},{empty}"})
    try:
        started_in_vain(cluster, 3)
        check_last_line(node, re.escape(str(empty)), "meta.properties", "format|mount")
        assert content_of(empty) == {}
        assert changed_files(before, content_of(node.data)) == set()
    finally:
        write_properties(node.config, node.properties)
        shutil.rmtree(empty)
    cluster.start_node(3)
    cluster.wait_until_whole()


NEWER = {
    "metadata.version": encode_metadata_record(
        FeatureLevelRecord(name="metadata.version", feature_level=999), 0
    ),
    # A frame of version 1, and a record type that no version here knows.
    "unknown record": bytes([1, 0xC8, 0x01, 0]) + b"\x00",
}


@pytest.mark.parametrize("newer", NEWER)
def test_a_metadata_log_of_a_newer_version(
    request: pytest.FixtureRequest, tmp_path: Path, newer: str
) -> None:
    """As after a downgrade of the software; the log is left for the newer one."""
    shape = Shape(roles={1: (BROKER, CONTROLLER)})
    settings = {
        "offsets.topic.replication.factor": "1", "default.replication.factor": "1",
        "min.insync.replicas": "1",
    }  # fmt: skip
    with cluster_for(request, tmp_path, settings, shape) as cluster:
        with RawConnection(cluster.nodes[1].port) as to:
            asking.create_topic(to, TOPIC)
        cluster.stop(1)
        folder = cluster.nodes[1].data / "__cluster_metadata-0"
        segment = max(folder.glob("*.log"))
        written = segment.read_bytes()
        *_, (_, last) = iterate_headers(written)
        batch = encode_batch(
            [(None, NEWER[newer], 1_700_000_000_000, ())],
            base_offset=last.next_offset,
            partition_leader_epoch=last.partition_leader_epoch,
        )
        segment.write_bytes(written + batch)
        node = started_in_vain(cluster, 1)
        check_last_line(
            node,
            "metadata.version|record" if newer == "metadata.version" else "record|type",
            "newer|upgrade|later",
        )
        # Nothing is overwritten; a new leader may have begun its epoch behind it.
        assert segment.read_bytes()[: len(written) + len(batch)] == written + batch


@pytest.fixture
def separate(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ClusterUnderTest]:
    with cluster_for(request, tmp_path, shape=SEPARATE) as cluster:
        cluster.create_topic(TOPIC, 3)
        yield cluster


def test_a_quorum_without_its_majority(separate: ClusterUnderTest) -> None:
    """Nothing can be decided, but what was decided is served; with one more it goes on."""
    cluster = separate
    active = cluster.active_controller()
    others = [each for each in cluster.controllers if each != active]
    cluster.kill(*others)
    # It steps down: alone it may not say what holds.
    cluster.eventually(lambda: cluster.quorum() is None, what="nobody leads the quorum")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    created = admin.create_topics([NewTopic("never", 1, 3)], request_timeout=4)
    with pytest.raises(KafkaException) as refused:
        created["never"].result(30)
    assert refused.value.args[0].code() in (
        KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT, KafkaError.NOT_CONTROLLER,
    )  # fmt: skip
    places = [Place(TOPIC, index) for index in range(3)]
    write(cluster.bootstrap, places, 30)
    assert all(state.is_whole for state in cluster.partitions(TOPIC).values())
    for index in range(3):
        with RawConnection(cluster.nodes[cluster.leader(TOPIC, index)].port) as to:
            assert len(asking.fetch_everything(to, TOPIC, index)) == 10
    cluster.start_node(others[0])
    cluster.eventually(lambda: cluster.quorum() is not None, what="the quorum has a leader")
    cluster.create_topic("again")
    # A new one decides about brokers as before.
    victim = cluster.leader(TOPIC)
    cluster.kill(victim)
    cluster.wait_for_leader(TOPIC, not_in=[victim])


@pytest.mark.long("nodes in both roles; a quorum without its majority is shown above")
def test_two_of_three_combined_nodes_are_gone(cluster: ClusterUnderTest) -> None:
    """Too few are in sync for acks=all; whatever was acknowledged is there when they return."""
    left = cluster.leader(TOPIC)
    gone = cluster.others(left)
    cluster.kill(*gone)
    with RawConnection(cluster.nodes[left].port, timeout=60) as to:
        answer = asking.produce(to, TOPIC, 0, BATCH, timeout_ms=2_000)
        assert answer.error_code in (
            ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS,
            ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        )  # fmt: skip
        # What is committed can still be read there.
        assert asking.fetch(to, TOPIC, 0).error_code == ErrorCode.NONE
    cluster.start_node(*gone)
    cluster.wait_until_whole()
    check_serving(cluster)


def test_static_voters(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """The older way to say who is in the quorum: a voter whose list differs is heard by no one."""
    shape = replace(Shape(), static_voters=True)
    with cluster_for(request, tmp_path, shape=shape) as cluster:
        cluster.create_topic(TOPIC, 3)
        active = cluster.active_controller()
        cluster.kill(active)
        cluster.eventually(
            lambda: (found := cluster.quorum()) and found.leader_id != active, what="another leads"
        )
        cluster.wait_for_brokers(*cluster.others(active))
        cluster.start_node(active)
        cluster.wait_until_whole()
