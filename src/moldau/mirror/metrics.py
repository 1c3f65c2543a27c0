"""A mirror's metrics, by the names of MirrorMaker 2; the lag in records and seconds is Moldau's."""

from __future__ import annotations

import time
from collections.abc import Iterable

from moldau.client.topics import TopicPartition
from moldau.metrics import Kind, Registry, Spec
from moldau.mirror.machine.settings import FlowName

__all__ = ["MirrorMetrics", "PartitionFigures"]

_DOMAIN = "kafka.connect.mirror"
_SOURCE_TAGS = ("source", "target", "topic", "partition")
_GROUP_TAGS = ("source", "target", "group", "topic", "partition")


def _source(name: str, kind: Kind, help: str) -> Spec:
    return Spec(_DOMAIN, "MirrorSourceConnector", "", kind, help, _SOURCE_TAGS, name)


_COUNTS = {
    "record-count": (Kind.COUNTER, "Records that were copied."),
    "byte-count": (Kind.COUNTER, "Bytes that were copied, as batches have them."),
    "record-rate": (Kind.GAUGE, "Records copied per second, since the start."),
    "byte-rate": (Kind.GAUGE, "Bytes copied per second, since the start."),
    "record-age-ms": (Kind.GAUGE, "Age of the newest record when it was read."),
    "record-age-ms-max": (Kind.GAUGE, "Highest age of a record."),
    "record-age-ms-min": (Kind.GAUGE, "Lowest age of a record."),
    "record-age-ms-avg": (Kind.GAUGE, "Average age of records."),
    "replication-latency-ms": (Kind.GAUGE, "Age of the newest record when it was copied."),
    "replication-latency-ms-max": (Kind.GAUGE, "Highest age of a copied record."),
    "replication-latency-ms-min": (Kind.GAUGE, "Lowest age of a copied record."),
    "replication-latency-ms-avg": (Kind.GAUGE, "Average age of copied records."),
    "record-lag": (Kind.GAUGE, "Records of the source that are not copied yet."),
    "record-lag-seconds": (Kind.GAUGE, "Age of the newest copied record while records wait."),
}
_SPECS = {name: _source(name, kind, help) for name, (kind, help) in _COUNTS.items()}
_CHECKPOINT = Spec(
    _DOMAIN,
    "MirrorCheckpointConnector",
    "",
    Kind.GAUGE,
    "Time that a group's offset took to the target.",
    _GROUP_TAGS,
    "checkpoint-latency-ms",
)


class _Range:
    """Last, highest, lowest and average of some values."""

    __slots__ = ("_count", "_total", "high", "last", "low")

    def __init__(self) -> None:
        self.last = self.high = self.low = 0.0
        self._total = 0.0
        self._count = 0

    def note(self, value: float, count: int = 1) -> None:
        self.high = value if not self._count else max(self.high, value)
        self.low = value if not self._count else min(self.low, value)
        self.last = value
        self._total += value * count
        self._count += count

    @property
    def average(self) -> float:
        return self._total / self._count if self._count else 0.0


class PartitionFigures:
    """What is known of one partition. Ages are those of a batch's newest record."""

    def __init__(self) -> None:
        self.records = 0
        self.bytes = 0
        self.age = _Range()
        self.latency = _Range()
        self.lag = 0
        self.newest_ms = -1
        self.started_s = time.monotonic()

    def lag_seconds(self, now_ms: int) -> float:
        if self.lag <= 0 or self.newest_ms < 0:
            return 0.0
        return max(0.0, (now_ms - self.newest_ms) / 1000)

    def values(self, now_ms: int) -> dict[str, float]:
        elapsed = max(time.monotonic() - self.started_s, 0.001)
        found: dict[str, float] = {
            "record-count": self.records,
            "byte-count": self.bytes,
            "record-rate": self.records / elapsed,
            "byte-rate": self.bytes / elapsed,
            "record-lag": self.lag,
            "record-lag-seconds": self.lag_seconds(now_ms),
        }
        for name, each in (("record-age-ms", self.age), ("replication-latency-ms", self.latency)):
            found |= {
                name: each.last,
                f"{name}-max": each.high,
                f"{name}-min": each.low,
                f"{name}-avg": each.average,
            }
        return found


class MirrorMetrics:
    """The figures of all flows of a process."""

    def __init__(self) -> None:
        self.registry = Registry(time.monotonic)
        self._partitions: dict[tuple[FlowName, TopicPartition], PartitionFigures] = {}
        self._checkpoints: dict[tuple[FlowName, str, TopicPartition], float] = {}
        self.registry.collector(self._collect)

    def partition(self, flow: FlowName, remote: TopicPartition) -> PartitionFigures:
        """Of a partition of the target."""
        found = self._partitions.get((flow, remote))
        if found is None:
            found = self._partitions[flow, remote] = PartitionFigures()
        return found

    def forget(self, flow: FlowName, remote: TopicPartition) -> None:
        self._partitions.pop((flow, remote), None)

    def checkpoint(
        self, flow: FlowName, group: str, remote: TopicPartition, milliseconds: float
    ) -> None:
        self._checkpoints[flow, group, remote] = milliseconds

    def _collect(self) -> Iterable[tuple[Spec, tuple[str, ...], float]]:
        now_ms = time.time_ns() // 1_000_000
        for (flow, remote), figures in list(self._partitions.items()):
            tags = (flow.source, flow.target, remote.topic, str(remote.partition))
            for name, value in figures.values(now_ms).items():
                yield _SPECS[name], tags, value
        for (flow, group, remote), value in list(self._checkpoints.items()):
            where = (remote.topic, str(remote.partition))
            yield _CHECKPOINT, (flow.source, flow.target, group, *where), value
