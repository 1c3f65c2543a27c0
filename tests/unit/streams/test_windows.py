"""Windowed aggregates and joins against their definitions, for records in any order."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.streams import (
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    Topology,
    TopologyTestDriver,
)
from support.examples import examples

TEXT = {"key_serde": "string", "value_serde": "string"}
TIMES = st.lists(st.integers(0, 60), max_size=12)
#: Nothing is late in these tests.
GRACE = 1_000_000


def counted(windows: Any) -> Topology:
    builder = StreamsBuilder()
    builder.stream("in", **TEXT).group_by_key().windowed_by(windows).count(store="counts")
    return builder.build()


def counts(windows: Any, times: list[int]) -> dict[tuple[int, int], int]:
    with TopologyTestDriver(counted(windows)) as driver:
        for time in times:
            driver.input_topic("in").pipe_input("k", "v", timestamp=time)
        found = {}
        for key, value in driver.state_store("counts").all():
            found[tuple(key.window)] = value[0] if isinstance(value, tuple) else value
    return found


@given(TIMES, st.integers(1, 20), st.data())
@settings(deadline=None, max_examples=50)
def test_hopping_windows_count_what_they_hold(
    times: list[int], size: int, data: st.DataObject
) -> None:
    advance = data.draw(st.integers(1, size))
    expected = {}
    for start in range(0, 61, advance):
        held = [time for time in times if start <= time < start + size]
        if held:
            expected[start, start + size] = len(held)
    assert counts(TimeWindows(size=size, advance=advance, grace=GRACE), times) == expected


@given(TIMES, st.integers(0, 20))
@settings(deadline=None, max_examples=50)
def test_sessions_join_records_within_the_gap(times: list[int], gap: int) -> None:
    expected: dict[tuple[int, int], int] = {}
    session: list[int] = []
    for time in sorted(times):
        if session and time - session[-1] > gap:
            expected[session[0], session[-1]] = len(session)
            session = []
        session.append(time)
    if session:
        expected[session[0], session[-1]] = len(session)
    assert counts(SessionWindows(inactivity_gap=gap, grace=GRACE), times) == expected


@given(TIMES, st.integers(1, 20))
@settings(deadline=None, max_examples=examples(100))
def test_sliding_windows_hold_what_lies_between_their_ends(times: list[int], span: int) -> None:
    found = counts(SlidingWindows(time_difference=span, grace=GRACE), times)
    for (start, end), count in found.items():
        assert count == len([time for time in times if start <= time <= end])
    for time in times:
        assert (max(0, time - span), max(span, time)) in found
        after = (time + 1, time + 1 + span)
        if any(after[0] <= other <= after[1] for other in times) and time >= span:
            assert after in found


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 60)), max_size=12),
    st.integers(0, 10),
    st.integers(0, 10),
)
@settings(deadline=None, max_examples=examples(100))
def test_an_outer_join_pairs_what_is_near_and_keeps_what_is_alone(
    records: list[tuple[bool, int]], before: int, after: int
) -> None:
    builder = StreamsBuilder()
    left, right = builder.stream("left", **TEXT), builder.stream("right", **TEXT)
    windows = JoinWindows(before=before, after=after, grace=100)
    left.outer_join(right, lambda a, b: f"{a}|{b}", windows=windows).to("out", **TEXT)
    config = {"__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": 0}
    # In the order of time: Kafka Streams emits a record alone, although a match may still come,
    # when it arrives after its window has ended, even within the grace period.
    records.sort(key=lambda record: record[1])
    named = [(is_left, time, f"{number}") for number, (is_left, time) in enumerate(records)]
    with TopologyTestDriver(builder.build(), config=config) as driver:
        for is_left, time, name in named:
            topic = driver.input_topic("left" if is_left else "right")
            topic.pipe_input("k", name, timestamp=time)
        # Two records far ahead, one per side, close all windows before them.
        driver.input_topic("left").pipe_input("other", "end", timestamp=10_000)
        driver.input_topic("right").pipe_input("other", "end", timestamp=10_000)
        pairs = [value for key, value in driver.output_topic("out").read_key_values() if key == "k"]
    expected = [
        f"{a}|{b}"
        for is_left, time, a in named
        for is_other, other, b in named
        if is_left and not is_other and time - before <= other <= time + after
    ]
    matched = {name for pair in expected for name in pair.split("|")}
    for is_left, _, name in named:
        if name not in matched:
            expected.append(f"{name}|None" if is_left else f"None|{name}")
    assert sorted(pairs) == sorted(expected)
