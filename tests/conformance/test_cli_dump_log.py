"""`moldau dump-log` prints what Kafka's own tool prints, file by file and record type by type."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.broker.log.machine.producer_state import KeptBatch, ProducerEntry, encode_snapshot
from moldau.cli.main import main
from moldau.wire import messages
from moldau.wire.codec import encode
from moldau.wire.message import Message
from moldau.wire.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    GroupMetadataKey,
    GroupMetadataValue,
    LeaderChangeMessage,
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataSnapshotRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    RemotePartitionDeleteMetadataRecord,
    VotersRecord,
)
from moldau.wire.messages.tables import RECORD_TYPES
from moldau.wire.record_values import (
    encode_coordinator_key,
    encode_coordinator_value,
    encode_metadata_record,
    encode_versioned,
)
from moldau.wire.records import (
    Compression,
    ControlType,
    Record,
    encode_batch,
    encode_end_txn_marker,
)
from support.java import KafkaTools
from support.processes import apache_kafka, kafka_missing, moldau
from support.remote_log import encode_remote_log_record

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

TIME = 1_700_000_000_000
TOOL = "org.apache.kafka.tools.DumpLogSegments"
BASE = "00000000000000000005"


@pytest.fixture(scope="module")
def tools() -> Iterator[KafkaTools]:
    with KafkaTools("127.0.0.1:1") as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A segment with all that a batch can be, its indexes, and a damaged neighbour."""
    folder = tmp_path_factory.mktemp("t-0")
    batches = [
        encode_batch(
            [(b"k%d" % i, b"v%d" % i, TIME + i, (("h", b"x"), ("g", None))) for i in range(3)],
            base_offset=5,
            producer_id=7,
            producer_epoch=1,
            base_sequence=2**31 - 2,
        ),
        encode_batch(
            [(None, None, TIME + 9, ())],
            base_offset=8,
            compression=Compression.ZSTD,
            partition_leader_epoch=3,
        ),
        encode_batch(
            [("é".encode(), b"z" * 50, TIME + 9, ())] * 4,
            base_offset=10,
            log_append_time_ms=TIME + 77,
            compression=Compression.LZ4,
            is_transactional=True,
            producer_id=9,
            producer_epoch=0,
            base_sequence=0,
        ),
        encode_end_txn_marker(
            producer_id=9,
            producer_epoch=0,
            committed=False,
            coordinator_epoch=4,
            timestamp=TIME + 80,
            base_offset=14,
        ),
        encode_batch(
            [Record(17, TIME + 100, b"a", b"b")],
            base_offset=15,
            last_offset_delta=4,
            delete_horizon_ms=TIME + 50,
        ),
        encode_batch([], base_offset=20, last_offset_delta=4),
    ]
    at = [sum(map(len, batches[:i])) for i in range(len(batches))]
    files = {
        "log": b"".join(batches),
        "index": struct.pack(">6i", 3, at[1], 9, at[3], 10, at[4]) + bytes(16),
        "timeindex": struct.pack(">qiqiqiqi", TIME + 2, 2, TIME + 77, 8, TIME + 80, 9, TIME, 3),
        "txnindex": struct.pack(">hqqqq", 0, 9, 10, 14, 15),
        "snapshot": encode_snapshot(
            [
                ProducerEntry(7, 1, last_timestamp=TIME, batches=[KeptBatch(1, 7, 2, TIME)]),
                ProducerEntry(9, 0, coordinator_epoch=4, last_timestamp=5, txn_first_offset=12),
            ]
        ),
    }
    for suffix, data in files.items():
        (folder / f"{BASE}.{suffix}").write_bytes(data)
    cut = encode_batch([(b"a", b"b", TIME, ())], base_offset=40)
    (folder / "00000000000000000040.log").write_bytes(cut + cut[:-3])
    (folder / "00000000000000000040.index").write_bytes(b"")
    flipped = bytearray(cut)
    flipped[-2] ^= 1
    (folder / "00000000000000000041.log").write_bytes(flipped)
    return folder


