"""The tasks of a stream thread: how they come and go, are restored, processed and committed.

Called by the thread's loop, and inside its `poll` when the group rebalances: a revoked task is
committed before it is closed; a new one is paused until its stores are restored.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any

from moldau.client import Consumer
from moldau.client.admin.offset_values import RecordsToDelete
from moldau.client.consumer import ConsumerRebalanceListener, ConsumerRecords
from moldau.client.topics import TopicPartition
from moldau.clock import Clock
from moldau.streams.errors import CommitPutOffError, StreamsError
from moldau.streams.hosts.administration import Administration
from moldau.streams.hosts.first_offsets import seek_all
from moldau.streams.hosts.hosted_task import HostedTask, Stage, waiting
from moldau.streams.hosts.restoring import Restorer, SuspendReason
from moldau.streams.hosts.task_factory import TaskFactory
from moldau.streams.hosts.thread_metrics import ThreadMetrics
from moldau.streams.hosts.writing import Writer
from moldau.streams.machine.lifecycle import ThreadState
from moldau.streams.machine.placement import Placed
from moldau.streams.machine.subtopologies import Plan, TaskId

#: How long a task may process before others get their turn.
_TURN_MS = 20
_TURN_RECORDS_MAX = 1000
_RESTORE_POLL_S = 0.05

_log = logging.getLogger(__name__)


class TaskManager(ConsumerRebalanceListener):
    """See the module. Of one thread; others only read `active` and `standbys`."""

    def __init__(
        self,
        plan: Plan,
        factory: TaskFactory,
        writer: Writer,
        restorer: Restorer,
        metrics: ThreadMetrics,
        *,
        enter: Callable[[ThreadState], None],
        clock: Clock,
    ) -> None:
        self._plan = plan
        self._factory = factory
        self._writer = writer
        self._restorer = restorer
        self._metrics = metrics
        self._enter = enter
        self._clock = clock
        self.active: dict[TaskId, HostedTask] = {}
        self.standbys: dict[TaskId, HostedTask] = {}
        self._new: list[HostedTask] = []
        self._consumer: Consumer[Any, Any] | None = None
        self._failure: BaseException | None = None
        #: What is not committed is given up: revoked tasks are not committed.
        self.gives_up = False
        self._consumed: dict[TopicPartition, int] = {}
        self._turn_records = 100
        #: Nothing is processed; the thread remains a member of its group.
        self.is_paused = False
        metrics.watch(self)

    @property
    def consumer(self) -> Consumer[Any, Any]:
        if self._consumer is None:
            raise StreamsError("the thread has no consumer")
        return self._consumer

    def use(self, consumer: Consumer[Any, Any]) -> None:
        """The consumer whose partitions the tasks read."""
        self._consumer = consumer

    # Records.

    def add(self, records: ConsumerRecords[Any, Any]) -> int:
        """Give fetched records to their tasks; how many there are."""
        count = 0
        next_offsets = records.next_offsets()
        for key, found in records.items():
            task_id = self._plan.task_of(key.topic, key.partition)
            task = None if task_id is None else self.active.get(task_id)
            if task is not None:
                count += len(found)
                offset = next_offsets.get(key)
                next_offset = None if offset is None else offset.offset
                if task.add(key, found, next_offset, self._lag(key)):
                    self.consumer.pause([key])
        return count

    def _lag(self, key: TopicPartition) -> int | None:
        return self.consumer.current_lag(key)

    def _running(self) -> list[HostedTask]:
        return [task for task in self.active.values() if task.stage is Stage.RUNNING]

    def is_busy(self, now_ms: int) -> bool:
        """Whether there is something to do without waiting."""
        if self._new or self._restorer.has_active:
            return True
        return not self.is_paused and any(
            len(task.inputs) and task.inputs.ready(now_ms, self._lag) for task in self._running()
        )

    @property
    def must_commit(self) -> bool:
        """Whether something was processed since the last commit."""
        return self._writer.has_written or any(task.commit_needed for task in self._running())

    @property
    def restoring_count(self) -> int:
        """How many active tasks wait for their stores."""
        return sum(task.is_restoring for task in list(self.active.values()))

    @property
    def commit_requested(self) -> bool:
        """Whether a processor asked for a commit."""
        return any(task.task.commit_requested for task in self.active.values())

    def process(self, now_ms: int) -> None:
        """One turn of every task."""
        if self.is_paused:
            return
        started = began = time.monotonic_ns()
        count, spent = 0, {}
        for task in self._running():
            began_ms = self._clock.elapsed_ms()
            done = task.process(now_ms, self._turn_records, self._lag)
            if done:
                count += done
                self._adapt(done, self._clock.elapsed_ms() - began_ms)
                before, began = began, time.monotonic_ns()
                spent[task.id] = began - before
                self._metrics.task_processed(task, done, began - before, self._clock.now_ms())
                to_resume = task.inputs.to_resume()
                if to_resume:
                    self.consumer.resume([TopicPartition(*key) for key in to_resume])
        if count:
            self._metrics.processed(time.monotonic_ns() - started, count, spent)
            if not waiting(self.active.values()):
                self._writer.push()

    def _adapt(self, count: int, spent_ms: int) -> None:
        """Choose how many records make a turn, by how long they take."""
        if count == self._turn_records and spent_ms < _TURN_MS / 2:
            self._turn_records = min(_TURN_RECORDS_MAX, self._turn_records * 2)
        elif spent_ms > _TURN_MS:
            self._turn_records = max(1, self._turn_records // 2)

    def punctuate(self, wall_clock_ms: int) -> None:
        """Fire what is due by the wall clock."""
        if self.is_paused:
            return
        for task in self._running():
            started = time.monotonic_ns()
            if task.task.punctuate_wall_clock(wall_clock_ms):
                task.commit_needed = True
                self._metrics.punctuated(task, time.monotonic_ns() - started)

    # Commits.

    def commit(self, *, closing: bool = False) -> None:
        """Commit all tasks that have something to commit, in one transaction."""
        changed = [
            task for task in self._running() if task.commit_needed or task.task.commit_requested
        ]
        if changed or self._writer.has_written:
            started = time.monotonic_ns()
            offsets = {}
            for task in changed:
                offsets.update(task.prepare_commit())
            ends = self._writer.commit(offsets, self.consumer, closing=closing)
            for task in changed:
                task.on_committed(ends)
                task.committed.update(
                    (key, offsets[key].offset) for key in task.partitions if key in offsets
                )
            self._consumed.update((key, each.offset) for key, each in offsets.items())
            self._metrics.committed(time.monotonic_ns() - started, changed)
        if closing:
            started = time.monotonic_ns()
            for task in [*self._running(), *self.standbys.values()]:
                task.checkpoint()
            self._metrics.checkpointed(time.monotonic_ns() - started)

    def try_commit(self) -> bool:
        """Commit, unless the group rebalances: a poll completes that. Leaving the group for it
        would make all other members rebalance once more."""
        try:
            self.commit()
        except CommitPutOffError as error:
            _log.debug("%s", error)
            return False
        return True

    def purge(self, admin: Administration) -> None:
        """Delete what was read of repartition topics: nobody reads it again."""
        internal = self._plan.repartition_counts
        old = {
            key: RecordsToDelete.before(offset)
            for key, offset in self._consumed.items()
            if key.topic in internal
        }
        self._consumed.clear()
        if old:
            for key, error in admin.delete_records(old).errors.items():
                _log.debug("%s was not purged: %s", key, error)

    # Rebalances: called inside poll.

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self._guarded(lambda: self._assigned(partitions))

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self._guarded(lambda: self._revoked(frozenset(partitions)))

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        self._guarded(self.give_up)

    def _guarded(self, work: Callable[[], None]) -> None:
        """An error is raised after the poll, as what it is."""
        try:
            work()
        except Exception as error:
            if self._failure is None:
                self._failure = error

    def raise_failure(self) -> None:
        """What went wrong during a rebalance."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _assigned(self, partitions: list[TopicPartition]) -> None:
        self._enter(ThreadState.PARTITIONS_ASSIGNED)
        grouped: dict[TaskId, set[TopicPartition]] = {}
        for key in partitions:
            task_id = self._plan.task_of(key.topic, key.partition)
            if task_id is None:
                raise StreamsError(f"no task of the topology reads {key}")
            grouped.setdefault(task_id, set()).add(key)
        if partitions:
            self.consumer.pause(partitions)
        for task_id, keys in sorted(grouped.items()):
            before = self.active.get(task_id)
            if before is not None:
                # A topic that a pattern has found joins the partitions of a task.
                keys |= before.partitions
                self.commit(closing=True)
                self._close(before)
                self.consumer.pause(sorted(before.partitions))
            self._new.append(self._made(task_id, frozenset(keys)))
        if grouped and not self.gives_up:
            # They get no records before their stores are restored: the poll need not wait for any.
            self.consumer.wakeup()

    def _made(self, task_id: TaskId, keys: frozenset[TopicPartition]) -> HostedTask:
        standby = self.standbys.pop(task_id, None)
        if standby is None:
            task = self._factory.make(task_id, keys)
        else:
            self._restorer.remove(standby, SuspendReason.PROMOTED)
            task = self._factory.promoted(standby, keys)
        self.active[task_id] = task
        self._metrics.task_created(task)
        return task

    def _revoked(self, partitions: frozenset[TopicPartition]) -> None:
        if self.gives_up:
            self.give_up()
        elif partitions:
            self._enter(ThreadState.PARTITIONS_REVOKED)
            self.commit(closing=True)
            for task in list(self.active.values()):
                if task.partitions & partitions:
                    self._close(task)

    def give_up(self) -> None:
        """Other members have the tasks: what was not committed never happened."""
        self._enter(ThreadState.PARTITIONS_REVOKED)
        self._writer.abort()
        for task in list(self.active.values()):
            self._close(task)
        self._failure = None

    def _close(self, task: HostedTask) -> None:
        self._restorer.remove(task)
        del self.active[task.id]
        if task in self._new:
            self._new.remove(task)
        task.close()
        self._metrics.task_closed(task)

    # Restoring.

    def restore(self) -> None:
        """Go on restoring. A call that raises KafkaTimeoutError can be repeated."""
        if self._new:
            self._begin_restoring()
        if not self._restorer.is_idle:
            has_active = self._restorer.has_active
            waits = has_active and not waiting(self.active.values())
            started, before = time.monotonic_ns(), self._restorer.restored_total
            self._restorer.poll(_RESTORE_POLL_S if waits else 0.0)
            records = self._restorer.restored_total - before
            self._metrics.restored(time.monotonic_ns() - started, records, active=has_active)

    def start_restored(self) -> bool:
        """Start the tasks that have their stores now; whether all active ones do."""
        for task in self._restorer.take_complete():
            task.start(self._clock.now_ms())
            self.consumer.resume(sorted(task.partitions))
        for task in self._restorer.take_corrupted():
            _log.warning("task %s: its local state is ahead of a changelog: deleted", task.id)
            self._make_again(task, wipe=True)
        return not (self._new or self._restorer.has_active)

    def start_over(
        self, task_ids: frozenset[TaskId], partitions: frozenset[TopicPartition]
    ) -> None:
        """Let these tasks go back to their last commit, and those that write to these partitions;
        where all share a transaction, all tasks."""
        tasks = self.active.values()
        affected = [each for each in tasks if each.id in task_ids or each.writes_to(partitions)]
        if self._writer.shares_commits or not affected:
            affected = list(tasks)
            self._writer.abort()
        for task in affected:
            self._writer.forget(log.partition for log in task.logs)
            self.consumer.pause(sorted(task.partitions))
            self._make_again(task)

    def _make_again(self, task: HostedTask, *, wipe: bool = False) -> None:
        """Close a task and restore it, from the beginning of its changelogs if it is wiped."""
        self._close(task)
        if wipe:
            self._factory.wipe(task.id)
        self._new.append(self._made(task.id, task.partitions))

    def _begin_restoring(self) -> None:
        """Read the offsets first: by then the changelogs have all that belongs to them."""
        new = self._new
        committed = self.consumer.committed(sorted(key for task in new for key in task.partitions))
        seek_all(self.consumer, committed, self._factory.offset_reset, self._clock.now_ms())
        # Until here a cluster that does not answer stops it, and the next turn tries again.
        self._new = []
        for task in new:
            task.resume_from(committed)
            self._restorer.add_active(task, committed)

    def update_standbys(self, placed: Placed) -> None:
        """Follow the changelogs of the tasks that this member keeps copies of."""
        for task_id in sorted(set(self.standbys) - placed.standby):
            standby = self.standbys.pop(task_id)
            self._restorer.remove(standby)
            standby.close()
        for task_id in sorted(placed.standby - set(self.standbys) - set(self.active)):
            standby = self.standbys[task_id] = self._factory.make(task_id, frozenset())
            self._restorer.add_standby(standby)

    def changelog_offsets(self) -> dict[TaskId, int]:
        """How far this member has the changelogs of its tasks, for who places them."""
        tasks = (*self.standbys.values(), *self.active.values())
        return {task.id: task.changelog_offset for task in tasks if task.logs}

    def close(self) -> None:
        """Close all tasks; what is not committed is given up."""
        tasks: Iterable[HostedTask] = [*self.active.values(), *self.standbys.values()]
        self.active.clear()
        self.standbys.clear()
        if self.gives_up:
            self._writer.abort()
        for task in tasks:
            task.close()
