"""Several log folders: a full or broken one takes only its own partitions with it, undamaged."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.wire.records import encode_batch
from support import asking
from support.processes import BrokerProcess, moldau
from support.raw import RawConnection
from support.waiting import eventually

STORAGE_ERROR = 56
LEADER_NOT_AVAILABLE = 5
TOPIC = "spread"
PARTITIONS = 4

Stored = dict[int, list[bytes | None]]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with 2 MB, so that it can really be full."""
    path = tmp_path / "small"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(path)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root; the log's own tests inject errors")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def broker_on(folder: Path, *log_dirs: Path) -> BrokerProcess:
    return moldau(folder, ["log.retention.ms=-1", f"log.dirs={','.join(map(str, log_dirs))}"])


def write(to: RawConnection, stored: Stored, index: int, count: int = 20) -> None:
    """Batches of one record each; everything acknowledged is noted."""
    values = stored.setdefault(index, [])
    for _ in range(count):
        value = f"{index} {len(values)} ".encode() + bytes(500)
        answer = asking.produce(to, TOPIC, index, encode_batch([(b"k", value, 1, ())]))
        assert (answer.error_code, answer.base_offset) == (0, len(values))
        values.append(value)


def values_of(to: RawConnection, index: int) -> list[bytes | None]:
    return [record.value for record in asking.fetch_everything(to, TOPIC, index)]


def fill(disk: Path) -> Path:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    return filler


def partitions_in(to: RawConnection, folder: Path) -> list[int]:
    current = asking.log_folders(to)[str(folder)].current
    return sorted(index for topic, index in current if topic == TOPIC)


def check_one_lost(to: RawConnection, served: list[int], lost: list[int], folder: Path) -> None:
    """What clients are told while one folder is gone."""
    for index in lost:
        batch = encode_batch([(b"k", b"v", 1, ())])
        for acks in (1, -1):
            answer = asking.produce(to, TOPIC, index, batch, acks=acks)
            assert answer.error_code == STORAGE_ERROR
        assert asking.fetch(to, TOPIC, index).error_code == STORAGE_ERROR
        assert asking.list_offset(to, TOPIC, index, -1).error_code == STORAGE_ERROR
    folders = asking.log_folders(to)
    assert folders[str(folder)] == asking.Folder(STORAGE_ERROR)

    def states() -> dict[int, tuple[object, ...]]:
        return {
            part.partition_index: (
                part.error_code, part.leader_id, part.isr_nodes, part.offline_replicas,
            )
            for part in asking.describe_topic(to, TOPIC).partitions
        }  # fmt: skip

    # As Apache Kafka shows a single node with a failed folder.
    expected: dict[int, tuple[object, ...]] = {index: (0, 1, [1], []) for index in served}
    expected |= {index: (LEADER_NOT_AVAILABLE, -1, [], [1]) for index in lost}
    eventually(lambda: states() == expected, what="the controller knows of the failed folder")


def test_a_folder_fills_up_while_clients_write(tmp_path: Path, small_disk: Path) -> None:
    big = tmp_path / "big"
    stored: Stored = {}
    with broker_on(tmp_path, big, small_disk) as broker, RawConnection(broker.port) as to:
        asking.create_topic(to, TOPIC, PARTITIONS)
        served, lost = partitions_in(to, big), partitions_in(to, small_disk)
        assert len(served) == len(lost) == PARTITIONS // 2
        for index in range(PARTITIONS):
            write(to, stored, index)

        filler = fill(small_disk)
        batch = encode_batch([(b"k", os.urandom(8000), 1, ())])
        answers = [asking.produce(to, TOPIC, lost[0], batch) for _ in range(3)]
        assert {answer.error_code for answer in answers} == {STORAGE_ERROR}

        check_one_lost(to, served, lost, small_disk)
        for index in served:
            write(to, stored, index)
            assert values_of(to, index) == stored[index]
        # New topics go where there is room.
        asking.create_topic(to, "later", 2)
        assert asking.produce(to, "later", 1, encode_batch([(b"", b"", 1, ())])).error_code == 0
        assert asking.move(to, TOPIC, range(PARTITIONS), str(small_disk)) == dict.fromkeys(
            range(PARTITIONS), STORAGE_ERROR
        )
        assert asking.move(to, TOPIC, lost, str(big)) == dict.fromkeys(lost, STORAGE_ERROR)
        assert broker.stop() == 0

    filler.unlink()
    with broker_on(tmp_path, big, small_disk) as broker, RawConnection(broker.port) as to:
        for index in range(PARTITIONS):
            assert values_of(to, index) == stored[index]
            write(to, stored, index)
            assert values_of(to, index) == stored[index]
        states = asking.describe_topic(to, TOPIC).partitions
        assert {(part.leader_id, tuple(part.isr_nodes)) for part in states} == {(1, (1,))}
        assert partitions_in(to, small_disk) == lost


