"""The consumer as its membership sees it, and its membership as the consumer uses it.

Invariants: the listener is called before a partition is given up, and for a new one before any of
its records is handed out; an error of the listener is raised after the assignment is the one that
the group decided.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from moldau.client.callbacks import Callbacks
from moldau.client.cluster import ClusterClient
from moldau.client.consumer.committer import Committer, Offsets, stranger_error
from moldau.client.consumer.machine.subscription import SubscriptionState
from moldau.client.consumer.membership_interface import (
    NO_GENERATION,
    ConsumerGroupMetadata,
    GroupMembershipOperation,
    GroupSubscription,
    Membership,
)
from moldau.client.consumer.settings import ConsumerSettings
from moldau.client.deadline import Deadline
from moldau.client.errors import KafkaError
from moldau.client.metrics import ConsumerMetrics
from moldau.client.topics import TopicPartition
from moldau.wire.errors import ErrorCode

__all__ = ["GroupSide"]


class GroupSide:
    """See the module. Implements `membership_interface.GroupHost`."""

    def __init__(
        self,
        cluster: ClusterClient,
        settings: ConsumerSettings,
        subscription: SubscriptionState,
        metrics: ConsumerMetrics,
        callbacks: Callbacks,
        *,
        wake: Callable[[], None],
        poll_idle_ms: Callable[[], int],
        on_assignment: Callable[[], None],
    ) -> None:
        self.cluster = cluster
        self.metrics = metrics
        self.settings = settings
        self.state = subscription
        self.wake = wake
        self.poll_idle_ms = poll_idle_ms
        self._callbacks = callbacks
        # The assignment, or the topics to know of, are others than before.
        self._on_assignment = on_assignment
        self.committer: Committer | None = None
        self.membership: Membership | None = None
        self.wanted_topics: frozenset[str] = frozenset()
        # The commit before partitions go. It outlives a poll that has no time left for it.
        self._settling: asyncio.Task[Offsets | None] | None = None

    # For the consumer.

    @property
    def needs_poll(self) -> bool:
        settling = self._settling
        if settling is not None and not settling.done():
            # It goes on when that is over, which ends the wait of a poll.
            return False
        membership = self.membership
        return membership is not None and membership.needs_poll and self.state.is_automatic

    async def poll(self, deadline: Deadline) -> None:
        if self.needs_poll and self.membership is not None:
            await self.membership.poll(deadline)

    def on_subscribed(self) -> None:
        """On the loop, after every change of what is subscribed to."""
        if not self.state.is_automatic:
            return
        if self.membership is None:
            # Most consumers of tools and tests have no group, and need no protocol.
            from moldau.client.consumer.membership import make_membership

            self.metrics.join_group()
            self.membership = make_membership(self)
        self.membership.on_subscription_changed()
        self.wake()

    def group_metadata(self) -> ConsumerGroupMetadata:
        """For the application, whose transactions are fenced by it."""
        if self.membership is not None:
            return self.membership.last_group_metadata()
        return ConsumerGroupMetadata(
            self.settings.group_id or "", group_instance_id=self.settings.group_instance_id
        )

    def commit_identity(self) -> ConsumerGroupMetadata:
        """Of the member, or of nobody if partitions are assigned by hand."""
        if self.state.is_automatic and self.membership is not None:
            return self.membership.group_metadata()
        return ConsumerGroupMetadata(
            self.settings.group_id or "", group_instance_id=self.settings.group_instance_id
        )

    def stranger(self) -> KafkaError | None:
        """Why it cannot commit now, if it should be a member and is none."""
        if not self.state.is_automatic:
            return None
        membership = self.membership
        if membership is None:
            return stranger_error(False)
        if membership.group_metadata().generation_id != NO_GENERATION:
            return None
        return stranger_error(membership.rebalancing)

    def on_commit_refused(self, code: ErrorCode, sent_by: ConsumerGroupMetadata) -> None:
        if self.membership is not None:
            self.membership.on_commit_failed(code, sent_by)

    async def unsubscribe(self, deadline: Deadline) -> None:
        try:
            if self.membership is not None and self.state.is_automatic:
                await self.membership.unsubscribe(deadline)
        finally:
            self.wanted_topics = frozenset()
            self.state.unsubscribe()
            self._on_assignment()

    async def close(self, deadline: Deadline, operation: GroupMembershipOperation) -> None:
        try:
            if self.membership is not None:
                await self.membership.close(deadline, operation)
        finally:
            self._forget_commit()

    # For the membership.

    @property
    def values(self) -> Mapping[str, Any]:
        return self.settings.values

    @property
    def assignors(self) -> list[Any]:
        return list(self.settings.values["partition.assignment.strategy"])

    @property
    def subscription(self) -> GroupSubscription:
        state = self.state
        with state.lock:
            return GroupSubscription(state.topics, state.pattern, state.server_pattern)

    @property
    def owned_partitions(self) -> frozenset[TopicPartition]:
        with self.state.lock:
            return frozenset(self.state.assignment) if self.state.is_automatic else frozenset()

    def want_topics(self, topics: Collection[str]) -> None:
        self.wanted_topics = frozenset(topics)
        self._on_assignment()

    async def settle(self, partitions: Collection[TopicPartition]) -> bool:
        self.state.mark_revocation(partitions)
        if not partitions:
            self._forget_commit()
            return True
        if self._settling is None:
            limit_ms = min(self.settings.default_api_timeout_ms, self.settings.max_poll_interval_ms)
            self._start_commit(partitions, Deadline(self.cluster.clock, limit_ms))
        task = self._settling
        if task is not None and not task.done():
            return False
        await self._tell_committed()
        return True

    async def settle_until(
        self, partitions: Collection[TopicPartition], deadline: Deadline
    ) -> None:
        self.state.mark_revocation(partitions)
        self._forget_commit()
        self._start_commit(partitions, deadline)
        task = self._settling
        if task is not None:
            await asyncio.wait({task}, timeout=deadline.left_ms() / 1000)
            if task.done():
                await self._tell_committed()
        self._forget_commit()

    def _start_commit(self, partitions: Collection[TopicPartition], deadline: Deadline) -> None:
        """If there is anything to commit. Only of what goes: it is tried again, and the positions
        of the other partitions move on meanwhile."""
        if self.committer is None or not self.settings.enable_auto_commit:
            return
        going = frozenset(partitions)
        consumed = self.state.all_consumed()
        offsets = {key: offset for key, offset in consumed.items() if key in going}
        if offsets:
            work = self.committer.auto_commit_before("a rebalance", offsets, deadline)
            self._settling = asyncio.get_running_loop().create_task(work)
            self._settling.add_done_callback(lambda done: self.wake())

    async def _tell_committed(self) -> None:
        task, self._settling = self._settling, None
        offsets = None if task is None else task.result()
        if offsets and self.committer is not None:
            await self.committer.tell_interceptors(offsets)

    def _forget_commit(self) -> None:
        if self._settling is not None:
            self._settling.cancel()
            self._settling = None

    async def on_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self.state.mark_revocation(partitions)
        try:
            await self._tell("revoked", partitions)
        finally:
            self.state.remove_assigned(partitions)
            self._on_assignment()

    async def on_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self.state.add_assigned(partitions, awaits_listener=self.state.listener is not None)
        self._on_assignment()
        try:
            await self._tell("assigned", partitions)
        finally:
            self.state.enable(partitions)
            self.wake()

    async def on_lost(self, partitions: Collection[TopicPartition]) -> None:
        self.state.mark_revocation(partitions)
        try:
            await self._tell("lost", partitions)
        finally:
            self.state.remove_assigned(partitions)
            self._on_assignment()

    async def _tell(self, what: str, partitions: Collection[TopicPartition]) -> None:
        listener = self.state.listener
        function = getattr(listener, f"on_partitions_{what}", None)
        if function is None and what == "lost":
            function = getattr(listener, "on_partitions_revoked", None)
        if function is None:
            return
        started = time.monotonic_ns()
        try:
            await self._callbacks.run(function, sorted(partitions))
        except KafkaError:
            raise
        except Exception as error:
            raise KafkaError(f"User rebalance callback throws an error: {error!r}") from error
        finally:
            self.metrics.callback_ran(what, (time.monotonic_ns() - started) / 1e6)
