"""The metrics of an application have the groups, names and tags of Kafka Streams' own."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.streams import (
    KafkaStreams,
    Materialized,
    SessionWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
)
from moldau.streams.topology.topology import Topology
from support.java import run_program
from support.processes import kafka_missing
from support.streams_embedded import Stage
from support.waiting import eventually

RECORDS = 20
#: How many nodes of the picture have a rate.
NODES = 9
#: What Kafka Streams has and this host does not, by group and the name's beginning.
MISSING = (
    # Iterators are read to their end at once.
    ("stream-state-metrics", "iterator-duration"),
    ("stream-state-metrics", "num-open-iterators"),
    ("stream-state-metrics", "oldest-iterator-open-since-ms"),
    # Final results are emitted with the record that closes a window.
    ("stream-processor-node-metrics", "window-aggregate-final-emit"),
)
#: Windows are not counted.
UNCOUNTED = {
    ("stream-state-metrics", "num-keys", f"in-memory-{kind}-state-id,task-id,thread-id")
    for kind in ("window", "session")
}


def measured(topic: str, output: str) -> Topology:
    """The topology of tests/java/StreamsMetrics.java."""
    builder = StreamsBuilder()
    grouped = builder.stream(topic, key_serde="string", value_serde="string").group_by_key()
    counts = grouped.count(store=Materialized(name="counts", persistent=False))
    counts.to_stream().to(output, key_serde="string", value_serde="long")
    (
        grouped.windowed_by(TimeWindows(size=10_000, grace=1_000))
        .count(store=Materialized(name="windows", persistent=False))
        .suppress(Suppressed.until_window_closes(name="held"))
        .to_stream()
        .foreach(lambda key, count: None)
    )
    grouped.windowed_by(SessionWindows(inactivity_gap=5_000)).count(
        store=Materialized(name="sessions", persistent=False)
    )
    return builder.build()


def shown(running: KafkaStreams) -> dict[tuple[str, str, str], Any]:
    return {
        (name.group, name.name, ",".join(sorted(name.tags))): metric.value
        for name, metric in running.metrics().items()
        if name.group.startswith("stream-")
    }


def run(stage: Stage, level: str) -> dict[tuple[str, str, str], Any]:
    prefix = f"{stage.new_id()}-"
    stage.create([f"{prefix}measured", f"{prefix}counts"], partitions=1)
    for number in range(RECORDS):
        stage.producer.send(f"{prefix}measured", f"v{number}".encode(), f"k{number % 3}".encode())
    stage.producer.flush()
    with KafkaStreams(
        measured(f"{prefix}measured", f"{prefix}counts"),
        application_id=f"{prefix}app",
        bootstrap_servers=stage.bootstrap,
        state_dir=str(stage.folder / prefix),
        default_dsl_store="in_memory",
        metrics_recording_level=level,
    ) as running:
        total = ("stream-thread-metrics", "process-total", "thread-id")
        commits = ("stream-thread-metrics", "commit-total", "thread-id")

        def committed() -> bool:
            found = shown(running)
            return bool(found.get(total) == RECORDS and found[commits] >= 1)

        eventually(committed, what="all records are processed and committed")
        picture = running.svg()
        assert picture.count(" records/s") == NODES
        return shown(running)


@pytest.fixture(scope="module")
def info(stage: Stage) -> dict[tuple[str, str, str], Any]:
    return run(stage, "INFO")


@pytest.fixture(scope="module")
def debug(stage: Stage) -> dict[tuple[str, str, str], Any]:
    return run(stage, "DEBUG")


def test_names_are_those_of_kafka_streams(
    stage: Stage, info: dict[tuple[str, str, str], Any]
) -> None:
    if reason := kafka_missing():
        pytest.skip(reason)
    stage.create(["measured", "measured-counts"], partitions=1)
    listed = run_program("StreamsMetrics.java", stage.bootstrap, "INFO")
    theirs: set[tuple[str, str, str]] = set()
    for line in listed.splitlines():
        group, name, tags = line.split("\t")
        theirs.add((group, name, tags))
    assert len(theirs) > 150
    wanted = {
        each
        for each in theirs - UNCOUNTED
        if not any(each[0] == group and each[1].startswith(name) for group, name in MISSING)
    }
    assert wanted - info.keys() == set()
    assert info.keys() - theirs == set()


def value(shown: dict[tuple[str, str, str], Any], group: str, name: str) -> float:
    """The largest value of a metric, whatever its tags are."""
    found = [each for key, each in shown.items() if key[:2] == (group, name)]
    return float(max(each for each in found if each == each))


def test_what_is_recorded_depends_on_the_level(
    info: dict[tuple[str, str, str], Any], debug: dict[tuple[str, str, str], Any]
) -> None:
    for both in (info, debug):
        assert value(both, "stream-thread-metrics", "process-total") == RECORDS
        assert value(both, "stream-topic-metrics", "records-consumed-total") == RECORDS
        assert value(both, "stream-topic-metrics", "bytes-consumed-total") > RECORDS
        assert value(both, "stream-processor-node-metrics", "record-e2e-latency-max") > 0
        for name in ("active-restoring-tasks", "standby-updating-tasks", "active-paused-tasks"):
            assert value(both, "stream-state-updater-metrics", name) == 0
    assert value(info, "stream-task-metrics", "process-total") == 0
    assert value(debug, "stream-task-metrics", "process-total") == RECORDS
    for both in (info, debug):
        assert value(both, "stream-processor-node-metrics", "process-total") == RECORDS
    assert value(debug, "stream-state-metrics", "put-rate") > 0
    assert value(debug, "stream-state-metrics", "put-latency-max") > 0
    assert value(debug, "stream-state-metrics", "fetch-rate") > 0
    assert value(debug, "stream-state-metrics", "suppression-buffer-count-max") == 3
    assert 0 < value(debug, "stream-record-cache-metrics", "hit-ratio-max") <= 1
