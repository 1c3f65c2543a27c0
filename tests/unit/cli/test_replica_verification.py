"""Whether replicas hold the same."""

from __future__ import annotations

from moldau.cli.replicas.machine.replica_verification_marks import (
    BatchMark,
    Fetched,
    PartitionCheck,
    batch_marks,
)
from moldau.client._batch_builder import BatchBuilder


def marks(*last_offsets: int, checksum: int = 7) -> list[BatchMark]:
    return [BatchMark(each, checksum) for each in last_offsets]


def test_marks_are_read_from_batches_and_a_cut_off_one_is_left_out() -> None:
    builder = BatchBuilder(1000)
    builder.append(1, None, b"a")
    builder.append(1, None, b"b")
    batch = bytes(builder.build())
    (first, second) = batch_marks(batch + batch + batch[:70])
    assert first == second
    assert first.last_offset == 1
    assert first.checksum == int.from_bytes(batch[17:21], "big")
    assert list(batch_marks(None)) == []


def test_equal_replicas_are_verified_up_to_the_lowest_of_all() -> None:
    check = PartitionCheck("t-0", 2, 0)
    assert check.compare({1: Fetched(9, marks(2, 5, 8)), 2: Fetched(6, marks(2, 5, 8))}) == []
    assert (check.offset, check.high_watermark, check.lag) == (6, 9, 3)


def test_nothing_is_verified_while_a_replica_is_missing() -> None:
    check = PartitionCheck("t-0", 2, 0)
    assert check.compare({1: Fetched(9, marks(2))}) == []
    assert (check.offset, check.lag) == (0, 9)


def test_different_checksums_are_told_and_it_goes_on() -> None:
    check = PartitionCheck("t-0", 2, 0)
    other = [BatchMark(2, 8), BatchMark(5, 7)]
    assert check.compare({1: Fetched(9, marks(2, 5)), 3: Fetched(9, other)}) == [
        "partition t-0 has unmatched checksum at offset 2; replica 1's checksum 7; "
        "replica 3's checksum 8"
    ]
    assert (check.offset, check.is_broken) == (6, False)


def test_different_batches_end_the_comparison() -> None:
    check = PartitionCheck("t-0", 2, 0)
    assert check.compare({1: Fetched(9, marks(2, 5)), 2: Fetched(9, marks(2, 6))}) == [
        "partition t-0: replica 1's offset 5 doesn't match replica 2's offset 6"
    ]
    assert (check.offset, check.is_broken) == (3, True)
