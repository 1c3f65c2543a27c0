"""When offsets are committed, and which callbacks are called.

Decided here: what a commit without offsets means, when the automatic one is due, and in which order
callbacks are called. Invariants: a callback runs once, in the order in which the commits
ended, while the application is inside a call; a synchronous commit returns after the callbacks of
the asynchronous ones before it have run; what `poll` has not handed out is never committed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from moldau.client.callbacks import Callbacks
from moldau.client.cluster import ClusterClient
from moldau.client.consumer.commits import GroupOffsets
from moldau.client.consumer.settings import ConsumerSettings
from moldau.client.deadline import Deadline
from moldau.client.errors import (
    CommitFailedError,
    InvalidGroupIdError,
    KafkaError,
    RebalanceInProgressError,
    RetriableCommitFailedError,
)
from moldau.client.metrics import ConsumerMetrics
from moldau.client.topics import OffsetAndMetadata, TopicPartition

__all__ = ["CommitCallback", "Committer", "Offsets"]

_log = logging.getLogger(__name__)

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
CommitCallback = Callable[[dict[TopicPartition, OffsetAndMetadata], Exception | None], Any]

NO_GROUP_ID = (
    "To use the group management or offset commit APIs, you must provide a valid group.id in the "
    "consumer configuration."
)


class _Ended(NamedTuple):
    callback: CommitCallback | None
    offsets: dict[TopicPartition, OffsetAndMetadata]
    error: Exception | None


class Committer:
    """See the module. `is_stranger` says whether the consumer should be a member and is none, as
    an error to raise."""

    def __init__(
        self,
        cluster: ClusterClient,
        settings: ConsumerSettings,
        group_offsets: GroupOffsets | None,
        metrics: ConsumerMetrics,
        callbacks: Callbacks,
        *,
        is_stranger: Callable[[], KafkaError | None],
        wake: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._group_offsets = group_offsets
        self._metrics = metrics
        self._callbacks = callbacks
        self._is_stranger = is_stranger
        self._wake = wake
        self._pending: set[asyncio.Task[None]] = set()
        # Filled by the loop, emptied inside a call of the application.
        self.ended: deque[_Ended] = deque()
        self._interval_ms = settings.auto_commit_interval_ms
        self._due_ms = self._now_ms() + self._interval_ms

    @property
    def offsets(self) -> GroupOffsets:
        """Where they are kept; InvalidGroupIdError without a group."""
        if self._group_offsets is None:
            raise InvalidGroupIdError(NO_GROUP_ID)
        return self._group_offsets

    async def commit_sync(self, offsets: Offsets, deadline: Deadline) -> None:
        """Until it is done, or raise KafkaError."""
        started_ns = time.monotonic_ns()
        try:
            await self._drain(deadline)
            await self.run_callbacks()
            if offsets:
                await self._commit(offsets, deadline)
                await self.tell_interceptors(offsets)
        finally:
            self._metrics.spent("commit-sync", time.monotonic_ns() - started_ns)

    async def _commit(
        self, offsets: Offsets, deadline: Deadline, *, automatic: bool = False
    ) -> None:
        stranger = self._is_stranger()
        if stranger is not None:
            raise stranger
        await self.offsets.commit(offsets, deadline, automatic=automatic)

    async def tell_interceptors(self, offsets: Offsets) -> None:
        """Of what is committed; the application waits for it."""
        if self._settings.interceptors:
            await self._callbacks.run(self._settings.interceptors.tell, "on_commit", dict(offsets))

    def start(self, offsets: Offsets, callback: CommitCallback | None) -> None:
        """On the loop: an asynchronous commit. It is tried once."""
        self._launch(self._commit_async(dict(offsets), callback))

    def _launch(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)

    async def _commit_async(
        self, offsets: dict[TopicPartition, OffsetAndMetadata], callback: CommitCallback | None
    ) -> None:
        error: Exception | None = None
        try:
            stranger = self._is_stranger()
            if stranger is not None:
                raise stranger
            await self.offsets.commit_once(offsets)
        except KafkaError as failure:
            error = failure
            if failure.retriable:
                error = RetriableCommitFailedError(
                    f"Offset commit failed with a retriable exception: {failure}. You should retry "
                    "committing the latest consumed offsets."
                )
                error.__cause__ = failure
        except Exception as failure:
            # A fault of ours: the callback is called all the same.
            _log.exception("A commit failed")
            error = failure
        self.ended.append(_Ended(callback, offsets, error))
        self._wake()

    # Automatic commits.

    @property
    def auto_commit_due(self) -> bool:
        """Asked on every poll."""
        return self._settings.enable_auto_commit and self._now_ms() >= self._due_ms

    def postpone_auto_commit(self) -> None:
        self._due_ms = self._now_ms() + self._interval_ms

    def start_auto_commit(self, offsets: Offsets) -> None:
        """On the loop."""
        if offsets:
            self._launch(self._auto_commit(dict(offsets)))

    async def _auto_commit(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        try:
            stranger = self._is_stranger()
            if stranger is None:
                await self.offsets.commit_once(offsets)
                self.ended.append(_Ended(None, offsets, None))
                return
            _log.debug("Nothing was committed: %s", stranger)
        except KafkaError as error:
            if error.retriable:
                _log.debug("Asynchronous auto-commit of offsets failed, it is retried: %s", error)
                self._due_ms = self._now_ms() + self._cluster.settings.retry_backoff_ms
            else:
                _log.warning("Asynchronous auto-commit of offsets failed: %s", error)

    async def auto_commit_before(
        self, event: str, offsets: Offsets, deadline: Deadline
    ) -> Offsets | None:
        """At a revocation or the end: what is consumed now, as well as that goes. What is
        committed then, which interceptors have to be called for."""
        if not self._settings.enable_auto_commit or not offsets:
            return None
        try:
            await self._commit(offsets, deadline, automatic=True)
        except KafkaError as error:
            _log.warning("Auto-commit before %s failed: %s", event, error)
            return None
        return offsets

    # Callbacks.

    async def run_callbacks(self) -> None:
        """Of the commits that have ended; the application waits for it."""
        while self.ended:
            callback, offsets, error = self.ended.popleft()
            if error is None:
                await self.tell_interceptors(offsets)
            if callback is not None:
                await self._callbacks.run(callback, offsets, error)
            elif error is not None:
                _log.error("Offset commit with offsets %s failed: %s", offsets, error)

    async def _drain(self, deadline: Deadline) -> None:
        """Wait for the asynchronous commits that are under way."""
        while self._pending and not deadline.passed:
            pending = set(self._pending)
            await asyncio.wait(pending, timeout=deadline.left_ms() / 1000)

    async def close(self, deadline: Deadline) -> None:
        await self._drain(deadline)
        for task in self._pending:
            task.cancel()
        await asyncio.gather(*self._pending, return_exceptions=True)
        await self.run_callbacks()

    @staticmethod
    def _now_ms() -> int:
        return time.monotonic_ns() // 1_000_000


def stranger_error(rebalancing: bool) -> KafkaError:
    """Why a consumer that is no member cannot commit."""
    if rebalancing:
        return RebalanceInProgressError(
            "Offset commit cannot be completed since the consumer is undergoing a rebalance for "
            "auto partition assignment. You can try completing the rebalance by calling poll() and "
            "then retry the operation."
        )
    return CommitFailedError(
        "Offset commit cannot be completed since the consumer is not part of an active group for "
        "auto partition assignment; it is likely that the consumer was kicked out of the group."
    )
