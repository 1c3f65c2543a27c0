"""Random topologies on random inputs: their tables equal a recomputation from the definition.

Each runs without cache, with a tiny and with a large one, in memory and on disk: the updates on the
way differ, the tables never do.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.streams import StreamsBuilder, TimeWindows, TopologyTestDriver
from moldau.streams.stores.disk import open_state

Row = tuple[str, str | None, int]
ROWS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.none() | st.text(alphabet="abxy", min_size=1, max_size=4),
        st.integers(0, 500),
    ),
    max_size=30,
)


@dataclass(frozen=True)
class Step:
    """A step of a stream, and what it means for a list of records."""

    name: str
    add: Callable[[Any], Any]
    means: Callable[[Row], list[Row]]


STEPS = [
    Step(
        "filter",
        lambda stream: stream.filter(lambda key, value: len(value) > 1),
        lambda row: [row] if len(row[1] or "") > 1 else [],
    ),
    Step(
        "filter_not",
        lambda stream: stream.filter_not(lambda key, value: value.startswith("x")),
        lambda row: [] if (row[1] or "").startswith("x") else [row],
    ),
    Step(
        "map_values",
        lambda stream: stream.map_values(lambda value: value[::-1]),
        lambda row: [(row[0], (row[1] or "")[::-1], row[2])],
    ),
    Step(
        "flat_map_values",
        lambda stream: stream.flat_map_values(list),
        lambda row: [(row[0], each, row[2]) for each in row[1] or ""],
    ),
    Step(
        "select_key",
        lambda stream: stream.select_key(lambda key, value: value[0]),
        lambda row: [((row[1] or "")[0], row[1], row[2])],
    ),
    Step(
        "map",
        lambda stream: stream.map(lambda key, value: (key + value[0], value + key)),
        lambda row: [(row[0] + (row[1] or "")[0], (row[1] or "") + row[0], row[2])],
    ),
    Step(
        "merge",
        lambda stream: stream.merge(stream.map_values(lambda value: value + "m")),
        lambda row: [row, (row[0], f"{row[1]}m", row[2])],
    ),
    Step("repartition", lambda stream: stream.repartition(), lambda row: [row]),
]


@contextmanager
def driver(build: Callable[[StreamsBuilder], None], cache: int, disk: bool) -> Iterator[Any]:
    builder = StreamsBuilder()
    build(builder)
    with tempfile.TemporaryDirectory() as folder, TopologyTestDriver(
        builder.build(),
        default_key_serde="string",
        default_value_serde="string",
        config={"statestore.cache.max.bytes": cache},
        state=open_state(Path(folder), batch_bytes=300) if disk else None,
    ) as running:
        yield running


def tables(
    build: Callable[[StreamsBuilder], None], rows: list[Row], *stores: str
) -> Iterator[list[dict[Any, Any]]]:
    """The stores' contents under each way to run a topology."""
    for cache in (0, 150, 10_000_000):
        for disk in (False, True):
            with driver(build, cache, disk) as running:
                topic = running.input_topic("in")
                for key, value, time in rows:
                    topic.pipe_input(key, value, timestamp=time)
                yield [dict(running.state_store(store).all()) for store in stores]


@settings(deadline=None, max_examples=15)
@given(st.lists(st.sampled_from(STEPS), max_size=4), ROWS)
def test_aggregates_of_a_stream(steps: list[Step], rows: list[Row]) -> None:
    def build(builder: StreamsBuilder) -> None:
        stream = builder.stream("in").filter(lambda key, value: value is not None)
        for step in steps:
            stream = step.add(stream)
        stream.group_by_key().count(store="counts")
        stream.group_by_key().reduce(lambda one, two: max(one, two), store="largest")
        windowed = stream.group_by_key().windowed_by(TimeWindows(size=50, grace=1_000))
        windowed.count(store="windows")

    found = [row for row in rows if row[1] is not None]
    for step in steps:
        found = [result for row in found for result in step.means(row)]
    counts = Counter(key for key, _, _ in found)
    times = {key: max(row[2] for row in found if row[0] == key) for key in counts}
    largest = {key: max(row[1] or "" for row in found if row[0] == key) for key in counts}
    windows = Counter((key, time // 50 * 50) for key, _, time in found)
    expected = [
        {key: (count, times[key]) for key, count in counts.items()},
        {key: (value, times[key]) for key, value in largest.items()},
    ]
    for one, two, windowed in tables(build, rows, "counts", "largest", "windows"):
        assert [one, two] == expected
        assert {(key.key, key.window.start): v for key, (v, _) in windowed.items()} == windows


@settings(deadline=None, max_examples=15)
@given(ROWS)
def test_tables_made_of_tables(rows: list[Row]) -> None:
    def build(builder: StreamsBuilder) -> None:
        table = builder.table("in", store="rows")
        kept = table.filter(lambda key, value: len(value) > 1, store="kept")
        kept.map_values(str.upper, store="upper")
        first = table.group_by(lambda key, value: (value[0], value))
        first.count(store="per-letter")
        joined = table.left_join(kept, lambda one, two: f"{one}/{two}", store="joined")
        joined.filter_not(lambda key, value: False)

    latest = {key: value for key, value, _ in rows}
    latest = {key: value for key, value in latest.items() if value is not None}
    long = {key: value for key, value in latest.items() if len(value or "") > 1}
    per_letter = Counter((value or "")[0] for value in latest.values())
    joined = {key: f"{value}/{long.get(key)}" for key, value in latest.items()}
    stores = ("rows", "kept", "upper", "per-letter", "joined")
    for found in tables(build, rows, *stores):
        values = [{key: row[0] for key, row in table.items()} for table in found]
        assert values[:2] == [latest, long]
        assert values[2] == {key: str(value).upper() for key, value in long.items()}
        assert {key: count for key, count in values[3].items() if count} == per_letter
        assert values[4] == joined
