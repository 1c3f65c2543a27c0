"""Disks of a node of three that fill up, are exchanged or come back empty, under clients at work.

`--against-kafka` runs the same against Apache Kafka.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cluster import ClusterUnderTest, cluster_for
from support.traffic import Traffic

VICTIM = 2


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, so that it can really be full."""
    path = tmp_path / "small"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(path)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root; the log's own tests inject errors")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def with_folders(
    request: pytest.FixtureRequest, tmp_path: Path, first: Path, second: Path
) -> ClusterUnderTest:
    """One node has two folders for data and keeps its metadata elsewhere."""
    cluster = cluster_for(request, tmp_path)
    node = cluster.nodes[VICTIM]
    node.properties["log.dirs"] = f"{first},{second}"
    node.properties["metadata.log.dir"] = str(node.data)
    return cluster


def fill(disk: Path) -> Path:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    return filler


def on_folder(cluster: ClusterUnderTest, topic: str, folder: Path) -> set[int]:
    return {
        index for _, index in cluster.partitions(topic)
        if (folder / f"{topic}-{index}").is_dir()
    }  # fmt: skip


@pytest.mark.long("a full disk of one node is in test_log_dirs and test_testing_faults")
def test_a_disk_fills_up(request: pytest.FixtureRequest, tmp_path: Path, small_disk: Path) -> None:
    """Its replicas are out of sync, others lead what it led, and after a restart it is whole."""
    big = tmp_path / "big"
    with (
        with_folders(request, tmp_path, big, small_disk) as cluster,
        Traffic(cluster, "full") as traffic,
    ):
        lost = on_folder(cluster, traffic.topic, small_disk)
        assert lost
        filler = fill(small_disk)
        cluster.eventually(
            lambda: all(
                (VICTIM not in state.isr and state.leader not in (-1, VICTIM)) or at[1] not in lost
                for at, state in cluster.partitions(traffic.topic, node_id=1).items()
            ),
            what="the full disk's replicas are out of sync and lead nothing",
        )
        # What it has on the other disk it serves on.
        cluster.wait_for_brokers()
        cluster.eventually(
            lambda: all(
                VICTIM in state.isr
                for at, state in cluster.partitions(traffic.topic).items()
                if at[1] not in lost
            ),
            what="the other disk's replicas are in sync",
        )
        traffic.wait_for_progress()
        cluster.stop(VICTIM)
        filler.unlink()
        cluster.start_node(VICTIM)
        cluster.wait_until_whole()
        traffic.wait_for_progress()
        traffic.check()


def test_a_disk_is_exchanged_for_an_empty_one(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """What was on it is fetched from the other nodes; nothing that is in sync is lost by it."""
    first, second = tmp_path / "first", tmp_path / "second"
    with (
        with_folders(request, tmp_path, first, second) as cluster,
        Traffic(cluster, "exchanged") as traffic,
    ):
        lost = on_folder(cluster, traffic.topic, second)
        assert lost
        cluster.kill(VICTIM)
        cluster.wait_until_fenced(VICTIM)
        traffic.wait_for_progress()
        shutil.rmtree(second)
        second.mkdir()
        cluster.format_new_folders(VICTIM)
        cluster.start_node(VICTIM)
        cluster.wait_until_whole()
        traffic.wait_for_progress()
        traffic.check()