def test_a_folder_that_is_broken_at_start(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    stored: Stored = {}
    with broker_on(tmp_path, one, two) as broker, RawConnection(broker.port) as to:
        asking.create_topic(to, TOPIC, PARTITIONS)
        served, lost = partitions_in(to, one), partitions_in(to, two)
        for index in range(PARTITIONS):
            write(to, stored, index)

    two.rename(tmp_path / "elsewhere")
    two.write_text("not a folder")
    with broker_on(tmp_path, one, two) as broker, RawConnection(broker.port) as to:
        check_one_lost(to, served, lost, two)
        for index in served:
            write(to, stored, index)
            assert values_of(to, index) == stored[index]

    two.unlink()
    (tmp_path / "elsewhere").rename(two)
    with broker_on(tmp_path, one, two) as broker, RawConnection(broker.port) as to:
        for index in range(PARTITIONS):
            assert values_of(to, index) == stored[index]
        assert partitions_in(to, two) == lost


def test_partitions_spread_over_the_folders(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b", "c")]
    with broker_on(tmp_path, *folders) as broker, RawConnection(broker.port) as to:
        asking.create_topic(to, TOPIC, 9)
        asking.create_topic(to, "another", 3)
        counts = [len(folder.current) for folder in asking.log_folders(to).values()]
        assert counts == [4, 4, 4]
        for folder in folders:
            held = asking.log_folders(to)[str(folder)].current
            on_disk = {path.name for path in folder.iterdir()}
            assert on_disk >= {f"{topic}-{index}" for topic, index in held}


@pytest.mark.long("fills another disk")
def test_without_the_metadata_folder_the_broker_stops(tmp_path: Path, small_disk: Path) -> None:
    """Nothing can be decided any more: the process ends, says why, and a restart finds all."""
    big = tmp_path / "big"
    with broker_on(tmp_path, small_disk, big) as broker, RawConnection(broker.port) as to:
        asking.create_topic(to, TOPIC, 2)
        stored: Stored = {}
        for index in range(2):
            write(to, stored, index)
        filler = fill(small_disk)
        in_small = partitions_in(to, small_disk)[0]
        batch = encode_batch([(b"k", os.urandom(8000), 1, ())])
        assert asking.produce(to, TOPIC, in_small, batch).error_code == STORAGE_ERROR
        assert broker.process is not None
        assert broker.process.wait(30) == 1
    assert f"log directory {small_disk} is offline" in broker.output()
    filler.unlink()
    with broker_on(tmp_path, small_disk, big) as broker, RawConnection(broker.port) as to:
        for index in range(2):
            assert values_of(to, index) == stored[index]


def test_cordoned_folders_get_nothing_new(tmp_path: Path) -> None:
    """Taken out of use for new replicas while running, and again after a restart (KIP-1066)."""
    one, two = tmp_path / "one", tmp_path / "two"

    def cordon(to: RawConnection, value: str | None) -> None:
        changes = {"cordoned.log.dirs": value}
        assert asking.alter_config(to, asking.BROKER_CONFIG, "1", changes) == (0, None)

    with broker_on(tmp_path, one, two) as broker, RawConnection(broker.port) as to:
        cordon(to, str(two))
        asking.create_topic(to, TOPIC, 4)
        assert (partitions_in(to, one), partitions_in(to, two)) == ([0, 1, 2, 3], [])
    with broker_on(tmp_path, one, two) as broker, RawConnection(broker.port) as to:
        asking.create_topic(to, "after-restart", 4)
        assert asking.log_folders(to)[str(two)].current == {}
        cordon(to, "*")
        with pytest.raises(AssertionError, match="log directories cordoned"):
            asking.create_topic(to, "nowhere", 1)
        cordon(to, None)
        asking.create_topic(to, "anywhere", 4)
        assert len(asking.log_folders(to)[str(two)].current) == 4


def test_an_empty_folder_in_the_place_of_a_used_one_is_refused(tmp_path: Path) -> None:
    """A disk that is not mounted: a broker that filled its mount point would seem to have lost
    everything."""
    one, two = tmp_path / "one", tmp_path / "two"
    with broker_on(tmp_path, one, two):
        pass
    two.rename(tmp_path / "elsewhere")
    two.mkdir()
    broker = broker_on(tmp_path, one, two)
    with pytest.raises(RuntimeError, match=f"{two} has no meta.properties: mount its disk"):
        broker.start()
    assert list(two.iterdir()) == []
    two.rmdir()
    (tmp_path / "elsewhere").rename(two)
    with broker_on(tmp_path, one, two):
        pass
