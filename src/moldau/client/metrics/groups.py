"""Each client's metrics as the things that happen to it: a batch left, a poll began, a fetch came.

The clients call these methods and know no names; the names are in `tables.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import moldau
from moldau.client.metrics import tables
from moldau.client.metrics.registry import IDLE_MS, MetricName, Metrics, Sensor
from moldau.client.metrics.tables import add_sensors

__all__ = [
    "ConsumerMetrics",
    "NetworkMetrics",
    "ProducerMetrics",
    "ShareConsumerMetrics",
    "add_app_info",
]

PRODUCER: Final = "producer"
CONSUMER: Final = "consumer"
SHARE_CONSUMER: Final = "consumer-share"
ADMIN: Final = "admin-client"


def add_app_info(metrics: Metrics) -> None:
    """Which version runs, and since when."""
    started_ms = time.time_ns() // 1_000_000
    metrics.add_gauge("version", "app-info", "version of Moldau", lambda: moldau.__version__)
    metrics.add_gauge("commit-id", "app-info", "commit of Moldau", lambda: "unknown")
    metrics.add_gauge("start-time-ms", "app-info", "when the client was made", lambda: started_ms)


class NetworkMetrics:
    """Requests, bytes and connections, of all nodes and of each. Observes a transport."""

    def __init__(self, metrics: Metrics, kind: str) -> None:
        self._metrics = metrics
        self._kind = kind
        self._all = add_sensors(metrics, f"{kind}-metrics", tables.NETWORK)
        self._nodes: dict[int, dict[str, Sensor]] = {}
        self._connection_count = 0
        metrics.add_gauge(
            "connection-count",
            f"{kind}-metrics",
            "open connections",
            lambda: float(self._connection_count),
        )

    def now_ms(self) -> int:
        return self._metrics.now_ms()

    def connection_opened(self, node_id: int) -> None:
        self._connection_count += 1
        self._all["connections-created"].record()

    def connection_closed(self, node_id: int) -> None:
        self._connection_count -= 1
        self._all["connections-closed"].record()

    def request_sent(self, node_id: int, size: int) -> None:
        now = self._metrics.now_ms()
        self._all["bytes-sent"].record(size, now)
        self._all["requests-sent"].record(size, now)
        self._all["network-io"].record(size, now)
        node = self._node(node_id)
        node["bytes-sent"].record(size, now)
        node["requests-sent"].record(size, now)

    def response_received(self, node_id: int, size: int, latency_ms: float) -> None:
        now = self._metrics.now_ms()
        self._all["bytes-received"].record(size, now)
        self._all["responses-received"].record(size, now)
        self._all["network-io"].record(size, now)
        node = self._node(node_id)
        node["bytes-received"].record(size, now)
        node["responses-received"].record(size, now)
        node["latency"].record(latency_ms, now)

    def _node(self, node_id: int) -> dict[str, Sensor]:
        sensors = self._nodes.get(node_id)
        if sensors is None:
            sensors = self._nodes[node_id] = add_sensors(
                self._metrics,
                f"{self._kind}-node-metrics",
                tables.NODE,
                prefix=f"node-{node_id}.",
                tags={"node-id": f"node-{node_id}"},
            )
        return sensors


class ProducerMetrics:
    """What becomes of batches; recorded per batch and per request, never per record."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._all = add_sensors(metrics, "producer-metrics", tables.PRODUCER)
        self._topics: dict[str, dict[str, Sensor]] = {}

    def add_gauges(self, gauges: Mapping[str, Callable[[], float]]) -> None:
        """Of these, those that the producer has: buffer-total-bytes,
        buffer-available-bytes, waiting-threads, requests-in-flight, metadata-age."""
        for name, gauge in gauges.items():
            self._metrics.add_gauge(name, "producer-metrics", name.replace("-", " "), gauge)

    def batch_sent(
        self,
        topic: str,
        *,
        records: int,
        size: int,
        compression_ratio: float,
        queue_time_ms: float,
        record_size_max: int,
    ) -> None:
        now = self._metrics.now_ms()
        self._all["batch-size"].record(size, now)
        self._all["queue-time"].record(queue_time_ms, now)
        self._all["compression-rate"].record(compression_ratio, now)
        self._all["record-size"].record(record_size_max, now)
        of_topic = self._topic(topic)
        of_topic["records"].record(records, now)
        of_topic["bytes"].record(size, now)
        of_topic["compression-rate"].record(compression_ratio, now)

    def request_sent(self, records: int) -> None:
        self._all["records-per-request"].record(records)

    def request_answered(self, latency_ms: float, throttle_time_ms: int = 0) -> None:
        now = self._metrics.now_ms()
        self._all["request-time"].record(latency_ms, now)
        self._all["throttle"].record(throttle_time_ms, now)

    def retried(self, topic: str, records: int) -> None:
        self._all["record-retries"].record(records)
        self._topic(topic)["record-retries"].record(records)

    def failed(self, topic: str, records: int) -> None:
        self._all["errors"].record(records)
        self._topic(topic)["record-errors"].record(records)

    def batch_split(self) -> None:
        self._all["batch-split"].record()

    def waited_for_memory(self, nanoseconds: int) -> None:
        self._all["bufferpool-wait"].record(nanoseconds)

    def memory_exhausted(self) -> None:
        self._all["buffer-exhausted"].record()

    def spent(self, what: str, nanoseconds: int) -> None:
        """Time in flush, txn-init, txn-begin, txn-send-offsets, txn-commit, txn-abort,
        txn-prepare or metadata-wait."""
        self._all[f"{what}-time"].record(nanoseconds)

    def _topic(self, topic: str) -> dict[str, Sensor]:
        prefix = f"topic.{topic}."
        now = self._metrics.now_ms()
        sensors = self._topics.get(topic)
        if sensors is None or self._metrics.find_sensor(prefix + "records") is None:
            sensors = self._topics[topic] = add_sensors(
                self._metrics,
                "producer-topic-metrics",
                tables.PRODUCER_TOPIC,
                prefix=prefix,
                tags={"topic": topic},
                idle_ms=IDLE_MS,
            )
        for sensor in sensors.values():
            # A topic's figures go all together when nothing happened to it for long.
            sensor.last_ms = now
        return sensors


