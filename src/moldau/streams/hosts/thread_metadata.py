"""What an application may know of its threads and their tasks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from moldau.client.topics import TopicPartition
from moldau.streams.hosts.hosted_task import HostedTask
from moldau.streams.machine.subtopologies import TaskId


@dataclass(frozen=True, slots=True)
class TaskMetadata:
    """A task in a thread: what it reads, and how far that is committed."""

    task_id: TaskId
    topic_partitions: frozenset[TopicPartition]
    committed_offsets: dict[TopicPartition, int]
    #: Where the partitions ended when records of them came last.
    end_offsets: dict[TopicPartition, int]
    #: Since when it waits for records of an empty partition, in milliseconds since 1970.
    time_current_idling_started: int | None


@dataclass(frozen=True, slots=True)
class ThreadMetadata:
    """A thread of this instance."""

    thread_name: str
    thread_state: str
    active_tasks: tuple[TaskMetadata, ...]
    standby_tasks: tuple[TaskMetadata, ...]
    main_consumer_client_id: str
    restore_consumer_client_id: str
    producer_client_id: str
    admin_client_id: str


def described(tasks: Iterable[HostedTask], clock_ms: int) -> tuple[TaskMetadata, ...]:
    """Tasks as they are now; `clock_ms` added to the time of the thread gives that of the day."""
    return tuple(
        TaskMetadata(
            each.id,
            each.partitions,
            dict(each.committed),
            dict(each.end_offsets),
            None if each.inputs.idle_since_ms is None else each.inputs.idle_since_ms + clock_ms,
        )
        for each in sorted(tasks, key=lambda task: task.id)
    )
