"""Where a partition is begun that has no committed offset, as its source says."""

from __future__ import annotations

from typing import Any

from moldau.client import Consumer
from moldau.client.topics import TopicPartition
from moldau.config.durations import parse_duration_ms
from moldau.streams.errors import StreamsError


def begin(
    consumer: Consumer[Any, Any], key: TopicPartition, policy: str | None, now_ms: int
) -> None:
    """Seek in a partition; without a policy of the source that of the consumer holds."""
    match policy:
        case None:
            return
        case "earliest":
            consumer.seek_to_beginning([key])
        case "latest":
            consumer.seek_to_end([key])
        case "none":
            raise StreamsError(
                f"{key} has no committed offset, and its source has the reset policy none"
            )
        case _:
            span_ms = parse_duration_ms(policy.partition(":")[2]) or 0
            found = consumer.offsets_for_times({key: now_ms - span_ms})[key]
            if found is None:
                consumer.seek_to_end([key])
            else:
                consumer.seek(key, found.offset)