def agree(
    tools: KafkaTools, capsys: pytest.CaptureFixture[str], files: list[Path], *options: str
) -> str:
    """Both tools' output, which must be the same. What went to stderr comes last in ours, and
    Kafka tells files there in an order of its own: lines of it are compared as a set."""
    arguments = ["--files", ",".join(map(str, files)), *options]
    expected = tools.run_alone(TOOL, *arguments)
    capsys.readouterr()
    status = main(["dump-log", *arguments])
    captured = capsys.readouterr()
    assert expected.output.startswith(captured.out)
    told = expected.output.removeprefix(captured.out).splitlines()
    assert sorted(captured.err.splitlines()) == sorted(told)
    assert status == expected.status == 0
    return expected.output


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--deep-iteration",),
        ("--print-data-log",),
        ("--print-data-log", "--skip-record-metadata"),
        ("--max-bytes", "400"),
        ("--key-decoder-class", "org.apache.kafka.tools.api.StringDecoder"),
    ],
    ids=" ".join,
)
def test_segments(
    tools: KafkaTools,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
) -> None:
    files = [folder / f"{name}.log" for name in (BASE, "00000000000000000040")]
    output = agree(tools, capsys, files, *options)
    assert "baseOffset: 5 lastOffset: 7" in output
    assert ("invalid bytes at the end" in output) is ("--max-bytes" not in options)


def test_a_batch_with_a_wrong_checksum(
    tools: KafkaTools, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = agree(tools, capsys, [folder / "00000000000000000041.log"])
    assert "isvalid: false" in output


@pytest.mark.parametrize("options", [(), ("--verify-index-only",)], ids=str)
def test_indexes_and_what_is_wrong_with_them(
    tools: KafkaTools, folder: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...]
) -> None:
    files = [folder / f"{BASE}.{suffix}" for suffix in ("index", "timeindex", "txnindex")]
    output = agree(tools, capsys, files, *options)
    assert "Found out of order timestamp" in output


