"""Topologies that are written twice: here, and in tests/java/StreamsTopologies.java."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.streams import (
    EmitStrategy,
    JoinWindows,
    Materialized,
    Processor,
    PunctuationType,
    SessionWindows,
    StoreBuilder,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    Topology,
    TopologyTestDriver,
    Window,
    Windowed,
    key_value_store,
    lru_map,
    session_store,
    timestamped_key_value_store,
    versioned_key_value_store,
    window_store,
)
from moldau.streams.records import Produced

#: A record of an input topic: topic, key, value, timestamp.
Step = tuple[str, str | None, str | None, int]
#: Kafka Streams' caches show sessions and windows after their retention; so nothing expires here.
LONG_TIME = 1_000_000
CONFIG = {
    "__emit.interval.ms.kstreams.windowed.aggregation__": 0,
    "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": 0,
}


def text(value: Any) -> str:
    """A value as Java prints it."""
    return "null" if value is None else str(value)


def pair(one: Any, two: Any) -> str:
    return f"{text(one)}-{text(two)}"


class Counter(Processor):
    def init(self, context: Any) -> None:
        super().init(context)
        self._store = context.state_store("seen")
        context.schedule(40, PunctuationType.STREAM_TIME, self._punctuate)

    def _punctuate(self, time: int) -> None:
        from moldau.streams import Record

        self.context.forward(Record("punct", str(time), time))

    def process(self, record: Any) -> None:
        if record.key is None:
            return
        now = (self._store.get(record.key) or 0) + 1
        self._store.put(record.key, None if now == 4 else now)
        shifted = record.with_timestamp(record.timestamp + 3)
        self.context.forward(shifted.with_value(text(record.value) + str(now)))


class StoreUser(Processor):
    """Writes to stores of all kinds that come with it, and forwards what they then have."""

    @staticmethod
    def stores() -> list[StoreBuilder]:
        serdes: dict[str, Any] = {"key_serde": "string", "value_serde": "string"}
        plain: dict[str, Any] = {"timestamped": False, "window_size": 50, "retention": LONG_TIME}
        return [
            key_value_store("plain", caching=True, **serdes),
            lru_map("recent", size_max=2, **serdes),
            timestamped_key_value_store("timed", caching=True, **serdes),
            window_store("windows", caching=True, **plain, **serdes),
            session_store("sessions", retention=LONG_TIME, **serdes),
            versioned_key_value_store("versions", history=200, **serdes),
        ]

    def process(self, record: Any) -> None:
        key, value, time = record.key, record.value, record.timestamp
        if key is None:
            return
        plain, recent, timed, windows, sessions, versions = (
            self.context.state_store(each.name) for each in self.stores()
        )
        plain.put_all([(key, "first"), (key, value)])
        # Read backwards, a cache of Kafka Streams also shows what was deleted, as null.
        is_null = value is None
        self._say(record, plain.all() if is_null else plain.reverse_all())
        self._say(record, (plain.range if is_null else plain.reverse_range)("a", "b"))
        recent.put_if_absent(key, value)
        self._say(record, recent.all())
        if value is None:
            self._tell(record, timed.delete(key))
        else:
            timed.put_if_absent(key, value, time)
        start = time // 50 * 50
        windows.put(key, value, start)
        windows.put("other", value, start)
        fetch = windows.fetch if is_null else windows.backward_fetch
        self._say(record, ((at, row) for at, (row, _) in fetch(key, 0, 1000)))
        sessions.put(Windowed(key, Window(time, time + 5)), value)
        self._say(record, sessions.backward_find_sessions(key, 0, 1000))
        self._say(record, sessions.find_sessions_range("a", "c", 10, 500))
        self._say(record, sessions.backward_find_sessions_range("a", "c", 10, 500))
        if value is None:
            self._tell(record, versions.delete(key, time))
        else:
            self.context.forward(record.with_value(str(versions.put(key, value, time))))

    def _say(self, record: Any, found: Iterable[tuple[Any, str]]) -> None:
        shown = [
            (f"{key.key}/{key.window.start}" if isinstance(key, Windowed) else key, value)
            for key, value in found
        ]
        self.context.forward(record.with_value("".join(f"{key}={value} " for key, value in shown)))

    def _tell(self, record: Any, gone: Any) -> None:
        shown = "null" if gone is None else f"{gone.value}@{gone.timestamp}"
        self.context.forward(record.with_value(shown))


def word_count(builder: StreamsBuilder) -> None:
    (
        builder.stream("left")
        .filter(lambda key, value: value is not None)
        .flat_map_values(lambda value: value.lower().split(","))
        .group_by(lambda key, value: value)
        .count(store="counts")
        .to_stream()
        .to("out", key_serde="string", value_serde="long")
    )


def count_in_place(builder: StreamsBuilder) -> None:
    (
        builder.stream("left")
        .filter(lambda key, value: value is not None)
        .flat_map_values(list)
        .group_by_key()
        .count(store="counts")
        .to_stream()
        .to("out", key_serde="string", value_serde="long")
    )


def derived_tables(builder: StreamsBuilder) -> None:
    table = builder.table("left", store="rows")
    kept = table.filter(lambda key, value: len(value) > 1, store="kept")
    kept.to_stream().to("out")
    kept.map_values(str.upper).to_stream().to("out2")
    table.filter_not(lambda key, value: value.startswith("x")).to_stream().to("out3")


def grouped_table(builder: StreamsBuilder) -> None:
    table = builder.table("left")
    first = lambda key, value: (value[:1], value)  # noqa: E731
    (
        table.group_by(first)
        .reduce(
            lambda total, value: total + value,
            lambda total, value: total.replace(value, "", 1),
            store="reduced",
        )
        .to_stream()
        .to("out")
    )
    counts = table.group_by(first, name="by-letter").count(store="per-letter")
    counts.to_stream().to("out2", key_serde="string", value_serde="long")


def windows(builder: StreamsBuilder) -> None:
    grouped = builder.stream("left").group_by_key()
    joined = lambda one, two: f"{text(one)}+{text(two)}"  # noqa: E731
    (
        grouped.windowed_by(TimeWindows(size=50, grace=20, advance=25))
        .reduce(joined, store=Materialized(name="hopping", retention=LONG_TIME))
        .to_stream(lambda key, value: f"{key.key}@{key.window.start}")
        .to("out")
    )
    (
        grouped.windowed_by(SessionWindows(inactivity_gap=15, grace=30))
        .reduce(joined, store=Materialized(name="sessions", retention=LONG_TIME))
        .to_stream(lambda key, value: f"{key.key}@{key.window.start}-{key.window.end}")
        .to("out2")
    )


def windowed_topic(builder: StreamsBuilder) -> None:
    counts = builder.stream("left").group_by_key().windowed_by(TimeWindows(size=50))
    counts.count(store="tumbling").to_stream().to("out", value_serde="long")


def _final(builder: StreamsBuilder, store: str, emit: EmitStrategy) -> Any:
    grouped = builder.stream("left").group_by_key()
    timed = grouped.windowed_by(TimeWindows(size=50, grace=10)).emit_strategy(emit)
    return timed.count(store=Materialized(name=store, retention=LONG_TIME))


def _by_start(key: Any, value: Any) -> str:
    return f"{key.key}@{key.window.start}"


def emit_final(builder: StreamsBuilder) -> None:
    table = _final(builder, "final", EmitStrategy.ON_WINDOW_CLOSE)
    table.to_stream(_by_start).to("out", key_serde="string", value_serde="long")


def suppressed(builder: StreamsBuilder) -> None:
    table = _final(builder, "held", EmitStrategy.ON_WINDOW_UPDATE)
    closed = table.suppress(Suppressed.until_window_closes(name="closed"))
    closed.to_stream(_by_start).to("out", key_serde="string", value_serde="long")
    rows = builder.table("right", store="rows")
    limited = rows.suppress(Suppressed.until_time_limit(30, records_max=2, name="limit"))
    limited.to_stream().to("out2")


def stream_joins(builder: StreamsBuilder) -> None:
    left, right = builder.stream("left"), builder.stream("right")
    near = JoinWindows(time_difference=20, grace=10)
    left.join(right, pair, windows=near).to("out")
    left.left_join(right, pair, windows=near).to("out2")
    early = JoinWindows(before=5, after=20, grace=10)
    left.outer_join(right, pair, windows=early, store="joined").to("out3")


def stream_table(builder: StreamsBuilder) -> None:
    left, right = builder.stream("left"), builder.table("right", store="rows")
    left.join(right, pair).to("out")
    left.left_join(right, pair).to("out2")
    keyed = left.select_key(lambda key, value: None if value is None else value[:1])
    keyed.left_join(right, pair, name="rekeyed").to("out3")


def versioned(builder: StreamsBuilder) -> None:
    left = builder.stream("left")
    right = builder.table("right", store=Materialized(name="rows", history=200))
    left.join(right, pair, grace=30, name="waits").to("out")
    right.filter(lambda key, value: len(value) > 1).to_stream().to("out2")


def table_joins(builder: StreamsBuilder) -> None:
    left, right = builder.table("left", store="lefts"), builder.table("right")
    left.join(right, pair).to_stream().to("out")
    left.left_join(right, pair).to_stream().to("out2")
    left.outer_join(right, pair, store="outer").to_stream().to("out3")


def foreign_key(builder: StreamsBuilder) -> None:
    left, right = builder.table("left"), builder.table("right")
    left.join(right, pair, foreign_key=lambda value: value[:1]).to_stream().to("out")
    chosen = lambda value: None if value.startswith("x") else value[:1]  # noqa: E731
    result = left.left_join(right, pair, foreign_key=chosen, name="fk", store="result")
    result.to_stream().to("out2")


def cogroup(builder: StreamsBuilder) -> None:
    left, right = builder.stream("left").group_by_key(), builder.stream("right").group_by_key()
    (
        left.cogroup(lambda key, value, total: f"{total}l{text(value)}")
        .cogroup(right, lambda key, value, total: f"{total}r{text(value)}")
        .aggregate(str, store="both")
        .to_stream()
        .to("out")
    )


def processor(builder: StreamsBuilder) -> None:
    builder.add_state_store(key_value_store("seen", key_serde="string", value_serde="long"))
    builder.stream("left").process(Counter, "seen").to("out")


def stores(builder: StreamsBuilder) -> None:
    builder.stream("left").process(StoreUser).to("out")


def global_join(builder: StreamsBuilder) -> None:
    left = builder.stream("left")
    rows = builder.global_table("right", store="rows")
    first = lambda key, value: None if value is None else value[:1]  # noqa: E731
    left.left_join(rows, pair, key=first).to("out")


PROGRAMS: dict[str, Callable[[StreamsBuilder], None]] = {
    each.__name__: each
    for each in (
        word_count,
        count_in_place,
        derived_tables,
        grouped_table,
        windows,
        windowed_topic,
        emit_final,
        suppressed,
        stream_joins,
        stream_table,
        versioned,
        table_joins,
        foreign_key,
        cogroup,
        processor,
        stores,
    )
} | {"global": global_join}


def build(name: str) -> Topology:
    """The topology of a name."""
    builder = StreamsBuilder()
    PROGRAMS[name](builder)
    return builder.build()


def _hex(data: bytes | None) -> str:
    return "-" if data is None else f"x{data.hex()}"


def _line(record: Produced) -> str:
    headers = ",".join(f"{name}={_hex(value)}" for name, value in record.headers)
    # A buffer's changelog records have the wall clock of the producer.
    time = record.timestamp if not _is_buffer(record.topic) else None
    return f"{record.topic} {_hex(record.key)} {_hex(record.value)} {time} [{headers}]"


def _is_buffer(topic: str) -> bool:
    names = ("closed-store", "limit-store", "waits-Buffer")
    return topic in (f"app-{name}-changelog" for name in names)


def _any_order(lines: list[str]) -> list[str]:
    """A buffer's changes of a commit are in the order of a hash set there."""
    buffered = sorted(line for line in lines if _is_buffer(line.split(" ", 1)[0]))
    return buffered + [line for line in lines if line not in buffered]


