"""Where partitions are read from: their committed offsets, or where their source says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moldau.client import Consumer
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.config.durations import parse_duration_ms
from moldau.streams.errors import StreamsError


def seek_all(
    consumer: Consumer[Any, Any],
    committed: Mapping[TopicPartition, OffsetAndMetadata | None],
    policy_of: Callable[[str], str | None],
    now_ms: int,
) -> None:
    """Seek to the committed offsets; where there is none, to where the source of a topic says."""
    for key, offset in sorted(committed.items()):
        if offset is None:
            begin(consumer, key, policy_of(key.topic), now_ms)
        else:
            consumer.seek(key, offset)


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
