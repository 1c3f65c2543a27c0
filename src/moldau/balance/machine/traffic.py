"""Traffic of partitions from the counters of topics.

Brokers count bytes by topic, not by partition. A topic's traffic is divided among its partitions by
their size, since what is produced is what is kept; without sizes all have the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from moldau.balance.machine.model import Partition

__all__ = ["Rates", "shared_traffic", "topic_rates"]

_IN = "kafka_server_brokertopicmetrics_bytesin_total"
_OUT = "kafka_server_brokertopicmetrics_bytesout_total"

Page = Iterable[tuple[str, str, float]]
"""Name, topic and value of each line of a broker's metrics."""


class Rates(NamedTuple):
    """Bytes per second, in from producers and out to consumers."""

    bytes_in: float = 0.0
    bytes_out: float = 0.0


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
