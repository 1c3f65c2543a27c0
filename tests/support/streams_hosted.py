"""A task as a stream thread has it, without a thread: a count with a changelog."""

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
