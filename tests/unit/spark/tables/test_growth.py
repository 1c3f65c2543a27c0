"""A growing table's files are each given once, in batches that are the same when asked again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.spark.tables import ChangedRowsError
from moldau.spark.tables.machine.delta_log import DeltaFile, parse_commit
from moldau.spark.tables.machine.growth import (
    Position,
    Version,
    advance,
    batch_range,
    between,
    initial_offset,
    next_offset,
    position_of,
)


class Log:
    """Versions with so many files each; version 0 is an empty table."""

    def __init__(self, *added: int, changes: Sequence[int] = ()) -> None:
        self.versions = [
            Version(n, tuple(f"{n}.{i}" for i in range(count)), "rewrites" if n in changes else "")
            for n, count in enumerate(added)
        ]

    def following(self, number: int) -> Sequence[int]:
        return range(number + 1, len(self.versions))

    def version(self, number: int) -> Version:
        return self.versions[number]

    def whole(self, number: int) -> Version:
        return Version(number, tuple(f for v in self.versions[: number + 1] for f in v.files))


def drain(log: Log, start: Position, files_max: int | None) -> list[list[str]]:
    batches = []
    while (end := advance(log, start, files_max=files_max, skip_changes=True)) != start:
        batches.append(between(log, start, end, skip_changes=True))
        assert batches[-1] == between(log, start, end, skip_changes=True)
        start = position_of(end.as_offset())
    return batches


@pytest.mark.parametrize(
    ("start", "files_max", "batches"),
    [
        pytest.param(Position(0, 0), None, [["1.0", "1.1", "2.0"]], id="all at once"),
        pytest.param(Position(0, 0), 2, [["1.0", "1.1"], ["2.0"]], id="two at a time"),
        pytest.param(Position(1, 1), 1, [["1.1"], ["2.0"]], id="from the middle of a version"),
        pytest.param(
            Position(1, 0, whole=True), 1, [["1.0"], ["1.1"], ["2.0"]], id="whole table first"
        ),
        pytest.param(Position(2, 1), None, [], id="nothing new"),
    ],
)
def test_batches(start: Position, files_max: int | None, batches: list[list[str]]) -> None:
    assert drain(Log(0, 2, 1), start, files_max) == batches


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=6),
    st.integers(1, 4),
    st.booleans(),
    st.data(),
)
def test_every_file_is_given_once_and_in_order(
    added: list[int], files_max: int, whole: bool, data: st.DataObject
) -> None:
    log = Log(*added)
    first = data.draw(st.integers(0, len(added) - 1))
    batches = drain(log, Position(first, 0, whole=whole), files_max)
    expected = [f for v in log.versions if whole or v.number >= first for f in v.files]
    assert [file for batch in batches for file in batch] == expected
    assert all(len(batch) <= files_max for batch in batches)


def test_the_first_batch_is_the_same_when_it_runs_again_after_the_table_grew() -> None:
    log = Log(1, 1, 1)
    began = initial_offset(Position(1, 0, whole=True))
    end = advance(log, position_of(began), files_max=None, last=2, skip_changes=False)
    first = next_offset(began, end)
    assert between(log, *batch_range(began, first), skip_changes=False) == ["0.0", "1.0", "2.0"]
    # Started anew, the stream would begin with the whole table as it is then.
    again = initial_offset(Position(2, 0, whole=True))
    assert batch_range(again, first) == batch_range(began, first)
    # Later batches go from where the one before has ended.
    later = next_offset(first, Position(2, 1))
    assert batch_range(first, later) == (Position(2, 1), Position(2, 1))


def test_a_change_stops_the_stream_unless_it_is_to_be_skipped() -> None:
    log = Log(0, 1, 1, 1, changes=[2])
    with pytest.raises(ChangedRowsError, match=r"version 2 rewrites.*skipChangeCommits"):
        advance(log, Position(0, 0), files_max=None, skip_changes=False)
    assert drain(log, Position(0, 0), None) == [["1.0", "3.0"]]


def test_changes_before_the_whole_table_was_taken_do_not_matter() -> None:
    log = Log(1, 1, changes=[1])
    end = advance(log, Position(1, 0, whole=True), files_max=None, skip_changes=False)
    assert between(log, Position(1, 0, whole=True), end, skip_changes=False) == ["0.0", "1.0"]


def test_available_now_stops_at_the_version_of_its_start() -> None:
    end = advance(Log(1, 1, 1), Position(0, 0), files_max=None, last=1, skip_changes=False)
    assert end == Position(1, 1)


@pytest.mark.parametrize(
    ("lines", "version"),
    [
        pytest.param(
            ['{"add":{"path":"day=a%20b/x.parquet","partitionValues":{"day":"a b"}}}'],
            Version(3, (DeltaFile("day=a b/x.parquet", (("day", "a b"),)),)),
            id="an added file, its path encoded",
        ),
        pytest.param(
            [
                '{"add":{"path":"x","partitionValues":{},"dataChange":false}}',
                '{"remove":{"path":"y","dataChange":false}}',
            ],
            Version(3, ()),
            id="compaction adds nothing",
        ),
        pytest.param(
            [
                '{"commitInfo":{"operation":"MERGE"}}',
                '{"remove":{"path":"y","dataChange":true}}',
                '{"add":{"path":"x","partitionValues":{"p":""}}}',
            ],
            Version(3, (DeltaFile("x", (("p", None),)),), "removes or rewrites rows (MERGE)"),
            id="merge",
        ),
        pytest.param(['{"txn":{"appId":"q","version":1}}', ""], Version(3, ()), id="no files"),
    ],
)
def test_delta_commits(lines: list[str], version: Version) -> None:
    assert parse_commit(3, "\n".join(lines)) == version
