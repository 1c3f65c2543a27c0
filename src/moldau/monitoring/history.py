"""Writes readings of nodes to the compacted topic `__moldau_metrics`, and reads them back."""

from __future__ import annotations

import logging
import time
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from moldau.client import Admin, Consumer, NewTopic, Producer
from moldau.client.errors import TopicExistsError
from moldau.client.topics import TopicPartition
from moldau.metrics.history import TOPIC, decode, encode, key_of
from moldau.metrics.parsing import parse

__all__ = ["HistoryWriter", "read_history"]

SECONDS_MAX: Final = 10.0
_REPLICATION_FACTOR_MAX: Final = 3

logger = logging.getLogger(__name__)


class HistoryWriter:
    """`write` takes one reading of every node; it blocks for a bounded time."""

    def __init__(
        self, cluster: Mapping[str, Any], nodes: tuple[str, ...], *, interval_s: float, slots: int
    ) -> None:
        """`nodes` are the addresses of their `/metrics`."""
        self._cluster = dict(cluster)
        self._nodes = nodes
        self._interval_s = interval_s
        self._slots = slots
        self._producer: Producer | None = None
        self.written = 0

    def write(self) -> None:
        producer = self._opened()
        for node in self._nodes:
            try:
                with urllib.request.urlopen(node, timeout=SECONDS_MAX) as answer:
                    text = answer.read().decode()
            except (OSError, ValueError) as error:
                logger.warning("history: %s: %s", node, error)
                continue
            now_s = time.time()
            key = key_of(node, now_s, interval_s=self._interval_s, slots=self._slots)
            producer.send(TOPIC, encode(node, now_s, parse(text)), key=key).result(SECONDS_MAX)
            self.written += 1

    def _opened(self) -> Producer:
        if self._producer is None:
            with Admin(self._cluster) as admin:
                if TOPIC not in admin.list_topics(list_internal=True, timeout=SECONDS_MAX):
                    count = len(list(admin.describe_cluster(timeout=SECONDS_MAX).nodes))
                    topic = NewTopic(
                        TOPIC,
                        1,
                        min(count, _REPLICATION_FACTOR_MAX),
                        configs={"cleanup.policy": "compact"},
                    )
                    with suppress(TopicExistsError):
                        admin.create_topics([topic], timeout=SECONDS_MAX)
            self._producer = Producer(
                self._cluster | {"compression.type": "zstd", "max.block.ms": "5000"}
            )
        return self._producer

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close(timeout=1)


def read_history(cluster: Mapping[str, Any], *, timeout: float = 30.0) -> list[dict[str, Any]]:
    """All readings there are, the oldest first."""
    found: dict[bytes, dict[str, Any]] = {}
    place = TopicPartition(TOPIC, 0)
    with Consumer(dict(cluster) | {"enable.auto.commit": "false"}) as consumer:
        consumer.assign([place])
        end = consumer.end_offsets([place], timeout=timeout)[place]
        consumer.seek_to_beginning([place])
        deadline = time.monotonic() + timeout
        while consumer.position(place, timeout=timeout) < end and time.monotonic() < deadline:
            for record in consumer.poll(1.0):
                with suppress(ValueError):
                    found[bytes(record.key or b"")] = decode(bytes(record.value or b""))
    return sorted(found.values(), key=lambda each: float(each["time"]))
