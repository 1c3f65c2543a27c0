"""Queries as objects: what each kind of store answers, and why it does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moldau.streams import (
    FailureReason,
    KeyQuery,
    Materialized,
    MultiVersionedKeyQuery,
    Position,
    PositionBound,
    Processor,
    QueryResult,
    RangeQuery,
    SessionWindows,
    StateQueryResult,
    StreamsBuilder,
    TimestampedKeyQuery,
    TimestampedRangeQuery,
    TimeWindows,
    TopologyTestDriver,
    VersionedKeyQuery,
    VersionedRecord,
    WindowKeyQuery,
    WindowRangeQuery,
    key_value_store,
)
from moldau.streams.errors import InvalidStateStoreError
from moldau.streams.machine.store_queries import Query, answer
from moldau.streams.records import TaskCore
from moldau.streams.serdes import LONG, STRING
from moldau.streams.stores._cache import RecordCache, StoreCache
from moldau.streams.stores.key_value import KeyValueStore, TimestampedKeyValueStore

HERE = Position({"in": {0: 7}})


class _Nothing(Processor):
    def process(self, record: Any) -> None:
        """It only has a store."""


@pytest.fixture(scope="module")
def driver() -> Iterator[TopologyTestDriver]:
    builder = StreamsBuilder()
    builder.add_state_store(key_value_store("plain", key_serde="string", value_serde="long"))
    stream = builder.stream("in", key_serde="string", value_serde="string")
    grouped = stream.group_by_key()
    grouped.count(store="counts")
    grouped.windowed_by(TimeWindows(size=100)).count(
        store=Materialized(name="windows", retention=10_000)
    )
    grouped.windowed_by(SessionWindows(inactivity_gap=50, grace=1_000)).count(store="sessions")
    versions = Materialized(name="versions", history=1_000)
    builder.table("prices", key_serde="string", value_serde="string", store=versions)
    stream.process(_Nothing, "plain")
    with TopologyTestDriver(builder.build()) as made:
        made.input_topic("in").pipe_input("a", "1", timestamp=10)
        made.input_topic("in").pipe_input("b", "2", timestamp=20)
        made.input_topic("in").pipe_input("a", "3", timestamp=210)
        for timestamp, value in ((10, "x"), (20, "y"), (30, None), (40, "z")):
            made.input_topic("prices").pipe_input("k", value, timestamp=timestamp)
        made.state_store("plain").put("p", 5)
        yield made


def ask(driver: TopologyTestDriver, store: str, query: Query) -> QueryResult[Any]:
    return answer(query, driver.state_store(store), 0, HERE, PositionBound.unbounded())


@pytest.mark.parametrize(
    ("store", "query", "expected"),
    [
        ("counts", KeyQuery("a"), 2),
        ("counts", KeyQuery("nobody"), None),
        ("plain", KeyQuery("p"), 5),
        ("counts", TimestampedKeyQuery("a"), (2, 210)),
        ("counts", RangeQuery(), [("a", 2), ("b", 1)]),
        ("counts", RangeQuery(lower_bound="b"), [("b", 1)]),
        ("counts", RangeQuery(upper_bound="a"), [("a", 2)]),
        ("counts", RangeQuery(descending=True), [("b", 1), ("a", 2)]),
        ("counts", TimestampedRangeQuery(), [("a", (2, 210)), ("b", (1, 20))]),
        (
            "windows",
            WindowKeyQuery(key="a", time_from=0, time_to=500),
            [(0, (1, 10)), (200, (1, 210))],
        ),
        ("versions", VersionedKeyQuery("k"), VersionedRecord("z", 40, None)),
        ("versions", VersionedKeyQuery("k", as_of=25), VersionedRecord("y", 20, 30)),
        ("versions", VersionedKeyQuery("k", as_of=35), None),
        (
            "versions",
            MultiVersionedKeyQuery(key="k"),
            [("z", 40, None), ("y", 20, 30), ("x", 10, 20)],
        ),
        (
            "versions",
            MultiVersionedKeyQuery(key="k", time_from=15, time_to=35, ascending=True),
            [("x", 10, 20), ("y", 20, 30)],
        ),
    ],
)
def test_stores_answer(driver: TopologyTestDriver, store: str, query: Query, expected: Any) -> None:
    result = ask(driver, store, query)
    assert result.is_success, result.failure_message
    assert result.result == expected
    assert result.position == HERE


def test_windows_and_sessions_of_ranges(driver: TopologyTestDriver) -> None:
    windows = ask(driver, "windows", WindowRangeQuery(time_from=0, time_to=100)).result
    assert {(each.key, each.window.start): kept for each, kept in windows or ()} == {
        ("a", 0): (1, 10),
        ("b", 0): (1, 20),
    }
    sessions = ask(driver, "sessions", WindowRangeQuery(key="a")).result
    assert [each.window.start for each, _ in sessions or ()] == [10, 210]


@pytest.mark.parametrize(
    ("store", "query"),
    [
        ("counts", VersionedKeyQuery("a")),
        ("counts", WindowKeyQuery(key="a", time_from=0, time_to=1)),
        ("plain", TimestampedKeyQuery("p")),
        ("plain", TimestampedRangeQuery()),
        ("windows", KeyQuery("a")),
        ("windows", WindowRangeQuery(key="a")),
        ("sessions", WindowRangeQuery(time_from=0, time_to=9)),
        ("versions", RangeQuery()),
    ],
)
def test_a_store_says_which_queries_it_does_not_have(
    driver: TopologyTestDriver, store: str, query: Query
) -> None:
    result = ask(driver, store, query)
    assert result.failure_reason is FailureReason.UNKNOWN_QUERY_TYPE
    assert "doesn't know how to execute" in result.failure_message


def test_an_error_of_a_store_is_its_answer(driver: TopologyTestDriver) -> None:
    assert ask(driver, "counts", KeyQuery(5)).failure_reason is FailureReason.STORE_EXCEPTION


def test_a_store_answers_once_it_is_up_to_the_bound(driver: TopologyTestDriver) -> None:
    store = driver.state_store("counts")
    for offset, reason in ((7, None), (8, FailureReason.NOT_UP_TO_BOUND)):
        bound = PositionBound.at(Position({"in": {0: offset}}))
        assert answer(KeyQuery("a"), store, 0, HERE, bound).failure_reason is reason
    # What is said of another partition does not concern this one.
    bound = PositionBound.at(Position({"in": {1: 100}}))
    assert answer(KeyQuery("a"), store, 0, HERE, bound).is_success


def test_positions_merge_to_the_larger_offsets() -> None:
    merged = HERE.merge(Position({"in": {0: 3, 1: 4}, "other": {0: 1}}))
    assert merged == Position({"in": {0: 7, 1: 4}, "other": {0: 1}})
    assert merged.partition_positions("in") == {0: 7, 1: 4}
    assert HERE.with_component("in", 0, 9) == Position({"in": {0: 9}})


def test_one_partition_has_the_answer_for_a_key() -> None:
    some: QueryResult[int] = QueryResult(result=3, position=HERE)
    none: QueryResult[int] = QueryResult(position=HERE)
    assert StateQueryResult(partition_results={0: none, 1: some}).only_partition_result is some
    assert StateQueryResult(partition_results={0: none}).only_partition_result is None
    with pytest.raises(InvalidStateStoreError):
        _ = StateQueryResult(partition_results={0: some, 1: some}).only_partition_result


def test_a_query_may_skip_what_waits_for_a_commit() -> None:
    cache = StoreCache(RecordCache(10_000), TaskCore(0))
    plain = KeyValueStore("plain", STRING, LONG, cache=cache)
    plain.put("a", 1)
    cache.flush()
    plain.put("a", 2)
    plain.put("b", 3)

    def found(query: Query, store: Any) -> Any:
        return answer(query, store, 0, HERE, PositionBound()).result

    assert found(KeyQuery("a"), plain) == 2
    assert found(KeyQuery("a", skip_cache=True), plain) == 1
    assert found(KeyQuery("b", skip_cache=True), plain) is None
    cache = StoreCache(RecordCache(10_000), TaskCore(0))
    table = TimestampedKeyValueStore("table", STRING, LONG, cache=cache)
    table.put("a", 1, 5)
    cache.flush()
    table.put("a", 2, 6)
    assert found(TimestampedKeyQuery("a"), table) == (2, 6)
    assert found(TimestampedKeyQuery("a", skip_cache=True), table) == (1, 5)
    assert found(KeyQuery("a", skip_cache=True), table) == 1
