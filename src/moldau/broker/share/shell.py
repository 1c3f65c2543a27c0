"""Runs one share partition: loads it, stores its changes, ends its locks, wakes waiting fetches.

Invariants: one write is in flight at a time, and what is decided in the meantime goes into the next
one as a whole, so many small acknowledgements cost few writes; every acknowledgement completes
exactly once, after its write; a partition that has ended always returns its error.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any, Final, Protocol

from moldau.broker.coordinator.share.interface import Persister
from moldau.broker.coordinator.share.machine.values import (
    UNINITIALIZED_START_OFFSET,
    SharePartitionKey,
)
from moldau.broker.replication.partition import Partition
from moldau.broker.share.machine.acquisition import AcquiredRecords, ShareSettings, Span, Wanted
from moldau.broker.share.machine.partition import AckBatch, SharePartition
from moldau.broker.share.machine.window import StateChange
from moldau.broker.share.offset_reset import initial_offset
from moldau.clock import Alarm, Clock
from moldau.invariant import present
from moldau.wire.errors import ApiError, ErrorCode

logger = logging.getLogger(__name__)

# After these the node no longer leads the share partition, or it does not exist.
_ENDING: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_STATE_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
# How the persister's errors are returned to clients; anything else is a server error.
_TOLD_AS: Final = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    # Of the reset strategy, not of the persister.
    ErrorCode.OFFSET_NOT_AVAILABLE: ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}


class Watcher(Protocol):
    """Waits for records of a share partition."""

    def on_partition_loaded(self) -> None: ...

    def on_partition_changed(self) -> None: ...


class ShellHost(Protocol):
    """What all share partitions of a node share."""

    clock: Clock
    persister: Persister

    def settings_of(self, group_id: str) -> ShareSettings: ...

    def offset_reset_of(self, group_id: str) -> str: ...

    def run_task(self, work: Coroutine[Any, Any, None]) -> None: ...

    def on_ended(self, shell: SharePartitionShell) -> None: ...


class SharePartitionShell:
    """See the module."""

    __slots__ = (
        "_alarm",
        "_alarm_at_ms",
        "_host",
        "_queue",
        "_writing",
        "error",
        "key",
        "leader_epoch",
        "machine",
        "partition",
        "watchers",
    )

    def __init__(self, host: ShellHost, key: SharePartitionKey, partition: Partition) -> None:
        self.key = key
        self.partition = partition
        self.machine: SharePartition | None = None
        """None until the stored state is here."""
        self.error: ApiError | None = None
        self.watchers: dict[Watcher, None] = {}
        self._host = host
        self.leader_epoch = partition.leader_epoch
        self._queue: list[tuple[StateChange, asyncio.Future[None] | None]] = []
        self._writing = False
        self._alarm: Alarm | None = None
        self._alarm_at_ms = 0
        host.run_task(self._load())

    @property
    def settings(self) -> ShareSettings:
        return self._host.settings_of(self.key.group_id)

    async def _load(self) -> None:
        host = self._host
        try:
            state = await host.persister.read_state(self.key, leader_epoch=self.leader_epoch)
            if state.start_offset == UNINITIALIZED_START_OFFSET:
                self.partition.check_online()
                strategy = host.offset_reset_of(self.key.group_id)
                start = initial_offset(self.partition, strategy, host.clock.now_ms())
                state = state._replace(start_offset=start)
        except Exception as error:
            self.end(self._client_error(error, "reading"))
            return
        if self.error is None:
            self.machine = SharePartition(state)
            for watcher in self._take_watchers():
                watcher.on_partition_loaded()

    # Requests of members.

    def acquire(
        self,
        machine: SharePartition,
        wanted: Wanted,
        fetch_offset: int,
        spans: Sequence[Span],
        aborted: Sequence[Span],
    ) -> list[AcquiredRecords]:
        acquired = machine.acquire(
            wanted, fetch_offset, spans, self.settings, self._host.clock.elapsed_ms(), aborted
        )
        self._arm(machine)
        return acquired

    def acknowledge(
        self, member_id: str, batches: Sequence[AckBatch]
    ) -> asyncio.Future[None] | None:
        """None if it is complete already, otherwise a future; raises ApiError."""
        machine = self._active()
        change = machine.acknowledge(
            member_id, batches, self.settings, self._host.clock.elapsed_ms()
        )
        self._arm(machine)
        return self._store(change)

    def release(self, member_id: str) -> asyncio.Future[None] | None:
        """Release what a member holds; returns as `acknowledge` does."""
        return self._store(self._active().release(member_id, self.settings))

    def _active(self) -> SharePartition:
        if self.error is not None:
            raise self.error
        if self.machine is None:
            raise ApiError(
                ErrorCode.LEADER_NOT_AVAILABLE, f"the share partition {self.key} is being loaded"
            )
        return self.machine

    # Storing.

    def _store(self, change: StateChange) -> asyncio.Future[None] | None:
        if not change:
            return None
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._enqueue(change, answer)
        return answer

    def _enqueue(self, change: StateChange, answer: asyncio.Future[None] | None) -> None:
        self._queue.append((change, answer))
        if not self._writing:
            self._writing = True
            self._host.run_task(self._write())

    async def _write(self) -> None:
        machine = present(self.machine, f"{self.key} has changed before it was loaded")
        while self._queue:
            queue, self._queue = self._queue, []
            try:
                self._conclude(machine, queue, self.error or await self._write_once(machine, queue))
            except BaseException as failure:
                # The node stops, or there is a bug: the next leader reads what was stored.
                stopped = isinstance(failure, asyncio.CancelledError)
                error = ApiError(
                    ErrorCode.NOT_LEADER_OR_FOLLOWER if stopped else ErrorCode.UNKNOWN_SERVER_ERROR
                )
                for _, answer in (*queue, *self._queue):
                    _settle(answer, error)
                self._queue.clear()
                self.end(error)
                raise
        self._writing = False

    def _conclude(
        self,
        machine: SharePartition,
        queue: Sequence[tuple[StateChange, asyncio.Future[None] | None]],
        error: ApiError | None,
    ) -> None:
        """All that was written together has the same outcome."""
        now_ms = self._host.clock.elapsed_ms()
        worth_a_look = False
        for change, answer in queue:
            if machine.complete(change, now_ms, written=error is None):
                worth_a_look = True
            _settle(answer, error)
        if error is not None:
            self._arm(machine)
            if error.code in _ENDING:
                self.end(error)
        if worth_a_look:
            self._tell_watchers()

    async def _write_once(
        self,
        machine: SharePartition,
        queue: Sequence[tuple[StateChange, asyncio.Future[None] | None]],
    ) -> ApiError | None:
        try:
            await self._host.persister.write_state(
                self.key,
                state_epoch=machine.state_epoch,
                leader_epoch=self.leader_epoch,
                start_offset=machine.start_offset,
                delivery_complete_count=machine.delivery_complete_count,
                batches=[batch for change, _ in queue for batch in change.batches],
            )
        except Exception as error:
            return self._client_error(error, "writing")
        return None

    def _client_error(self, error: Exception, doing: str) -> ApiError:
        if not isinstance(error, ApiError):
            logger.error("%s the state of %s failed", doing, self.key, exc_info=error)
            return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        logger.info("%s the state of %s: %s", doing, self.key, error)
        code = _TOLD_AS.get(error.code, ErrorCode.UNKNOWN_SERVER_ERROR)
        return ApiError(code, error.message)

    # Locks.

    def _arm(self, machine: SharePartition) -> None:
        deadline_ms = machine.deadline_ms
        if deadline_ms is None or self.error is not None:
            return
        if self._alarm is not None:
            if self._alarm_at_ms <= deadline_ms:
                return
            self._alarm.cancel()
        self._alarm_at_ms = deadline_ms
        delay_ms = max(1, deadline_ms - self._host.clock.elapsed_ms())
        self._alarm = self._host.clock.call_later(delay_ms, self._on_alarm)

    def _on_alarm(self) -> None:
        self._alarm = None
        machine = self.machine
        if machine is None or self.error is not None:
            return
        settings = self.settings
        expired = machine.expire(settings, self._host.clock.elapsed_ms())
        self._arm(machine)
        if expired:
            change = StateChange(settings.delivery_count_limit)
            change.batches = expired
            self._enqueue(change, None)
            self._tell_watchers()

    # The end.

    def end(self, error: ApiError) -> None:
        """Serve no longer: another node leads, the topic is gone, or its state cannot be read."""
        if self.error is not None:
            return
        self.error = error
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._host.on_ended(self)
        self._tell_watchers()

    def _tell_watchers(self) -> None:
        for watcher in self._take_watchers():
            watcher.on_partition_changed()

    def _take_watchers(self) -> dict[Watcher, None]:
        watchers, self.watchers = self.watchers, {}
        return watchers


def _settle(answer: asyncio.Future[None] | None, error: ApiError | None) -> None:
    if answer is None or answer.done():
        return
    if error is None:
        answer.set_result(None)
    else:
        answer.set_exception(error)
        answer.exception()  # A member that has left does not wait for the outcome.