class _PollMetrics:
    """When the application polled."""

    def __init__(self, metrics: Metrics, group: str) -> None:
        self._metrics = metrics
        self._poll = add_sensors(metrics, group, tables.POLL)
        self._last_poll_ms = -1
        self._since_last_ms = 0
        metrics.add_gauge(
            "last-poll-seconds-ago", group, "seconds since the last poll", self._last_poll_ago
        )

    def _last_poll_ago(self) -> float:
        return _seconds_since(self._metrics, self._last_poll_ms)

    def poll_started(self) -> None:
        now = self._metrics.now_ms()
        self._since_last_ms = now - self._last_poll_ms if self._last_poll_ms >= 0 else 0
        self._poll["time-between-poll"].record(self._since_last_ms, now)
        self._last_poll_ms = now

    def poll_ended(self) -> None:
        now = self._metrics.now_ms()
        spent_ms = now - self._last_poll_ms
        whole_ms = spent_ms + self._since_last_ms
        if whole_ms > 0:
            self._poll["poll-idle-ratio"].record(spent_ms / whole_ms, now)


class ConsumerMetrics(_PollMetrics):
    """Polls, fetches, and life in a group."""

    def __init__(self, metrics: Metrics) -> None:
        super().__init__(metrics, "consumer-metrics")
        self._fetch = add_sensors(metrics, "consumer-fetch-manager-metrics", tables.FETCH)
        self._times = add_sensors(metrics, "consumer-metrics", tables.COMMIT_TIMES)
        self._group: dict[str, Sensor] = {}
        self._partitions: dict[tuple[str, int], list[MetricName]] = {}
        self._last_heartbeat_ms = -1
        self._last_rebalance_ms = -1

    # Fetches.

    def fetch_answered(self, latency_ms: float, throttle_time_ms: int = 0) -> None:
        now = self._metrics.now_ms()
        self._fetch["fetch-latency"].record(latency_ms, now)
        self._fetch["fetch-throttle-time"].record(throttle_time_ms, now)

    def consumed(self, of_topics: Mapping[str, tuple[int, int]]) -> None:
        """A fetch, or a portion of one, was handed out: records and bytes of each topic."""
        now = self._metrics.now_ms()
        self._fetch["records-fetched"].record(sum(item[0] for item in of_topics.values()), now)
        self._fetch["bytes-fetched"].record(sum(item[1] for item in of_topics.values()), now)
        for topic, (records, size) in of_topics.items():
            prefix = f"topic.{topic}."
            if self._metrics.find_sensor(prefix + "records-fetched") is None:
                self._metrics.remove_sensor(prefix + "bytes-fetched")
                add_sensors(
                    self._metrics,
                    "consumer-fetch-manager-metrics",
                    tables.FETCH_TOPIC_BYTES,
                    prefix=prefix,
                    tags={"topic": topic},
                    idle_ms=IDLE_MS,
                )
            self._metrics.sensor(prefix + "records-fetched").record(records, now)
            self._metrics.sensor(prefix + "bytes-fetched").record(size, now)

    def positioned(
        self, topic: str, partition: int, *, lag: int | None = None, lead: int | None = None
    ) -> None:
        """Where the position of an assigned partition stands after a fetch."""
        if (topic, partition) not in self._partitions:
            return
        now = self._metrics.now_ms()
        prefix = _partition_prefix(topic, partition)
        if lag is not None:
            self._fetch["records-lag"].record(lag, now)
            self._metrics.sensor(prefix + "records-lag").record(lag, now)
        if lead is not None:
            self._fetch["records-lead"].record(lead, now)
            self._metrics.sensor(prefix + "records-lead").record(lead, now)

    def assigned(
        self,
        partitions: Iterable[tuple[str, int]],
        preferred_read_replica: Callable[[str, int], int] = lambda topic, partition: -1,
    ) -> None:
        """The whole assignment; figures of partitions that are not in it are dropped."""
        wanted = {(topic, partition) for topic, partition in partitions}
        for gone in self._partitions.keys() - wanted:
            for metric_name in self._partitions.pop(gone):
                self._metrics.remove(metric_name)
            for name in ("records-lag", "records-lead"):
                self._metrics.remove_sensor(_partition_prefix(*gone) + name)
        for topic, partition in sorted(wanted - self._partitions.keys()):
            tags = {"topic": topic, "partition": str(partition)}
            group = "consumer-fetch-manager-metrics"
            add_sensors(
                self._metrics,
                group,
                tables.FETCH_PARTITION,
                prefix=_partition_prefix(topic, partition),
                tags=tags,
            )
            replica = self._metrics.add_gauge(
                "preferred-read-replica",
                group,
                "replica that is read from, or -1 for the leader",
                _bound(preferred_read_replica, topic, partition),
                tags,
            )
            self._partitions[topic, partition] = [replica]

    # The group.

    def join_group(self) -> None:
        """Show the coordinator's figures: the consumer has a group."""
        if self._group:
            return
        group = "consumer-coordinator-metrics"
        self._group = add_sensors(self._metrics, group, tables.COORDINATOR)
        add = self._metrics.add_gauge
        add(
            "last-heartbeat-seconds-ago",
            group,
            "seconds since the last heartbeat",
            lambda: _seconds_since(self._metrics, self._last_heartbeat_ms),
        )
        add(
            "last-rebalance-seconds-ago",
            group,
            "seconds since the last rebalance",
            lambda: _seconds_since(self._metrics, self._last_rebalance_ms),
        )
        add(
            "assigned-partitions",
            group,
            "partitions assigned",
            lambda: float(len(self._partitions)),
        )

    def heartbeat_sent(self) -> None:
        self._last_heartbeat_ms = self._metrics.now_ms()

    def heartbeat_answered(self, latency_ms: float) -> None:
        self._of_group("heartbeat", latency_ms)

    def joined(self, latency_ms: float) -> None:
        self._of_group("join", latency_ms)

    def synced(self, latency_ms: float) -> None:
        self._of_group("sync", latency_ms)

    def rebalanced(self, latency_ms: float) -> None:
        self._last_rebalance_ms = self._metrics.now_ms()
        self._of_group("rebalance", latency_ms)

    def rebalance_failed(self) -> None:
        self._of_group("failed-rebalance", 1)

    def callback_ran(self, what: str, latency_ms: float) -> None:
        """A listener's `what` (assigned, revoked or lost) returned."""
        self._of_group(f"partition-{what}", latency_ms)

    def commit_answered(self, latency_ms: float) -> None:
        self._of_group("commit", latency_ms)

    def spent(self, what: str, nanoseconds: int) -> None:
        """Time in commit-sync or committed."""
        self._times[f"{what}-time"].record(nanoseconds)

    def _of_group(self, sensor: str, value: float) -> None:
        found = self._group.get(sensor)
        if found is not None:
            found.record(value)


