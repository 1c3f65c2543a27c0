"""Replicas spread over brokers and racks."""

from __future__ import annotations

import random
from collections import Counter
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.broker.metadata.machine.model import (
    DIRECTORY_MIGRATING,
    DIRECTORY_UNASSIGNED,
    Broker,
)
from moldau.broker.metadata.machine.placement import default_directory, place_replicas
from moldau.wire.errors import ApiError


def broker(broker_id: int, rack: str | None = None, **fields: object) -> Broker:
    made: dict[str, object] = {"fenced": False, "epoch": 0, "incarnation_id": UUID(int=1)}
    return Broker(id=broker_id, rack=rack, **(made | fields))  # type: ignore[arg-type]


@given(
    count=st.integers(1, 9),
    racks=st.integers(1, 3),
    partitions=st.integers(1, 60),
    factor=st.integers(1, 9),
    fenced=st.integers(0, 3),
    seed=st.integers(),
)
def test_every_partition_has_distinct_brokers_and_live_ones_first(
    count: int, racks: int, partitions: int, factor: int, fenced: int, seed: int
) -> None:
    brokers = [broker(i, f"r{i % racks}") for i in range(count)]
    brokers += [broker(100 + i, fenced=True) for i in range(fenced)]
    factor = min(factor, len(brokers))
    placed = place_replicas(
        brokers,
        partition_count=partitions,
        replication_factor=factor,
        random=random.Random(seed),
    )
    assert len(placed) == partitions
    for replicas in placed:
        assert len(set(replicas)) == factor
        live = [replica < 100 for replica in replicas]
        assert live == sorted(live, reverse=True)
        assert sum(live) == min(factor, count)


@given(count=st.integers(1, 8), turns=st.integers(1, 4), seed=st.integers())
def test_leaders_are_spread_evenly(count: int, turns: int, seed: int) -> None:
    placed = place_replicas(
        [broker(i) for i in range(count)],
        partition_count=count * turns,
        replication_factor=1,
        random=random.Random(seed),
    )
    assert set(Counter(replicas[0] for replicas in placed).values()) == {turns}


@given(seed=st.integers())
def test_replicas_of_a_partition_sit_in_different_racks(seed: int) -> None:
    brokers = [broker(i, f"r{i % 3}") for i in range(9)]
    placed = place_replicas(
        brokers, partition_count=9, replication_factor=3, random=random.Random(seed)
    )
    for replicas in placed:
        assert {replica % 3 for replica in replicas} == {0, 1, 2}


@pytest.mark.parametrize(
    ("brokers", "factor"),
    [
        pytest.param([], 1, id="none"),
        pytest.param([broker(1, fenced=True)], 1, id="all fenced"),
        pytest.param([broker(1)], 2, id="too few"),
        pytest.param([broker(1)], 0, id="no replica wanted"),
        pytest.param(
            [broker(1, log_dirs=(UUID(int=500),), cordoned_log_dirs=(UUID(int=500),))],
            1,
            id="no room",
        ),
    ],
)
def test_what_cannot_be_placed(brokers: list[Broker], factor: int) -> None:
    with pytest.raises(ApiError):
        place_replicas(
            brokers, partition_count=1, replication_factor=factor, random=random.Random(1)
        )


def test_the_directory_is_known_only_where_there_is_no_choice() -> None:
    one, two = UUID(int=501), UUID(int=502)
    assert default_directory(broker(1, log_dirs=(one,))) == one
    assert default_directory(broker(1, log_dirs=(one, two))) == DIRECTORY_UNASSIGNED
    assert default_directory(broker(1)) == DIRECTORY_MIGRATING
