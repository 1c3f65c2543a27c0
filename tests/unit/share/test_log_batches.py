"""What is read from the log for share partitions."""

from __future__ import annotations

import pytest

from moldau.broker.share.log_batches import aborted_spans, slice_for, spans_of
from moldau.broker.share.machine.acquisition import AcquiredRecords, Span
from moldau.wire.records import encode_batch, encode_end_txn_marker

FAR = 1_000


def batch(
    base_offset: int, count: int = 1, producer_id: int = -1, transactional: bool = True
) -> bytes:
    producer = (
        {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0}
        if producer_id >= 0
        else {}
    )
    return encode_batch(
        [(None, b"v", 0, ())] * count,
        base_offset=base_offset,
        is_transactional=transactional and producer_id >= 0,
        **producer,  # type: ignore[arg-type]
    )


def marker(base_offset: int, producer_id: int, *, committed: bool) -> bytes:
    return encode_end_txn_marker(
        producer_id=producer_id,
        producer_epoch=0,
        committed=committed,
        coordinator_epoch=0,
        timestamp=0,
        base_offset=base_offset,
    )


def offsets(spans: list[Span]) -> list[tuple[int, int]]:
    return [(span.base_offset, span.last_offset) for span in spans]


def test_a_batch_that_is_cut_off_is_left_out() -> None:
    whole = batch(0, 3) + batch(3, 2)
    assert offsets(spans_of(memoryview(whole), FAR, FAR)) == [(0, 2), (3, 4)]
    assert offsets(spans_of(memoryview(whole[:-1]), FAR, FAR)) == [(0, 2)]
    assert spans_of(memoryview(b""), FAR, FAR) == []


@pytest.mark.parametrize(
    ("reach", "max_records", "count"),
    [(0, 1, 1), (2, 1, 1), (3, 1, 2), (0, 4, 2), (0, 6, 3), (5, 1, 3), (14, 1, 4), (99, 1, 4)],
)
def test_no_more_is_looked_at_than_needed(reach: int, max_records: int, count: int) -> None:
    buffer = memoryview(batch(0, 3) + batch(3, 2) + batch(5, 9) + batch(14, 9))
    assert len(spans_of(buffer, reach, max_records)) == count


def test_records_of_aborted_transactions() -> None:
    parts = [
        batch(0, 2, 7),
        batch(2, 1, 8),
        batch(3, 1),
        marker(4, 7, committed=False),
        batch(5, 1, 7),
        marker(6, 8, committed=True),
        marker(7, 7, committed=True),
        batch(8, 1, 7, transactional=False),
    ]
    buffer = memoryview(b"".join(parts))
    spans = spans_of(buffer, FAR, FAR)
    assert offsets(aborted_spans(buffer, spans, [(7, 0)])) == [(0, 1)]
    assert offsets(aborted_spans(buffer, spans, [(8, 2), (7, 0)])) == [(0, 1), (2, 2)]
    assert offsets(aborted_spans(buffer, spans, [(7, 5)])) == [(5, 5)]


@pytest.mark.parametrize(
    ("acquired", "bases"),
    [
        ([(0, 8, 1)], [0, 3, 5]),
        ([(1, 1, 1)], [0]),
        ([(3, 3, 1)], [3]),
        ([(4, 5, 1)], [3, 5]),
        ([(0, 0, 1), (6, 6, 2)], [0, 3, 5]),
    ],
)
def test_whole_batches_are_sent(acquired: list[AcquiredRecords], bases: list[int]) -> None:
    buffer = memoryview(batch(0, 3) + batch(3, 2) + batch(5, 4))
    spans = spans_of(buffer, FAR, FAR)
    sent = slice_for(buffer, spans, [AcquiredRecords(*each) for each in acquired])
    assert [span.base_offset for span in spans_of(sent, FAR, FAR)] == bases
