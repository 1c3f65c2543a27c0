"""What a leader accepts from a producer, what it writes into the batch, and which error it gives.

Expected codes and bytes were taken from Kafka 4.3's own validator, except where a comment says
otherwise.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.broker.config.log_config import LogConfig
from moldau.broker.log.machine.validation import (
    RecordValidationError,
    ValidatedBatch,
    ValidationRules,
    validate_batch,
)
from moldau.wire.batch_header import CRC_POSITION, HEADER_SIZE
from moldau.wire.compression import Compression, compress
from moldau.wire.errors import ErrorCode
from moldau.wire.records import (
    Record,
    checksum,
    crc_matches,
    decode_batch,
    encode_batch,
    encode_end_txn_marker,
    read_header,
)
from support.examples import examples

NOW = 1_700_000_000_000
HOUR_MS = 3_600_000
TINY_RULES = ValidationRules()

# One batch as Kafka 4.3 appends it at offset 42 in leader epoch 3, by topic setting.
FIXED = "0000018bcfe56800%s00000000000003e800020000000700000002"
SECTION = "9801000000066b657978" + "76616c756520" * 10 + "0402680278026e01" + "0c000a02010100"
KAFKA_UNCOMPRESSED = bytes.fromhex(
    "000000000000002a000000860000000302143186e1000000000001" + FIXED % "0000018bcfe56805" + SECTION
)
KAFKA_LOG_APPEND_TIME = bytes.fromhex(
    "000000000000002a000000860000000302953b3bfd000800000001" + FIXED % "0000018bcfe56809" + SECTION
)
KAFKA_COMPRESSED = {
    "gzip": "000000000000002a0000006600000003021d087b3b000100000001"
    + FIXED % "0000018bcfe56805"
    + "1f8b08000000000000ff9bc1c8c0c0c0969d5a59519698539aaa401ec9c294c154c194c7c8c3c0c5c4c8c8"
    "00000f82e45755000000",
    "snappy": "000000000000002a0000006a00000003021d67fad3000200000001"
    + FIXED % "0000018bcfe56805"
    + "82534e4150505900000000010000000100000025553c9801000000066b65797876616c756520d606003804"
    "02680278026e010c000a02010100",
    "lz4": "000000000000002a0000006600000003026dc709ba000300000001"
    + FIXED % "0000018bcfe56805"
    + "04224d1860408226000000ff019801000000066b65797876616c756520060023f0000402680278026e010c"
    "000a0201010000000000",
    "zstd": "000000000000002a0000006300000003025298cb7b000400000001"
    + FIXED % "0000018bcfe56805"
    + "28b52ffd0058340100f89801000000066b65797876616c7565200402680278026e010c000a020101000100"
    "96b32c01010000",
}
KAFKA_ROWS = [
    (b"key", b"value " * 10, NOW, (("h", b"x"), ("n", None))),
    (None, None, NOW + 5, ()),
]


def produced(rows: list[Any] | None = None, **options: Any) -> bytearray:
    return bytearray(encode_batch(rows or [(b"k", b"v", NOW, ())], **options))


def with_crc(batch: bytes | bytearray) -> bytearray:
    """The batch with the checksum its bytes now have, so that later checks are reached."""
    fixed = bytearray(batch)
    struct.pack_into(">I", fixed, CRC_POSITION, checksum(fixed, 0, len(fixed)))
    return fixed


def put(format: str, position: int, value: int) -> Callable[[bytearray], bytearray]:
    def change(batch: bytearray) -> bytearray:
        struct.pack_into(format, batch, position, value)
        return with_crc(batch)

    return change


def validate(batch: Any, rules: ValidationRules = TINY_RULES, **options: Any) -> ValidatedBatch:
    arguments = {"offset": 42, "now_ms": NOW, "leader_epoch": 3} | options
    return validate_batch(batch, rules, **arguments)


def refusal(batch: Any, rules: ValidationRules = TINY_RULES, **options: Any) -> Any:
    with pytest.raises(RecordValidationError) as caught:
        validate(batch, rules, **options)
    return caught.value


def test_what_kafka_writes_for_the_same_batch() -> None:
    batch = produced(KAFKA_ROWS, producer_id=1000, producer_epoch=2, base_sequence=7)
    accepted = validate(batch)
    assert bytes(accepted.buffer) == KAFKA_UNCOMPRESSED
    assert accepted[1:] == (42, 43, NOW + 5, 43, NOW, -1, 1000, 2, 7, 8, False, False, 2, 146)


def test_what_kafka_writes_with_log_append_time() -> None:
    batch = produced(KAFKA_ROWS, producer_id=1000, producer_epoch=2, base_sequence=7)
    accepted = validate(batch, ValidationRules(log_append_time=True), now_ms=NOW + 9)
    assert bytes(accepted.buffer) == KAFKA_LOG_APPEND_TIME
    assert accepted.log_append_time_ms == accepted.max_timestamp == NOW + 9
    assert accepted.offset_of_max_timestamp == 42


@pytest.mark.parametrize("name", KAFKA_COMPRESSED)
def test_what_kafka_compresses_is_read(name: str) -> None:
    batch = bytes.fromhex(KAFKA_COMPRESSED[name])
    assert crc_matches(batch, 0, read_header(batch))
    records = decode_batch(batch)
    assert [(r.key, r.value, r.timestamp, r.headers) for r in records] == KAFKA_ROWS
    assert [r.offset for r in records] == [42, 43]
    from_client = bytearray(batch)
    from_client[:8] = bytes(8)
    assert bytes(validate(from_client).buffer) == batch


def test_offset_and_epoch_are_written_in_place() -> None:
    batch = produced()
    before = bytes(batch)
    accepted = validate(memoryview(batch))
    assert accepted.buffer.obj is batch
    assert batch[:8] == struct.pack(">q", 42)
    assert batch[12:16] == struct.pack(">i", 3)
    assert batch[8:12] + batch[16:] == before[8:12] + before[16:]


def test_bytes_that_cannot_be_written_are_copied() -> None:
    batch = bytes(produced())
    accepted = validate(batch)
    assert read_header(accepted.buffer).base_offset == 42
    assert read_header(batch).base_offset == 0


def test_batch_inside_a_larger_buffer() -> None:
    batch = produced()
    frame = bytearray(b"before" + batch + b"after")
    accepted = validate(memoryview(frame)[6 : 6 + len(batch)])
    assert frame[:6] == b"before"
    assert frame[-5:] == b"after"
    assert bytes(accepted.buffer) == frame[6:-5]


def test_cut_off_bytes_after_the_batch_are_dropped() -> None:
    batch = produced()
    for rest in (b"\x00", batch[:16], batch[:-1]):
        assert validate(batch + rest).size == len(batch)


MALFORMED = [
    pytest.param(lambda b: b"", ErrorCode.INVALID_RECORD, id="no bytes"),
    pytest.param(lambda b: b[:11], ErrorCode.INVALID_RECORD, id="too short for a length"),
    pytest.param(lambda b: b[:-1], ErrorCode.INVALID_RECORD, id="cut off"),
    pytest.param(lambda b: b[:40], ErrorCode.INVALID_RECORD, id="header cut off"),
    pytest.param(lambda b: b + b, ErrorCode.INVALID_RECORD, id="two batches"),
    pytest.param(
        lambda b: b + b[:8] + bytes(4) + b[12:], ErrorCode.CORRUPT_MESSAGE, id="rubbish follows"
    ),
    pytest.param(put(">i", 8, 13), ErrorCode.CORRUPT_MESSAGE, id="length below any format's"),
    pytest.param(put(">i", 8, -1), ErrorCode.CORRUPT_MESSAGE, id="length negative"),
    pytest.param(put(">i", 8, 10_000), ErrorCode.INVALID_RECORD, id="length past the end"),
    pytest.param(put(">i", 8, 20), ErrorCode.CORRUPT_MESSAGE, id="length below the header"),
    pytest.param(put(">b", 16, 0), ErrorCode.INVALID_RECORD, id="magic 0"),
    pytest.param(put(">b", 16, 1), ErrorCode.INVALID_RECORD, id="magic 1"),
    pytest.param(put(">b", 16, 3), ErrorCode.CORRUPT_MESSAGE, id="magic 3"),
    pytest.param(put(">b", 16, -1), ErrorCode.CORRUPT_MESSAGE, id="magic -1"),
    pytest.param(lambda b: b[:-1] + b"\x07", ErrorCode.CORRUPT_MESSAGE, id="checksum"),
    pytest.param(put(">q", 0, 1), ErrorCode.INVALID_RECORD, id="base offset not 0"),
    pytest.param(put(">i", 23, 0), ErrorCode.INVALID_RECORD, id="fewer offsets than records"),
    pytest.param(put(">i", 23, 2), ErrorCode.INVALID_RECORD, id="more offsets than records"),
    pytest.param(put(">i", 23, -1), ErrorCode.INVALID_RECORD, id="no offsets"),
    pytest.param(put(">i", 57, 0), ErrorCode.INVALID_RECORD, id="no records"),
    pytest.param(put(">i", 57, -1), ErrorCode.INVALID_RECORD, id="negative count"),
    pytest.param(put(">h", 21, 0x20), ErrorCode.INVALID_RECORD, id="control batch"),
    pytest.param(put(">q", 43, 5), ErrorCode.INVALID_RECORD, id="producer without a sequence"),
    pytest.param(put(">b", 61, 30), ErrorCode.INVALID_RECORD, id="record too long"),
    pytest.param(put(">b", 61, 6), ErrorCode.INVALID_RECORD, id="record too short"),
    # Kafka fails on an unknown codec with an internal error.
    pytest.param(put(">h", 21, 7), ErrorCode.INVALID_RECORD, id="unknown codec"),
    pytest.param(put(">h", 21, 2), ErrorCode.INVALID_RECORD, id="not compressed as it says"),
]


@pytest.mark.parametrize(("change", "code"), MALFORMED)
def test_malformed_batches(change: Callable[[bytearray], Any], code: ErrorCode) -> None:
    batch = produced([(b"k", b"v", NOW, ()), (b"l", b"w", NOW, ())])
    assert validate(bytes(batch)).record_count == 2
    error = refusal(change(batch))
    assert error.code is code
    assert error.message


@pytest.mark.parametrize("deltas", [(0, 2), (1, 2), (0, 5)])
@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4])
def test_offset_deltas_with_gaps(deltas: tuple[int, int], compression: Compression) -> None:
    # Kafka takes these when uncompressed, and consumers then see wrong offsets.
    rows = [Record(delta, NOW, b"k", b"v") for delta in deltas]
    batch = produced(rows, base_offset=0, compression=compression)
    error = refusal(put(">i", 23, 1)(batch))
    assert (error.code, "offset deltas" in error.message) == (ErrorCode.INVALID_RECORD, True)


def test_the_first_of_several_faults_is_told() -> None:
    rules = ValidationRules(max_message_bytes=10)
    assert refusal(put(">q", 0, 1)(produced()), rules).code is ErrorCode.INVALID_RECORD
    assert refusal(put(">b", 61, 30)(produced()), rules).code is ErrorCode.MESSAGE_TOO_LARGE
    damaged = produced(is_control=True)
    damaged[-1] ^= 1
    assert refusal(damaged).code is ErrorCode.CORRUPT_MESSAGE
    zstd = produced(compression=Compression.ZSTD)
    code = refusal(zstd + zstd, produce_version=6).code
    assert code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_zstd_needs_produce_7() -> None:
    batch = produced(compression=Compression.ZSTD)
    error = refusal(bytes(batch), produce_version=6)
    assert error.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert validate(batch, produce_version=7).record_count == 1
    assert validate(produced(compression=Compression.LZ4), produce_version=3).record_count == 1


def test_coordinators_may_write_control_batches() -> None:
    marker = encode_end_txn_marker(
        producer_id=1, producer_epoch=0, committed=True, coordinator_epoch=1, timestamp=NOW
    )
    assert refusal(marker).code is ErrorCode.INVALID_RECORD
    accepted = validate(marker, from_client=False)
    assert (accepted.is_control, accepted.is_transactional) == (True, True)
    assert (accepted.base_sequence, accepted.last_sequence) == (-1, -1)


@pytest.mark.parametrize("compression", Compression)
def test_compacted_topics_take_no_null_keys(compression: Compression) -> None:
    rows = [(key, b"v", NOW, ()) for key in (b"a", None, b"", None)]
    batch = produced(rows, compression=compression)
    assert validate(bytes(batch)).record_count == 4
    error = refusal(batch, ValidationRules(compacted=True))
    assert error.code is ErrorCode.INVALID_RECORD
    assert [index for index, _ in error.record_errors] == [1, 3]
    assert "without a key" in error.record_errors[0][1]


@pytest.mark.parametrize(
    ("timestamp", "accepted"),
    [
        (NOW, True),
        (-1, True),
        (NOW + HOUR_MS, True),
        (NOW + HOUR_MS + 1, False),
        (NOW - 1000, True),
        (NOW - 1001, False),
        (0, False),
    ],
)
@pytest.mark.parametrize("compression", [Compression.NONE, Compression.SNAPPY])
def test_create_time_limits(timestamp: int, accepted: bool, compression: Compression) -> None:
    rows = [(b"k", b"v", NOW, ()), (b"k", b"v", timestamp, ())]
    batch = produced(rows, compression=compression)
    rules = ValidationRules(timestamp_before_max_ms=1000)
    if accepted:
        assert validate(batch, rules).max_timestamp == max(NOW, timestamp)
        return
    error = refusal(batch, rules)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [1]
    assert str(timestamp) in error.record_errors[0][1]


def test_a_bad_timestamp_outweighs_a_null_key() -> None:
    rows = [(None, b"v", NOW, ()), (b"k", b"v", NOW + 2 * HOUR_MS, ())]
    error = refusal(produced(rows), ValidationRules(compacted=True))
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [0, 1]


def test_errors_of_very_many_records_are_bounded() -> None:
    error = refusal(produced([(None, b"", NOW, ())] * 5000), ValidationRules(compacted=True))
    assert len(error.record_errors) == 1000
    assert "5000 of 5000" in error.message


def test_without_timestamps_there_is_no_largest() -> None:
    accepted = validate(produced([(b"k", b"v", -1, ())]))
    assert (accepted.max_timestamp, accepted.offset_of_max_timestamp) == (-1, -1)


def test_log_append_time_disregards_the_producers_timestamps() -> None:
    batch = produced([(b"k", b"v", 5, ()), (b"k", b"v", NOW * 2, ())])
    accepted = validate(batch, ValidationRules(log_append_time=True, timestamp_before_max_ms=0))
    assert crc_matches(accepted.buffer, 0, read_header(accepted.buffer))
    assert [record.timestamp for record in decode_batch(accepted.buffer)] == [NOW, NOW]


@pytest.mark.parametrize(
    ("log_append_time", "stamp", "code"),
    [
        pytest.param(True, NOW, ErrorCode.INVALID_TIMESTAMP, id="on an append-time topic"),
        pytest.param(False, -1, ErrorCode.INVALID_TIMESTAMP, id="without a timestamp"),
        pytest.param(False, NOW * 2, ErrorCode.INVALID_TIMESTAMP, id="too late"),
    ],
)
def test_producers_may_not_claim_append_time(
    log_append_time: bool, stamp: int, code: ErrorCode
) -> None:
    batch = produced([(b"k", b"v", NOW, ())] * 2, log_append_time_ms=stamp)
    error = refusal(batch, ValidationRules(log_append_time=log_append_time))
    assert error.code is code
    assert [index for index, _ in error.record_errors] == [0, 1]


def test_claimed_append_time_becomes_create_time() -> None:
    accepted = validate(produced(log_append_time_ms=NOW))
    header = read_header(accepted.buffer)
    assert not header.is_log_append_time
    assert header.max_timestamp == accepted.max_timestamp == NOW
    assert crc_matches(accepted.buffer, 0, header)


@pytest.mark.parametrize("compression", Compression)
def test_a_wrong_maximum_timestamp_is_put_right(compression: Compression) -> None:
    batch = put(">q", 35, 5)(produced(compression=compression))
    accepted = validate(batch)
    header = read_header(accepted.buffer)
    assert header.max_timestamp == accepted.max_timestamp == NOW
    assert crc_matches(accepted.buffer, 0, header)


@pytest.mark.parametrize("source", Compression)
@pytest.mark.parametrize("target", [None, *Compression])
def test_topics_choose_the_codec(source: Compression, target: Compression | None) -> None:
    rows = [(b"key %d" % i, b"value " * 20, NOW + i, (("h", b"x"),)) for i in range(30)]
    batch = produced(rows, compression=source, producer_id=5, producer_epoch=1, base_sequence=9)
    untouched = bytes(batch)
    accepted = validate(batch, ValidationRules(target_compression=target))
    header = read_header(accepted.buffer)
    assert header.compression is (source if target is None else target)
    assert accepted.size == header.size == len(accepted.buffer)
    assert crc_matches(accepted.buffer, 0, header)
    records = decode_batch(accepted.buffer)
    assert [(r.key, r.value, r.timestamp, r.headers) for r in records] == rows
    assert [r.offset for r in records] == list(range(42, 72))
    assert (header.producer_id, header.base_sequence, accepted.last_sequence) == (5, 9, 38)
    if target in (None, source):
        assert bytes(accepted.buffer[HEADER_SIZE:]) == untouched[HEADER_SIZE:]


def test_size_is_checked_after_recompression() -> None:
    rows = [(b"k", bytes(5000), NOW, ())]
    rules = ValidationRules(target_compression=Compression.NONE, max_message_bytes=1000)
    error = refusal(produced(rows, compression=Compression.ZSTD), rules)
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert "1000" in error.message


def test_batches_must_fit_a_segment() -> None:
    error = refusal(produced(), ValidationRules(segment_bytes=50))
    assert error.code is ErrorCode.RECORD_LIST_TOO_LARGE


@pytest.mark.parametrize("compression", [c for c in Compression if c is not Compression.NONE])
def test_bombs_are_refused(compression: Compression) -> None:
    rows = [(b"k", bytes(3_000_000), NOW, ())]
    batch = produced(rows, compression=compression)
    error = refusal(batch, ValidationRules(decompressed_size_max=1_000_000))
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE


def test_malformed_records_inside_compressed_batches() -> None:
    batch = produced(compression=Compression.GZIP)
    section = bytearray(produced()[HEADER_SIZE:])
    section[0] += 2
    rewritten = batch[:HEADER_SIZE] + compress(Compression.GZIP, section)
    error = refusal(put(">i", 8, len(rewritten) - 12)(rewritten))
    assert error.code is ErrorCode.INVALID_RECORD
    assert "record 0" in error.message


@pytest.mark.parametrize(
    ("config", "rules"),
    [
        pytest.param(LogConfig(), ValidationRules(), id="defaults"),
        pytest.param(
            LogConfig(
                cleanup_policy=frozenset({"compact", "delete"}),
                compression_type="zstd",
                compression_zstd_level=7,
                message_timestamp_type="LogAppendTime",
                message_timestamp_before_max_ms=1,
                message_timestamp_after_max_ms=2,
                max_message_bytes=3,
                segment_bytes=4,
            ),
            ValidationRules(
                compacted=True,
                target_compression=Compression.ZSTD,
                compression_level=7,
                log_append_time=True,
                timestamp_before_max_ms=1,
                timestamp_after_max_ms=2,
                max_message_bytes=3,
                segment_bytes=4,
            ),
            id="every setting",
        ),
        pytest.param(
            LogConfig(compression_type="uncompressed"),
            ValidationRules(target_compression=Compression.NONE),
            id="uncompressed",
        ),
        pytest.param(
            LogConfig(compression_type="gzip", compression_gzip_level=4),
            ValidationRules(target_compression=Compression.GZIP, compression_level=4),
            id="gzip level",
        ),
        pytest.param(
            LogConfig(compression_type="lz4"),
            ValidationRules(target_compression=Compression.LZ4, compression_level=9),
            id="lz4 default level",
        ),
        pytest.param(
            LogConfig(compression_type="snappy"),
            ValidationRules(target_compression=Compression.SNAPPY),
            id="snappy has no level",
        ),
    ],
)
def test_rules_of_a_topic(config: LogConfig, rules: ValidationRules) -> None:
    assert ValidationRules.from_log_config(config) == rules


@settings(deadline=None, max_examples=examples(500))
@given(data=st.data())
def test_accepted_batches_are_sound_whatever_was_sent(data: st.DataObject) -> None:
    """Any bytes end in a refusal with a code, or in a batch that every reader can read."""
    compression = data.draw(st.sampled_from(Compression))
    rows = [(b"k" * i, b"v" * 9, NOW + i, (("h", None),)) for i in range(3)]
    batch = produced(rows, compression=compression)
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(batch) - 1))
        batch[position] = data.draw(st.sampled_from([0, 1, 2, 3, 127, 128, 255]))
    if data.draw(st.booleans()):
        batch = with_crc(batch)
    target = data.draw(st.sampled_from([None, Compression.NONE, Compression.LZ4]))
    rules = ValidationRules(
        target_compression=target, decompressed_size_max=100_000, compacted=data.draw(st.booleans())
    )
    try:
        accepted = validate(batch, rules)
    except RecordValidationError:
        return
    header = read_header(accepted.buffer)
    assert crc_matches(accepted.buffer, 0, header)
    offsets = [record.offset for record in decode_batch(accepted.buffer)]
    assert offsets == list(range(42, accepted.last_offset + 1))
