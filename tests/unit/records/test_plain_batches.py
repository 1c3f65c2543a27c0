"""What accepts plain batches agrees with the whole validation, in both of its forms."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.broker.log import machine
from moldau.broker.log.machine import _plain_batches
from moldau.broker.log.machine.validation import (
    RecordValidationError,
    ValidationRules,
    validate_batch,
)
from moldau.wire.batch_header import CRC_POSITION
from moldau.wire.checksums import crc32c
from moldau.wire.records import Compression, encode_batch
from support.plain import load_plain

NOW = 1_700_000_000_000
HOUR = 3_600_000
FORMS = {"installed": _plain_batches, "plain": load_plain(machine, "_plain_batches")}

rows = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=5),
        st.none() | st.binary(max_size=200),
        st.sampled_from([-1, NOW - HOUR - 1, NOW - 5, NOW, NOW + HOUR, NOW + HOUR + 1]),
        st.just(()),
    ),
    min_size=1,
    max_size=5,
)
batches = st.builds(
    encode_batch,
    rows,
    compression=st.sampled_from([Compression.NONE, Compression.NONE, Compression.GZIP]),
    producer_id=st.sampled_from([-1, 0, 2**40]),
    producer_epoch=st.sampled_from([-1, 0, 300, 2**15 - 1]),
    base_sequence=st.sampled_from([-1, 0, 7, 2**31 - 1]),
    is_transactional=st.booleans(),
    is_control=st.sampled_from([False, False, True]),
)
#: Position and value of a byte, and whether the checksum is made to match.
damages = st.none() | st.tuples(st.integers(0, 80), st.integers(0, 255), st.booleans())
rules = st.builds(
    ValidationRules,
    timestamp_before_max_ms=st.sampled_from([HOUR, 2**63 - 1]),
    timestamp_after_max_ms=st.sampled_from([HOUR, 2**63 - 1]),
    compacted=st.booleans(),
    max_message_bytes=st.sampled_from([100, 1_000_000]),
    segment_bytes=st.sampled_from([120, 1_000_000]),
    target_compression=st.sampled_from([None, Compression.NONE, Compression.GZIP]),
    log_append_time=st.sampled_from([False, False, True]),
)


def damaged(batch: bytes, damage: tuple[int, int, bool] | None) -> bytes:
    if damage is None or damage[0] >= len(batch):
        return batch
    position, value, fix = damage
    changed = bytearray(batch)
    changed[position] = value
    if fix:
        struct.pack_into(">I", changed, CRC_POSITION, crc32c(bytes(changed[CRC_POSITION + 4 :])))
    return bytes(changed)


def result_of(batch: bytes, applied: ValidationRules, plain: Any) -> Any:
    """What becomes of the batch with `plain` in front of the whole validation, or without."""
    changed = replace(applied)
    object.__setattr__(changed, "plain", plain)
    buffer = bytearray(batch)
    try:
        valid = validate_batch(buffer, changed, offset=2**40, now_ms=NOW, leader_epoch=2**31 - 1)
    except RecordValidationError as error:
        return error.code, error.message, error.record_errors, bytes(buffer)
    return (bytes(valid.buffer), *valid[1:])


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=400, deadline=None)
@given(batch=batches, damage=damages, applied=rules)
def test_it_agrees_with_the_whole_validation(
    form: str, batch: bytes, damage: tuple[int, int, bool] | None, applied: ValidationRules
) -> None:
    plain = None
    if not applied.log_append_time and applied.target_compression in (None, Compression.NONE):
        plain = FORMS[form].PlainBatches(
            size_max=min(applied.max_message_bytes, applied.segment_bytes),
            timestamp_before_max_ms=applied.timestamp_before_max_ms,
            timestamp_after_max_ms=applied.timestamp_after_max_ms,
            compacted=applied.compacted,
        )
    given_batch = damaged(batch, damage)
    assert result_of(given_batch, applied, plain) == result_of(given_batch, applied, None)


@pytest.mark.parametrize("form", FORMS)
def test_what_most_producers_send_is_plain(form: str) -> None:
    plain = FORMS[form].PlainBatches(
        size_max=1000, timestamp_before_max_ms=HOUR, timestamp_after_max_ms=HOUR, compacted=False
    )
    batch = bytearray(encode_batch([(None, b"v", NOW, ()), (b"k", b"w", NOW + 1, ())]))
    accepted = plain.accept(memoryview(batch), 42, NOW, 3)
    assert (accepted.base_offset, accepted.last_offset, accepted.record_count) == (42, 43, 2)
    assert batch[:8] == (42).to_bytes(8, "big")
    assert batch[12:16] == (3).to_bytes(4, "big")


@pytest.mark.parametrize("form", FORMS)
def test_what_cannot_be_written_is_not_plain(form: str) -> None:
    plain = FORMS[form].PlainBatches(
        size_max=1000, timestamp_before_max_ms=HOUR, timestamp_after_max_ms=HOUR, compacted=False
    )
    batch = encode_batch([(None, b"v", NOW, ())])
    assert plain.accept(memoryview(batch), 42, NOW, 3) is None


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=200, deadline=None)
@given(batch=batches, damage=damages, rest=st.sampled_from([b"", b"x", bytes(80)]))
def test_a_single_batch_fills_its_bytes(
    form: str, batch: bytes, damage: tuple[int, int, bool] | None, rest: bytes
) -> None:
    records = memoryview(damaged(batch, damage) + rest)
    attributes = FORMS[form].attributes_of_single(records)
    if attributes >= 0:
        assert records[16] == 2
        assert int.from_bytes(records[8:12], "big") + 12 == len(records)
        assert records[22] == attributes
    elif len(records) >= 61 and records[22] & 7 != 4:
        assert records[16] != 2 or int.from_bytes(records[8:12], "big") + 12 != len(records)


@pytest.mark.skipif(not _plain_batches.COMPILED, reason="plain Python takes any bytes")
@pytest.mark.parametrize("data", [bytes(100), memoryview(bytes(200))[::2]], ids=["bytes", "gaps"])
def test_only_bytes_that_follow_each_other_are_looked_at(data: Any) -> None:
    with pytest.raises(TypeError, match="follow each other"):
        _plain_batches.attributes_of_single(data)
