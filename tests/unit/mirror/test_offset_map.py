"""Exact translation of offsets, against a plain list of which record is where."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moldau.client.topics import TopicPartition
from moldau.mirror.machine.moves import continued_at
from moldau.mirror.machine.offset_map import Intervals, OffsetMap, Translation
from moldau.mirror.machine.records import OffsetRun

P = TopicPartition("orders", 0)


def run(upstream: int, downstream: int, count: int, position: int | None = None) -> OffsetRun:
    return OffsetRun(P, upstream, downstream, count, position or upstream + count)


def stored(*runs: OffsetRun, runs_max: int = 100_000) -> OffsetMap:
    """As a mirror writes and reads it: through records of a compacted topic."""
    writing, reading, topic = OffsetMap(runs_max), OffsetMap(runs_max), {}
    for each in runs:
        for key, value in writing.records_for(each):
            writing.replay(key, value)
            topic.pop(key, None)
            topic[key] = value
    for key, value in topic.items():
        reading.replay(key, value)
    assert reading.partition(P).runs == writing.partition(P).runs
    return reading


def test_offsets_of_a_run_are_exact() -> None:
    found = stored(run(100, 7, 10))
    assert found.downstream(P, 100) == Translation(7, True)
    assert found.downstream(P, 105) == Translation(12, True)
    assert found.downstream(P, 110) == Translation(17, True)


def test_what_is_not_copied_yet_is_said() -> None:
    assert stored(run(100, 7, 10)).downstream(P, 113) == Translation(17, False, behind=3)


def test_markers_behind_the_last_record_do_not_count_as_missing() -> None:
    assert stored(run(100, 7, 10, position=112)).downstream(P, 112) == Translation(17, True)


def test_what_is_before_the_map_is_not_known() -> None:
    assert stored(run(100, 7, 10)).downstream(P, 99) is None


def test_runs_that_continue_each_other_are_one_record() -> None:
    found = stored(run(0, 0, 10), run(10, 10, 5))
    assert found.partition(P).runs == [run(0, 0, 15)]


def test_a_mirror_that_went_back_is_followed() -> None:
    found = stored(run(0, 0, 100), run(50, 120, 30))
    assert found.downstream(P, 20) == Translation(20, True)
    assert found.downstream(P, 60) == Translation(130, True)


def test_a_topic_that_was_created_again_begins_a_new_map() -> None:
    found = stored(run(500, 0, 100), run(600, 101, 5), run(0, 200, 3))
    assert [each.upstream for each in found.partition(P).runs] == [0]


def test_the_oldest_runs_go_when_there_are_too_many() -> None:
    found = stored(*(run(n * 10, n * 11, 10) for n in range(30)), runs_max=20)
    runs = found.partition(P).runs
    assert len(runs) <= 20
    assert runs[-1] == run(290, 319, 10)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5), st.integers(0, 3)), min_size=1))
def test_every_offset_is_where_the_record_is(steps: list[tuple[int, int, int]]) -> None:
    """`steps` are (offsets without records, records, markers in the target)."""
    upstream = downstream = 0
    runs, place = [], {}
    for gap, count, markers in steps:
        upstream += gap
        runs.append(run(upstream, downstream, count))
        for index in range(count):
            place[upstream + index] = downstream + index
        upstream += count
        downstream += count + markers
    found = stored(*runs)
    first = min(place)
    for offset in range(first, upstream + 1):
        translated = found.downstream(P, offset)
        assert translated is not None
        assert translated.is_exact
        read = [to for at, to in place.items() if at < offset]
        unread = [to for at, to in place.items() if at >= offset]
        assert all(to < translated.offset for to in read)
        assert all(to >= translated.offset for to in unread)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 10))))
def test_intervals_are_a_set(ranges: list[tuple[int, int]]) -> None:
    found, plain = Intervals(), set()
    for start, size in ranges:
        found.add(start, start + size)
        plain |= set(range(start, start + size))
    assert {each for each in range(80) if found.contains(each)} == plain


def test_a_group_that_comes_back_continues_after_its_own_records_and_the_copies() -> None:
    """Names stay: the partition left holds 10 copies from the other cluster, then 5 of its own,
    which are copied there behind the 10 originals and a marker."""
    back = stored(run(0, 0, 10)).partition(P)
    out = stored(run(11, 10, 5)).partition(P)
    assert continued_at(out, back, 4) == Translation(4, True)
    assert continued_at(out, back, 10) == Translation(10, True)
    assert continued_at(out, back, 13) == Translation(12, True)
    assert continued_at(None, back, 10) == Translation(10, True)
    assert continued_at(None, None, 10) is None


def test_records_that_the_flow_out_has_not_reached_are_not_left_behind() -> None:
    """The other cluster's 10 records are here, and behind a marker 5 of this cluster's own, all
    of which the reader has read, and none of which is copied."""
    back = stored(run(0, 0, 10)).partition(P)
    assert continued_at(None, back, 16) == Translation(10, False, behind=6)
    assert continued_at(None, back, 16, position=11) == Translation(10, False, behind=5)
    # It has come so far and copied nothing: these were markers.
    assert continued_at(None, back, 16, position=16) == Translation(10, True)