def test_index_sanity_checks(
    tools: KafkaTools, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = agree(tools, capsys, [folder / f"{BASE}.index"], "--index-sanity-check")
    assert "passed sanity check" in output
    empty = agree(tools, capsys, [folder / "00000000000000000040.index"])
    assert "is empty." in empty


def test_a_producer_snapshot(
    tools: KafkaTools, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = agree(tools, capsys, [folder / f"{BASE}.snapshot"])
    assert "firstSequence: 2147483647" in output


def log_of(path: Path, rows: list[tuple[bytes | None, bytes | None]]) -> Path:
    path.write_bytes(encode_batch([(key, value, TIME, ()) for key, value in rows]))
    return path


def every_message(kind: str) -> list[tuple[Message, int]]:
    """Each record of a kind with its defaults, in each of its versions."""
    found = []
    for name in RECORD_TYPES[kind].values():
        message_class = getattr(messages, name)
        for version in range(message_class.LOWEST_VERSION, message_class.HIGHEST_VERSION + 1):
            found.append((message_class(), version))
    return found


@pytest.mark.parametrize(
    ("family", "option"),
    [
        ("group", "--offsets-decoder"),
        ("transaction", "--transaction-log-decoder"),
        ("share", "--share-group-state-decoder"),
    ],
)
def test_every_record_of_the_coordinators(
    tools: KafkaTools,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    family: str,
    option: str,
) -> None:
    keys = {key.TYPE: encode_coordinator_key(key) for key, _ in every_message(f"{family}-key")}
    rows: list[tuple[bytes | None, bytes | None]] = [
        (keys[value.TYPE], encode_coordinator_value(value, version))
        for value, version in every_message(f"{family}-value")
    ]
    rows += [(key, None) for key in keys.values()]
    rows.append((b"\x01\x00", b"later"))
    log = log_of(tmp_path / "00000000000000000000.log", rows)
    output = agree(tools, capsys, [log], option)
    assert "<DELETE>" in output
    assert f"Unknown record type 256 at offset {len(rows) - 1}" in output
    agree(tools, capsys, [log], option, "--skip-record-metadata")


def test_every_record_of_the_metadata_log(
    tools: KafkaTools, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[tuple[bytes | None, bytes | None]] = [
        (None, encode_metadata_record(message, version))
        for message, version in every_message("metadata")
    ]
    log = log_of(tmp_path / "00000000000000000000.log", rows)
    output = agree(tools, capsys, [log], "--cluster-metadata-decoder")
    assert '"type":"TOPIC_RECORD"' in output


def test_members_of_consumer_groups_are_read_through(
    tools: KafkaTools, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subscription = encode_versioned(ConsumerProtocolSubscription(topics=["t"]), 3)
    partitions = ConsumerProtocolAssignment.TopicPartition(topic="t", partitions=[0, 2])
    assignment = encode_versioned(ConsumerProtocolAssignment(assigned_partitions=[partitions]), 1)
    rows: list[tuple[bytes | None, bytes | None]] = []
    for protocol_type, content in (("consumer", subscription), ("consumer", b""), ("x", b"ab")):
        member = GroupMetadataValue.MemberMetadata(
            member_id="m", subscription=content, assignment=assignment
        )
        value = GroupMetadataValue(protocol_type=protocol_type, members=[member])
        key = encode_coordinator_key(GroupMetadataKey(group="g"))
        rows.append((key, encode_coordinator_value(value, 3)))
    log = log_of(tmp_path / "00000000000000000000.log", rows)
    output = agree(tools, capsys, [log], "--offsets-decoder")
    assert '"assignedPartitions":[{"topic":"t","partitions":[0,2]}]' in output


def test_control_records_and_snapshots_of_the_quorum(
    tools: KafkaTools, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    contents: list[tuple[int, Message]] = [
        (ControlType.SNAPSHOT_HEADER, messages.SnapshotHeaderRecord()),
        (ControlType.LEADER_CHANGE, LeaderChangeMessage(leader_id=3)),
        (ControlType.KRAFT_VERSION, messages.KRaftVersionRecord(kraft_version=1)),
        (ControlType.KRAFT_VOTERS, VotersRecord()),
        (ControlType.SNAPSHOT_FOOTER, messages.SnapshotFooterRecord()),
    ]
    rows = [
        (struct.pack(">hh", 0, kind), encode(message, 0), TIME, ()) for kind, message in contents
    ]
    data = encode_batch(rows, is_control=True)
    names = (
        "00000000000000000042-0000000003.checkpoint",
        "bootstrap.checkpoint",
        "00000000000000000000.log",
    )
    for name in names:
        (tmp_path / name).write_bytes(data)
    files = [tmp_path / name for name in names]
    output = agree(tools, capsys, files, "--cluster-metadata-decoder")
    assert "Snapshot end offset: 42, epoch: 3" in output
    assert "KRaft bootstrap snapshot" in output
    agree(tools, capsys, files, "--print-data-log", "--skip-record-metadata")


def test_remote_log_metadata(
    tools: KafkaTools, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    segment, update = RemoteLogSegmentMetadataRecord, RemoteLogSegmentMetadataUpdateRecord
    deletion, snapshot = RemotePartitionDeleteMetadataRecord, RemoteLogSegmentMetadataSnapshotRecord

    def partition(message: Any) -> Any:
        return message.TopicIdPartitionEntry(name="t", id=UUID(int=77), partition=3)

    def segment_id(message: Any) -> Any:
        entry = partition(message)
        return message.RemoteLogSegmentIdEntry(topic_id_partition=entry, id=UUID(int=5))

    records: list[Message] = [
        segment(
            remote_log_segment_id=segment_id(segment),
            end_offset=9,
            broker_id=2,
            max_timestamp_ms=TIME,
            segment_leader_epochs=[
                segment.SegmentLeaderEpochEntry(leader_epoch=0, offset=0),
                segment.SegmentLeaderEpochEntry(leader_epoch=2, offset=6),
            ],
            segment_size_in_bytes=99,
            custom_metadata=b"abc",
        ),
        update(remote_log_segment_id=segment_id(update), remote_log_segment_state=1),
        deletion(topic_id_partition=partition(deletion), event_timestamp_ms=TIME),
        snapshot(
            segment_id=UUID(int=6),
            end_offset=9,
            segment_leader_epochs=[snapshot.SegmentLeaderEpochEntry(leader_epoch=0, offset=0)],
            remote_log_segment_state=1,
            txn_index_empty=True,
        ),
    ]
    log = log_of(
        tmp_path / "00000000000000000000.log",
        [(None, encode_remote_log_record(record, 0)) for record in records],
    )
    output = agree(tools, capsys, [log], "--remote-log-metadata-decoder")
    assert "segmentLeaderEpochs={0=0, 2=6}" in output


def test_folders_of_both_brokers(
    tools: KafkaTools, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Real ones: records, a transaction, a group, the cluster's metadata."""
    for name, start in (("moldau", moldau), ("kafka", apache_kafka)):
        (tmp_path / name).mkdir()
        with start(tmp_path / name) as broker:
            _use(broker.bootstrap)
        data = tmp_path / name / "data"
        agree(
            tools,
            capsys,
            sorted(path for path in data.glob("t-0/*.*") if path.suffix != ".metadata"),
            "--print-data-log",
        )
        for topic, option in (
            ("__consumer_offsets", "--offsets-decoder"),
            ("__transaction_state", "--transaction-log-decoder"),
            ("__cluster_metadata", "--cluster-metadata-decoder"),
        ):
            files = sorted(path for path in data.glob(f"{topic}-*/*.log") if path.stat().st_size)
            output = agree(tools, capsys, files, option)
            assert "payload: {" in output


def _use(bootstrap: str) -> None:
    servers = {"bootstrap.servers": bootstrap}
    admin = AdminClient(servers)
    admin.create_topics([NewTopic("t", 1, 1)])["t"].result(60)
    producer = Producer({**servers, "transactional.id": "x", "compression.type": "zstd"})
    producer.init_transactions(60)
    for commit in (True, False):
        producer.begin_transaction()
        for i in range(50):
            producer.produce("t", b"value %d" % i, b"key", headers={"h": b"1"})
        producer.flush(60)
        if commit:
            producer.commit_transaction(60)
        else:
            producer.abort_transaction(60)
    consumer = Consumer({**servers, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    assert consumer.consume(1, 60)
    consumer.commit(asynchronous=False)
    consumer.close()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--files", "nothing-here.log"], "must begin with an offset"),
        (["--files", "00000000000000000007.log"], "there is no such file"),
        (["--files", "x.checkpoint"], "a snapshot's name holds"),
        (["--files", "x.log", "--value-decoder-class", "IntDecoder"], "IntegerDecoder"),
    ],
)
def test_what_cannot_be_dumped_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert main(["dump-log", *arguments]) == 1
    captured = capsys.readouterr()
    assert told in captured.err
    assert len(captured.err.strip().splitlines()) == 1


def test_numbers_own_decoders_and_unknown_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = log_of(tmp_path / "00000000000000000000.log", [(struct.pack(">q", 7), b"x")])
    unknown = tmp_path / "leader-epoch-checkpoint"
    status = main(
        ["dump-log", "--files", f"{log},{unknown}",
         "--key-decoder-class", "org.apache.kafka.tools.api.LongDecoder",
         "--value-decoder-class", "builtins.repr"]
    )  # fmt: skip
    captured = capsys.readouterr()
    assert status == 0
    assert "key: 7 payload: b'x'" in captured.out
    assert f"Ignoring unknown file {unknown}" in captured.err
