"""Stores whose values have headers: what they keep, show, log and restore, and how they begin."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.streams import (
    AggregationWithHeaders,
    KeyQuery,
    Materialized,
    MockProcessorContext,
    Position,
    PositionBound,
    Processor,
    RangeQuery,
    Record,
    SessionWindows,
    SlidingWindows,
    StoreBuilder,
    StreamsBuilder,
    StreamsError,
    TimestampedKeyQuery,
    TimestampedRangeQuery,
    TimeWindows,
    Topology,
    TopologyTestDriver,
    ValueAndTimestamp,
    ValueTimestampHeaders,
    Window,
    Windowed,
    WindowKeyQuery,
    WindowRangeQuery,
    session_store,
    timestamped_key_value_store,
    window_store,
)
from moldau.streams.machine.store_queries import answer
from moldau.streams.records import Headers, TaskCore
from moldau.streams.stores._cache import RecordCache, StoreCache
from moldau.streams.stores.base import StoreContext
from moldau.streams.stores.disk import open_state
from moldau.streams.stores.formats import header_bytes, read_header_bytes
from moldau.streams.stores.kept_headers import (
    keep_session,
    keep_timed,
    split_session,
    stripped,
    time_of,
    timed_headers,
)
from moldau.streams.stores.memory import MemoryStorage
from support.streams_headers import build

TEXT: dict[str, Any] = {"key_serde": "string", "value_serde": "string"}
TRACE: Headers = (("trace", b"7"), ("none", None))
SESSION = Windowed("a", Window(10, 20))
HEADERS = st.lists(st.tuples(st.text(max_size=9), st.none() | st.binary(max_size=200))).map(tuple)
FORMAT = {"dsl.store.format": "headers"}


def made(builder: StoreBuilder, **options: Any) -> Any:
    """A store that such a builder makes, in memory."""
    return builder.create(StoreContext(storage=MemoryStorage(), headers=True, **options))


def timed(**options: Any) -> Any:
    return made(timestamped_key_value_store("s", headers=True, **TEXT), **options)


def windows(**options: Any) -> Any:
    builder = window_store("s", window_size=50, retention=1000, headers=True, **TEXT)
    return made(builder, **options)


def sessions(**options: Any) -> Any:
    return made(session_store("s", retention=1000, headers=True, **TEXT), **options)


@given(HEADERS)
def test_headers_come_back_from_their_bytes(headers: Headers) -> None:
    assert read_header_bytes(header_bytes(headers)) == headers


def test_headers_have_the_bytes_of_kafka_streams() -> None:
    assert header_bytes(()) == b""
    assert header_bytes((("a", b"xy"), ("b", None))).hex() == "04" "0261" "047879" "0262" "01"


@given(st.binary(), st.integers(-(2**62), 2**62 - 1), HEADERS)
def test_entries_with_times_come_back(data: bytes, timestamp: int, headers: Headers) -> None:
    kept = keep_timed(data, timestamp, headers)
    assert (time_of(kept), timed_headers(kept)) == (timestamp, headers)
    assert stripped(kept) == keep_timed(data, timestamp, ())
    assert stripped(kept)[8:] == data


@given(st.binary(), HEADERS)
def test_entries_of_sessions_come_back(data: bytes, headers: Headers) -> None:
    kept = keep_session(data, headers)
    assert split_session(kept) == (data, headers)
    # A value that looks like an entry with headers is none.
    assert split_session(keep_session(kept, ())) == (kept, ())


def test_a_time_that_an_entry_cannot_have_is_refused() -> None:
    with pytest.raises(ValueError, match=r"2\*\*62"):
        timed().put("a", "1", 2**62, TRACE)


def test_a_key_value_store() -> None:
    store = timed()
    store.put("a", "1", 5, TRACE)
    store.put("b", "2", 6)
    assert store.get("a") == ValueTimestampHeaders("1", 5, TRACE)
    assert store.get("b") == ("2", 6, ())
    assert store.put_if_absent("a", "3", 7) == ("1", 5, TRACE)
    assert store.put_if_absent("c", "3", 7, TRACE) is None
    everything = [("a", ("1", 5, TRACE)), ("b", ("2", 6, ())), ("c", ("3", 7, TRACE))]
    assert list(store.all()) == everything
    assert list(store.reverse_range("a", "b")) == everything[1::-1]
    assert list(store.prefix_scan(b"b")) == everything[1:2]
    assert store.approximate_num_entries() == 3
    store.put_all([("d", ("4", 8, TRACE)), ("a", None)])
    assert store.get("d") == ("4", 8, TRACE)
    assert store.get("a") is None
    assert store.delete("d") == ("4", 8, TRACE)
    assert store.get("d") is None


def test_a_window_store() -> None:
    store = windows()
    store.put("a", "1", 0, 5, TRACE)
    store.put("a", "2", 50, 60)
    assert store.get("a", 0) == ValueTimestampHeaders("1", 5, TRACE)
    assert store.fetch("a", 0, 50) == [(0, ("1", 5, TRACE)), (50, ("2", 60, ()))]
    assert store.backward_fetch("a", 0, 50)[0] == (50, ("2", 60, ()))
    assert store.fetch_all(0, 0) == [(Windowed("a", Window(0, 50)), ("1", 5, TRACE))]
    assert [found for _, found in store.all()] == [("1", 5, TRACE), ("2", 60, ())]
    store.put("a", None, 0)
    assert store.get("a", 0) is None


def test_a_session_store() -> None:
    store = sessions()
    store.put(SESSION, "1", TRACE)
    assert store.get("a", 10, 20) == AggregationWithHeaders("1", TRACE)
    assert store.fetch("a") == store.find_sessions("a", 0, 100) == [(SESSION, ("1", TRACE))]
    assert store.find_ended(20, 20) == list(store.all()) == [(SESSION, ("1", TRACE))]
    store.remove(SESSION)
    assert store.get("a", 10, 20) is None


def put_all_kinds(of: Callable[..., Any], **options: Any) -> list[tuple[Any, ...]]:
    """What a store logs for a value with headers."""
    logged: list[tuple[Any, ...]] = []
    store = of(log=lambda key, value, time, headers=(): logged.append((key, value, time, headers)))
    if of is sessions:
        store.put(SESSION, "1", TRACE)
    elif of is windows:
        store.put("a", "1", 0, 5, TRACE)
    else:
        store.put("a", "1", 5, TRACE)
    return logged


@pytest.mark.parametrize("of", [timed, windows, sessions])
def test_the_changelog_restores_headers(of: Callable[..., Any]) -> None:
    [(key, value, time, headers)] = put_all_kinds(of)
    assert (value, headers) == (b"1", TRACE)
    store = of()
    # Records of a store without headers have none.
    store.restore([(key, b"0", 3, ()), (key, value, time or 0, headers)])
    found = next(iter(store.all()))[1]
    assert found == (("1", TRACE) if of is sessions else ("1", 5, TRACE))
    store.restore([(key, None, 6, TRACE)])
    assert not list(store.all())


class Last(Processor):
    """Keeps the last value of a key with its headers, and forwards those of the one before."""

    def process(self, record: Any) -> None:
        store = self.context.state_store("last")
        found = store.get(record.key)
        headers = () if found is None else found.headers
        store.put(record.key, record.value, record.timestamp, record.headers)
        self.context.forward(record.with_headers(headers))


def last(**options: Any) -> Topology:
    builder = StreamsBuilder()
    builder.add_state_store(timestamped_key_value_store("last", headers=True, **TEXT, **options))
    builder.stream("in", **TEXT).process(Last, "last").to("out", **TEXT)
    return builder.build()


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("caching", [False, True])
def test_a_processor_finds_the_headers_of_the_record_before(
    caching: bool, on_disk: bool, tmp_path: Path
) -> None:
    state = open_state(tmp_path, batch_bytes=0) if on_disk else None
    with TopologyTestDriver(last(caching=caching), state=state) as driver:
        topic = driver.input_topic("in")
        topic.pipe_input("a", "1", timestamp=1, headers=TRACE)
        topic.pipe_input("a", None, timestamp=2, headers=(("deleted", b""),))
        changelog = driver.output_topic("test-last-changelog", **TEXT).read_records()
        assert [(each.value, each.headers) for each in changelog] == [
            ("1", TRACE),
            # A deletion has the headers of the record that deletes.
            (None, (("deleted", b""),)),
        ]
        out = driver.output_topic("out").read_records()
        assert [each.headers for each in out] == [(), TRACE]


def test_what_reads_without_headers_does_not_write() -> None:
    with TopologyTestDriver(last()) as driver:
        driver.state_store("last", headers=True).put("a", "1", 5, TRACE)
        view = driver.state_store("last")
        assert view.get("a") == ValueAndTimestamp("1", 5)
        assert list(view.all()) == list(view.range("a", "a")) == [("a", ("1", 5))]
        with pytest.raises(StreamsError, match="read-only"):
            view.put("a", "2", 6)
        with pytest.raises(StreamsError, match="read-only"):
            view.keep(b"a", b"2", b"", 6, ())


def test_headers_of_a_store_that_has_none_are_refused() -> None:
    builder = StreamsBuilder()
    builder.stream("in", **TEXT).group_by_key().count(store="counts")
    with (
        TopologyTestDriver(builder.build()) as driver,
        pytest.raises(StreamsError, match=r"counts has no headers: set dsl\.store\.format"),
    ):
        driver.state_store("counts", headers=True)


def tables(**store: Any) -> Topology:
    """A count by every kind of window, a table and a global table."""
    builder = StreamsBuilder()
    grouped = builder.stream("in", **TEXT).group_by_key()
    kinds: tuple[tuple[str, Any], ...] = (
        ("windows", TimeWindows(size=50)),
        ("sliding", SlidingWindows(time_difference=50)),
        ("sessions", SessionWindows(inactivity_gap=5)),
    )
    for name, kind in kinds:
        grouped.windowed_by(kind).count(store=Materialized(name=name, **store))
    grouped.count(store=Materialized(name="counts", **store))
    builder.table("rows", store=Materialized(name="rows", **store), **TEXT)
    builder.global_table("all", store=Materialized(name="all", **store), **TEXT)
    return builder.build()


def test_the_setting_gives_headers_to_stores_of_tables() -> None:
    with TopologyTestDriver(tables(), config=FORMAT) as driver:
        driver.input_topic("in").pipe_input("a", "1", timestamp=60, headers=TRACE)
        for name in ("rows", "all"):
            driver.input_topic(name).pipe_input("a", "1", timestamp=7, headers=TRACE)
            # As in Kafka Streams 4.3, what tables put has no headers.
            assert driver.state_store(name, headers=True).get("a") == ("1", 7, ())
            assert driver.state_store(name).get("a") == ("1", 7)
        assert driver.state_store("counts", headers=True).get("a") == (1, 60, ())
        assert driver.state_store("windows", headers=True).get("a", 50) == (1, 60, ())
        assert driver.state_store("windows").get("a", 50) == (1, 60)
        assert driver.state_store("sliding", headers=True).get("a", 10) == (1, 60, ())
        assert driver.state_store("sessions", headers=True).get("a", 60, 60) == (1, ())
        assert driver.state_store("sessions").get("a", 60, 60) == 1


@pytest.mark.parametrize(
    ("config", "store"),
    [
        pytest.param({}, {}, id="no setting"),
        pytest.param(FORMAT, {"headers": False}, id="a store says no"),
        pytest.param(FORMAT, {"persistent": False}, id="a store in memory"),
        pytest.param(FORMAT | {"default.dsl.store": "in_memory"}, {}, id="all in memory"),
        pytest.param(FORMAT, {"storage": lambda name: MemoryStorage()}, id="a place of its own"),
        pytest.param(FORMAT, {"history": 100}, id="a versioned store"),
    ],
)
def test_other_stores_have_none(config: dict[str, Any], store: dict[str, Any]) -> None:
    builder = StreamsBuilder()
    builder.table("rows", store=Materialized(name="rows", **store), **TEXT)
    with (
        TopologyTestDriver(builder.build(), config=config) as driver,
        pytest.raises(StreamsError, match="has no headers"),
    ):
        driver.state_store("rows", headers=True)


def test_a_store_may_ask_for_headers_alone() -> None:
    with TopologyTestDriver(tables(headers=True, persistent=False)) as driver:
        driver.input_topic("in").pipe_input("a", "1", timestamp=60)
        assert driver.state_store("counts", headers=True).get("a") == (1, 60, ())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Materialized(history=5, headers=True), "a versioned store keeps no headers"),
        (
            lambda: window_store(
                "w", window_size=1, retention=1, timestamped=False, headers=True, **TEXT
            ),
            "window store w have headers only where they have times",
        ),
    ],
)
def test_stores_that_cannot_have_headers(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def pipe(driver: TopologyTestDriver, value: str | None, time: int) -> list[str]:
    """A record with headers; what the processor then finds in its stores."""
    driver.input_topic("in").pipe_input("a", value, timestamp=time, headers=TRACE)
    return [str(found) for found in driver.output_topic("out").read_values()]


def test_a_store_without_headers_becomes_one_with_them(tmp_path: Path) -> None:
    first = build(headers=False)
    with TopologyTestDriver(first, state=open_state(tmp_path, batch_bytes=0)) as driver:
        # The processor is that of the later version, so the stores are filled by hand.
        driver.state_store("timed").put("a", "1", 7)
        driver.state_store("windows").put("a", "2", 0, 8)
        driver.state_store("sessions").put(SESSION, "3")
        driver.advance_wall_clock_time(1)
    for _ in range(2):
        with TopologyTestDriver(build(), state=open_state(tmp_path, batch_bytes=0)) as driver:
            assert driver.state_store("timed", headers=True).get("a") == ("1", 7, ())
            assert driver.state_store("windows", headers=True).get("a", 0) == ("2", 8, ())
            assert driver.state_store("sessions", headers=True).get("a", 10, 20) == ("3", ())
            found = pipe(driver, "b", 300)
            assert found[0] == "b@300[trace=x37,none=-]"
            assert "a/10=3[] " in found[3]
            pipe(driver, None, 300)
            driver.state_store("timed", headers=True).put("a", "1", 7)
            driver.advance_wall_clock_time(1)
    for _ in range(2):
        # The state is closed, so that it can be opened again.
        with pytest.raises(StreamsError, match=r"store timed has headers on disk.*clean_up"):
            TopologyTestDriver(first, state=open_state(tmp_path))


def test_the_setting_finds_the_state_of_the_run_before(tmp_path: Path) -> None:
    found = []
    for config in ({}, FORMAT, FORMAT):
        state = open_state(tmp_path, batch_bytes=0)
        with TopologyTestDriver(tables(), config=config, state=state) as driver:
            driver.input_topic("in").pipe_input("a", "1", timestamp=60, headers=TRACE)
            found.append(
                (
                    driver.state_store("counts").get("a"),
                    driver.state_store("windows").get("a", 50),
                    driver.state_store("sliding").get("a", 10),
                    driver.state_store("sessions").get("a", 60, 60),
                )
            )
    assert found == [((n, 60), (n, 60), (n, 60), n) for n in (1, 2, 3)]


@pytest.mark.parametrize("headers", [False, True])
def test_queries_have_the_same_results_with_headers(headers: bool) -> None:
    with TopologyTestDriver(tables(), config=FORMAT if headers else {}) as driver:
        driver.input_topic("in").pipe_input("a", "1", timestamp=60, headers=TRACE)
        stores = driver.all_state_stores()
        ask = lambda store, query: answer(  # noqa: E731
            query, stores[store], 0, Position(), PositionBound()
        ).result
        assert ask("counts", KeyQuery("a")) == 1
        assert ask("counts", TimestampedKeyQuery("a")) == ValueAndTimestamp(1, 60)
        assert ask("counts", RangeQuery()) == [("a", 1)]
        assert ask("counts", TimestampedRangeQuery()) == [("a", ValueAndTimestamp(1, 60))]
        in_window = WindowKeyQuery(key="a", time_from=0, time_to=99)
        assert ask("windows", in_window) == [(50, (1, 60))]
        everything = WindowRangeQuery(time_from=0, time_to=99)
        assert ask("windows", everything) == [(Windowed("a", Window(50, 100)), (1, 60))]
        of_key = WindowRangeQuery(key="a")
        assert ask("sessions", of_key) == [(Windowed("a", Window(60, 60)), 1)]


class Fill(Processor):
    def process(self, record: Any) -> None:
        store = self.context.state_store("rates")
        store.put(record.key, record.value, record.timestamp, record.headers)


class Look(Processor):
    def process(self, record: Any) -> None:
        found = self.context.state_store("rates").get("a")
        self.context.forward(record.with_headers(found.headers))


def test_a_query_without_the_cache_finds_what_was_there_before() -> None:
    core = TaskCore(0)
    store = timed(cache=StoreCache(RecordCache(1_000_000), core))
    store.put("a", "1", 5, TRACE)
    store.flush()
    store.put("a", "2", 6, TRACE)
    for skip_cache, expected in ((True, ("1", 5)), (False, ("2", 6))):
        query = TimestampedKeyQuery("a", skip_cache=skip_cache)
        assert answer(query, store, 0, Position(), PositionBound()).result == expected


def test_a_processor_is_tested_alone_with_such_a_store() -> None:
    context = MockProcessorContext()
    context.add_state_store(timestamped_key_value_store("last", headers=True, **TEXT))
    processor = Last()
    processor.init(context)
    processor.process(Record("a", "1", 1, TRACE))
    assert context.state_store("last").get("a") == ("1", 1, TRACE)


@pytest.mark.parametrize("is_global", [False, True])
def test_stores_of_a_topic_keep_its_headers(is_global: bool) -> None:
    topology = Topology().add_source("source", ["in"], **TEXT)
    rates = timestamped_key_value_store("rates", headers=True, **TEXT)
    options: dict[str, Any] = {"topic": "rates", "source": "rates-in", "processor": "fill", **TEXT}
    if is_global:
        topology.add_global_store(rates, supplier=Fill, **options)
    else:
        topology.add_read_only_state_store(rates, supplier=Fill, **options)
    topology.add_processor("look", Look, "source")
    if not is_global:
        topology.connect_processor_and_state_stores("look", "rates")
    topology.add_sink("sink", "out", "look", **TEXT)
    with TopologyTestDriver(topology) as driver:
        driver.input_topic("rates").pipe_input("a", "1", timestamp=5, headers=TRACE)
        driver.input_topic("in").pipe_input("b", "2", timestamp=6)
        assert driver.output_topic("out").read_record().headers == TRACE


@pytest.mark.parametrize("config", [{}, FORMAT])
def test_sessions_from_the_cache_have_the_headers_of_the_store(config: dict[str, Any]) -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in", **TEXT).group_by_key()
    counts = grouped.windowed_by(SessionWindows(inactivity_gap=5)).count()
    counts.to_stream(lambda key, value: key.key).to("out", key_serde="string", value_serde="long")
    with TopologyTestDriver(builder.build(), config=config) as driver:
        driver.input_topic("in").pipe_input("a", "1", timestamp=60, headers=TRACE)
        # As in Kafka Streams: sessions are put without headers, and the cache gives those.
        assert driver.output_topic("out").read_record().headers == (() if config else TRACE)
