"""Traffic and CPU of partitions from the counters of topics and processes.

Brokers count bytes by topic, not by partition. A topic's traffic is divided among its partitions by
their size, since what is produced is what is kept; without sizes all have the same. A broker's CPU
is divided among the partitions that it leads, by the bytes that it receives and sends for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from moldau.balance.machine.model import Partition

__all__ = ["Measured", "Rates", "broker_cpu", "shared_cpu", "shared_traffic", "topic_rates"]

_IN = "kafka_server_brokertopicmetrics_bytesin_total"
_OUT = "kafka_server_brokertopicmetrics_bytesout_total"
_CPU = "process_cpu_seconds_total"
_CPU_MIN = 0.1
"""Cores per broker below which CPU decides nothing: what an idle broker uses is chance."""

Page = Iterable[tuple[str, str, float]]
"""Name, topic and value of each line of a broker's metrics."""


class Rates(NamedTuple):
    """Bytes per second, in from producers and out to consumers."""

    bytes_in: float = 0.0
    bytes_out: float = 0.0


class Measured(NamedTuple):
    """What the metrics pages of brokers say of their load."""

    topics: Mapping[str, Rates]
    cpu: Mapping[int | None, float]
    """Cores in use by broker; under None those of all brokers whose id is not known."""


def broker_cpu(
    ids: Sequence[int | None], before: Sequence[Page], after: Sequence[Page], seconds: float
) -> dict[int | None, float]:
    """Cores in use between two readings of the pages of these brokers."""
    found: dict[int | None, float] = {}
    for broker, first, second in zip(ids, before, after, strict=True):
        earlier, later = (
            sum(value for name, _, value in page if name == _CPU) for page in (first, second)
        )
        if later > 0:
            # A process that started in between counts from zero.
            used = later - earlier if later >= earlier else later
            found[broker] = found.get(broker, 0.0) + used / max(seconds, 1e-3)
    return found


def topic_rates(before: Sequence[Page], after: Sequence[Page], seconds: float) -> dict[str, Rates]:
    """What was counted between two readings of the same brokers, by topic."""
    found: dict[str, Rates] = {}
    for first, second in zip(before, after, strict=True):
        counted = _counters(first)
        for (name, topic), value in _counters(second).items():
            # A broker that started in between counts from zero.
            earlier = counted.get((name, topic), 0.0)
            rate = (value - earlier if value >= earlier else value) / max(seconds, 1e-3)
            known = found.get(topic, Rates())
            if name == _IN:
                found[topic] = known._replace(bytes_in=known.bytes_in + rate)
            else:
                found[topic] = known._replace(bytes_out=known.bytes_out + rate)
    return found


def _counters(page: Page) -> dict[tuple[str, str], float]:
    return {(name, topic): value for name, topic, value in page if topic and name in (_IN, _OUT)}


def shared_traffic(
    partitions: Sequence[Partition], rates: Mapping[str, Rates]
) -> Sequence[Partition]:
    """The partitions with their part of their topic's traffic."""
    if not rates:
        return partitions
    sizes: dict[str, float] = {}
    counts: dict[str, int] = {}
    for each in partitions:
        sizes[each.topic] = sizes.get(each.topic, 0.0) + each.disk
        counts[each.topic] = counts.get(each.topic, 0) + 1
    found = []
    for each in partitions:
        whole = sizes[each.topic]
        part = each.disk / whole if whole else 1 / counts[each.topic]
        rate = rates.get(each.topic, Rates())
        found.append(replace(each, bytes_in=rate.bytes_in * part, bytes_out=rate.bytes_out * part))
    return found


def shared_cpu(
    partitions: Sequence[Partition], cpu: Mapping[int | None, float]
) -> Sequence[Partition]:
    """The partitions with what they cost their leaders. Without ids of brokers the CPU of all is
    divided as if a byte cost the same on each."""
    if sum(cpu.values()) < _CPU_MIN * len({each.replicas[0] for each in partitions}):
        return partitions
    weights = [_leader_bytes(each) for each in partitions]
    sums: dict[int | None, float] = {}
    counts: dict[int | None, int] = {}
    owners = [each.replicas[0] if each.replicas[0] in cpu else None for each in partitions]
    for owner, weight in zip(owners, weights, strict=True):
        sums[owner] = sums.get(owner, 0.0) + weight
        counts[owner] = counts.get(owner, 0) + 1
    found = []
    for each, owner, weight in zip(partitions, owners, weights, strict=True):
        part = weight / sums[owner] if sums[owner] else 1 / counts[owner]
        found.append(replace(each, cpu=cpu.get(owner, 0.0) * part))
    return found


def _leader_bytes(partition: Partition) -> float:
    followers = len(partition.replicas) - 1
    return partition.bytes_in * (1 + followers) + partition.bytes_out
