"""Transactions and producers in compacted logs: what goes, what stays, what a restart knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.broker.log.log import Log
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.records import Compression, ControlType, decode_control_type
from support.compaction import NOW_MS, Broker, batches, contents, end_transaction, put

ABORT, COMMIT = "abort", "commit"


def put_from(
    log: Log,
    producer_id: int,
    sequence: int,
    *keys: bytes,
    transactional: bool = True,
    epoch: int = 0,
    value: bytes | None = b"v",
) -> int:
    return put(
        log,
        *[(key, value) for key in keys],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=transactional,
    )


def markers(log: Log) -> list[tuple[int, str]]:
    return [
        (
            header.base_offset,
            ABORT if decode_control_type(records[0].key) == ControlType.ABORT else COMMIT,
        )
        for header, records in batches(log)
        if header.is_control and records
    ]


def aborted(log: Log) -> list[tuple[int, int]]:
    found = log.aborted_transactions(log.log_start_offset, log.log_end_offset)
    return [(entry.first_offset, entry.last_offset) for entry in found]


def clean_later(broker: Broker, log: Log, *, days: int = 0) -> None:
    """Clean, with something new in the log so that there is a reason to."""
    broker.now_ms += days * 86_400_000
    put(log, (b"filler", b"v"))
    broker.roll()
    assert broker.clean() is not None


def producers(log: Log) -> dict[int, tuple[int, int, int]]:
    return {
        entry.producer_id: (entry.epoch, entry.last_sequence, entry.last_offset)
        for entry in log.producers.entries.values()
    }


def test_aborted_data_goes_at_once_and_supersedes_nothing(broker: Broker) -> None:
    log = broker.create()
    put(log, (b"a", b"old"))
    put_from(log, 7, 0, b"a", b"b")
    put_from(log, 8, 0, b"c")
    end_transaction(log, 7, committed=False)
    end_transaction(log, 8, committed=True)
    put_from(log, 7, 2, b"d")
    end_transaction(log, 7, committed=True)
    clean_later(broker, log)
    assert contents(log) == [
        (0, b"a", b"old"),
        (3, b"c", b"v"),
        (6, b"d", b"v"),
        (8, b"filler", b"v"),
    ]
    # The data is gone, its marker waits; committed data has its markers.
    assert markers(log) == [(4, ABORT), (5, COMMIT), (7, COMMIT)]


def test_an_abort_marker_goes_a_retention_after_its_data(broker: Broker) -> None:
    log = broker.create()
    put_from(log, 7, 0, b"a")
    end_transaction(log, 7, committed=False)
    log.producers.entries.clear()  # the producer has expired
    clean_later(broker, log)
    assert contents(log) == [(2, b"filler", b"v")]
    assert markers(log) == [(1, ABORT)]
    assert aborted(log) == [(0, 1)]
    assert not batches(log)[0][0].has_delete_horizon

    # The second cleaning finds no data any more and sets the horizon.
    clean_later(broker, log)
    assert markers(log) == [(1, ABORT)]
    assert aborted(log) == []
    assert batches(log)[0][0].has_delete_horizon

    clean_later(broker, log)
    assert markers(log) == [(1, ABORT)]
    clean_later(broker, log, days=1)
    assert markers(log) == []


def test_a_commit_marker_stays_while_a_record_of_its_transaction_does(broker: Broker) -> None:
    log = broker.create()
    put_from(log, 7, 0, b"a", b"b")
    end_transaction(log, 7, committed=True)
    log.producers.entries.clear()
    clean_later(broker, log)
    clean_later(broker, log, days=2)
    clean_later(broker, log, days=2)
    assert markers(log) == [(2, COMMIT)]
    put(log, (b"a", b"new"), (b"b", b"new"))
    clean_later(broker, log)
    clean_later(broker, log)
    assert markers(log) == [(2, COMMIT)]
    clean_later(broker, log, days=1)
    assert markers(log) == []


def test_a_transaction_that_ends_in_the_active_segment(broker: Broker) -> None:
    log = broker.create()
    put_from(log, 7, 0, b"a")
    put_from(log, 8, 0, b"b")
    broker.roll()
    assert broker.clean() is None, "undecided data must not be touched"
    end_transaction(log, 7, committed=False)
    end_transaction(log, 8, committed=True)
    assert broker.clean() is not None
    assert contents(log) == [(1, b"b", b"v")]
    assert aborted(log) == [(0, 2)]
    # The empty batch that is kept for producer 7 still counts as aborted to a reader.
    assert [header.base_offset for header, records in batches(log) if not records] == [0]


def test_an_aborted_transaction_over_several_segments(broker: Broker) -> None:
    log = broker.create(segment_bytes=300)
    for i in range(6):
        put_from(log, 7, i, b"key %d" % i, value=bytes(150))
    put(log, (b"key 2", b"other"))
    end_transaction(log, 7, committed=False)
    assert len(log.segments) > 3
    clean_later(broker, log)
    assert contents(log) == [(6, b"key 2", b"other"), (8, b"filler", b"v")]
    assert aborted(log) == [(0, 7)]


def test_sequence_numbers_survive_cleaning_and_crashes(broker: Broker) -> None:
    log = broker.create()
    put_from(log, 1, 0, b"a", b"b", transactional=False)
    put_from(log, 1, 2, b"a", b"b", b"c", transactional=False)
    put_from(log, 2, 0, b"c", transactional=False)
    put(log, (b"a", b"new"), (b"b", b"new"), (b"c", b"new"))
    clean_later(broker, log)
    state = producers(log)
    assert state == {1: (0, 4, 4), 2: (0, 0, 5)}
    kept = [(h.base_offset, h.last_offset, h.record_count) for h, _ in batches(log)]
    assert kept == [(2, 4, 0), (5, 5, 0), (6, 8, 3), (9, 9, 1)]
    for path in log_files(broker, ".snapshot"):
        path.unlink()
    broker.crash()
    log = broker.log()
    assert producers(log) == state
    with pytest.raises(ApiError) as error:
        put_from(log, 1, 9, b"a", transactional=False)
    assert error.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    # A retry of the last batch is known, though none of its records is left.
    assert put_from(log, 1, 2, b"a", b"b", b"c", transactional=False) == 2
    assert put_from(log, 1, 5, b"a", transactional=False) == 10


def test_transactional_state_survives_cleaning_and_crashes(broker: Broker) -> None:
    log = broker.create()
    put_from(log, 1, 0, b"a")
    end_transaction(log, 1, committed=True)
    put_from(log, 2, 0, b"b")
    end_transaction(log, 2, committed=False)
    # A marker with a new epoch (the coordinator fences): only it tells of the epoch.
    put_from(log, 3, 0, b"c")
    end_transaction(log, 3, committed=False, epoch=1)
    put(log, (b"a", b"new"), (b"b", b"new"), (b"c", b"new"))
    clean_later(broker, log)
    clean_later(broker, log)
    state = producers(log)
    assert state[3] == (1, -1, -1)
    for path in log_files(broker, ".snapshot"):
        path.unlink()
    broker.crash()
    log = broker.log()
    assert producers(log) == state
    assert log.last_stable_offset == log.log_end_offset, "no transaction may look open"
    with pytest.raises(ApiError) as error:
        put_from(log, 3, 0, b"a", epoch=0)
    assert error.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_the_last_marker_of_a_producer_stays_as_a_header(broker: Broker) -> None:
    log = broker.create()
    put_from(log, 3, 0, b"c")
    marker = end_transaction(log, 3, committed=False, epoch=1)
    for days in (0, 0, 2):
        clean_later(broker, log, days=days)
    header, records = batches(log)[0]
    assert (header.base_offset, header.producer_id, header.producer_epoch) == (marker, 3, 1)
    assert header.is_control
    assert not records


def log_files(broker: Broker, suffix: str) -> list[Path]:
    return [p for p in Path(broker.log().dir).iterdir() if p.name.endswith(suffix)]


def test_a_batch_kept_for_its_producer_is_a_bare_header(broker: Broker) -> None:
    log = broker.create()
    put(
        log,
        (b"a", b"1"),
        (b"b", b"1"),
        timestamp=NOW_MS + 7,
        compression=Compression.ZSTD,
        producer_id=5,
        producer_epoch=3,
        base_sequence=0,
    )
    before = batches(log)[0][0]
    put(log, (b"a", b"2"), (b"b", b"2"))
    clean_later(broker, log)
    after = batches(log)[0][0]
    # Compared with what Kafka's cleaner writes: everything but what the records need.
    assert after == before._replace(
        batch_length=49, crc=after.crc, attributes=0, base_timestamp=-1, record_count=0
    )
    assert after.max_timestamp == NOW_MS + 8
    # Cleaning it again changes nothing.
    clean_later(broker, log)
    assert batches(log)[0][0] == after
