"""Where the time of a record comes from: Kafka Streams' timestamp extractors.

An extractor gets where the record comes from (with its own timestamp), its value, and the largest
time of its partition so far (-1: none). A negative result drops the record. A topic's
`message.timestamp.type` decides whether a record's own timestamp is that of the event or of its
ingestion.
"""

from __future__ import annotations

from typing import Any

from moldau.streams.errors import StreamsError
from moldau.streams.records import RecordContext


def fail_on_invalid_timestamp(where: RecordContext, value: Any, partition_time: int) -> int:
    """The record's own timestamp; a negative one stops the application. The default."""
    if where.timestamp < 0:
        raise StreamsError(
            f"Input record of topic {where.topic}, partition {where.partition}, offset "
            f"{where.offset} has invalid (negative) timestamp {where.timestamp}. Use a different "
            f"timestamp extractor to process this data."
        )
    return where.timestamp


def log_and_skip_on_invalid_timestamp(
    where: RecordContext, value: Any, partition_time: int
) -> int:
    """The record's own timestamp; a record with a negative one is dropped."""
    return where.timestamp


def use_partition_time_on_invalid_timestamp(
    where: RecordContext, value: Any, partition_time: int
) -> int:
    """The record's own timestamp, or else the largest of its partition so far."""
    if where.timestamp >= 0:
        return where.timestamp
    if partition_time < 0:
        raise StreamsError(
            f"Could not infer new timestamp for input record of topic {where.topic}, partition "
            f"{where.partition}, offset {where.offset} because partition time is unknown."
        )
    return partition_time


def wall_clock_timestamp(where: RecordContext, value: Any, partition_time: int) -> int:
    """The time at which the record is processed; the task takes it from its host's clock."""
    raise StreamsError("wall_clock_timestamp is for sources: a task replaces it by its clock")
