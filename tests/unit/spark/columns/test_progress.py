"""What answers to Fetch mean for a range."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from moldau.spark.columns import DataLossError, OpenTransactionError, RowError
from moldau.spark.columns.machine.progress import Meaning, meaning_of, part_size
from moldau.wire.errors import ErrorCode
from moldau.wire.fetch_response import FetchedPart


def part(**changes: Any) -> FetchedPart:
    fields: dict[str, Any] = {
        "partition": 0,
        "error_code": 0,
        "high_watermark": 10,
        "last_stable_offset": 10,
        "log_start_offset": 0,
        "aborted": None,
        "preferred_read_replica": -1,
        "records": None,
    }
    return FetchedPart(**{**fields, **changes})


@pytest.mark.parametrize(
    ("answer", "committed", "meaning"),
    [
        (part(records=memoryview(b"x")), False, Meaning.RECORDS),
        (part(), False, Meaning.COMPLETE),
        (part(), True, Meaning.COMPLETE),
        (part(last_stable_offset=4), True, Meaning.UNSTABLE),
        (part(last_stable_offset=4), False, Meaning.COMPLETE),
        (part(last_stable_offset=-1), True, Meaning.COMPLETE),
        (part(high_watermark=4, last_stable_offset=4), True, Meaning.SHORT),
        (part(high_watermark=4), False, Meaning.SHORT),
        (part(preferred_read_replica=2), False, Meaning.ELSEWHERE),
        (part(error_code=ErrorCode.OFFSET_OUT_OF_RANGE), False, Meaning.OUT_OF_RANGE),
        (part(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER), False, Meaning.STALE),
        (part(error_code=ErrorCode.UNKNOWN_LEADER_EPOCH), False, Meaning.PASSING),
        (part(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), False, Meaning.PASSING),
        (part(error_code=ErrorCode.CORRUPT_MESSAGE), False, Meaning.REFUSED),
        (part(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED), False, Meaning.REFUSED),
    ],
)
def test_meaning(answer: FetchedPart, committed: bool, meaning: Meaning) -> None:
    assert meaning_of(answer, position=4, end=10, read_committed=committed) is meaning


def test_no_more_is_asked_for_than_is_left() -> None:
    limit = 4 * 2**20
    much = part_size(left_count=10**6, seen_count=0, seen_size=0, size_max=limit)
    assert much == limit
    first = part_size(left_count=10, seen_count=0, seen_size=0, size_max=limit)
    assert 64 * 1024 <= first < 128 * 1024
    last = part_size(left_count=100, seen_count=1000, seen_size=10**7, size_max=limit)
    assert 10**6 <= last < limit


@pytest.mark.parametrize(
    "error",
    [
        DataLossError("t", 1, (0, 5), (3, 9)),
        OpenTransactionError("t", 1, 5, 9, 60_000),
        RowError("too large", "t", 7),
    ],
)
def test_errors_cross_processes(error: Exception) -> None:
    copied = pickle.loads(pickle.dumps(error))
    assert str(copied) == str(error)
    assert "t" in str(copied)
