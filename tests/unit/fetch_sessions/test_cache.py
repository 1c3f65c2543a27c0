"""Which sessions stay when there are too many (KIP-227)."""

from __future__ import annotations

import itertools

import pytest

from moldau.broker.fetch_sessions.cache import FetchSessionCache
from moldau.broker.fetch_sessions.session import FetchSession, SlotKey, next_epoch
from moldau.broker.fetch_sessions.slot import FetchSlot
from moldau.broker.replication.machine.fetch_data import PartitionFetch

OLD = 120_001


def _slots(count: int) -> dict[SlotKey, FetchSlot]:
    return {
        ("t", index): FetchSlot("t", PartitionFetch(index, -1, 0, -1, -1, 1))
        for index in range(count)
    }


def _create(
    cache: FetchSessionCache, size: int, now_ms: int, privileged: bool = False
) -> FetchSession | None:
    return cache.create(_slots(size), privileged=privileged, uses_topic_ids=False, now_ms=now_ms)


def _cache(places: int) -> FetchSessionCache:
    ids = itertools.count(1)
    return FetchSessionCache(places, random_id=lambda: next(ids))


@pytest.mark.parametrize(
    ("present", "used_until", "new", "now_ms", "evicted"),
    [
        pytest.param((5, False), 0, (1, False), OLD, True, id="unused for too long"),
        pytest.param((5, False), 0, (9, False), OLD - 1, False, id="young, although smaller"),
        pytest.param((5, False), OLD, (9, False), OLD, True, id="smaller and no longer young"),
        pytest.param((5, False), OLD, (5, False), OLD, False, id="as big"),
        pytest.param((5, False), 0, (1, True), 1, True, id="a follower displaces a consumer"),
        pytest.param((5, True), 0, (9, True), 1, False, id="followers are equals while young"),
        pytest.param((5, True), OLD, (9, True), OLD, True, id="a bigger follower"),
        pytest.param((5, True), OLD, (9, False), OLD, False, id="no consumer displaces a follower"),
    ],
)
def test_who_takes_whose_place(
    present: tuple[int, bool],
    used_until: int,
    new: tuple[int, bool],
    now_ms: int,
    evicted: bool,
) -> None:
    cache = _cache(1)
    session = _create(cache, present[0], 0, present[1])
    assert session is not None
    cache.touch(session, used_until)
    created = _create(cache, new[0], now_ms, new[1])
    assert (created is not None) is evicted
    assert (cache.get(session.id) is None) is evicted
    assert (len(cache), cache.evictions_count) == (1, int(evicted))


def test_the_least_valuable_goes_first() -> None:
    cache = _cache(3)
    sessions = [_create(cache, size, 0) for size in (4, 2, 3)]
    for session in sessions:
        assert session is not None
        cache.touch(session, OLD)
    assert _create(cache, 9, OLD) is not None
    kept = [session for session in sessions if session is not None and cache.get(session.id)]
    assert [len(session.slots) for session in kept] == [4, 3]
    assert cache.partitions_count == 16


def test_ids_are_positive_and_unique() -> None:
    ids = iter([0, 7, 7, 0x80000000, 7, -1])
    cache = FetchSessionCache(9, random_id=lambda: next(ids))
    created = [_create(cache, 1, 0), _create(cache, 1, 0)]
    assert [session.id for session in created if session is not None] == [7, 0x7FFFFFFF]


@pytest.mark.parametrize(("epoch", "after"), [(0, 1), (1, 2), (2**31 - 1, 1)])
def test_epochs_wrap_around_to_one(epoch: int, after: int) -> None:
    assert next_epoch(epoch) == after
