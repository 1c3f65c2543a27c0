"""How far a query is behind its topics, in records and in seconds.

Pure. The source puts it into the query's progress under a name that no topic can have, beside the
latest offsets, which stay as Spark's Kafka source writes them; `lag` reads it from there. Records
can also be computed for the official connector's progress, from its offsets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from moldau.client.topics import TopicPartition
from moldau.spark.source.machine.offsets import Offsets, offsets_from_json, offsets_to_json

__all__ = ["LAG_KEY", "Lag", "behind", "lag", "latest_with_lag"]

LAG_KEY: Final = "moldau:lag"


@dataclass(frozen=True, slots=True)
class Lag:
    """`records` that are not read yet; `seconds` is the age of the oldest of them, None where
    it is not known (the official connector). `partitions` has the records by "topic-partition"."""

    records: int = 0
    seconds: float | None = None
    partitions: Mapping[str, int] = field(default_factory=dict)


def behind(read: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]) -> Offsets:
    """What is unread of each partition; what is not known as read is unread from offset 0 on."""
    return {
        key: count for key, end in sorted(latest.items()) if (count := end - read.get(key, 0)) > 0
    }


def latest_with_lag(
    latest: Mapping[TopicPartition, int],
    unread: Mapping[TopicPartition, int],
    oldest_ms: int | None,
    now_ms: int,
) -> dict[str, Any]:
    """What the source reports as its latest offset."""
    report: dict[str, Any] = dict(offsets_to_json(latest))
    seconds = 0.0 if not unread else None
    if unread and oldest_ms is not None:
        # A producer's clock may be ahead of this one.
        seconds = max(0, now_ms - oldest_ms) / 1000
    entry: dict[str, Any] = {"records": sum(unread.values())}
    if seconds is not None:
        entry["seconds"] = seconds
    report[LAG_KEY] = entry
    return report


def lag(progress: Any) -> Lag:
    """The lag of a query from its progress: `query.lastProgress`, also as JSON or a mapping.

    Sources that are no topics do not count. None, as before the first progress, is no lag.
    """
    if progress is None:
        return Lag()
    records = 0
    seconds: float | None = None
    is_known = False
    partitions: dict[str, int] = {}
    for source in _as_mapping(progress).get("sources") or ():
        latest = _as_mapping(_field(source, "latestOffset"))
        if not latest:
            continue
        entry = latest.pop(LAG_KEY, None)
        try:
            unread = behind(
                offsets_from_json(_as_mapping(_field(source, "endOffset"))),
                offsets_from_json(latest),
            )
        except ValueError:
            continue
        partitions.update({str(key): count for key, count in unread.items()})
        if entry is None:
            records += sum(unread.values())
            continue
        records += int(entry["records"])
        if "seconds" in entry:
            is_known = True
            seconds = max(seconds or 0.0, float(entry["seconds"]))
    return Lag(records, seconds if is_known else None, partitions)


def _field(source: Any, name: str) -> Any:
    return source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)


def _as_mapping(value: Any) -> dict[str, Any]:
    """Spark's objects have their JSON; offsets come as texts or as they are."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return dict(value)
    if not isinstance(value, str):
        value = value.json
        if callable(value):
            value = value()
    try:
        parsed = json.loads(value)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
