"""A streaming query's run against a cluster that comes and goes, in played time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from moldau.client.errors import DisconnectError
from moldau.client.topics import TopicPartition
from moldau.spark.source.machine.options import parse_options
from moldau.spark.source.stream import StreamRun

KEY = TopicPartition("t", 0)
API_TIMEOUT_MS = 60_000


class PlayedClock:
    def __init__(self) -> None:
        self.s = 1_000.0
        self.slept: list[float] = []

    def now_ms(self) -> int:
        return int(self.s * 1000)

    def elapsed_s(self) -> float:
        return self.s

    def cpu_s(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.s += seconds


class PlayedCluster:
    """One partition. A look at a cluster that is away takes as long as the caller has patience."""

    api_timeout_ms = API_TIMEOUT_MS
    thread = None

    def __init__(self, clock: PlayedClock) -> None:
        self.clock = clock
        self.ends = [10]
        self.is_away = False
        self.patience_ms = API_TIMEOUT_MS

    @contextmanager
    def patience(self, patience_ms: int) -> Iterator[None]:
        self.patience_ms = patience_ms
        yield

    def latest_there(self) -> dict[TopicPartition, int]:
        if self.is_away:
            self.clock.s += self.patience_ms / 1000
            raise DisconnectError("nobody there")
        return {KEY: self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]}

    def wait(self, offsets: Any, seconds: float) -> bool:
        self.clock.s += seconds
        return False

    def earliest(self, keys: Any) -> dict[TopicPartition, int]:
        return dict.fromkeys(keys, 0)


@pytest.fixture
def clock() -> PlayedClock:
    return PlayedClock()


@pytest.fixture
def cluster(clock: PlayedClock) -> PlayedCluster:
    return PlayedCluster(clock)


def begin(cluster: Any, clock: PlayedClock, **options: str) -> StreamRun:
    given = {"kafka.bootstrap.servers": "h:1", "subscribe": "t", "mirrorOffsets": "false"}
    return StreamRun(parse_options(given | options, streaming=True), cluster=cluster, clock=clock)


def test_a_cluster_that_is_away_is_waited_for_in_short_calls_and_not_for_ever(
    cluster: PlayedCluster, clock: PlayedClock
) -> None:
    run = begin(cluster, clock)
    start = {KEY: 10}
    assert run.latest({KEY: 0}, limited=False) == start
    cluster.is_away = True
    began = clock.s
    # The time counts from the first call that failed.
    for _ in range(API_TIMEOUT_MS // 2000):
        before = clock.s
        assert run.latest(start, limited=False) == start
        # Spark stops a query between two calls.
        assert clock.s - before <= 2.0
    with pytest.raises(DisconnectError):
        run.latest(start, limited=False)
    assert API_TIMEOUT_MS / 1000 <= clock.s - began <= API_TIMEOUT_MS / 1000 + 4


def test_an_outage_that_ended_is_forgotten(cluster: PlayedCluster, clock: PlayedClock) -> None:
    run = begin(cluster, clock)
    start = {KEY: 10}
    run.latest({KEY: 0}, limited=False)
    for _ in range(3):
        cluster.is_away = True
        for _ in range(20):
            assert run.latest(start, limited=False) == start
        cluster.is_away = False
        assert run.latest(start, limited=False) == start


def test_the_first_look_may_take_all_the_time_there_is(
    cluster: PlayedCluster, clock: PlayedClock
) -> None:
    cluster.is_away = True
    began = clock.s
    with pytest.raises(DisconnectError):
        begin(cluster, clock).latest({KEY: 0}, limited=False)
    assert clock.s - began == API_TIMEOUT_MS / 1000


def test_an_end_below_what_was_read_is_asked_for_again(
    cluster: PlayedCluster, clock: PlayedClock
) -> None:
    run = begin(cluster, clock, **{"fetchOffset.retryIntervalMs": "70"})
    cluster.ends = [5, 12]
    assert run.latest({KEY: 10}, limited=False) == {KEY: 12}
    assert clock.slept == [0.07]


def test_a_minimum_is_waited_for_until_its_time_is_over(
    cluster: PlayedCluster, clock: PlayedClock
) -> None:
    run = begin(cluster, clock, minOffsetsPerTrigger="100", maxTriggerDelay="10s")
    start = {KEY: 4}
    assert run.latest({KEY: 0}, limited=True) == {KEY: 10}
    assert run.latest(start, limited=True) == start
    clock.s += 9
    assert run.latest(start, limited=True) == start
    clock.s += 2
    assert run.latest(start, limited=True) == {KEY: 10}


def test_a_backlog_becomes_batches_of_the_wanted_time(
    cluster: PlayedCluster, clock: PlayedClock
) -> None:
    cluster.ends = [100_000_000]
    run = begin(cluster, clock, maxOffsetsPerTrigger="auto", targetBatchDuration="2s")
    at, sizes = {KEY: 0}, []
    for _ in range(12):
        end = run.latest(at, limited=True)
        sizes.append(end[KEY] - at[KEY])
        at = end
        # A hundred rows in a millisecond.
        clock.s += sizes[-1] / 100_000
    assert sizes[0] == 50_000
    assert all(180_000 <= size <= 220_000 for size in sizes[4:])
    # Where Spark wants all there is, there is no limit.
    assert run.latest(at, limited=False) == {KEY: 100_000_000}