@dataclass(frozen=True)
class Outcome:
    """What a topology wrote, step by step: all records of all topics."""

    description: str
    written: list[list[str]]


def commands(name: str, cache_bytes: int, steps: Sequence[Step]) -> list[str]:
    """A run, as the Java program reads it."""
    encoded = lambda value: _hex(None if value is None else value.encode())  # noqa: E731
    return [
        f"topology {name} {cache_bytes}",
        *(f"in {topic} {encoded(key)} {encoded(value)} {at}" for topic, key, value, at in steps),
    ]


def java_outcomes(output: str) -> Iterator[Outcome]:
    """What the Java program printed, run by run."""
    found: Outcome | None = None
    lines: list[str] = []
    for line in output.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "describe":
            if found is not None:
                yield found
            found, lines = Outcome(base64.b64decode(rest).decode(), []), []
        elif kind == "out":
            topic, key, value, time, headers = rest.split(" ", 4)
            shown = "None" if _is_buffer(topic) else time
            lines.append(f"{topic} {key} {value} {shown} {headers}")
        elif kind == "done" and found is not None:
            found.written.append(_any_order(lines))
            lines = []
    if found is not None:
        yield found


def our_outcome(name: str, cache_bytes: int, steps: Sequence[Step], **options: Any) -> Outcome:
    """The same run on our driver."""
    topology = build(name)
    outcome = Outcome(topology.describe(), [])
    with TopologyTestDriver(
        topology,
        application_id="app",
        default_key_serde="string",
        default_value_serde="string",
        config=CONFIG | {"statestore.cache.max.bytes": cache_bytes},
        **options,
    ) as driver:
        outcome.written.append(_written(driver))
        for topic, key, value, time in steps:
            driver.input_topic(topic).pipe_input(key, value, timestamp=time)
            outcome.written.append(_written(driver))
    return outcome


def _written(driver: TopologyTestDriver) -> list[str]:
    lines = []
    for topic in driver.output_topics:
        while (record := driver.take(topic)) is not None:
            lines.append(_line(record))
    return _any_order(lines)
