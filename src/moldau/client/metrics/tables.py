"""Kafka's metric names, by what records them: sensor, stat, name, meaning.

Only names, groups and what is counted are Kafka's, so that dashboards made for its clients fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from moldau.client.metrics._stats import (
    Avg,
    CumulativeCount,
    CumulativeSum,
    Max,
    Min,
    Rate,
    Value,
    count_rate,
    hourly_rate,
    nanosecond_ratio,
)
from moldau.client.metrics.registry import Metrics, Sensor

Row = tuple[str, str, str, str]

_STATS: Final[dict[str, Callable[[], Any]]] = {
    "avg": Avg,
    "max": Max,
    "min": Min,
    "rate": Rate,
    "total": CumulativeSum,
    "count rate": count_rate,
    "count total": CumulativeCount,
    "per hour": hourly_rate,
    "ratio": nanosecond_ratio,
    "value": Value,
}
_CUMULATIVE: Final = frozenset({"total", "count total"})


def add_sensors(
    metrics: Metrics,
    group: str,
    table: Iterable[Row],
    *,
    prefix: str = "",
    tags: Mapping[str, str] | None = None,
    idle_ms: int | None = None,
) -> dict[str, Sensor]:
    """The sensors of a table, by their names in it."""
    sensors: dict[str, Sensor] = {}
    for sensor_name, stat, name, description in table:
        sensor = metrics.sensor(prefix + sensor_name, idle_ms=idle_ms)
        sensors[sensor_name] = sensor
        sensor.add(
            metrics.metric_name(name, group, description, tags),
            _STATS[stat](),
            is_cumulative=stat in _CUMULATIVE,
        )
    return sensors


NETWORK: Final[tuple[Row, ...]] = (
    ("connections-closed", "rate", "connection-close-rate", "connections closed per second"),
    ("connections-closed", "total", "connection-close-total", "connections closed"),
    ("connections-created", "rate", "connection-creation-rate", "connections made per second"),
    ("connections-created", "total", "connection-creation-total", "connections made"),
    *(
        (what, stat, f"{what}-{suffix}", f"connections with {what.replace('-', ' ')}")
        for what in (
            "successful-authentication",
            "successful-reauthentication",
            "failed-authentication",
            "failed-reauthentication",
        )
        for stat, suffix in (("rate", "rate"), ("total", "total"))
    ),
    (
        "successful-authentication-no-reauth",
        "total",
        "successful-authentication-no-reauth-total",
        "connections with successful authentication that will not be asked for again",
    ),
    ("reauthentication-latency", "avg", "reauthentication-latency-avg", "ms, on average"),
    ("reauthentication-latency", "max", "reauthentication-latency-max", "ms, at most"),
    ("network-io", "count rate", "network-io-rate", "reads and writes per second"),
    ("network-io", "count total", "network-io-total", "reads and writes"),
    ("bytes-sent", "rate", "outgoing-byte-rate", "bytes sent per second"),
    ("bytes-sent", "total", "outgoing-byte-total", "bytes sent"),
    ("requests-sent", "count rate", "request-rate", "requests sent per second"),
    ("requests-sent", "count total", "request-total", "requests sent"),
    ("requests-sent", "avg", "request-size-avg", "bytes of a request, on average"),
    ("requests-sent", "max", "request-size-max", "bytes of the largest request"),
    ("bytes-received", "rate", "incoming-byte-rate", "bytes received per second"),
    ("bytes-received", "total", "incoming-byte-total", "bytes received"),
    ("responses-received", "count rate", "response-rate", "responses per second"),
    ("responses-received", "count total", "response-total", "responses received"),
)

NODE: Final[tuple[Row, ...]] = (
    ("bytes-sent", "rate", "outgoing-byte-rate", "bytes sent to the node per second"),
    ("bytes-sent", "total", "outgoing-byte-total", "bytes sent to the node"),
    ("requests-sent", "count rate", "request-rate", "requests to the node per second"),
    ("requests-sent", "count total", "request-total", "requests to the node"),
    ("requests-sent", "avg", "request-size-avg", "bytes of a request, on average"),
    ("requests-sent", "max", "request-size-max", "bytes of the largest request"),
    ("bytes-received", "rate", "incoming-byte-rate", "bytes from the node per second"),
    ("bytes-received", "total", "incoming-byte-total", "bytes from the node"),
    ("responses-received", "count rate", "response-rate", "responses of the node per second"),
    ("responses-received", "count total", "response-total", "responses of the node"),
    ("latency", "avg", "request-latency-avg", "ms until the node answered, on average"),
    ("latency", "max", "request-latency-max", "ms until the node answered, at most"),
)

PRODUCER: Final[tuple[Row, ...]] = (
    ("batch-size", "avg", "batch-size-avg", "bytes of a batch sent, on average"),
    ("batch-size", "max", "batch-size-max", "bytes of the largest batch sent"),
    ("compression-rate", "avg", "compression-rate-avg", "compressed by uncompressed size"),
    ("queue-time", "avg", "record-queue-time-avg", "ms a batch waited to be sent, on average"),
    ("queue-time", "max", "record-queue-time-max", "ms a batch waited to be sent, at most"),
    ("request-time", "avg", "request-latency-avg", "ms until a request was answered, on average"),
    ("request-time", "max", "request-latency-max", "ms until a request was answered, at most"),
    ("records-per-request", "rate", "record-send-rate", "records sent per second"),
    ("records-per-request", "total", "record-send-total", "records sent"),
    ("records-per-request", "avg", "records-per-request-avg", "records in a request, on average"),
    ("record-retries", "rate", "record-retry-rate", "records sent again per second"),
    ("record-retries", "total", "record-retry-total", "records sent again"),
    ("errors", "rate", "record-error-rate", "records that could not be sent per second"),
    ("errors", "total", "record-error-total", "records that could not be sent"),
    ("record-size", "max", "record-size-max", "bytes of the largest record"),
    ("record-size", "avg", "record-size-avg", "bytes of the largest record of a batch, on average"),
    ("batch-split", "rate", "batch-split-rate", "batches split per second"),
    ("batch-split", "total", "batch-split-total", "batches split"),
    ("throttle", "avg", "produce-throttle-time-avg", "ms a broker held us back, on average"),
    ("throttle", "max", "produce-throttle-time-max", "ms a broker held us back, at most"),
    ("bufferpool-wait", "ratio", "bufferpool-wait-ratio", "time spent waiting for buffer memory"),
    (
        "bufferpool-wait",
        "total",
        "bufferpool-wait-time-ns-total",
        "nanoseconds spent waiting for buffer memory",
    ),
    ("buffer-exhausted", "rate", "buffer-exhausted-rate", "records refused for lack of memory"),
    ("buffer-exhausted", "total", "buffer-exhausted-total", "records refused for lack of memory"),
    *(
        (f"{name}-time", "total", f"{name}-time-ns-total", f"nanoseconds spent in {what}")
        for name, what in (
            ("flush", "flush"),
            ("txn-init", "init_transactions"),
            ("txn-begin", "begin_transaction"),
            ("txn-send-offsets", "send_offsets_to_transaction"),
            ("txn-commit", "commit_transaction"),
            ("txn-abort", "abort_transaction"),
            ("txn-prepare", "prepare_transaction"),
            ("metadata-wait", "waiting for metadata of topics"),
        )
    ),
)

PRODUCER_TOPIC: Final[tuple[Row, ...]] = (
    ("records", "rate", "record-send-rate", "records sent to the topic per second"),
    ("records", "total", "record-send-total", "records sent to the topic"),
    ("bytes", "rate", "byte-rate", "bytes sent to the topic per second"),
    ("bytes", "total", "byte-total", "bytes sent to the topic"),
    ("compression-rate", "avg", "compression-rate", "compressed by uncompressed size"),
    ("record-retries", "rate", "record-retry-rate", "records sent again per second"),
    ("record-retries", "total", "record-retry-total", "records sent again"),
    ("record-errors", "rate", "record-error-rate", "records that could not be sent per second"),
    ("record-errors", "total", "record-error-total", "records that could not be sent"),
)

_FETCH_COMMON: Final[tuple[Row, ...]] = (
    ("bytes-fetched", "avg", "fetch-size-avg", "bytes of a fetch, on average"),
    ("bytes-fetched", "max", "fetch-size-max", "bytes of the largest fetch"),
    ("bytes-fetched", "rate", "bytes-consumed-rate", "bytes consumed per second"),
    ("bytes-fetched", "total", "bytes-consumed-total", "bytes consumed"),
    ("records-fetched", "avg", "records-per-request-avg", "records of a fetch, on average"),
    ("records-fetched", "rate", "records-consumed-rate", "records consumed per second"),
    ("records-fetched", "total", "records-consumed-total", "records consumed"),
    ("fetch-latency", "avg", "fetch-latency-avg", "ms that a fetch took, on average"),
    ("fetch-latency", "max", "fetch-latency-max", "ms that a fetch took, at most"),
    ("fetch-latency", "count rate", "fetch-rate", "fetches per second"),
    ("fetch-latency", "count total", "fetch-total", "fetches"),
    ("fetch-throttle-time", "avg", "fetch-throttle-time-avg", "ms a broker held us back"),
    ("fetch-throttle-time", "max", "fetch-throttle-time-max", "ms a broker held us back, at most"),
)

FETCH: Final[tuple[Row, ...]] = (
    *_FETCH_COMMON,
    ("records-lag", "max", "records-lag-max", "records behind the end, in the worst partition"),
    ("records-lead", "min", "records-lead-min", "records after the start, in the worst partition"),
)

SHARE_FETCH: Final[tuple[Row, ...]] = (
    *_FETCH_COMMON,
    ("records-fetched", "max", "records-per-request-max", "records of the largest fetch"),
    ("sent-acknowledgements", "rate", "acknowledgements-send-rate", "records acknowledged"),
    ("sent-acknowledgements", "total", "acknowledgements-send-total", "records acknowledged"),
    ("failed-acknowledgements", "rate", "acknowledgements-error-rate", "failed acknowledgements"),
    ("failed-acknowledgements", "total", "acknowledgements-error-total", "failed acknowledgements"),
)

FETCH_TOPIC_BYTES: Final[tuple[Row, ...]] = (
    ("bytes-fetched", "avg", "fetch-size-avg", "bytes of a fetch, on average, of the topic"),
    ("bytes-fetched", "max", "fetch-size-max", "bytes of the largest fetch of the topic"),
    ("bytes-fetched", "rate", "bytes-consumed-rate", "bytes of the topic consumed per second"),
    ("bytes-fetched", "total", "bytes-consumed-total", "bytes of the topic consumed"),
    ("records-fetched", "avg", "records-per-request-avg", "records of the topic in a fetch"),
    ("records-fetched", "rate", "records-consumed-rate", "records of the topic per second"),
    ("records-fetched", "total", "records-consumed-total", "records of the topic consumed"),
)

FETCH_PARTITION: Final[tuple[Row, ...]] = (
    ("records-lag", "value", "records-lag", "records behind the partition's end"),
    ("records-lag", "max", "records-lag-max", "records behind the partition's end, at most"),
    ("records-lag", "avg", "records-lag-avg", "records behind the partition's end, on average"),
    ("records-lead", "value", "records-lead", "records after the partition's start"),
    ("records-lead", "min", "records-lead-min", "records after the partition's start, at least"),
    ("records-lead", "avg", "records-lead-avg", "records after the partition's start, on average"),
)

POLL: Final[tuple[Row, ...]] = (
    ("time-between-poll", "avg", "time-between-poll-avg", "ms between two polls, on average"),
    ("time-between-poll", "max", "time-between-poll-max", "ms between two polls, at most"),
    ("poll-idle-ratio", "avg", "poll-idle-ratio-avg", "share of the time spent inside poll"),
)

COMMIT_TIMES: Final[tuple[Row, ...]] = (
    ("commit-sync-time", "total", "commit-sync-time-ns-total", "nanoseconds spent in commit"),
    ("committed-time", "total", "committed-time-ns-total", "nanoseconds spent in committed"),
)

HEARTBEAT: Final[tuple[Row, ...]] = (
    ("heartbeat", "max", "heartbeat-response-time-max", "ms until a heartbeat was answered"),
    ("heartbeat", "count rate", "heartbeat-rate", "heartbeats per second"),
    ("heartbeat", "count total", "heartbeat-total", "heartbeats"),
)

SHARE_REBALANCE: Final[tuple[Row, ...]] = (
    ("rebalance", "count total", "rebalance-total", "rebalances"),
    ("rebalance", "per hour", "rebalance-rate-per-hour", "rebalances per hour"),
)

COORDINATOR: Final[tuple[Row, ...]] = (
    *HEARTBEAT,
    *SHARE_REBALANCE,
    ("rebalance", "avg", "rebalance-latency-avg", "ms that a rebalance took, on average"),
    ("rebalance", "max", "rebalance-latency-max", "ms that a rebalance took, at most"),
    ("rebalance", "total", "rebalance-latency-total", "ms spent in rebalances"),
    ("failed-rebalance", "count total", "failed-rebalance-total", "failed rebalances"),
    ("failed-rebalance", "per hour", "failed-rebalance-rate-per-hour", "failed ones per hour"),
    ("join", "avg", "join-time-avg", "ms that joining the group took, on average"),
    ("join", "max", "join-time-max", "ms that joining the group took, at most"),
    ("join", "count rate", "join-rate", "joins per second"),
    ("join", "count total", "join-total", "joins"),
    ("sync", "avg", "sync-time-avg", "ms that syncing with the group took, on average"),
    ("sync", "max", "sync-time-max", "ms that syncing with the group took, at most"),
    ("sync", "count rate", "sync-rate", "syncs per second"),
    ("sync", "count total", "sync-total", "syncs"),
    ("commit", "avg", "commit-latency-avg", "ms that a commit took, on average"),
    ("commit", "max", "commit-latency-max", "ms that a commit took, at most"),
    ("commit", "count rate", "commit-rate", "commits per second"),
    ("commit", "count total", "commit-total", "commits"),
    *(
        (f"partition-{what}", stat, f"partition-{what}-latency-{stat}", f"ms in on_{what} callback")
        for what in ("assigned", "revoked", "lost")
        for stat in ("avg", "max")
    ),
)
