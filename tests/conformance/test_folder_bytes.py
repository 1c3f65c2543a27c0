"""What lies on disk: files are the bytes that were sent, and files made by others open.

Batches are written and read here by kafka-python and aiokafka, which share no code with the broker.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiokafka.record.memory_records import MemoryRecords as AiokafkaRecords
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords
from kafka.record.util import calc_crc32c

from support import asking
from support.processes import BrokerProcess, moldau
from support.raw import RawConnection
from support.waiting import eventually

TOPIC = "bytes"
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
START_MS = 1_700_000_000_000
# Records of then would expire half a minute after the start.
KEEP = ["log.retention.ms=-1"]
PRODUCER_ID, PRODUCER_EPOCH = 4_000, 3

Headers = tuple[tuple[str, bytes | None], ...]


class Row(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def rows_from(first: int, count: int, *, keyed: bool = False) -> list[Row]:
    """Records with every oddity that the format allows; compacted topics want keys."""
    rows = []
    for offset in range(first, first + count):
        key = None if offset % 5 == 3 and not keyed else b"key %d" % offset
        value = None if offset % 7 == 2 else b"value %d " % offset * (offset % 40)
        headers: Headers = ()
        if offset % 3 == 0:
            headers = (("kind", b"\x00\xff"), ("kind", b""), ("ünïcode", b"x" * 300))
        rows.append(Row(offset, START_MS + offset * 1000, key, value, headers))
    return rows


def batch_of(
    rows: Sequence[Row], codec: int = 0, *, sequence: int = -1, last_offset: int | None = None
) -> bytes:
    """A batch by kafka-python with its base offset; `last_offset` spans records that are gone."""
    idempotent = sequence >= 0
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=False,
        producer_id=PRODUCER_ID if idempotent else -1,
        producer_epoch=PRODUCER_EPOCH if idempotent else -1,
        base_sequence=sequence,
        batch_size=1 << 20,
    )
    base = rows[0].offset
    for row in rows:
        added = builder.append(
            row.offset - base, row.timestamp, row.key, row.value, list(row.headers)
        )
        assert added is not None
    batch = bytearray(builder.build())
    struct.pack_into(">q", batch, 0, base)
    if last_offset is not None:
        struct.pack_into(">i", batch, 23, last_offset - base)
        struct.pack_into(">I", batch, 17, calc_crc32c(memoryview(batch)[21:]))
    return bytes(batch)


def stored_form(batch: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """The two fields that a broker fills in."""
    first, second = struct.pack(">q", base_offset), struct.pack(">i", leader_epoch)
    return first + batch[8:12] + second + batch[16:]


def read_by_kafka_python(data: bytes) -> Iterator[Row]:
    records = KafkaPythonRecords(data)
    while (batch := records.next_batch()) is not None:
        assert batch.validate_crc()
        for record in batch:
            headers = tuple((key, value) for key, value in record.headers)
            yield Row(record.offset, record.timestamp, record.key, record.value, headers)


def read_by_aiokafka(data: bytes) -> Iterator[Row]:
    records = AiokafkaRecords(data)
    while (batch := records.next_batch()) is not None:
        assert batch.validate_crc()
        for record in batch:
            headers = tuple((key, value) for key, value in record.headers)
            yield Row(record.offset, record.timestamp, record.key, record.value, headers)


def log_file(folder: Path, base_offset: int = 0) -> Path:
    return folder / "data" / f"{TOPIC}-0" / f"{base_offset:020d}.log"


@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
def test_the_file_is_what_was_sent(tmp_path: Path, idempotent: bool) -> None:
    """Only the base offset and the leader epoch differ; two foreign readers agree on the rest."""
    expected = b""
    rows: list[Row] = []
    with moldau(tmp_path, KEEP) as broker, RawConnection(broker.port) as to:
        asking.create_topic(to, TOPIC)
        for codec in CODECS.values():
            for count in (1, 2, 50):
                first = len(rows)
                rows += rows_from(first, count)
                sequence = first if idempotent else -1
                batch = batch_of(rows[first:], codec, sequence=sequence)
                # Clients count from 0 and know no epoch.
                sent = stored_form(batch, 0, -1)
                answer = asking.produce(to, TOPIC, 0, sent)
                assert (answer.error_code, answer.base_offset) == (0, first), answer
                expected += stored_form(batch, first, 0)
        assert asking.fetch(to, TOPIC, 0).records == expected
        assert log_file(tmp_path).read_bytes() == expected
    data = log_file(tmp_path).read_bytes()
    assert data == expected
    assert list(read_by_kafka_python(data)) == rows
    assert list(read_by_aiokafka(data)) == rows


@pytest.mark.parametrize("codec", CODECS)
def test_foreign_readers_read_what_librdkafka_wrote(tmp_path: Path, codec: str) -> None:
    sent = [row for row in rows_from(0, 300) if row.value is not None]
    with moldau(tmp_path, KEEP) as broker, RawConnection(broker.port) as to:
        asking.create_topic(to, TOPIC)
        settings = {"bootstrap.servers": broker.bootstrap, "compression.type": codec}
        producer = Producer({**settings, "enable.idempotence": True, "linger.ms": 5})
        for row in sent:
            producer.produce(
                TOPIC, row.value, row.key, 0, timestamp=row.timestamp, headers=list(row.headers)
            )
        assert producer.flush(30) == 0
    data = log_file(tmp_path).read_bytes()
    expected = [row._replace(offset=number) for number, row in enumerate(sent)]
    assert list(read_by_kafka_python(data)) == expected
    assert list(read_by_aiokafka(data)) == expected


class HandMade(NamedTuple):
    """Files of a partition, by base offset, and what a reader must find in them."""

    segments: dict[int, bytes]
    rows: list[Row]
    end_offset: int


def hand_made() -> HandMade:
    rows = rows_from(0, 100, keyed=True)
    left = (103, 104, 117, 140)
    compacted = [row for row in rows_from(100, 50, keyed=True) if row.offset in left]
    tail = rows_from(160, 10, keyed=True)
    segments = {
        0: b"".join(
            batch_of(rows[first : first + 10], codec)
            for first, codec in zip(range(0, 50, 10), CODECS.values(), strict=True)
        ),
        50: b"".join(batch_of(rows[first : first + 5]) for first in range(50, 100, 5)),
        # Compacted: batches with holes, a batch that ends behind its last record, missing batches.
        100: batch_of(compacted[:2], last_offset=109) + batch_of(compacted[2:], last_offset=149),
        160: batch_of(tail, CODECS["lz4"], sequence=0),
    }
    stored = {
        base: b"".join(with_epoch(batch, 0) for batch in split(data))
        for base, data in segments.items()
    }
    return HandMade(stored, [*rows, *compacted, *tail], 170)


def split(data: bytes) -> Iterator[bytes]:
    while data:
        size = 12 + struct.unpack_from(">i", data, 8)[0]
        yield data[:size]
        data = data[size:]


def with_epoch(batch: bytes, leader_epoch: int) -> bytes:
    return stored_form(batch, struct.unpack_from(">q", batch)[0], leader_epoch)


def put_files(folder: Path, made: HandMade) -> None:
    """Replace a partition's files: only batches, the topic's id and a bare epoch file are left."""
    partition = folder / "data" / f"{TOPIC}-0"
    kept = (partition / "partition.metadata").read_bytes()
    for file in partition.iterdir():
        file.unlink()
    (partition / "partition.metadata").write_bytes(kept)
    (partition / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    for base, data in made.segments.items():
        (partition / f"{base:020d}.log").write_bytes(data)
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (folder / "data" / name).unlink()


def consume(broker: BrokerProcess, offset: int, last_offset: int) -> list[Row]:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "g", "check.crcs": True}
    )
    consumer.assign([TopicPartition(TOPIC, 0, offset)])
    rows: list[Row] = []

    def arrived() -> bool:
        for message in consumer.consume(1000, 0.1):
            assert message.error() is None, message.error()
            headers: Any = tuple(message.headers() or ())
            _, timestamp = message.timestamp()
            offset = message.offset()
            assert offset is not None
            rows.append(Row(offset, timestamp, message.key(), message.value(), headers))
        return bool(rows) and rows[-1].offset >= last_offset

    eventually(arrived, what=f"records up to {last_offset}")
    consumer.close()
    return rows


@pytest.mark.parametrize("clean", [True, False], ids=["clean stop", "no clean stop"])
def test_a_hand_made_folder_opens(tmp_path: Path, clean: bool) -> None:
    made = hand_made()
    with moldau(tmp_path, KEEP) as broker, RawConnection(broker.port) as to:
        # The cleaner is kept off: the files are to be read as they are.
        config = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(2**62)}
        asking.create_topic(to, TOPIC, 1, config)
    put_files(tmp_path, made)
    if not clean:
        (tmp_path / "data" / ".kafka_cleanshutdown").unlink()

    with moldau(tmp_path, KEEP) as broker, RawConnection(broker.port) as to:
        last = made.rows[-1].offset
        assert consume(broker, 0, last) == made.rows
        for start in (49, 50, 77, 105, 111, 141, 155, 160):
            expected = [row for row in made.rows if row.offset >= start]
            assert consume(broker, start, last) == expected, start
        for row in made.rows:
            found = asking.list_offset(to, TOPIC, 0, row.timestamp)
            assert (found.offset, found.timestamp) == (row.offset, row.timestamp)
        assert asking.list_offset(to, TOPIC, 0, START_MS + 141_000).offset == 160
        assert asking.list_offset(to, TOPIC, 0, asking.LATEST).offset == made.end_offset

        # The idempotent producer is known from its batches alone.
        again = batch_of(rows_from(160, 10, keyed=True), CODECS["lz4"], sequence=0)
        answer = asking.produce(to, TOPIC, 0, stored_form(again, 0, -1))
        assert (answer.error_code, answer.base_offset) == (0, 160)
        late = batch_of(rows_from(170, 5, keyed=True), sequence=99)
        assert asking.produce(to, TOPIC, 0, stored_form(late, 0, -1)).error_code == 45
        following = batch_of(rows_from(170, 5, keyed=True), sequence=10)
        answer = asking.produce(to, TOPIC, 0, stored_form(following, 0, -1))
        assert (answer.error_code, answer.base_offset) == (0, 170)
        assert consume(broker, 0, 174) == [*made.rows, *rows_from(170, 5, keyed=True)]

    partition = tmp_path / "data" / f"{TOPIC}-0"
    for base, data in made.segments.items():
        stored = (partition / f"{base:020d}.log").read_bytes()
        # The last segment was written to; nothing that was there has changed.
        assert stored[: len(data)] == data
        assert base == 160 or stored == data
        assert (partition / f"{base:020d}.index").exists()
        assert (partition / f"{base:020d}.timeindex").exists()
