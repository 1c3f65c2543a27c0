"""Keys go where Kafka's go; without a key chance decides, weighted by the queues."""

from __future__ import annotations

from collections import Counter
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.partitioner.default import murmur2 as theirs  # type: ignore[import-untyped]

from moldau.client.producer.machine.partitioners import (
    RoundRobinPartitioner,
    StickyPartition,
    cumulative_weights,
    murmur2,
    partition_for_key,
)


@pytest.mark.parametrize(
    ("key", "signed"),
    [
        # Of Kafka's own tests.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_kafkas(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed & 0xFFFFFFFF


def test_murmur2_is_other_clients() -> None:
    random = Random(1)
    for size in [*range(20), 1000]:
        key = random.randbytes(size)
        assert murmur2(key) == theirs(key) & 0xFFFFFFFF
        assert partition_for_key(key, 12) == (theirs(key) & 0x7FFFFFFF) % 12


@pytest.mark.parametrize(
    ("sizes", "count", "weights"),
    [
        pytest.param([0, 3, 1], 3, [4, 5, 8], id="the shorter the likelier"),
        pytest.param([2, 2, 2], 3, None, id="all alike"),
        pytest.param([2, 2], 3, [1, 2], id="one left out: the others alone"),
        pytest.param([7], 2, [1], id="one left"),
        pytest.param([7], 1, None, id="one there is"),
        pytest.param([], 3, None, id="none left: all again"),
    ],
)
def test_weights(sizes: list[int], count: int, weights: list[int] | None) -> None:
    assert cumulative_weights(sizes, count) == weights


def test_chance_follows_the_weights() -> None:
    sticky = StickyPartition(100, Random(7))
    sticky.update([4, 5, 6], [4, 5, 8])
    chosen: Counter[int] = Counter()
    for _ in range(8000):
        sticky.switch()
        chosen[sticky.partition] += 1
    assert set(chosen) == {4, 5, 6}
    assert abs(chosen[4] - 4000) < 300
    assert abs(chosen[5] - 1000) < 200


def test_a_partition_is_left_at_a_batchs_end_only_after_about_a_batchs_bytes() -> None:
    sticky = StickyPartition(100, Random(1))
    sticky.update([0, 1], None)
    sticky.switch()
    sticky.produced = 80
    assert not sticky.switched_at_boundary(10)
    assert sticky.produced == 80
    assert sticky.switched_at_boundary(20)
    assert sticky.produced == 0


def test_round_robin_passes_partitions_without_leader_over() -> None:
    def cluster(*leaders: int) -> Any:
        views = {index: SimpleNamespace(leader_id=each) for index, each in enumerate(leaders)}
        return SimpleNamespace(topics={"t": SimpleNamespace(partitions=views)})

    robin = RoundRobinPartitioner()

    def take(count: int, *leaders: int) -> list[int]:
        return [
            robin.partition("t", None, None, None, None, cluster(*leaders)) for _ in range(count)
        ]

    assert take(4, 1, 1, 1) == [0, 1, 2, 0]
    assert take(4, 1, -1, 1) == [0, 2, 0, 2]
    assert take(2, -1, -1, -1) == [2, 0]
