"""The files are Kafka's, byte for byte, against values worked out by hand."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from moldau.broker.config import LogConfig
from moldau.broker.log.context import AppendOrigin
from moldau.broker.log.log_dirs import MetaProperties, WrongLogDir
from moldau.broker.log.machine import checkpoints
from moldau.broker.log.machine.names import DirName, offset_prefix, parse_dir_name, suffixed_dir
from moldau.broker.log.machine.producer_state import (
    ProducerStates,
    decode_snapshot,
    encode_snapshot,
)
from moldau.wire.records import encode_end_txn_marker
from moldau.wire.uuids import uuid_from_text
from support.log_folder import NOW_MS, LogFolder, append, batch_of

SOME_ID = uuid_from_text("AAAAAAAAAAAAAAAAAAAAAQ")


def test_a_segment_holds_exactly_the_batches(folder: LogFolder) -> None:
    log = folder.open()
    batches = [batch_of(b"one", b"two"), batch_of(b"three")]
    for batch in batches:
        log.append_as_leader(batch, leader_epoch=7, now_ms=NOW_MS)
    # In place: base offset (bytes 0-8) and leader epoch (12-16) are the broker's.
    expected = [bytearray(b) for b in batches]
    expected[0][0:8] = (0).to_bytes(8, "big")
    expected[1][0:8] = (2).to_bytes(8, "big")
    for batch in expected:
        batch[12:16] = (7).to_bytes(4, "big")
    assert (folder.path / f"{offset_prefix(0)}.log").read_bytes() == b"".join(expected)


def test_index_files_end_with_their_last_entry(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, LogConfig(index_interval_bytes=100))
    log = folder.open()
    index = folder.path / f"{offset_prefix(0)}.index"
    assert index.stat().st_size == 0
    assert (folder.path / f"{offset_prefix(0)}.timeindex").stat().st_size == 0
    sizes = []
    for number in range(3):
        batch = batch_of(b"x" * 60, b"y" * 60, timestamp=NOW_MS + 10 * number)
        sizes.append(len(batch))
        log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
    # More than 100 bytes went by before the second and before the third batch.
    expected = b"".join(
        (2 * number + 1).to_bytes(4, "big") + sum(sizes[:number]).to_bytes(4, "big")
        for number in (1, 2)
    )
    assert index.read_bytes() == expected
    log.close()
    assert index.read_bytes() == expected
    times = b"".join(
        (NOW_MS + 10 * number + 1).to_bytes(8, "big") + (2 * number + 1).to_bytes(4, "big")
        for number in (1, 2)
    )
    assert (folder.path / f"{offset_prefix(0)}.timeindex").read_bytes() == times
    folder.log = None


def test_time_index_is_completed_at_a_clean_stop(folder: LogFolder) -> None:
    log = folder.open()
    append(log, b"a", b"b", timestamp=NOW_MS)
    log.close()
    folder.log = None
    entry = (NOW_MS + 1).to_bytes(8, "big") + (1).to_bytes(4, "big")
    assert (folder.path / f"{offset_prefix(0)}.timeindex").read_bytes() == entry
    assert (folder.path / f"{offset_prefix(0)}.index").read_bytes() == b""


def test_transaction_index_is_made_by_the_first_abort(folder: LogFolder) -> None:
    log = folder.open()
    append(log, b"plain")
    log.append_as_leader(
        batch_of(b"data", producer_id=9, producer_epoch=1, base_sequence=0, is_transactional=True),
        leader_epoch=0,
        now_ms=NOW_MS,
    )
    path = folder.path / f"{offset_prefix(0)}.txnindex"
    assert not path.exists()
    marker = encode_end_txn_marker(
        producer_id=9, producer_epoch=1, committed=False, coordinator_epoch=4, timestamp=NOW_MS
    )
    log.append_as_leader(
        bytearray(marker), leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
    )
    numbers = (9, 1, 2, 3)  # producer, first offset, marker's offset, last stable offset
    assert path.read_bytes() == bytes(2) + b"".join(n.to_bytes(8, "big") for n in numbers)


def test_producer_snapshot_bytes() -> None:
    producers = ProducerStates()
    producers.record_batch(
        5, 2, 19, first_offset=100, last_offset=109, timestamp=NOW_MS, transactional=True
    )
    body = (
        (1).to_bytes(4, "big")
        + (5).to_bytes(8, "big")
        + (2).to_bytes(2, "big")
        + (19).to_bytes(4, "big")
        + (109).to_bytes(8, "big")
        + (9).to_bytes(4, "big")
        + NOW_MS.to_bytes(8, "big")
        + (-1).to_bytes(4, "big", signed=True)
        + (100).to_bytes(8, "big")
    )
    data = encode_snapshot(producers.entries.values())
    assert data[:2] == b"\x00\x01"
    assert data[6:] == body
    assert data[2:6] == crc32c_bit_by_bit(body).to_bytes(4, "big")
    (entry,) = decode_snapshot("x", data)
    assert (entry.producer_id, entry.epoch, entry.last_sequence, entry.txn_first_offset) == (
        5, 2, 19, 100,
    )  # fmt: skip


def crc32c_bit_by_bit(data: bytes) -> int:
    """CRC-32C written out, to check the library by."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_text_checkpoints() -> None:
    offsets = {("a", 0): 5, ("b.c-d", 12): 7}
    data = checkpoints.encode_offsets(offsets)
    assert data == b"0\n2\na 0 5\nb.c-d 12 7\n"
    assert checkpoints.decode_offsets("f", data) == offsets
    assert checkpoints.decode_offsets("f", b"") == {}  # Kafka makes them empty at first
    assert checkpoints.encode_epochs([(0, 0), (3, 42)]) == b"0\n2\n0 0\n3 42\n"
    assert checkpoints.decode_epochs("f", b"0\n2\n0 0\n3 42\n") == [(0, 0), (3, 42)]
    metadata = checkpoints.encode_partition_metadata(SOME_ID)
    assert metadata == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    assert checkpoints.decode_partition_metadata("f", metadata) == SOME_ID
    assert checkpoints.encode_clean_shutdown(3) == b'{"version":0,"brokerEpoch":3}'
    assert checkpoints.decode_clean_shutdown(b'{"version":0,"brokerEpoch":3}') == 3
    assert checkpoints.decode_clean_shutdown(b"") == -1  # as before Kafka 3.7


