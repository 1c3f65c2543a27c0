"""Requests that wait, and fetch sessions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from moldau.broker.metrics import tables as t
from moldau.metrics import Registry, Spec
from moldau.metrics.registry import Reading


class Waiting(Protocol):
    """A purgatory."""

    expired_count: int

    def __len__(self) -> int: ...


class Sessions(Protocol):
    """The cache of fetch sessions."""

    evictions_count: int

    @property
    def partitions_count(self) -> int: ...

    def __len__(self) -> int: ...


def add_waiting_gauges(
    registry: Registry,
    *,
    produce: Waiting,
    fetch: Waiting,
    share_fetch: Waiting,
    sessions: Sessions,
) -> None:
    purgatories = {"Produce": produce, "Fetch": fetch, "ShareFetch": share_fetch}
    produced = registry.meter(t.PRODUCE_EXPIRES)
    fetched = registry.meter(t.FETCH_EXPIRES, "consumer")
    evicted = registry.meter(t.SESSION_EVICTIONS)

    def collect() -> Iterator[tuple[Spec, tuple[str, ...], Reading]]:
        # They are counted where they happen, as plain numbers.
        produced.mark(produce.expired_count - produced.count)
        fetched.mark(fetch.expired_count - fetched.count)
        evicted.mark(sessions.evictions_count - evicted.count)
        for name, purgatory in purgatories.items():
            yield t.PURGATORY_SIZE, (name,), len(purgatory)
            yield t.PURGATORY_DELAYED, (name,), len(purgatory)
        yield t.SESSIONS, (), len(sessions)
        yield t.SESSION_PARTITIONS, (), sessions.partitions_count

    registry.collector(collect)
