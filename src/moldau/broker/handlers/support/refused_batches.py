"""Counts batches that were refused, by the reasons that Kafka counts."""

from __future__ import annotations

from typing import Final

from moldau.broker.metrics.topics import PartitionMeters
from moldau.wire.errors import ApiError, ErrorCode

_REASONS: Final = {
    ErrorCode.CORRUPT_MESSAGE: "InvalidMessageCrcRecordsPerSec",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "InvalidOffsetOrSequenceRecordsPerSec",
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: "InvalidMagicNumberRecordsPerSec",
}


def count_refused(meters: PartitionMeters, error: Exception) -> None:
    """A batch for this partition was refused."""
    topic = meters.topic
    topic.produces.mark(1)
    topic.mark("FailedProduceRequestsPerSec")
    reason = _REASONS.get(error.code) if isinstance(error, ApiError) else None
    if reason is not None:
        topic.mark(reason)