@pytest.mark.parametrize(
    "data",
    [b"1\n0\n", b"0\nx\n", b"0\n2\na 0 5\n", b"0\n1\na 0\n", b"0\n1\na x 5\n"],
)
def test_damaged_checkpoints_say_which_file(data: bytes) -> None:
    with pytest.raises(checkpoints.CorruptCheckpoint, match="the-file"):
        checkpoints.decode_offsets("the-file", data)


def test_epoch_and_metadata_files_of_a_log(folder: LogFolder) -> None:
    log = folder.open(topic_id=SOME_ID)
    append(log, b"a", leader_epoch=2)
    append(log, b"b", leader_epoch=5)
    log.flush()
    assert (folder.path / "leader-epoch-checkpoint").read_text() == "0\n2\n2 0\n5 1\n"
    assert (folder.path / "partition.metadata").read_text().splitlines() == [
        "version: 0",
        "topic_id: AAAAAAAAAAAAAAAAAAAAAQ",
    ]
    assert folder.crash().topic_id == SOME_ID


def test_an_epoch_is_checkpointed_with_its_first_batch(folder: LogFolder) -> None:
    """Ten thousand idle partitions must not write a file each whenever they get a leader."""
    log = folder.open(topic_id=SOME_ID)
    path = folder.path / "leader-epoch-checkpoint"
    append(log, b"a", leader_epoch=2)
    log.flush()
    log.assign_epoch(5, 1)
    log.flush()
    assert log.leader_epochs.entries() == [(2, 0), (5, 1)]
    assert path.read_text() == "0\n1\n2 0\n"
    append(log, b"b", leader_epoch=5)
    log.flush()
    assert path.read_text() == "0\n2\n2 0\n5 1\n"


def test_meta_properties_both_versions() -> None:
    written = MetaProperties(cluster_id="c", node_id=3, directory_id=SOME_ID).encode()
    assert written.decode().splitlines()[1:] == [
        "version=1", "cluster.id=c", "directory.id=AAAAAAAAAAAAAAAAAAAAAQ", "node.id=3",
    ]  # fmt: skip
    assert MetaProperties.decode("f", written).directory_id == SOME_ID
    old = MetaProperties.decode("f", b"#Thu\nversion=0\nbroker.id=3\ncluster.id=c\n")
    assert old == MetaProperties(cluster_id="c", node_id=3)
    with pytest.raises(WrongLogDir, match="meta"):
        MetaProperties.decode("meta", b"version=1\n")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("t-0", DirName("t", 0, "")),
        ("a.b-c-12", DirName("a.b-c", 12, "")),
        ("t-0.0123456789abcdef0123456789abcdef-delete", DirName("t", 0, "-delete")),
        ("t-0.0123456789abcdef0123456789abcdef-future", DirName("t", 0, "-future")),
        ("t-0.0123456789abcdef0123456789abcdef-stray", DirName("t", 0, "-stray")),
        ("lost+found", None),
        ("t-x", None),
        ("-3", None),
    ],
)
def test_directory_names(name: str, expected: DirName | None) -> None:
    assert parse_dir_name(name) == expected


def test_directory_names_fit_the_file_system() -> None:
    name = suffixed_dir("t" * 249, 100_000, uuid.UUID(int=5), "-delete")
    assert len(name) <= 255
    assert parse_dir_name(name) is not None
