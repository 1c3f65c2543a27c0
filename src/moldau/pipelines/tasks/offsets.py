"""Lets Spark continue a pipeline that began without it, at exactly the same records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from moldau.client import Admin
from moldau.client.config import ADMIN_KEYS, keys_of
from moldau.pipelines.definition import Pipeline
from moldau.pipelines.machine.records import PipelineRecord

__all__ = ["continued", "has_checkpoint"]

_SECONDS_MAX: Final = 30.0
# What a partition without a committed offset starts at: its beginning.
_EARLIEST: Final = -2


def has_checkpoint(path: str) -> bool:
    """Whether Spark has begun: a checkpoint elsewhere is taken for one that exists."""
    if "://" in path:
        return not path.startswith("file://") or Path(path.removeprefix("file://")).exists()
    return Path(path, "query", "offsets").exists()


def continued(pipeline: Pipeline, record: PipelineRecord, bootstrap: str) -> Pipeline:
    """The pipeline, started at the offsets that its group has committed, unless Spark has begun.

    The checkpoint has them from its first batch on; they stay the same until then, because nothing
    else commits for the group.
    """
    if has_checkpoint(record.checkpoint):
        return pipeline
    fields: dict[str, Any] = pipeline.to_json()
    source = dict(fields["source"])
    group = str(source.get("groupId") or pipeline.name)
    topics = source.get("topics") or [source["topic"]]
    config = {**keys_of(ADMIN_KEYS, pipeline.kafka), "bootstrap.servers": bootstrap}
    with Admin(config) as admin:
        committed = admin.list_consumer_group_offsets({group: None}, timeout=_SECONDS_MAX)[group]
        described = admin.describe_topics(list(topics), timeout=_SECONDS_MAX)
    offsets: dict[str, dict[str, int]] = {
        topic: {str(number): _EARLIEST for number in range(len(described[topic].partitions))}
        for topic in topics
    }
    for key, found in committed.items():
        if found is not None and key.topic in offsets:
            offsets[key.topic][str(key.partition)] = found.offset
    source["startingOffsets"] = json.dumps(offsets)
    return Pipeline.from_json({**fields, "source": source})
