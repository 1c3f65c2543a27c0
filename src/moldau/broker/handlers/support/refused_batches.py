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


#: The batch as a whole is not taken, whatever is in it.
_TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


def count_refused(meters: PartitionMeters, error: Exception, *, size: int, compacted: bool) -> None:
    """A batch of `size` bytes for this partition was refused."""
    topic = meters.topic
    topic.produces.mark(1)
    topic.mark("FailedProduceRequestsPerSec")
    if not isinstance(error, ApiError):
        return
    reason = _REASONS.get(error.code)
    if reason is not None:
        topic.mark(reason)
    if error.code in _TOO_LARGE:
        topic.mark("BytesRejectedPerSec", size)
    if compacted and error.code is ErrorCode.INVALID_RECORD:
        topic.mark("NoKeyCompactedTopicRecordsPerSec")
