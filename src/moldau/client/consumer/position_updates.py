"""Finds the positions of partitions that have none to fetch from.

Decided here: who is asked for it, in this order: the group for a committed offset, the leader for
the offset that the reset strategy means, a new leader whether its log is the same up to the
position. Invariants: one question of a kind at a time; an answer counts only if the
partition still waits for it; an error that does not pass is kept until `poll` raises it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from moldau.client.cluster import ClusterClient
from moldau.client.consumer.commits import GroupOffsets
from moldau.client.consumer.list_offsets import OffsetFinder
from moldau.client.consumer.machine.positions import FetchState, Position, PositionState, ResetKind
from moldau.client.consumer.machine.subscription import SubscriptionState
from moldau.client.deadline import Deadline
from moldau.client.errors import (
    BrokerNotAvailableError,
    KafkaError,
    NoOffsetForPartitionError,
    UnsupportedVersionError,
)
from moldau.client.topics import TopicPartition

__all__ = ["PositionUpdater"]

_log = logging.getLogger(__name__)


class PositionUpdater:
    """See the module. `kick` is called from `poll`; `on_change` is called after every step."""

    def __init__(
        self,
        cluster: ClusterClient,
        subscription: SubscriptionState,
        finder: OffsetFinder,
        group_offsets: GroupOffsets | None,
        on_change: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._subscription = subscription
        self._finder = finder
        self._group_offsets = group_offsets
        self._on_change = on_change
        self._tasks: dict[FetchState, asyncio.Task[None]] = {}
        self.errors: list[KafkaError] = []

    def kick(self) -> None:
        """Begin what can be done for partitions that wait."""
        if not self._subscription.unready or self.errors:
            return
        now_ms = self._cluster.clock.elapsed_ms()
        for kind, work in (
            (FetchState.INITIALIZING, self._initialize),
            (FetchState.AWAIT_RESET, self._reset),
            (FetchState.AWAIT_VALIDATION, self._validate),
        ):
            if kind in self._tasks:
                continue
            waiting = self._subscription.waiting(kind, now_ms)
            if kind is FetchState.AWAIT_RESET:
                waiting = self._with_leader(waiting)
            if waiting:
                self._start(kind, work(waiting))

    def _with_leader(
        self, waiting: dict[TopicPartition, PositionState]
    ) -> dict[TopicPartition, PositionState]:
        """Those whose leader can be asked; newer metadata is asked for the others."""
        leader = self._cluster.metadata.leader
        found = {key: state for key, state in waiting.items() if leader(key) is not None}
        if len(found) < len(waiting):
            self._cluster.request_refresh()
        return found

    def _start(self, kind: FetchState, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(self._guarded(work))
        self._tasks[kind] = task
        task.add_done_callback(lambda done: self._on_done(kind, done))

    def _on_done(self, kind: FetchState, task: asyncio.Task[None]) -> None:
        self._tasks.pop(kind, None)
        self._on_change()

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except KafkaError as error:
            self.errors.append(error)
        except Exception as error:
            _log.exception("Finding positions failed")
            self.errors.append(KafkaError(f"finding positions failed: {error!r}"))

    def _delay(self, states: dict[TopicPartition, PositionState]) -> None:
        """Do not ask again at once."""
        until_ms = self._cluster.clock.elapsed_ms() + self._cluster.settings.retry_backoff_ms
        with self._subscription.lock:
            for state in states.values():
                state.retry_at_ms = until_ms
        self._cluster.request_refresh()

    def _position(self, key: TopicPartition, offset: int, epoch: int | None) -> Position:
        view = self._cluster.metadata.partition(key)
        if view is None:
            return Position(offset, epoch)
        return Position(offset, epoch, view.leader_id, view.leader_epoch)

    async def _initialize(self, waiting: dict[TopicPartition, PositionState]) -> None:
        if self._group_offsets is not None:
            deadline = Deadline(self._cluster.clock, self._cluster.settings.request_timeout_ms)
            try:
                committed = await self._group_offsets.committed(list(waiting), deadline)
            except KafkaError as error:
                if not error.retriable:
                    raise
                _log.info("Reading committed offsets failed: %s", error)
                self._delay(waiting)
                return
            for key, found in committed.items():
                if found is not None:
                    position = self._position(key, found.offset, found.leader_epoch)
                    self._subscription.seek_if_initializing(key, position)
        helpless = self._subscription.reset_initializing(waiting)
        if helpless:
            raise NoOffsetForPartitionError(helpless)

    async def _reset(self, waiting: dict[TopicPartition, PositionState]) -> None:
        strategies = {
            key: state.reset_strategy
            for key, state in waiting.items()
            if state.reset_strategy is not None
        }
        now_ms = self._cluster.clock.now_ms()
        found, error = await self._finder.find_once(
            {key: strategy.timestamp(now_ms) for key, strategy in strategies.items()}
        )
        # No record is as young as that: the end of the log is meant.
        late = {
            key: -1
            for key, answer in found.items()
            if answer is None and strategies[key].kind is ResetKind.BY_DURATION
        }
        if late:
            ends, late_error = await self._finder.find_once(late)
            found.update(ends)
            error = error or late_error
        for key, answer in found.items():
            if answer is not None:
                # The leader has just said that it is there: without an epoch nothing is validated.
                position = self._position(key, answer.offset, None)
                self._subscription.complete_reset(key, strategies[key], position)
        if error is not None:
            if not _passes(error):
                raise error
            self._delay({key: each for key, each in waiting.items() if found.get(key) is None})

    async def _validate(self, waiting: dict[TopicPartition, PositionState]) -> None:
        by_leader: dict[int, dict[TopicPartition, Position]] = {}
        with self._subscription.lock:
            for key, state in waiting.items():
                position = state.position
                if position is not None:
                    by_leader.setdefault(position.leader_id, {})[key] = position
        await asyncio.gather(
            *(self._validate_at(node_id, part) for node_id, part in by_leader.items())
        )

    async def _validate_at(self, node_id: int, positions: dict[TopicPartition, Position]) -> None:
        try:
            ends, errors = await self._finder.epoch_ends(node_id, positions)
        except UnsupportedVersionError:
            # Before Kafka 2.3 there is nothing to compare with.
            with self._subscription.lock:
                for key in positions:
                    self._complete(key)
            return
        except KafkaError as failure:
            if not _passes(failure):
                raise
            ends, errors = {}, dict.fromkeys(positions, failure)
        for key, end in ends.items():
            truncated = self._subscription.complete_validation(
                key, positions[key], end.leader_epoch, end.end_offset
            )
            if truncated is not None:
                self.errors.append(truncated)
        for error in errors.values():
            if not _passes(error):
                raise error
        left = {
            key: state
            for key in positions
            if key not in ends and (state := self._subscription.assignment.get(key)) is not None
        }
        if left:
            self._delay(left)

    def _complete(self, key: TopicPartition) -> None:
        state = self._subscription.assignment.get(key)
        if state is not None and state.position is not None:
            self._subscription.complete_validation(key, state.position, 0, state.position.offset)

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _passes(error: KafkaError) -> bool:
    return error.retriable or isinstance(error, BrokerNotAvailableError)
