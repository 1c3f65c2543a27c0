"""Groups, transactions and queues that this broker coordinates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

from moldau.broker.coordinators import Coordinators
from moldau.broker.machine.telemetry import ClientTelemetry
from moldau.broker.metrics import controller_tables as t
from moldau.broker.share.manager import SharePartitionManager
from moldau.metrics import Spec
from moldau.metrics.registry import Reading
from moldau.wire.errors import ApiError

Samples: TypeAlias = Iterator[tuple[Spec, tuple[str, ...], Reading]]

_STATES = {
    "consumer": ("Empty", "Assigning", "Reconciling", "Stable", "Dead"),
    "share": ("Empty", "Stable", "Dead"),
    "streams": ("Empty", "NotReady", "Assigning", "Reconciling", "Stable", "Dead"),
}


class CoordinatorGauges:
    def __init__(
        self,
        coordinators: Coordinators,
        share_partitions: SharePartitionManager,
        telemetry: ClientTelemetry,
    ) -> None:
        self._coordinators = coordinators
        self._share_partitions = share_partitions
        self._telemetry = telemetry

    def collect(self) -> Samples:
        yield from self._groups()
        yield from self._transactions()
        yield t.SHARE_SESSIONS, (), len(self._share_partitions.sessions)
        yield t.SHARE_PARTITIONS, (), len(self._share_partitions)
        yield t.CLIENT_INSTANCES, (), self._telemetry.client_count

    def _groups(self) -> Samples:
        runtime = self._coordinators.groups.runtime
        classic: Counter[str] = Counter()
        newer = {kind: Counter[str]() for kind in t.GROUP_STATES}
        offsets = active = loading = 0
        for index in runtime.partitions:
            try:
                shard = runtime.read(index, lambda found: found)
            except ApiError:
                loading += 1
                continue
            active += 1
            offsets += shard.offset_count
            classic.update(each.state_name for each in shard.classic)
            for kind, counts in newer.items():
                groups = getattr(shard, kind).groups.values()
                counts.update(each.state_name for each in groups)
        yield t.NUM_GROUPS, (), classic.total()
        yield t.NUM_OFFSETS, (), offsets
        for state, spec in t.CLASSIC_STATES.items():
            yield spec, (), classic[state]
        yield t.GROUP_COUNT, ("classic",), classic.total()
        for kind, counts in newer.items():
            yield t.GROUP_COUNT, (kind,), counts.total()
            for state in _STATES[kind]:
                yield t.GROUP_STATES[kind], (state.lower(),), counts[state]
        yield t.NUM_PARTITIONS, ("active",), active
        yield t.NUM_PARTITIONS, ("loading",), loading
        yield t.NUM_PARTITIONS, ("failed",), 0

    def _transactions(self) -> Samples:
        known = self._coordinators.transactions.transactions()
        counts = Counter(each.state.state_name for each in known or ())
        for state, count in counts.items():
            yield t.TRANSACTIONS, (state,), count
