"""Other Kafka clients read our batches and we read theirs, with every codec."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aiokafka.record.default_records as aiokafka_records
import kafka.record.default_records as kafka_python_records
import pytest
from aiokafka.record.memory_records import MemoryRecords as AioMemoryRecords
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecords as KafkaPythonMemoryRecords

from moldau.broker.log.machine.validation import ValidationRules, validate_batch
from moldau.wire.records import (
    Compression,
    crc_matches,
    decode_batch,
    encode_batch,
    encode_end_txn_marker,
    read_header,
)

NOW = 1_700_000_000_000
Row = tuple[bytes | None, bytes | None, int, tuple[tuple[str, bytes], ...]]

contents = st.one_of(st.none(), st.binary(max_size=200))
rows = st.lists(
    st.tuples(
        contents,
        contents,
        st.integers(NOW - 10**9, NOW),
        st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=9)), max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=20,
)
codecs = pytest.mark.parametrize("compression", list(Compression))


def build(module: Any, items: list[Row], compression: Compression) -> bytes:
    builder = module.DefaultRecordBatchBuilder(
        magic=2,
        compression_type=int(compression),
        is_transactional=0,
        producer_id=77,
        producer_epoch=3,
        base_sequence=5,
        batch_size=1 << 20,
    )
    for index, (key, value, timestamp, headers) in enumerate(items):
        builder.append(
            offset=index, timestamp=timestamp, key=key, value=value, headers=list(headers)
        )
    return bytes(builder.build())


def read(memory_records: Callable[[bytes], Any], batch: bytes) -> list[Row]:
    parsed = memory_records(batch)
    assert parsed.has_next()
    theirs = parsed.next_batch()
    assert theirs.validate_crc()
    return [
        (record.key, record.value, record.timestamp, tuple(map(tuple, record.headers)))
        for record in theirs
    ]


@codecs
@pytest.mark.parametrize("memory_records", [KafkaPythonMemoryRecords, AioMemoryRecords])
@settings(deadline=None, max_examples=25)
@given(items=rows)
def test_they_read_ours(
    compression: Compression, memory_records: Callable[[bytes], Any], items: list[Row]
) -> None:
    assert read(memory_records, encode_batch(items, compression=compression)) == items


@codecs
@pytest.mark.parametrize("module", [kafka_python_records, aiokafka_records])
@settings(deadline=None, max_examples=25)
@given(items=rows)
def test_we_read_and_accept_theirs(compression: Compression, module: Any, items: list[Row]) -> None:
    batch = build(module, items, compression)
    header = read_header(batch)
    assert crc_matches(batch, 0, header)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 3, 5)
    assert [(r.key, r.value, r.timestamp, r.headers) for r in decode_batch(batch)] == items
    if compression is Compression.NONE:
        options: dict[str, Any] = {"producer_id": 77, "producer_epoch": 3, "base_sequence": 5}
        ours = encode_batch(items, **options)
        # They differ in the leader epoch that the client fills in, which the broker replaces.
        assert ours[16:] == batch[16:]
    accepted = validate_batch(batch, ValidationRules(), offset=900, now_ms=NOW, leader_epoch=6)
    assert accepted.last_offset == 899 + len(items)
    assert accepted.max_timestamp == max(item[2] for item in items)
    assert read(AioMemoryRecords, bytes(accepted.buffer)) == items


@pytest.mark.parametrize("memory_records", [KafkaPythonMemoryRecords, AioMemoryRecords])
def test_they_see_our_markers_as_control_batches(memory_records: Callable[[bytes], Any]) -> None:
    marker = encode_end_txn_marker(
        producer_id=7, producer_epoch=0, committed=True, coordinator_epoch=1, timestamp=NOW
    )
    theirs = memory_records(marker).next_batch()
    assert theirs.is_control_batch
    assert theirs.is_transactional
    assert theirs.producer_id == 7
