"""Fills the stores of tasks from their changelogs, and keeps those of standby tasks up to date.

Invariants: an active task is restored up to the end that its changelogs had after the offsets of
its inputs were read, so it has every update that belongs to these offsets; a changelog's end counts
only when no transaction is open in it, since an open one may still be committed; local state that
is ahead of its changelog belongs to another one, and is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any, Protocol

from moldau.client import Consumer
from moldau.client.consumer_record import ConsumerRecord
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.streams.hosts.administration import Administration, Bounds
from moldau.streams.hosts.hosted_task import Committed, HostedTask, Stage, StoreLog
from moldau.streams.machine.subtopologies import TaskId

#: The end of a standby task's changelog: there is none.
FOLLOWED = -1


class RestoreListener(Protocol):
    """What an application implements to follow the restoring of its stores.

    It may also have `on_restore_suspended(partition, store, total)` (KIP-869): the task was closed
    before its store was complete, and another thread or instance goes on.
    """

    def on_restore_start(
        self, partition: TopicPartition, store: str, start: int, end: int
    ) -> None: ...

    def on_batch_restored(
        self, partition: TopicPartition, store: str, end: int, count: int
    ) -> None: ...

    def on_restore_end(self, partition: TopicPartition, store: str, total: int) -> None: ...


class SuspendReason(Enum):
    """Why a standby task no longer follows its changelogs."""

    MIGRATED = auto()
    PROMOTED = auto()


class StandbyUpdateListener(Protocol):
    """What an application implements to follow the copies of stores in this instance."""

    def on_update_start(self, partition: TopicPartition, store: str, start: int) -> None: ...

    def on_batch_loaded(
        self,
        partition: TopicPartition,
        store: str,
        task_id: TaskId,
        end: int,
        count: int,
        last: int,
    ) -> None: ...

    def on_update_suspended(
        self, partition: TopicPartition, store: str, offset: int, last: int, reason: SuspendReason
    ) -> None: ...


class Restorer:
    """Of one stream thread, which calls it."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        admin: Administration,
        *,
        exactly_once: bool,
        listener: Callable[[], RestoreListener | None],
        standby_listener: Callable[[], StandbyUpdateListener | None] = lambda: None,
    ) -> None:
        self._standby_listener = standby_listener
        self._settings = dict(settings)
        self._admin = admin
        self._exactly_once = exactly_once
        self._listener = listener
        self._consumer: Consumer[Any, Any] | None = None
        self._logs: dict[TopicPartition, StoreLog] = {}
        self._tasks: dict[TopicPartition, HostedTask] = {}
        #: Tasks whose changelogs have an open transaction.
        self._waiting: list[tuple[HostedTask, Committed]] = []
        self._restored: dict[TopicPartition, int] = {}
        self._corrupted: list[HostedTask] = []
        self._complete: list[HostedTask] = []
        self.restored_total = 0

    @property
    def has_active(self) -> bool:
        """Whether an active task waits for its stores."""
        return bool(self._waiting or self._corrupted or self._complete) or any(
            task.stage is Stage.RESTORING for task in self._tasks.values()
        )

    @property
    def is_idle(self) -> bool:
        return not self._logs and not self._waiting

    def add_active(self, task: HostedTask, committed: Committed) -> None:
        """Restore a task whose inputs continue at `committed`."""
        task.stage = Stage.RESTORING
        self._waiting.append((task, committed))

    def take_corrupted(self) -> list[HostedTask]:
        """Tasks whose local state is ahead of a changelog: it belongs to another one."""
        found, self._corrupted = self._corrupted, []
        return found

    def take_complete(self) -> list[HostedTask]:
        """The active tasks that have their stores now."""
        found, self._complete = self._complete, []
        return found

    def add_standby(self, task: HostedTask) -> None:
        """Follow the changelogs of a task that another instance runs."""
        for log in task.logs:
            if not log.is_source:
                log.end = FOLLOWED
                self._follow(task, log)
                standby_listener = self._standby_listener()
                if standby_listener is not None:
                    standby_listener.on_update_start(log.partition, log.store, log.position)
        self._assign()

    def remove(self, task: HostedTask, reason: SuspendReason = SuspendReason.MIGRATED) -> None:
        """The task is closed; `reason` is for what follows a standby task."""
        self._waiting = [(each, offsets) for each, offsets in self._waiting if each is not task]
        for found in (self._corrupted, self._complete):
            if task in found:
                found.remove(task)
        for log in task.logs:
            if self._logs.get(log.partition) is log:
                standby_listener = self._standby_listener()
                if log.end == FOLLOWED and standby_listener is not None:
                    standby_listener.on_update_suspended(
                        log.partition, log.store, log.position, self._last(log), reason
                    )
                self._suspend(log)
                del self._logs[log.partition]
                del self._tasks[log.partition]
        self._assign()

    def _suspend(self, log: StoreLog) -> None:
        """The changelog of an active task is no longer read."""
        if log.end == FOLLOWED:
            return
        total = self._restored.pop(log.partition, 0)
        # Listeners that were written before KIP-869 have no such method.
        suspended = getattr(self._listener(), "on_restore_suspended", None)
        if suspended is not None:
            suspended(log.partition, log.store, total)

    def poll(self, timeout: float) -> None:
        """Restore what has arrived. A call that raises KafkaTimeoutError can be repeated."""
        self._begin()
        if not self._logs or self._consumer is None:
            return
        records = self._consumer.poll(timeout)
        next_offsets = records.next_offsets()
        for key in dict.fromkeys((*next_offsets, *records.partitions())):
            log = self._logs.get(key)
            if log is not None:
                self._apply(log, records.records(key), next_offsets.get(key))
        self._finish()

    def _apply(
        self,
        log: StoreLog,
        records: list[ConsumerRecord[Any, Any]],
        next_offset: OffsetAndMetadata | None,
    ) -> None:
        """Restore records before the end. A standby task has everything: there is no end."""
        position = log.position if not records else records[-1].offset + 1
        if next_offset is not None:
            position = max(position, next_offset.offset)
        if log.end != FOLLOWED and position > log.end:
            records = [record for record in records if record.offset < log.end]
            position = log.end
        task = self._tasks[log.partition]
        task.restore(log, records, position)
        self.restored_total += len(records)
        if log.end == FOLLOWED:
            standby_listener = self._standby_listener()
            if records and standby_listener is not None:
                standby_listener.on_batch_loaded(
                    log.partition, log.store, task.id, position, len(records), self._last(log)
                )
            return
        self._restored[log.partition] = self._restored.get(log.partition, 0) + len(records)
        if records:
            listener = self._listener()
            if listener is not None:
                listener.on_batch_restored(log.partition, log.store, position, len(records))

    def _begin(self) -> None:
        """Find the ends of the changelogs of new tasks."""
        if not self._waiting:
            return
        # All answers are there before anything follows from one: the next may not come.
        all_bounds = [self._bounds(task) for task, _ in self._waiting]
        waiting, listener = [], self._listener()
        for (task, committed), bounds in zip(self._waiting, all_bounds, strict=True):
            ends = _ends(task, committed, bounds)
            if ends is None:
                waiting.append((task, committed))
                continue
            if any(log.position > ends[log.partition] for log in task.logs):
                self._corrupted.append(task)
                continue
            for log in task.logs:
                log.end = ends[log.partition]
                if log.partition in bounds:
                    # What expired is not waited for.
                    log.position = max(log.position, bounds[log.partition].start)
                if log.position < log.end:
                    if listener is not None:
                        listener.on_restore_start(log.partition, log.store, log.position, log.end)
                    self._follow(task, log)
            if all(log.position >= log.end for log in task.logs):
                self._complete.append(task)
        self._waiting = waiting
        self._assign()

    def _bounds(self, task: HostedTask) -> dict[TopicPartition, Bounds]:
        asked = [log.partition for log in task.logs if not log.is_source]
        if not asked:
            return {}
        return self._admin.bounds(asked, transactional=self._exactly_once)

    def _follow(self, task: HostedTask, log: StoreLog) -> None:
        self._logs[log.partition] = log
        self._tasks[log.partition] = task

    def _finish(self) -> None:
        """Stop reading changelogs that are restored."""
        listener = self._listener()
        done = [
            log for log in self._logs.values() if log.end != FOLLOWED and log.position >= log.end
        ]
        for log in done:
            key = log.partition
            task = self._tasks[key]
            total = self._restored.pop(key, 0)
            if listener is not None:
                listener.on_restore_end(key, log.store, total)
            del self._logs[key]
            del self._tasks[key]
            if task not in self._tasks.values():
                self._complete.append(task)
        if done:
            self._assign()

    def _assign(self) -> None:
        """Read the changelogs that are being followed, each from where it is."""
        wanted = set(self._logs)
        if self._consumer is None:
            if not wanted:
                return
            self._consumer = Consumer(self._settings)
        before = self._consumer.assignment()
        if wanted == before:
            return
        if not wanted:
            self._consumer.unsubscribe()
            return
        self._consumer.assign(sorted(wanted))
        for key in sorted(wanted - before):
            self._consumer.seek(key, self._logs[key].position)

    def _last(self, log: StoreLog) -> int:
        """Where a changelog that is followed ends, as far as it is known."""
        lag = None if self._consumer is None else self._consumer.current_lag(log.partition)
        return log.position + (lag or 0)

    def close(self) -> None:
        for log in self._logs.values():
            self._suspend(log)
        self._logs.clear()
        self._tasks.clear()
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


def _ends(
    task: HostedTask, committed: Committed, bounds: Mapping[TopicPartition, Bounds]
) -> dict[TopicPartition, int] | None:
    """Where restoring ends; `None` while a transaction is open in one of the changelogs."""
    if any(each.stable_end < each.end for each in bounds.values()):
        return None
    ends = {key: each.end for key, each in bounds.items()}
    for log in task.logs:
        if log.is_source:
            found = committed.get(log.partition)
            ends[log.partition] = 0 if found is None else found.offset
    return ends
