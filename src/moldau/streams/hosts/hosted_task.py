"""A task in a stream thread: its fetched records, and how far its changelogs are restored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import groupby
from operator import attrgetter
from typing import Any

from moldau.client.consumer_record import ConsumerRecord
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.streams.hosts.metering import TaskMeter
from moldau.streams.machine import progress
from moldau.streams.machine.definitions import Definition
from moldau.streams.machine.inputs import Inputs, Lag
from moldau.streams.machine.position import Position
from moldau.streams.machine.subtopologies import TaskId
from moldau.streams.machine.task import Task

Records = list[ConsumerRecord[Any, Any]]
Committed = Mapping[TopicPartition, OffsetAndMetadata | None]


class Stage(Enum):
    """How far a task is."""

    CREATED = auto()
    RESTORING = auto()
    RUNNING = auto()
    CLOSED = auto()


@dataclass(slots=True)
class StoreLog:
    """A store of a task and its partition of the changelog."""

    store: str
    partition: TopicPartition
    is_source: bool
    #: The next offset to restore; where restoring ends.
    position: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Times:
    """The times of a batch of records, and the topics that it is of."""

    count: int = 0
    oldest: int = 0
    newest: int = 0
    mean: float = 0
    stream_time: float = 0
    topics: tuple[str, ...] = ()


class HostedTask:
    """See the module. Owned by one stream thread; others only read its stores."""

    def __init__(
        self,
        task_id: TaskId,
        partitions: frozenset[TopicPartition],
        task: Task,
        *,
        idle_ms: int,
        buffered_max: int,
        definitions: Sequence[Definition] = (),
        meter: TaskMeter | None = None,
    ) -> None:
        self.id = task_id
        self.partitions = partitions
        self.task = task
        self.logs = [
            StoreLog(
                each.store,
                TopicPartition(each.topic, task_id.partition),
                each.is_source,
                each.checkpoint or 0,
            )
            for each in task.changelogs()
        ]
        self.stage = Stage.CREATED
        self.inputs: Inputs[ConsumerRecord[Any, Any]] = Inputs(
            partitions, idle_ms=idle_ms, buffered_max=buffered_max
        )
        self.commit_needed = False
        self.processed = 0
        #: Records of changelogs that were applied.
        self.restored = 0
        self.definitions = definitions
        self.meter = meter or TaskMeter(is_debug=False)
        self.times = Times()
        #: The offsets of the inputs that are committed.
        self.committed: dict[TopicPartition, int] = {}
        #: Where the inputs ended, as far as this is known.
        self.end_offsets: dict[TopicPartition, int] = {}
        #: How far the input was processed, for queries.
        self.position = Position()
        self._single = next(iter(partitions)) if len(partitions) == 1 else None
        self._committed: dict[progress.TopicPartition, str | None] = {}
        # Where the fetched records of each partition end.
        self._fetched: dict[TopicPartition, int] = {}

    def resume_from(self, committed: Committed) -> None:
        """Keep what was committed with the offsets until the stores are restored."""
        for key in self.partitions:
            found = committed.get(key)
            metadata = None if found is None else found.metadata
            if found is not None:
                self.committed[key] = found.offset
            if found is not None and found.offset > 0:
                self.position = self.position.with_component(*key, found.offset - 1)
            self._committed[progress.TopicPartition(*key)] = metadata

    def restore(self, log: StoreLog, records: Records, next_offset: int) -> None:
        """Apply a batch of a changelog."""
        self.restored += len(records)
        log.position = next_offset
        self.task.restore(
            log.store,
            [(each.key, each.value, each.timestamp, each.headers) for each in records],
            next_offset,
        )

    def start(self, wall_clock_ms: int) -> None:
        """The stores are restored: records can be processed."""
        self.task.core.wall_clock_ms = wall_clock_ms
        self.task.initialize(self._committed)
        self.stage = Stage.RUNNING

    def add(
        self, key: TopicPartition, records: Records, next_offset: int | None, lag: int | None
    ) -> bool:
        """Buffer fetched records, `lag` before the end; whether the partition is to be paused."""
        if next_offset is not None:
            self._fetched[key] = next_offset
            self.end_offsets[key] = next_offset + (lag or 0)
        elif records:
            self._fetched[key] = records[-1].offset + 1
        return self.inputs.add(key, records)

    def process(self, now_ms: int, count_max: int, lag: Lag) -> int:
        """Process records that are due; how many there were."""
        if not self.inputs.ready(now_ms, lag):
            return 0
        records = self.inputs.take(count_max)
        task = self.task
        if task.waits_for_stream_time:
            for record in records:
                task.process_records(record.topic, record.partition, (record,))
                task.punctuate_stream_time()
        elif self._single is not None:
            task.process_records(*self._single, records)
        else:
            for key, run in groupby(records, key=attrgetter("topic", "partition")):
                task.process_records(*key, run)
        self.commit_needed = True
        self.processed += len(records)
        self._measure(records)
        return len(records)

    def _measure(self, records: Records) -> None:
        """The times and sizes of a batch, for metrics."""
        timestamps = [record.timestamp for record in records]
        if self._single is not None:
            groups = [(self._single[0], records)]
        else:
            by_topic = sorted(records, key=attrgetter("topic"))
            groups = [(name, list(run)) for name, run in groupby(by_topic, attrgetter("topic"))]
        for topic, run in groups:
            counts = self.meter.consumed.setdefault(topic, [0, 0])
            counts[0] += len(run)
            last = run[-1]
            self.position = self.position.with_component(topic, last.partition, last.offset)
            counts[1] += sum([len(each.value or b"") + len(each.key or b"") for each in run])
        self.times = Times(
            len(records),
            min(timestamps),
            max(timestamps),
            sum(timestamps) // len(timestamps),
            self.task.stream_time_ms,
            tuple(topic for topic, _ in groups),
        )

    def prepare_commit(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Write what is held back; the offsets to commit.

        Where nothing is buffered, offsets without records count too, such as those of markers.
        """
        found = {}
        for place, offset in self.task.prepare_commit().items():
            key = TopicPartition(*place)
            next_offset = offset.offset
            if self.inputs.is_empty(key):
                next_offset = max(next_offset, self._fetched.get(key, 0))
            found[key] = OffsetAndMetadata(next_offset, offset.metadata)
        return found

    def on_committed(self, ends: Mapping[TopicPartition, int]) -> None:
        """What `prepare_commit` returned is committed; `ends` are those of the changelogs."""
        self.commit_needed = False
        offsets = {}
        for log in self.logs:
            if log.partition in ends:
                offsets[log.store] = log.position = ends[log.partition]
        self.task.committed(offsets)

    @property
    def changelog_offset(self) -> int:
        """How far its changelogs are restored or written, all together."""
        return sum(log.position for log in self.logs if not log.is_source)

    @property
    def is_restoring(self) -> bool:
        """Whether it waits for its stores."""
        return self.stage in (Stage.CREATED, Stage.RESTORING)

    def writes_to(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether records of these partitions may be its own: of its changelogs, or of topics."""
        own = {log.partition for log in self.logs if not log.is_source}
        topics = {topic for topic, count in self.meter.produced.items() if count[0]}
        return any(each in own or each.topic in topics for each in partitions)

    def checkpoint(self) -> None:
        """All is committed: make the stores on disk durable now."""
        self.task.committed({}, force=True)

    def close(self) -> None:
        """Close processors and stores; what is not committed is given up."""
        if self.stage is not Stage.CLOSED:
            self.stage = Stage.CLOSED
            self.task.close()


def waiting(tasks: Iterable[HostedTask]) -> bool:
    """Whether a task has fetched records that are not processed."""
    return any(len(task.inputs) for task in tasks if task.stage is Stage.RUNNING)