class ShareConsumerMetrics(_PollMetrics):
    """Polls, share fetches, acknowledgements, and life in a share group."""

    def __init__(self, metrics: Metrics) -> None:
        super().__init__(metrics, "consumer-share-metrics")
        self._fetch = add_sensors(
            metrics, "consumer-share-fetch-manager-metrics", tables.SHARE_FETCH
        )
        group = "consumer-share-coordinator-metrics"
        self._group = add_sensors(metrics, group, (*tables.HEARTBEAT, *tables.SHARE_REBALANCE))
        self._last_heartbeat_ms = -1
        metrics.add_gauge(
            "last-heartbeat-seconds-ago",
            group,
            "seconds since the last heartbeat",
            lambda: _seconds_since(metrics, self._last_heartbeat_ms),
        )

    def fetch_answered(self, latency_ms: float, throttle_time_ms: int = 0) -> None:
        now = self._metrics.now_ms()
        self._fetch["fetch-latency"].record(latency_ms, now)
        self._fetch["fetch-throttle-time"].record(throttle_time_ms, now)

    def consumed(self, records: int, size: int) -> None:
        now = self._metrics.now_ms()
        self._fetch["records-fetched"].record(records, now)
        self._fetch["bytes-fetched"].record(size, now)

    def acknowledged(self, records: int) -> None:
        self._fetch["sent-acknowledgements"].record(records)

    def acknowledge_failed(self, records: int) -> None:
        self._fetch["failed-acknowledgements"].record(records)

    def heartbeat_sent(self) -> None:
        self._last_heartbeat_ms = self._metrics.now_ms()

    def heartbeat_answered(self, latency_ms: float) -> None:
        self._group["heartbeat"].record(latency_ms)

    def rebalanced(self) -> None:
        self._group["rebalance"].record()


def _bound(function: Callable[[str, int], int], topic: str, partition: int) -> Callable[[], Any]:
    return lambda: function(topic, partition)


def _partition_prefix(topic: str, partition: int) -> str:
    return f"partition.{topic}-{partition}."


def _seconds_since(metrics: Metrics, then_ms: int) -> float:
    """Whole seconds, or -1 if it never happened."""
    return -1.0 if then_ms < 0 else float((metrics.now_ms() - then_ms) // 1_000)
