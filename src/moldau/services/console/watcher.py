"""Watcher: reads a cluster every few seconds, for charts, sizes and lag in seconds.

It runs with the console's own credentials. What it knows is shown to a user only for topics and
groups that the user's own client can see. A round that takes long makes the next one wait: the
console spends at most a tenth of its time on them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from moldau.client import Admin, OffsetSpec
from moldau.client.errors import ConfigError, KafkaError
from moldau.client.topics import TopicPartition
from moldau.monitoring.lag_reader import LagReader, record_times
from moldau.monitoring.machine.lag import GroupState, LagTracker, PartitionLag
from moldau.services.console.config import ClusterConfig
from moldau.services.console.machine.series import Series

__all__ = ["Snapshot", "TopicFacts", "Watcher"]

logger = logging.getLogger(__name__)

REST_FACTOR: Final = 9
DESCRIBED_AT_ONCE: Final = 500
ROUND_S: Final = 120.0
#: In one round, so that a cluster full of groups that are behind is no burden.
TIMES_AT_ONCE: Final = 50


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """Of a topic: counts, bytes of all replicas and of leaders alone, records, rate."""

    partitions: int
    replicas: int
    under_replicated: int
    offline: int
    bytes_all: int | None
    records: int
    rate: float | None


@dataclass(slots=True)
class Snapshot:
    time_ms: int = 0
    topics: dict[str, TopicFacts] = field(default_factory=dict)
    groups: dict[str, GroupState] = field(default_factory=dict)
    lags: dict[str, list[PartitionLag]] = field(default_factory=dict)
    brokers: dict[int, dict[str, int]] = field(default_factory=dict)
    leaders: dict[int, int] = field(default_factory=dict)
    """How many partitions each broker leads."""
    error: str | None = "The first reading is under way."

    def rate_of(self, topic: str) -> float | None:
        """Records per second, if they are known."""
        found = self.topics.get(topic)
        return None if found is None else found.rate


class Watcher:
    """See the module."""

    def __init__(self, cluster: ClusterConfig, *, refresh_ms: int, points_max: int) -> None:
        self._cluster = cluster
        self._refresh_s = refresh_ms / 1000
        self.series = Series(points_max=points_max)
        self.snapshot = Snapshot()
        self._tracker = LagTracker()
        self._ends: dict[str, int] = {}
        self._ends_s = 0.0
        self._task: asyncio.Task[None] | None = None
        self._admin: Admin | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if self._admin is not None:
            await asyncio.to_thread(self._admin.close, 5.0)

    async def _run(self) -> None:
        while True:
            began_s = time.monotonic()
            try:
                found = await asyncio.to_thread(self._read)
            except (KafkaError, ConfigError, OSError) as error:
                self.snapshot.error = str(error)
                logger.info("cluster %s cannot be read: %s", self._cluster.name, error)
            except Exception as error:
                # The next round is due all the same; charts have a gap.
                self.snapshot.error = str(error)
                logger.exception("cluster %s cannot be read", self._cluster.name)
            else:
                self._publish(*found)
            took_s = time.monotonic() - began_s
            await asyncio.sleep(max(self._refresh_s, took_s * REST_FACTOR))

    def _publish(self, snapshot: Snapshot, gauges: Mapping[str, float]) -> None:
        self.snapshot = snapshot
        self.series.add(snapshot.time_ms, gauges)

    # In a thread.

    def _read(self) -> tuple[Snapshot, dict[str, float]]:
        if self._admin is None:
            self._admin = Admin(self._cluster.client_settings("admin"))
        admin = self._admin
        nodes = admin.describe_cluster().nodes
        sizes, brokers = self._sizes(admin, [node.id for node in nodes])
        leaders: dict[int, int] = {}
        topics = self._topics(admin, sizes, leaders)
        ends, groups = LagReader(admin).read()
        now_s = time.time()
        observed = self._tracker.observe(ends, groups, now_s)
        if self._learn_times(now_s):
            observed = self._tracker.observe(ends, groups, now_s)
        lags: dict[str, list[PartitionLag]] = {}
        for lag in observed:
            lags.setdefault(lag.group_id, []).append(lag)
        snapshot = Snapshot(
            int(now_s * 1000),
            topics,
            {each.group_id: each for each in groups},
            lags,
            brokers,
            leaders,
            None,
        )
        known = [each.bytes_all for each in topics.values() if each.bytes_all is not None]
        gauges: dict[str, float] = {
            "brokers": len(nodes),
            "topics": len(topics),
            "partitions": sum(each.partitions for each in topics.values()),
            "under_replicated": sum(each.under_replicated for each in topics.values()),
            "offline": sum(each.offline for each in topics.values()),
            "groups": len(groups),
            "lag": sum(lag.records for each in lags.values() for lag in each),
            "bytes": sum(known),
        }
        # By topic and from the ends alone: deleted records, or whole topics, are not negative.
        rates = [each.rate for each in topics.values() if each.rate is not None]
        if rates:
            gauges["records_per_second"] = sum(rates)
        for broker, found in brokers.items():
            gauges[f"broker.{broker}.bytes"] = found["bytes"]
        return snapshot, gauges

    def _learn_times(self, now_s: float) -> bool:
        """Ages of records that were there before the console was; whether any was unknown. One
        that cannot be read counts from now."""
        unknown = sorted(self._tracker.unknown)[:TIMES_AT_ONCE]
        for place, position in unknown:
            self._tracker.learn(place, position, now_s)
        settings = self._cluster.client_settings("consumer")
        try:
            for place, position, time_s in record_times(settings, unknown):
                # Producers may write any timestamp: none, and one to come, say nothing.
                if 0 < time_s < now_s:
                    self._tracker.learn(place, position, time_s)
        except (KafkaError, ConfigError, OSError) as error:
            logger.info("records of %s cannot be read: %s", self._cluster.name, error)
        return bool(unknown)

    def _sizes(
        self, admin: Admin, nodes: list[int]
    ) -> tuple[dict[str, int], dict[int, dict[str, int]]]:
        sizes: dict[str, int] = {}
        brokers: dict[int, dict[str, int]] = {}
        for node, folders in admin.describe_log_dirs(nodes, check=False).values_by_key.items():
            own = brokers[node] = {"bytes": 0, "replicas": 0, "total": 0, "usable": 0, "bad": 0}
            for folder in folders.values():
                own["bad"] += folder.error is not None
                own["total"] += folder.total_bytes or 0
                own["usable"] += folder.usable_bytes or 0
                for place, replica in folder.replica_infos.items():
                    own["bytes"] += replica.size
                    own["replicas"] += 1
                    sizes[place.topic] = sizes.get(place.topic, 0) + replica.size
        return sizes, brokers

    def _topics(
        self, admin: Admin, sizes: Mapping[str, int], leaders: dict[int, int]
    ) -> dict[str, TopicFacts]:
        names = sorted(admin.list_topics(list_internal=True))
        found: dict[str, TopicFacts] = {}
        places: list[TopicPartition] = []
        shapes: dict[str, tuple[int, int, int, int]] = {}
        for start in range(0, len(names), DESCRIBED_AT_ONCE):
            chunk = names[start : start + DESCRIBED_AT_ONCE]
            for topic in admin.describe_topics(chunk, check=False).values_by_key.values():
                shapes[topic.name] = (
                    len(topic.partitions),
                    max((len(each.replicas) for each in topic.partitions), default=0),
                    sum(len(each.isr) < len(each.replicas) for each in topic.partitions),
                    sum(each.leader is None for each in topic.partitions),
                )
                for each in topic.partitions:
                    if each.leader is not None:
                        places.append(TopicPartition(topic.name, each.partition))
                        leaders[each.leader.id] = leaders.get(each.leader.id, 0) + 1
        spans = self._spans(admin, places)
        now_s = time.monotonic()
        for name, (partitions, replicas, under, offline) in shapes.items():
            records, end = spans.get(name, (0, 0))
            before = self._ends.get(name)
            rate = None
            if before is not None and now_s > self._ends_s:
                rate = max(0, end - before) / (now_s - self._ends_s)
            found[name] = TopicFacts(
                partitions, replicas, under, offline, sizes.get(name), records, rate
            )
        self._ends = {name: end for name, (_, end) in spans.items()}
        self._ends_s = now_s
        return found

    def _spans(self, admin: Admin, places: list[TopicPartition]) -> dict[str, tuple[int, int]]:
        """Records between first and last offset, and the sum of the last offsets, by topic."""
        firsts = admin.list_offsets(
            dict.fromkeys(places, OffsetSpec.earliest()), check=False
        ).values_by_key
        lasts = admin.list_offsets(
            dict.fromkeys(places, OffsetSpec.latest()), check=False
        ).values_by_key
        spans: dict[str, tuple[int, int]] = {}
        for place, last in lasts.items():
            first = firsts.get(place)
            records, end = spans.get(place.topic, (0, 0))
            span = max(0, last.offset - first.offset) if first is not None else 0
            spans[place.topic] = (records + span, end + last.offset)
        return spans
