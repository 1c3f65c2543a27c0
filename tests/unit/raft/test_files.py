"""quorum-state, snapshots and the log on disk."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from moldau.broker.log.background import InlineBackground
from moldau.broker.log.disk import OsDisk
from moldau.broker.raft.log import RaftLog, RaftLogConfig
from moldau.broker.raft.machine.batches import (
    decode_metadata_batches,
    encode_controls,
    encode_records,
    leader_change,
    quorum_controls,
)
from moldau.broker.raft.machine.election_file import (
    CorruptQuorumState,
    Election,
    decode_election,
    encode_election,
)
from moldau.broker.raft.machine.errors import MetadataError
from moldau.broker.raft.machine.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet
from moldau.broker.raft.snapshots import (
    SnapshotId,
    list_snapshots,
    read_snapshot,
    snapshot_parts,
)
from moldau.wire.messages import (
    LeaderChangeMessage,
    NoOpRecord,
    SnapshotFooterRecord,
    TopicRecord,
)

DIRECTORY = UUID("8c0fcb1e-69a3-4619-976d-81c953868d51")
VOTERS = VoterSet.of(
    [
        Voter(
            key=ReplicaKey(1, DIRECTORY),
            endpoints=(VoterEndpoint(name="CONTROLLER", host="127.0.0.1", port=19293),),
        )
    ]
)

# As a Kafka 4.3 broker wrote them.
STATIC_STATE = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":4,"votedId":-1,"appliedOffset":0,'
    b'"currentVoters":[{"voterId":1}],"data_version":0}'
)
DYNAMIC_STATE = (
    b'{"leaderId":1,"leaderEpoch":4,"votedId":-1,'
    b'"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
)


@pytest.mark.parametrize(("version", "data"), [(0, STATIC_STATE), (1, DYNAMIC_STATE)])
def test_the_vote_file_is_byte_for_byte_kafkas(version: int, data: bytes) -> None:
    election = Election(epoch=4, leader_id=1)
    assert encode_election(election, kraft_version=version, voter_ids=[1]) == data
    assert decode_election(data) == election


@pytest.mark.parametrize("version", [0, 1])
def test_a_vote_survives(version: int) -> None:
    voted = ReplicaKey(3, DIRECTORY) if version else ReplicaKey(3)
    election = Election(epoch=9, voted=voted)
    data = encode_election(election, kraft_version=version, voter_ids=[1, 2, 3])
    assert decode_election(data) == election


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b'{"leaderId":1,"leaderEpoch":4,"data_version":2}',
        b'{"leaderId":"x","leaderEpoch":4,"data_version":0}',
        b'{"leaderId":1,"leaderEpoch":4,"votedDirectoryId":"??","data_version":1}',
        b"\xff\xfe",
    ],
)
def test_a_damaged_vote_file_is_not_guessed_at(data: bytes) -> None:
    with pytest.raises(CorruptQuorumState):
        decode_election(data)


def snapshot_bytes(records: list[Any], **fields: Any) -> bytes:
    options: dict[str, Any] = {
        "epoch": 2,
        "now_ms": 1000,
        "metadata_version": 30,
        "last_contained_log_timestamp": 900,
    }
    return b"".join(snapshot_parts(records, **(options | fields)))


def test_a_snapshot_survives(tmp_path: Path) -> None:
    records = [TopicRecord(name=f"t{i}", topic_id=UUID(int=i + 200)) for i in range(2500)]
    path = tmp_path / "s"
    path.write_bytes(snapshot_bytes(records, kraft_version=1, voters=VOTERS))
    snapshot = read_snapshot(OsDisk(), str(path))
    assert snapshot.records == tuple(records)
    assert (snapshot.kraft_version, snapshot.voters) == (1, VOTERS)
    assert snapshot.last_contained_log_timestamp == 900
    offsets = [
        (batch.base_offset, batch.next_offset)
        for batch in decode_metadata_batches(path.read_bytes(), "s")
    ]
    assert offsets[0][0] == 0
    assert [start for start, _ in offsets[1:]] == [end for _, end in offsets[:-1]]


def test_a_static_quorums_snapshot_says_nothing_about_voters(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_bytes(snapshot_bytes([NoOpRecord()]))
    snapshot = read_snapshot(OsDisk(), str(path))
    assert (snapshot.kraft_version, snapshot.voters) == (0, None)


def test_a_damaged_snapshot_is_refused(tmp_path: Path) -> None:
    data = snapshot_bytes([TopicRecord(name="t", topic_id=UUID(int=200))])
    path = tmp_path / "s"
    for cut in range(len(data)):
        path.write_bytes(data[:cut])
        with pytest.raises(MetadataError):
            read_snapshot(OsDisk(), str(path))
    for position in range(17, len(data), 5):
        flipped = bytearray(data)
        flipped[position] ^= 0x40
        path.write_bytes(flipped)
        with pytest.raises(MetadataError):
            read_snapshot(OsDisk(), str(path))
    footer = encode_controls([SnapshotFooterRecord()], base_offset=0, epoch=0, now_ms=0)
    path.write_bytes(footer)
    with pytest.raises(MetadataError, match="does not begin with a header"):
        read_snapshot(OsDisk(), str(path))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("00000000000000000042-0000000007.checkpoint", SnapshotId(42, 7)),
        ("00000000000000000042-0000000007.checkpoint.part", None),
        ("00000000000000000042.snapshot", None),
        ("bootstrap.checkpoint", None),
    ],
)
def test_snapshot_names(name: str, expected: SnapshotId | None) -> None:
    assert SnapshotId.of_file(name) == expected
    if expected is not None:
        assert expected.file_name == name


def opened(path: Path, **fields: Any) -> RaftLog:
    return RaftLog.open(
        str(path),
        disk=OsDisk(),
        background=InlineBackground(),
        config=RaftLogConfig(**fields),
        now_ms=1000,
    )


def append(log: RaftLog, *names: str, epoch: int = 1) -> None:
    records = [TopicRecord(name=name, topic_id=UUID(int=200)) for name in names]
    data = encode_records(
        records, base_offset=log.end_offset, epoch=epoch, now_ms=1000, metadata_version=30
    )
    log.append(data, epoch=epoch, now_ms=1000)


def test_what_is_appended_is_read_from_any_offset(tmp_path: Path) -> None:
    log = opened(tmp_path)
    change = leader_change(1, [ReplicaKey(1)], [ReplicaKey(1)])
    controls = [change, *quorum_controls(1, VOTERS)]
    log.append(encode_controls(controls, base_offset=0, epoch=1, now_ms=1000), epoch=1, now_ms=1000)
    append(log, "a", "b")
    append(log, "c", epoch=2)
    batches = list(log.read(0))
    assert isinstance(batches[0].controls[0], LeaderChangeMessage)
    assert [(b.base_offset, b.next_offset, b.epoch) for b in batches] == [
        (0, 3, 1),
        (3, 5, 1),
        (5, 6, 2),
    ]
    assert [r.name for b in log.read(4) for r in b.records] == ["a", "b", "c"]
    assert [r.name for b in log.read(5) for r in b.records] == ["c"]
    assert list(log.read(6)) == []
    assert log.last_epoch == 2
    log.close()
    again = opened(tmp_path)
    assert (again.end_offset, again.last_epoch) == (6, 2)
    metadata = (tmp_path / "__cluster_metadata-0" / "partition.metadata").read_text()
    assert metadata == "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    again.close()


def test_leftovers_of_snapshots_are_removed_at_start(tmp_path: Path) -> None:
    opened(tmp_path).close()
    directory = tmp_path / "__cluster_metadata-0"
    name = SnapshotId(3, 1).file_name
    (directory / f"{name}.part").write_bytes(b"x")
    (directory / f"{name}.deleted").write_bytes(b"x")
    opened(tmp_path).close()
    assert [path.name for path in directory.iterdir() if "checkpoint." in path.name] == []
    assert list_snapshots(OsDisk(), str(directory)) == []


def test_a_log_that_ends_before_its_snapshot_is_started_anew(tmp_path: Path) -> None:
    log = opened(tmp_path)
    append(log, "a")
    log.close()
    directory = tmp_path / "__cluster_metadata-0"
    (directory / SnapshotId(50, 6).file_name).write_bytes(snapshot_bytes([]))
    again = opened(tmp_path)
    assert (again.start_offset, again.end_offset, again.last_epoch) == (50, 50, 6)
    append(again, "b", epoch=7)
    assert [b.base_offset for b in again.read(50)] == [50]
    again.close()


def test_retention_keeps_the_newest_snapshot_and_the_log_after_it(tmp_path: Path) -> None:
    log = opened(tmp_path, max_retention_bytes=1)

    async def snapshot() -> SnapshotId:
        log.commit(log.end_offset)
        snapshot_id = SnapshotId(log.end_offset, 1)
        writer = log.start_snapshot(snapshot_id)
        writer.append(snapshot_bytes([]))
        await log.finish_snapshot(writer, snapshot_id)
        return snapshot_id

    ids = []
    for name in ("a", "b", "c"):
        append(log, name)
        ids.append(asyncio.run(snapshot()))
    append(log, "d")
    assert log.clean(1000) == 2
    assert log.snapshots == ids[2:]
    assert list_snapshots(OsDisk(), log.directory) == ids[2:]
    assert log.start_offset == ids[2].end_offset
    assert [r.name for b in log.read(log.start_offset) for r in b.records] == ["d"]
    log.close()
    again = opened(tmp_path)
    assert again.start_offset == ids[2].end_offset
    again.close()


def test_elections_are_kept(tmp_path: Path) -> None:
    log = opened(tmp_path)
    assert log.load_election() == Election()
    election = Election(epoch=3, voted=ReplicaKey(1, DIRECTORY))
    log.save_election(election, kraft_version=1, voters=VOTERS)
    assert log.load_election() == election
    path = tmp_path / "__cluster_metadata-0" / "quorum-state"
    path.write_text("{")
    with pytest.raises(CorruptQuorumState, match=str(path.parent)):
        log.load_election()
    log.close()
