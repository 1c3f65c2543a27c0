"""A task in a thread: what may be its own of the records that were not delivered."""

from __future__ import annotations

from moldau.client.topics import TopicPartition
from moldau.streams import StreamsBuilder
from moldau.streams.hosts.hosted_task import HostedTask
from moldau.streams.hosts.metering import TaskMeter
from moldau.streams.machine.subtopologies import TaskId
from moldau.streams.machine.task import Task, TaskSettings
from moldau.streams.records import Produced


def hosted(partition: int) -> HostedTask:
    builder = StreamsBuilder()
    stream = builder.stream("in", key_serde="string", value_serde="string")
    stream.group_by_key().count(store="counts").to_stream().to("out", value_serde="long")
    assembly = builder.build().assembly
    task_id = TaskId(0, partition)
    written: list[Produced] = []
    task = Task(
        list(assembly.nodes.values()),
        assembly.stores,
        TaskSettings(
            application_id="app",
            task_id=str(task_id),
            changelog_topic=lambda store: f"app-{store}-changelog",
        ),
        written.append,
    )
    inputs = frozenset({TopicPartition("in", partition)})
    meter = TaskMeter(is_debug=False)
    return HostedTask(task_id, inputs, task, idle_ms=0, buffered_max=1, meter=meter)


def test_a_changelog_belongs_to_the_task_of_its_partition() -> None:
    found = hosted(1)
    assert found.writes_to([TopicPartition("app-counts-changelog", 1)])
    assert not found.writes_to([TopicPartition("app-counts-changelog", 0)])


def test_any_task_that_wrote_to_a_topic_may_have_written_to_each_partition() -> None:
    found = hosted(1)
    found.meter.produced["out"] = [0, 0]
    assert not found.writes_to([TopicPartition("out", 0)])
    found.meter.produced["out"][0] += 1
    assert found.writes_to([TopicPartition("out", 0), TopicPartition("other", 0)])
    assert not found.writes_to([TopicPartition("other", 0)])
    assert not found.writes_to([])
