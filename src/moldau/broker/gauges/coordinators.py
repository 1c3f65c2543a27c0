"""Groups, transactions and queues that this broker coordinates."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeAlias

from moldau.broker.coordinator.runtime import CoordinatorRuntime
from moldau.broker.coordinators import Coordinators
from moldau.broker.machine.telemetry import ClientTelemetry
from moldau.broker.metrics import controller_tables as t
from moldau.broker.metrics.node import NodeMetrics
from moldau.broker.share.manager import SharePartitionManager
from moldau.metrics import Histogram, Spec, Ticker
from moldau.metrics.recent import Recent
from moldau.metrics.registry import Reading
from moldau.wire.errors import ApiError

Samples: TypeAlias = Iterator[tuple[Spec, tuple[str, ...], Reading]]

_STATES = {
    "consumer": ("Empty", "Assigning", "Reconciling", "Stable", "Dead"),
    "share": ("Empty", "Stable", "Dead"),
    "streams": ("Empty", "NotReady", "Assigning", "Reconciling", "Stable", "Dead"),
}


class _Times:
    """Of one coordinator: implements `coordinator.shell.Times`."""

    def __init__(self, ticker: Ticker) -> None:
        self.processing = Histogram(ticker)
        self.purgatory = Histogram(ticker)
        self.writes = Recent()
        self.processed = self.processing.update

    def committed(self, milliseconds: float) -> None:
        self.purgatory.update(milliseconds)
        self.writes.add(milliseconds, time.monotonic())


class CoordinatorGauges:
    def __init__(
        self,
        coordinators: Coordinators,
        share_partitions: SharePartitionManager,
        telemetry: ClientTelemetry,
        metrics: NodeMetrics,
    ) -> None:
        self._metrics = metrics
        self._generations: dict[tuple[str, str], int] = {}
        self._rebalances: Counter[str] = Counter()
        self._coordinators = coordinators
        self._share_partitions = share_partitions
        self._telemetry = telemetry
        ticker = metrics.registry.ticker
        self._times = {"group": _Times(ticker), "share": _Times(ticker)}
        coordinators.groups.runtime.times = self._times["group"]
        coordinators.share_states.runtime.times = self._times["share"]

    def collect(self) -> Samples:
        yield from self._groups()
        yield from self._shards()
        yield from self._latencies()
        yield from self._transactions()
        self._count_share_requests()
        yield t.SHARE_SESSIONS, (), len(self._share_partitions.sessions)
        yield t.SHARE_PARTITIONS, (), len(self._share_partitions)
        yield t.CLIENT_INSTANCES, (), self._telemetry.client_count

    def _groups(self) -> Samples:
        runtime = self._coordinators.groups.runtime
        classic: Counter[str] = Counter()
        newer = {kind: Counter[str]() for kind in t.GROUP_STATES}
        generations: dict[tuple[str, str], int] = {}
        offsets = 0
        for index in runtime.partitions:
            try:
                shard = runtime.read(index, lambda found: found)
            except ApiError:
                continue
            offsets += shard.offset_count
            for group in shard.classic:
                classic[group.state_name] += 1
                generations["group-completed", group.group_id] = group.generation
            for kind, counts in newer.items():
                for name, each in getattr(shard, kind).groups.items():
                    counts[each.state_name] += 1
                    generations[f"{kind}-group", name] = each.group_epoch
        yield t.NUM_GROUPS, (), classic.total()
        yield t.NUM_OFFSETS, (), offsets
        yield t.COMMITS, (), self._coordinators.groups.commit_count
        for state, spec in t.CLASSIC_STATES.items():
            yield spec, (), classic[state]
        yield t.GROUP_COUNT, ("classic",), classic.total()
        for kind, counts in newer.items():
            yield t.GROUP_COUNT, (kind,), counts.total()
            for state in _STATES[kind]:
                yield t.GROUP_STATES[kind], (state.lower(),), counts[state]
        self._count_rebalances(generations)
        for kind, spec in t.REBALANCES.items():
            yield spec, (), self._rebalances[kind]

    def _count_rebalances(self, generations: dict[tuple[str, str], int]) -> None:
        """A group's generation, or epoch, goes up with each of its rebalances. Those of a group
        that was loaded, and not made here, were counted elsewhere."""
        for key, generation in generations.items():
            known = self._generations.get(key)
            if known is None:
                self._rebalances[key[0]] += generation == 1
            else:
                self._rebalances[key[0]] += max(0, generation - known)
        self._generations = generations

    def _shards(self) -> Samples:
        coordinators = self._coordinators
        runtimes: dict[str, CoordinatorRuntime[Any]] = {
            "group": coordinators.groups.runtime,
            "share": coordinators.share_states.runtime,
            "transaction": coordinators.transactions.runtime,
        }
        for kind, runtime in runtimes.items():
            if kind in t.NUM_PARTITIONS:
                for state, count in runtime.count_states().items():
                    yield t.NUM_PARTITIONS[kind], (state,), count
            times_ms = runtime.load_times_ms
            mean_ms = sum(times_ms) / len(times_ms) if times_ms else 0.0
            yield t.LOAD_TIMES[kind, "avg"], (), mean_ms
            yield t.LOAD_TIMES[kind, "max"], (), max(times_ms, default=0)

    def _latencies(self) -> Samples:
        for kind, times in self._times.items():
            for phase, histogram in (
                ("processing", times.processing),
                ("purgatory", times.purgatory),
            ):
                for stat, share in t.STATS.items():
                    value = histogram.max if stat == "max" else histogram.percentile(share)
                    yield t.EVENT_TIMES[kind, phase, stat], (), value
        writes, now_s = self._times["share"].writes, time.monotonic()
        yield t.SHARE_WRITES["latency-avg"], (), writes.average(now_s)
        yield t.SHARE_WRITES["latency-max"], (), writes.maximum(now_s)
        yield t.SHARE_WRITES["rate"], (), writes.rate(now_s)
        yield t.SHARE_WRITES["total"], (), writes.total

    def _count_share_requests(self) -> None:
        """Requests are counted where they arrive; Kafka also has them among the topics'."""
        for api, name in (
            ("ShareFetch", "ShareFetchRequestsPerSec"),
            ("ShareAcknowledge", "ShareAcknowledgementRequestsPerSec"),
        ):
            arrived, failed = self._metrics.requests.counts(api)
            for meter, count in (
                (self._metrics.topics.all[f"Total{name}"], arrived),
                (self._metrics.topics.all[f"Failed{name}"], failed),
            ):
                meter.mark(count - meter.count)

    def _transactions(self) -> Samples:
        known = self._coordinators.transactions.transactions()
        counts = Counter(each.state.state_name for each in known or ())
        for state, count in counts.items():
            yield t.TRANSACTIONS, (state,), count
