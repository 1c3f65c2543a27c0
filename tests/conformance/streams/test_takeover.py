"""Kafka Streams (Java) and `moldau.streams` take over each other's applications."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import pytest

from moldau.client import ConfigResource
from moldau.streams import StreamsBuilder, TimeWindows, Topology
from support.processes import kafka_missing
from support.streams_counting import check, recomputed, updates
from support.streams_embedded import Stage
from support.streams_takeover import java_instance, python_instance

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

LINES = [f"all streams lead {number % 7} kafka" for number in range(300)]


def topology(prefix: str) -> Topology:
    builder = StreamsBuilder()
    words = builder.stream(
        f"{prefix}text", key_serde="string", value_serde="string"
    ).flat_map_values(lambda line: line.split(" "))
    grouped = words.group_by(
        lambda key, word: word, name="by-word", key_serde="string", value_serde="string"
    )
    counted = grouped.count(store="counts").to_stream()
    counted.to(f"{prefix}counts", key_serde="string", value_serde="long")
    windows = TimeWindows(size=10_000, grace=5_000)
    by_window = grouped.windowed_by(windows).count(store="windowed").to_stream()
    by_window.map(lambda key, count: (f"{key.key}@{key.window.start}", count)).to(
        f"{prefix}windowed", key_serde="string", value_serde="long"
    )
    return builder.build()


def in_java(stage: Stage, prefix: str) -> AbstractContextManager[None]:
    return java_instance("StreamsTakeover.java", stage, prefix)


def in_python(stage: Stage, prefix: str) -> AbstractContextManager[None]:
    return python_instance(topology(prefix), stage, prefix)


def facts(stage: Stage, prefix: str) -> dict[str, Any]:
    """The internal topics: partitions, and what is configured."""
    names = [name for name in stage.admin.list_topics() if name.startswith(f"{prefix}app-")]
    described = stage.admin.describe_topics(names)
    configs = stage.admin.describe_configs([ConfigResource.topic(name) for name in names])
    return {
        name.removeprefix(prefix): (
            len(described[name].partitions),
            {
                key: entry.value
                for key, entry in configs[ConfigResource.topic(name)].items()
                if entry.source.name == "DYNAMIC_TOPIC_CONFIG"
            },
        )
        for name in names
    }


@pytest.mark.long("three runs of two virtual machines")
def test_each_takes_over_from_the_other(stage: Stage) -> None:
    made: dict[str, dict[str, Any]] = {}
    for order in ((in_java, in_python, in_java), (in_python, in_java, in_python)):
        prefix = f"{stage.new_id()}-"
        topics = [f"{prefix}{name}" for name in ("text", "counts", "windowed")]
        stage.create(topics, partitions=2)
        seen: list[str] = []
        for number, language in enumerate(order):
            part = LINES[number * 100 : (number + 1) * 100]
            for index, line in enumerate(part):
                timestamp = (number * 100 + index) * 100
                stage.producer.send(f"{prefix}text", line.encode(), timestamp=timestamp)
            stage.producer.flush()
            seen += part
            total = sum(recomputed(seen).values())
            with language(stage, prefix):
                found = updates(stage.bootstrap, f"{prefix}counts", 2, total)
                windowed = updates(stage.bootstrap, f"{prefix}windowed", 2, total)
            check(found, recomputed(seen))
            check(windowed, by_windows(seen))
        made[order[0].__name__] = facts(stage, prefix)
    assert made["in_java"] == made["in_python"]


def by_windows(lines: list[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for index, line in enumerate(lines):
        for word in line.split():
            key = f"{word}@{index * 100 // 10_000 * 10_000}"
            found[key] = found.get(key, 0) + 1
    return found
