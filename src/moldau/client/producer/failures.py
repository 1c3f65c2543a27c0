"""The records that could not be sent: counted, and reported to a listener with the reason."""

from __future__ import annotations

import logging
from collections.abc import Callable

from moldau.client.errors import KafkaError
from moldau.client.metrics import ProducerMetrics
from moldau.client.topics import TopicPartition

__all__ = ["FailedSends", "FailureListener"]

_log = logging.getLogger(__name__)

FailureListener = Callable[[TopicPartition, KafkaError], None]


class FailedSends:
    """Of one producer. Called on the loop, and by `send` for records that are not taken on."""

    def __init__(self, metrics: ProducerMetrics) -> None:
        self._metrics = metrics
        #: Called once for each batch that failed: unlike `on_delivery` it costs a record nothing.
        self.listener: FailureListener | None = None

    def add(self, where: TopicPartition, count: int, error: KafkaError) -> None:
        self._metrics.failed(where.topic, count)
        if self.listener is not None:
            try:
                self.listener(where, error)
            except Exception:
                _log.exception("What listens to the failures of a producer failed for %s", where)
