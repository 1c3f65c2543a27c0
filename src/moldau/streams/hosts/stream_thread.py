"""A stream thread: one member of the group, and the loop that runs its tasks.

The loop polls, restores, processes what was fetched, fires punctuations and commits. When a commit
is refused because the group has moved on, everything since the last commit is given up and the
thread joins again.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from uuid import UUID

from moldau.client import Consumer
from moldau.client.consumer import GroupMembershipOperation
from moldau.client.environment import ENVIRONMENT
from moldau.client.errors import KafkaError, KafkaTimeoutError, WakeupError
from moldau.streams.errors import (
    InvalidStateStoreError,
    StreamsError,
    TaskMigratedError,
)
from moldau.streams.hosts.administration import Administration
from moldau.streams.hosts.deliveries import TaskCorruptedError
from moldau.streams.hosts.restoring import RestoreListener, Restorer, StandbyUpdateListener
from moldau.streams.hosts.settings import StreamsSettings
from moldau.streams.hosts.streams_group import StreamsGroupMember
from moldau.streams.hosts.task_factory import TaskFactory
from moldau.streams.hosts.task_manager import TaskManager
from moldau.streams.hosts.thread_calls import ThreadCalls
from moldau.streams.hosts.thread_metrics import ThreadMetrics
from moldau.streams.hosts.writing import MIGRATED, Writer
from moldau.streams.machine.commit_schedule import CommitSchedule
from moldau.streams.machine.lifecycle import ThreadState, UncaughtExceptionResponse
from moldau.streams.machine.patience import Patience
from moldau.streams.machine.placement import MemberState, Placed, Rules
from moldau.streams.machine.processor_metrics import ProcessorMetrics
from moldau.streams.machine.subtopologies import Plan

if TYPE_CHECKING:
    from moldau.streams.hosts.assignor import TaskAssignor
    from moldau.streams.hosts.thread_metadata import ThreadMetadata

_ANNOUNCE_MS = 10_000

T = TypeVar("T")

_log = logging.getLogger(__name__)


class ThreadHost(Protocol):
    """The application, as a thread sees it."""

    settings: StreamsSettings
    plan: Plan

    @property
    def admin(self) -> Administration: ...

    @property
    def process_id(self) -> str: ...

    @property
    def is_identity_lasting(self) -> bool: ...

    @property
    def shutdown_requested(self) -> bool: ...

    @property
    def is_paused(self) -> bool: ...

    @property
    def restore_listener(self) -> RestoreListener | None: ...

    @property
    def standby_listener(self) -> StandbyUpdateListener | None: ...

    def factory(self, writer: Writer, metrics: Callable[[], ProcessorMetrics]) -> TaskFactory: ...

    def thread_metrics(self, name: str, state: Callable[[], str]) -> ThreadMetrics: ...

    def on_thread_state(self, thread: StreamThread, state: ThreadState) -> None: ...

    def on_thread_error(
        self, thread: StreamThread, error: BaseException
    ) -> UncaughtExceptionResponse: ...

    def replace(self, thread: StreamThread) -> None: ...

    def on_placed(self, thread: StreamThread, placed: Placed) -> None: ...

    def refresh_topics(self, *, certain: bool) -> None: ...


class StreamThread:
    """See the module. Others call `start`, `stop`, `join` and read `tasks`."""

    def __init__(self, host: ThreadHost, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.state = ThreadState.CREATED
        self._host = host
        self._settings = settings = host.settings
        self._stopping = threading.Event()
        self._leave = True
        self._thread = threading.Thread(target=self.run, name=name, daemon=True)
        self._clock = ENVIRONMENT.get().clock()
        self.metrics = host.thread_metrics(name, lambda: self.state.name)
        self._writer = Writer(
            self._producer_settings,
            exactly_once=settings.exactly_once,
            handlers=settings.handlers,
            task_timeout_ms=settings.task_timeout_ms,
            clock=self._clock,
        )
        self._restorer = Restorer(
            settings.consumer(
                "restore", client_id=f"{name}-restore-consumer", auto_offset_reset="earliest"
            ),
            host.admin,
            exactly_once=settings.exactly_once,
            listener=lambda: host.restore_listener,
            standby_listener=lambda: host.standby_listener,
        )
        self.tasks = TaskManager(
            host.plan,
            host.factory(self._writer, lambda: self.metrics.own),
            self._writer,
            self._restorer,
            self.metrics,
            enter=self._enter,
            clock=self._clock,
        )
        self._placement = self._make_placement()
        self._placed = self._placement.placed
        self._consumer: Consumer[Any, Any] | None = None
        self._commits = CommitSchedule(settings.commit_interval_ms, 0)
        self._purge_due_ms = 0
        self._probe_due_ms: int | None = None
        self._patience = Patience(settings.task_timeout_ms)
        self._calls = ThreadCalls()

    # From other threads.

    def start(self) -> None:
        self._thread.start()

    def stop(self, *, leave: bool = True) -> None:
        """Ask the thread to commit, close its tasks and end."""
        self._leave = leave
        self._stopping.set()
        consumer = self._consumer
        if consumer is not None:
            consumer.wakeup()

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end; whether it came."""
        if self.is_current or self._thread.ident is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def call(self, work: Callable[[], T], timeout: float) -> T:
        """Run something between two turns of the loop; raises what it raises."""
        if self.is_current:
            return work()
        future = self._calls.add(work)
        consumer = self._consumer
        if consumer is None or self.state is ThreadState.DEAD:
            raise InvalidStateStoreError(f"{self.name} is not running")
        consumer.wakeup()
        try:
            return future.result(timeout)
        except TimeoutError:
            raise InvalidStateStoreError(f"{self.name} did not answer within {timeout} s") from None

    @property
    def is_current(self) -> bool:
        return threading.current_thread() is self._thread

    def metadata(self, admin_client_id: str) -> ThreadMetadata:
        """The thread and its tasks, as they are now."""
        from moldau.streams.hosts.thread_metadata import ThreadMetadata, described

        # Threads wait by a clock that knows no date.
        clock_ms = self._clock.now_ms() - self._clock.elapsed_ms()
        return ThreadMetadata(
            thread_name=self.name,
            thread_state=self.state.name,
            active_tasks=described(self.tasks.active.values(), clock_ms),
            standby_tasks=described(self.tasks.standbys.values(), clock_ms),
            main_consumer_client_id=f"{self.name}-consumer",
            restore_consumer_client_id=f"{self.name}-restore-consumer",
            producer_client_id=f"{self.name}-producer",
            admin_client_id=admin_client_id,
        )

    def client_instance_ids(self, timeout: float) -> tuple[UUID, UUID]:
        """The ids of the thread's consumer and producer."""
        consumer = self.call(lambda: self.consumer.client_instance_id(timeout), timeout)
        return consumer, self._writer.producer.client_instance_id(timeout)

    # Its clients.

    @property
    def _identity(self) -> str:
        return f"{self._host.process_id}-{self.number}"

    def _producer_settings(self) -> dict[str, Any]:
        settings = self._settings
        identity = f"{settings.application_id}-{self._identity}" if settings.exactly_once else None
        return settings.producer(f"{self.name}-producer", identity)

    def _make_placement(self) -> TaskAssignor | StreamsGroupMember:
        """Where the thread learns of its tasks: from the group's leader, or from the broker."""
        host, settings = self._host, self._settings

        def on_placed(placed: Placed) -> None:
            host.on_placed(self, placed)

        if settings.streams_group:
            return StreamsGroupMember(
                host.plan, settings, self.number, state=self._member_state, on_placed=on_placed
            )
        from moldau.streams.hosts.assignor import TaskAssignor

        return TaskAssignor(
            host.plan,
            rules=Rules(
                standby_replicas=settings.num_standby_replicas,
                max_warmup_replicas=settings.max_warmup_replicas,
                acceptable_recovery_lag=settings.acceptable_recovery_lag,
            ),
            state=self._member_state,
            on_placed=on_placed,
        )

    def _consumer_settings(self) -> dict[str, Any]:
        settings = self._settings
        given = settings.consumer("main", client_id=f"{self.name}-consumer")
        given.setdefault("auto.offset.reset", "earliest")
        given["group.id"] = settings.application_id
        given["partition.assignment.strategy"] = [self._placement.strategy]
        instance_id = given.get("group.instance.id")
        if settings.streams_group:
            # Members of streams groups are not static; they come back by their own ids.
            given.pop("group.instance.id", None)
        elif instance_id is not None:
            given["group.instance.id"] = f"{instance_id}-{self.number}"
        elif self._host.is_identity_lasting:
            # A killed instance that comes back takes its tasks over without a rebalance.
            given["group.instance.id"] = self._identity
        return given

    def _member_state(self) -> MemberState:
        return MemberState(
            process_id=self._host.process_id,
            endpoint=self._settings.application_server,
            standby=frozenset(self.tasks.standbys),
            offsets=self.tasks.changelog_offsets(),
            shutdown=self._host.shutdown_requested,
        )

    @property
    def consumer(self) -> Consumer[Any, Any]:
        if self._consumer is None:
            raise StreamsError(f"{self.name} is closed")
        return self._consumer

    def _open(self) -> None:
        self._writer.open()
        self._consumer = Consumer(self._consumer_settings())
        self.tasks.use(self._consumer)
        self._subscribe()
        now_ms = self._clock.elapsed_ms()
        self._commits = CommitSchedule(
            self._settings.commit_interval_ms, now_ms, commit_shows=self._settings.exactly_once
        )
        self._purge_due_ms = now_ms + self._settings.repartition_purge_interval_ms

    def _subscribe(self) -> None:
        plan = self._host.plan
        names = {topic for each in plan.subtopologies for topic in each.inputs(())}
        patterns = [pattern for each in plan.subtopologies for pattern in each.patterns]
        if not patterns:
            self.consumer.subscribe(sorted(names), self.tasks)
            return
        texts = [re.escape(name) for name in sorted(names)] + [each.pattern for each in patterns]
        pattern = re.compile("|".join(f"(?:{text})" for text in texts))
        self.consumer.subscribe(pattern, self.tasks)

    # The loop.

    def _enter(self, state: ThreadState) -> None:
        if state is not self.state:
            self.state = state
            self._host.on_thread_state(self, state)

    def run(self) -> None:
        """The whole life of the thread; `start` lets a thread of its own do it."""
        response = None
        try:
            self._enter(ThreadState.STARTING)
            self._open()
            while not self._stopping.is_set():
                self._turn()
        except Exception as error:
            _log.exception("%s: stopped by an error", self.name)
            self.tasks.gives_up = True
            response = self._host.on_thread_error(self, error)
            if response is UncaughtExceptionResponse.SHUTDOWN_APPLICATION:
                self._announce_shutdown()
        finally:
            self._close()
            self._enter(ThreadState.DEAD)
            self._calls.refuse(InvalidStateStoreError(f"{self.name} has ended"))
        if response is UncaughtExceptionResponse.REPLACE_THREAD:
            self._host.replace(self)

    def _turn(self) -> None:
        tasks = self.tasks
        try:
            self._poll()
            self._calls.run()
            self._follow_placement()
            tasks.is_paused = self._host.is_paused
            if self._restored() and self.state is ThreadState.PARTITIONS_ASSIGNED:
                self._enter(ThreadState.RUNNING)
            tasks.process(self._clock.elapsed_ms())
            tasks.punctuate(self._clock.now_ms())
            now_ms = self._clock.elapsed_ms()
            requested, has_work = tasks.commit_requested, tasks.must_commit
            busy = tasks.is_busy(now_ms)
            if self._commits.is_due(now_ms, has_work=has_work, requested=requested, busy=busy):
                if tasks.try_commit():
                    self._commits.committed(now_ms, self._clock.elapsed_ms())
                else:
                    self._commits.put_off(now_ms)
            if now_ms >= self._purge_due_ms:
                tasks.purge(self._host.admin)
                self._purge_due_ms = now_ms + self._settings.repartition_purge_interval_ms
            if self._probe_due_ms is not None and now_ms >= self._probe_due_ms:
                self._probe_due_ms = None
                self.consumer.enforce_rebalance("warm-up copies may have caught up")
            self.metrics.turned()
        except TaskMigratedError as error:
            self._join_again(error)
        except TaskCorruptedError as error:
            _log.warning("%s: tasks start over: %s", self.name, error)
            self.tasks.start_over(error.tasks, error.partitions)
        except WakeupError:
            # It came while something else than a poll waited, which the next turn repeats.
            return

    def _restored(self) -> bool:
        """Go on restoring; a cluster that does not answer is asked again, for task.timeout.ms."""
        try:
            self.tasks.restore()
        except KafkaTimeoutError as error:
            if self._patience.is_over(self._clock.elapsed_ms()):
                raise
            _log.warning("%s: tasks could not be prepared, which is repeated: %s", self.name, error)
            return False
        self._patience.end()
        return self.tasks.start_restored()

    def _poll(self) -> None:
        started = time.monotonic_ns()
        try:
            records = self.consumer.poll(self._wait_s())
        except WakeupError:
            return
        except MIGRATED as error:
            raise TaskMigratedError(f"the group has moved on: {error}") from error
        self.tasks.raise_failure()
        count = self.tasks.add(records)
        self.metrics.polled(time.monotonic_ns() - started, count)

    def _wait_s(self) -> float:
        """How long a poll may wait: not at all while there is something to do."""
        now_ms = self._clock.elapsed_ms()
        if self.tasks.is_busy(now_ms):
            return 0.0
        limit_ms = self._settings.poll_ms
        if self.tasks.must_commit:
            limit_ms = min(limit_ms, self._commits.wait_ms(now_ms))
        return limit_ms / 1000

    def _follow_placement(self) -> None:
        placed = self._placement.placed
        if placed is not self._placed:
            self._placed = placed
            self._host.refresh_topics(certain=not placed.missing)
            if placed.again is not None:
                self.consumer.enforce_rebalance(placed.again)
            self.tasks.update_standbys(placed)
            interval_ms = self._settings.probing_rebalance_interval_ms
            self._probe_due_ms = self._clock.elapsed_ms() + interval_ms if placed.probe else None

    def _join_again(self, error: TaskMigratedError) -> None:
        """Abort, forget all tasks, and join again."""
        _log.warning("%s: joins again: %s", self.name, error)
        self.tasks.gives_up = True
        try:
            self.tasks.give_up()
            self.consumer.unsubscribe()
        finally:
            self.tasks.gives_up = False
        self._subscribe()

    def _announce_shutdown(self) -> None:
        """Join once more, so that the leader passes it on to all instances."""
        deadline_ms = self._clock.elapsed_ms() + _ANNOUNCE_MS
        try:
            self.consumer.enforce_rebalance("shutdown of the application")
            while not self._placement.placed.shutdown and self._clock.elapsed_ms() < deadline_ms:
                self.consumer.poll(0.1)
        except (KafkaError, StreamsError) as error:
            _log.warning("%s: the shutdown could not be announced: %s", self.name, error)

    # The end.

    def _close(self) -> None:
        self._enter(ThreadState.PENDING_SHUTDOWN)
        steps: list[Callable[[], Any]] = []
        if not self.tasks.gives_up:
            steps.append(lambda: self.tasks.commit(closing=True))
        steps += [self.tasks.close, self._close_consumer, self._restorer.close, self._writer.close]
        for step in steps:
            try:
                step()
            except Exception:
                _log.warning("%s: while closing", self.name, exc_info=True)
                self.tasks.gives_up = True

    def _close_consumer(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            leave, remain = (
                GroupMembershipOperation.LEAVE_GROUP,
                GroupMembershipOperation.REMAIN_IN_GROUP,
            )
            consumer.close(operation=leave if self._leave else remain)
