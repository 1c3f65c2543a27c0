"""Metering: what the queries of this server read and write, and records that they cannot read."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from moldau.services.sql.machine.statistics import Counted, Stat, TopicStatistics
from moldau.streams import KafkaStreams
from moldau.streams.records import RecordContext

__all__ = ["Metering"]

_processing_log = logging.getLogger("moldau.sql.processing")

#: Metrics of Streams, and the totals of ksqlDB that they are.
_TOTALS: Final = {
    "records-consumed-total": "consumer-total-messages",
    "bytes-consumed-total": "consumer-total-bytes",
    "records-produced-total": "total-messages",
}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Metering:
    """Called from the threads of queries and of requests."""

    def __init__(self) -> None:
        self._found = TopicStatistics()
        self._lock = threading.Lock()

    def sample(self, query_id: str, streams: object) -> None:
        """Take what the metrics of a query say now. Queries on Spark have none here."""
        if not isinstance(streams, KafkaStreams):
            return
        found = {
            name: (Counted(_TOTALS[name.name], name.tags["topic"]), float(metric.metric_value()))
            for name, metric in streams.metrics().items()
            if name.name in _TOTALS and "topic" in name.tags
        }
        with self._lock:
            self._found.take(query_id, found, _now_ms())

    def ended(self, query_id: str) -> None:
        with self._lock:
            self._found.forget(query_id)

    def of(self, topic: str) -> tuple[list[Stat], list[Stat]]:
        """The statistics of a topic, and those of errors."""
        now_ms = _now_ms()
        with self._lock:
            return self._found.stats(topic, now_ms), self._found.errors(topic, now_ms)

    def unreadable(self, query_id: str, verdict: str) -> Callable[[RecordContext, Exception], str]:
        """What a query does about records that it cannot read: counts them, and goes on or fails.

        The records are not logged: they may hold what nobody should read there.
        """

        def handle(where: RecordContext, error: Exception) -> str:
            with self._lock:
                self._found.failed(where.topic, _now_ms())
            _processing_log.warning(
                "%s: record %d of %s-%d cannot be read: %s",
                query_id,
                where.offset,
                where.topic,
                where.partition,
                error,
            )
            return verdict

        return handle
