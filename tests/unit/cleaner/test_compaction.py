"""What is left of a log after cleaning, against the obvious model."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moldau.broker.log.cleaner.machine.offset_map import ENTRY_SIZE
from moldau.broker.log.log import Log
from moldau.wire.records import Compression, Record, decode_batches
from support.compaction import (
    COMPACT,
    DAY_MS,
    NOW_MS,
    Broker,
    Pair,
    batches,
    contents,
    put,
)
from support.examples import examples

Row = tuple[int, bytes | None, bytes | None]
LONG_KEY = b"a key that is longer than the map keeps as it is"

keys = st.sampled_from([b"a", b"b", b"c", b"d", b"", LONG_KEY, LONG_KEY + b"2", None])
values = st.one_of(st.none(), st.binary(max_size=40))
pairs = st.lists(st.tuples(keys, values), min_size=1, max_size=6)
codecs = st.sampled_from(list(Compression))
# Each batch: its records, its codec, whether the segment ends after it.
log_contents = st.lists(st.tuples(pairs, codecs, st.booleans()), min_size=1, max_size=12)


def fill(log: Log, plan: list[tuple[list[Pair], Compression, bool]]) -> list[Row]:
    """Append what the plan says. Keyless records come from the time before compaction."""
    rows: list[Row] = []
    compacted = log.config
    log.update_config(_with_policy(compacted, frozenset({"delete"})))
    for records, codec, roll in plan:
        base = put(log, *records, compression=codec, timestamp=NOW_MS + len(rows) * 10)
        rows += [(base + i, key, value) for i, (key, value) in enumerate(records)]
        if roll:
            log.roll(NOW_MS)
    log.update_config(compacted)
    return rows


def _with_policy(config: Any, policy: frozenset[str]) -> Any:
    return config.replace(cleanup_policy=policy)


def compacted(rows: list[Row], upper: int) -> list[Row]:
    newest = {key: offset for offset, key, _ in rows if offset < upper}
    return [
        row for row in rows if row[0] >= upper or (row[1] is not None and newest[row[1]] == row[0])
    ]


def check_reads(log: Log, rows: list[Row]) -> None:
    """Reading from any offset and by any time finds what the model has."""
    everything = [r for header, records in batches(log) if not header.is_control for r in records]
    for start in range(log.log_start_offset, log.log_end_offset):
        wanted = next((row for row in rows if row[0] >= start), None)
        found = first_from(log, start)
        assert wanted == (None if found is None else (found.offset, found.key, found.value))
    for timestamp in sorted({record.timestamp + d for record in everything for d in (0, 1)}):
        first = next((r for r in everything if r.timestamp >= timestamp), None)
        found_by_time = log.offset_for_timestamp(timestamp)
        assert (None if first is None else first.offset) == (
            None if found_by_time is None else found_by_time.offset
        )


def first_from(log: Log, offset: int) -> Record | None:
    while offset < log.log_end_offset:
        result = log.read(offset, 1, upper_offset=log.log_end_offset, min_one_batch=True)
        if not result.buffers:
            return None
        for header, records in decode_batches(result.buffers[0]):
            found = next((record for record in records if record.offset >= offset), None)
            if found is not None:
                return found
            offset = header.next_offset
    return None


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(first=log_contents, second=log_contents, map_entries=st.sampled_from([1, 3, 1000]))
def test_what_remains_is_the_newest_of_each_key(
    first: list[tuple[list[Pair], Compression, bool]],
    second: list[tuple[list[Pair], Compression, bool]],
    map_entries: int,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(Path(folder))
        log = broker.create(segment_bytes=2000)
        rows = fill(log, first)
        upper = log.segments.active.base_offset
        clean_all(broker, map_entries)
        rows = compacted(rows, upper)
        assert contents(log) == rows
        check_reads(log, rows)

        # A day later the tombstones that the first cleaning has seen may go.
        broker.now_ms += DAY_MS
        rows += fill(log, second)
        later = log.segments.active.base_offset
        dirty = later > upper
        clean_all(broker, map_entries)
        if dirty:
            rows = [r for r in compacted(rows, later) if r[0] >= upper or r[2] is not None]
        assert contents(log) == rows
        check_reads(log, rows)

        end = log.log_end_offset
        broker.restart()
        assert contents(broker.log()) == rows
        broker.crash()
        assert contents(broker.log()) == rows
        assert broker.log().log_end_offset == end
        check_reads(broker.log(), rows)
        broker.manager.unlock()


def clean_all(broker: Broker, map_entries: int) -> None:
    """Clean until nothing is dirty, with a map that holds so many keys at a time."""
    config = broker.config().replace(
        log_cleaner_dedupe_buffer_size=map_entries * ENTRY_SIZE,
        log_cleaner_io_buffer_load_factor=1.0,
    )
    broker.cleaner.update_config(config)
    for _ in range(100):
        if broker.clean() is None:
            return
    pytest.fail("cleaning does not come to an end")


def test_small_segments_become_one(broker: Broker) -> None:
    log = broker.create()
    for i in range(5):
        put(log, (b"k", b"%d" % i), (b"k%d" % i, b"v"))
        broker.roll()
    before = log.size
    done = broker.clean()
    assert done is not None
    assert done.end_offset == 10
    assert [segment.base_offset for segment in log.segments] == [0, 10]
    assert contents(log) == [
        (1, b"k0", b"v"),
        (3, b"k1", b"v"),
        (5, b"k2", b"v"),
        (7, b"k3", b"v"),
    ] + [
        (8, b"k", b"4"),
        (9, b"k4", b"v"),
    ]
    assert log.size < before
    assert broker.clean() is None


def test_new_segments_do_not_outgrow_segment_bytes(broker: Broker) -> None:
    log = broker.create(segment_bytes=1000)
    for i in range(20):
        put(log, (b"key %d" % i, bytes(200)))
    broker.roll()
    assert broker.clean() is not None
    assert len(log.segments) > 5
    assert all(segment.size <= 1000 for segment in log.segments)
    assert [row[0] for row in contents(log)] == list(range(20))


def test_the_active_segment_and_undecided_offsets_are_left_alone(broker: Broker) -> None:
    log = broker.create()
    put(log, (b"k", b"1"))
    put(log, (b"k", b"2"))
    broker.roll()
    put(log, (b"k", b"3"))
    assert broker.clean() is not None
    assert contents(log) == [(1, b"k", b"2"), (2, b"k", b"3")]
    broker.roll()
    log.high_watermark = 2
    assert broker.clean() is None
    assert contents(log) == [(1, b"k", b"2"), (2, b"k", b"3")]


def test_a_batch_that_loses_nothing_stays_byte_for_byte(broker: Broker) -> None:
    log = broker.create()
    put(log, (b"a", b"1"), (b"b", b"1"), compression=Compression.GZIP)
    put(log, (b"c", b"1"), (b"a", b"2"), compression=Compression.ZSTD)
    whole = put(log, (b"d", b"1"), (b"e", b"1"), compression=Compression.SNAPPY)
    put(log, (b"c", b"2"))
    broker.roll()
    before = raw_batch(log, whole)
    assert broker.clean() is not None
    assert raw_batch(log, whole) == before
    kept = {header.base_offset: (header, records) for header, records in batches(log)}
    header, records = kept[0]
    assert header.compression is Compression.GZIP
    assert [record.offset for record in records] == [1]
    assert (header.last_offset_delta, header.record_count) == (1, 1)
    assert kept[2][0].compression is Compression.ZSTD
    assert [record.offset for record in kept[2][1]] == [3]


def raw_batch(log: Log, offset: int) -> bytes:
    result = log.read(offset, 1, upper_offset=log.log_end_offset, min_one_batch=True)
    return bytes(result.buffers[0])


def test_tombstones_wait_for_their_horizon(broker: Broker) -> None:
    log = broker.create(delete_retention_ms=1000)
    put(log, (b"a", b"1"), (b"b", b"1"), timestamp=NOW_MS)
    put(log, (b"a", None), (b"c", b"1"), timestamp=NOW_MS + 5)
    broker.roll()
    broker.clean()
    header, records = batches(log)[1]
    assert header.has_delete_horizon
    assert header.base_timestamp == NOW_MS + 1000
    # The records' own timestamps do not change with the base they are relative to.
    assert [(r.key, r.value, r.timestamp) for r in records] == [
        (b"a", None, NOW_MS + 5),
        (b"c", b"1", NOW_MS + 6),
    ]
    assert header.max_timestamp == NOW_MS + 6

    # Cleaned again before the horizon, the horizon stays what it was.
    broker.now_ms = NOW_MS + 999
    put(log, (b"x", b"1"))
    broker.roll()
    broker.clean()
    assert contents(log)[1:3] == [(2, b"a", None), (3, b"c", b"1")]
    assert batches(log)[1][0].base_timestamp == NOW_MS + 1000

    broker.now_ms = NOW_MS + 1000
    put(log, (b"y", b"1"))
    broker.roll()
    broker.clean()
    assert [key for _, key, _ in contents(log)] == [b"b", b"c", b"x", b"y"]
    assert [r.timestamp for _, rs in batches(log) for r in rs if r.key == b"c"] == [NOW_MS + 6]


def test_log_append_time_stays(broker: Broker) -> None:
    log = broker.create(message_timestamp_type="LogAppendTime")
    put(log, (b"a", b"1"), (b"b", None), timestamp=5)
    put(log, (b"a", b"2"), timestamp=5)
    broker.roll()
    broker.clean()
    header, records = batches(log)[0]
    assert header.is_log_append_time
    assert header.max_timestamp == NOW_MS
    assert [(r.key, r.timestamp) for r in records] == [(b"b", NOW_MS)]


def test_the_last_offset_of_the_range_is_kept(broker: Broker) -> None:
    log = broker.create(cleanup_policy=COMPACT | {"delete"})
    keyless = [([(None, b"1"), (None, b"2")], Compression.GZIP, False)]
    fill(log, [([(b"a", b"1")], Compression.NONE, False), *keyless, *keyless])
    log.roll(NOW_MS)
    broker.clean()
    assert contents(log) == [(0, b"a", b"1")]
    # Of the last two batches nothing is left, but where they ended is not forgotten.
    assert [(h.base_offset, h.last_offset, len(records)) for h, records in batches(log)] == [
        (0, 0, 1),
        (3, 4, 0),
    ]
    broker.crash()
    assert broker.log().log_end_offset == 5


def test_records_without_key_are_dropped_and_counted(broker: Broker) -> None:
    log = broker.create()
    fill(log, [([(None, b"1"), (b"a", b"1")], Compression.NONE, True)])
    done = broker.clean()
    assert done is not None
    assert done.records_invalid == 1
    assert contents(log) == [(1, b"a", b"1")]


def test_a_batch_larger_than_the_buffer(broker: Broker) -> None:
    log = broker.create()
    big = bytes(range(256)) * 2000
    put(log, (b"a", b"1"))
    put(log, (b"a", big), (b"b", b"1"))
    put(log, (b"b", b"2"))
    broker.roll()
    assert broker.clean() is not None
    assert contents(log) == [(1, b"a", big), (3, b"b", b"2")]
