"""What a query's progress says: how far it is, how fast, how far behind, and what it has read.

Pure: Spark's progress as a JSON object in, plain values out. Anything may be missing from it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from moldau.client.topics import TopicPartition
from moldau.pipelines.machine.records import ProgressRecord
from moldau.spark.source.machine.lag import lag

__all__ = ["activity_of", "line_of", "mirror_group", "progress_record", "read_offsets"]


def progress_record(progress: Mapping[str, Any]) -> ProgressRecord:
    # What other sources call offsets means nothing here.
    topics = [source for source in _sources(progress) if _offsets(source.get("endOffset"))]
    behind = lag({"sources": topics})
    return ProgressRecord(
        batch_id=int(progress.get("batchId", -1)),
        input_rows=int(_total(progress, "numInputRows") or 0),
        input_rows_per_second=_total(progress, "inputRowsPerSecond"),
        processed_rows_per_second=_total(progress, "processedRowsPerSecond"),
        lag_records=behind.records if topics else None,
        lag_seconds=behind.seconds,
        output_rows=_output_rows(progress),
        durations_ms=_durations(progress),
        at=str(progress.get("timestamp", "")),
    )


def line_of(progress: ProgressRecord) -> str:
    """A progress in one line, for people."""
    parts = [f"batch {progress.batch_id}: {progress.input_rows} rows"]
    if progress.processed_rows_per_second is not None:
        parts.append(f"{progress.processed_rows_per_second:.0f} rows/s")
    if progress.lag_records is not None:
        age = "" if progress.lag_seconds is None else f" ({progress.lag_seconds:.1f} s)"
        parts.append(f"lag {progress.lag_records} records{age}")
    if progress.seconds_left is not None:
        parts.append(f"{progress.seconds_left:.0f} s to go")
    return ", ".join(parts)


def activity_of(message: str | None) -> str | None:
    """What a query does just now; Spark's words for it name classes of Java."""
    text = message or ""
    if text.startswith("Waiting for data"):
        return "waiting for records"
    if text.startswith("Waiting for next trigger"):
        return "waiting for the next trigger"
    if text.startswith("Getting offsets"):
        return "looking for records"
    if text.startswith("Processing new data"):
        return "working on a batch"
    if text.startswith("Initializing"):
        return "starting"
    return None


def read_offsets(progress: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """Up to where Spark's own connector has read topics: what is mirrored to a group for it."""
    offsets: dict[TopicPartition, int] = {}
    for source in _sources(progress):
        if str(source.get("description", "")).startswith("Kafka"):
            offsets |= _offsets(source.get("endOffset"))
    return offsets


def mirror_group(definition: Mapping[str, Any]) -> str | None:
    """The group that shows how far a pipeline has read; None if its user wants none.

    The same options as of our own source, so that the connector makes no difference.
    """
    sources = [definition.get("source"), *(definition.get("sources") or {}).values()]
    options = {
        str(key).lower(): value
        for source in sources
        if isinstance(source, Mapping)
        for key, value in source.items()
    }
    if str(options.get("mirroroffsets", True)).lower() == "false":
        return None
    settings = definition.get("kafka") or {}
    group = options.get("groupid") or options.get("kafka.group.id") or settings.get("group.id")
    return str(group or definition["name"])


def _sources(progress: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [source for source in progress.get("sources") or () if isinstance(source, Mapping)]


def _offsets(value: Any) -> dict[TopicPartition, int]:
    """Offsets as Spark writes them, {"topic": {"0": 5}}; of other sources there are none."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    if not isinstance(value, Mapping):
        return {}
    try:
        return {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, partitions in value.items()
            for partition, offset in partitions.items()
        }
    except (AttributeError, TypeError, ValueError):
        return {}


def _output_rows(progress: Mapping[str, Any]) -> int | None:
    """Spark writes -1 for a sink that does not count."""
    sink = progress.get("sink")
    rows = sink.get("numOutputRows") if isinstance(sink, Mapping) else None
    return rows if isinstance(rows, int) and rows >= 0 else None


def _durations(progress: Mapping[str, Any]) -> dict[str, int]:
    found = progress.get("durationMs")
    if not isinstance(found, Mapping):
        return {}
    return {
        str(name): int(value) for name, value in found.items() if isinstance(value, int | float)
    }


def _total(progress: Mapping[str, Any], name: str) -> float | None:
    """Of all sources: Spark's client leaves the sums out. NaN is what was not measured."""
    values = [source.get(name) for source in _sources(progress)]
    numbers = [
        float(value)
        for value in values
        if isinstance(value, int | float) and value == value and abs(value) != float("inf")
    ]
    return round(sum(numbers), 3) if numbers else None
