"""The consumer itself, on its event loop; the two faces in front of it add nothing but waiting.

Decided here: what a poll does and when it ends, and in which order closing goes. Invariants:
coroutines run on the loop; the other methods may be called from the application's thread too: they
change `subscription` under its lock and leave the rest to the loop.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from typing import Any
from uuid import UUID

from moldau.client.callbacks import Callbacks
from moldau.client.cluster import ClusterClient
from moldau.client.consumer.bell import Bell
from moldau.client.consumer.commits import GroupOffsets
from moldau.client.consumer.committer import NO_GROUP_ID, CommitCallback, Committer, Offsets
from moldau.client.consumer.fetcher import Fetcher
from moldau.client.consumer.group_side import GroupSide
from moldau.client.consumer.lag import Lag
from moldau.client.consumer.list_offsets import OffsetFinder
from moldau.client.consumer.machine.consumer_records import EMPTY_RECORDS, ConsumerRecords
from moldau.client.consumer.machine.fetch_buffer import FetchBuffer
from moldau.client.consumer.machine.iteration import RecordIteration
from moldau.client.consumer.machine.positions import (
    FetchState,
    ResetStrategy,
    sought_position,
)
from moldau.client.consumer.machine.subscription import SubscriptionKind, SubscriptionState
from moldau.client.consumer.membership_interface import GroupMembershipOperation
from moldau.client.consumer.position_updates import PositionUpdater
from moldau.client.consumer.settings import ConsumerSettings
from moldau.client.consumer.topic_following import TopicFollower
from moldau.client.consumer.wakeup import Wakeup
from moldau.client.deadline import Deadline
from moldau.client.errors import (
    IllegalStateError,
    InvalidGroupIdError,
    KafkaError,
    KafkaTimeoutError,
)
from moldau.client.machine.metadata import ClusterMetadata
from moldau.client.metrics import CONSUMER, ConsumerMetrics, Metrics, NetworkMetrics, add_app_info
from moldau.client.network_settings import NetworkSettings
from moldau.client.telemetry import TelemetryReporter
from moldau.client.topics import OffsetAndMetadata, TopicPartition

__all__ = ["ConsumerCore"]

_log = logging.getLogger(__name__)

Soon = Callable[..., None]

#: For what a consumer that nobody closed has to say before it goes.
_ABANDON_S = 5.0


class ConsumerCore:
    """See the module."""

    def __init__(self, settings: ConsumerSettings, callbacks: Callbacks, soon: Soon) -> None:
        """`soon` calls something on the loop, from whatever thread."""
        self.settings = settings
        self.callbacks = callbacks
        self._soon = soon
        self.registry = Metrics.of(settings.values, client_id=settings.client_id)
        add_app_info(self.registry)
        self.metrics = ConsumerMetrics(self.registry)
        self.cluster = ClusterClient(
            NetworkSettings.of(
                settings.values,
                client_id=settings.client_id,
                receive_buffer_bytes=settings.receive_buffer_bytes,
            ),
            observer=NetworkMetrics(self.registry, CONSUMER),
        )
        self.cluster.allow_auto_topic_creation = settings.allow_auto_create_topics
        self.cluster.on_metadata.append(self._on_metadata)
        self.cluster.on_fatal.append(self._on_fatal)
        self.telemetry = TelemetryReporter.of(settings.values, self.cluster, self.registry)
        self.subscription = SubscriptionState(settings.auto_offset_reset, threading.RLock())
        self.finder = OffsetFinder(self.cluster, read_committed=settings.read_committed)
        self.lag = Lag(
            self.subscription,
            self.finder,
            self.metrics,
            soon,
            read_committed=settings.read_committed,
        )
        self._buffer = FetchBuffer(self.subscription, self.lag.on_drained, self._on_room)
        self.fetcher = Fetcher(
            self.cluster,
            self.subscription,
            self._buffer,
            settings,
            self.metrics,
            self._on_arrival,
        )
        self.wakeup = Wakeup(soon, self.wake)
        self._wire_group()
        # Set by the loop and by other threads, read everywhere.
        self._arrived = False
        self._errors: list[KafkaError] = []
        self._inside_poll = False
        self._left_poll_ms = self.cluster.clock.elapsed_ms()
        # Of the loop only.
        self._changed = False
        self._bell = Bell(self.cluster.clock)
        # A poll whose records are given one by one.
        self.iteration: RecordIteration | None = None

    def _wire_group(self) -> None:
        settings = self.settings
        self.group = GroupSide(
            self.cluster,
            settings,
            self.subscription,
            self.metrics,
            self.callbacks,
            wake=self.wake,
            poll_idle_ms=self._poll_idle_ms,
            on_assignment=lambda: self.topics.follow(),
        )
        offsets: GroupOffsets | None = None
        if settings.group_id is not None:
            self.metrics.join_group()
            offsets = GroupOffsets(
                self.cluster,
                settings.group_id,
                is_consumer_protocol=settings.is_consumer_protocol,
                identity=self.group.commit_identity,
                on_refused=self.group.on_commit_refused,
                metrics=self.metrics,
            )
        self.committer = Committer(
            self.cluster,
            settings,
            offsets,
            self.metrics,
            self.callbacks,
            is_stranger=self.group.stranger,
            wake=self.wake,
        )
        self.group.committer = self.committer
        self.topics = TopicFollower(
            self.cluster,
            settings,
            self.subscription,
            self.group,
            self.metrics,
            soon=self._soon,
            wake=self.wake,
        )
        self._positions = PositionUpdater(
            self.cluster, self.subscription, self.finder, offsets, self.wake
        )

    def deadline(self, timeout: float | None) -> Deadline:
        """In so many seconds; `default.api.timeout.ms` if None."""
        default_ms = self.settings.default_api_timeout_ms
        return Deadline.in_seconds(self.cluster.clock, timeout, default_ms=default_ms)

    # Polling. The application's thread collects; the loop does everything else.

    def enter_poll(self) -> bool:
        """At the start of a poll: whether there is something to do on the loop before records may
        be handed out."""
        self.metrics.poll_started()
        self._inside_poll = True
        subscription = self.subscription
        if subscription.kind is SubscriptionKind.NONE:
            self.leave_poll()
            raise IllegalStateError(
                "Consumer is not subscribed to any topics or assigned any partitions"
            )
        if self.committer.auto_commit_due:
            # Before anything else is handed out: what was, is done with.
            self.committer.postpone_auto_commit()
            self._soon(self.committer.start_auto_commit, self.consumed())
        return (
            self.wakeup.asked
            or bool(self._errors)
            or bool(self._positions.errors)
            or bool(subscription.unready)
            or bool(self.committer.ended)
            or self.group.needs_poll
        )

    def leave_poll(self) -> None:
        self._inside_poll = False
        self._left_poll_ms = self.cluster.clock.elapsed_ms()
        self.metrics.poll_ended()

    def _poll_idle_ms(self) -> int:
        return 0 if self._inside_poll else self.cluster.clock.elapsed_ms() - self._left_poll_ms

    def collect(self) -> ConsumerRecords:
        """Records that are there, decoded now; raises what stands before the next ones."""
        self._arrived = False
        found, next_offsets = self._buffer.collect(self.settings.max_poll_records)
        if not found and not next_offsets:
            return EMPTY_RECORDS
        # There may be more: the next poll looks before it waits.
        self._arrived = True
        records = ConsumerRecords(found, next_offsets)
        if self.settings.interceptors:
            passed: ConsumerRecords = self.settings.interceptors.passed("on_consume", records)
            return passed
        return records

    def _on_room(self) -> None:
        self._soon(self.fetcher.kick)

    async def step(self, deadline: Deadline) -> None:
        """Do what is due, then wait until something has arrived or the time is over."""
        await self.cluster.bootstrap.resolve()
        while True:
            self._changed = False
            self.wakeup.check()
            await self.committer.run_callbacks()
            self._raise_errors()
            await self.group.poll(deadline)
            self._kick()
            if self._arrived or deadline.passed:
                return
            await self._wait(deadline.left_ms())

    def _kick(self) -> None:
        self._positions.kick()
        self.fetcher.kick()

    async def _wait(self, limit_ms: int) -> None:
        """Until `wake`, or something that was delayed may be tried again."""
        if self._changed:
            return
        if self.subscription.unready or self.group.needs_poll:
            limit_ms = min(limit_ms, self.cluster.settings.retry_backoff_ms)
        await self._bell.wait(max(1, limit_ms))

    def wake(self) -> None:
        """On the loop: look again whether there is something to do."""
        self._changed = True
        self._bell.ring()

    def _on_arrival(self) -> None:
        self._arrived = True
        self.wake()

    def _raise_errors(self) -> None:
        for errors in (self._errors, self._positions.errors):
            if errors:
                raise errors.pop(0)

    # Metadata.

    def _on_metadata(self, picture: ClusterMetadata) -> None:
        self._errors = self.topics.on_metadata(picture)
        self.fetcher.kick()
        self.wake()

    def _on_fatal(self, error: KafkaError) -> None:
        self._errors = [error]
        self.wake()

    # What the application changes.

    def require_group(self) -> None:
        if self.settings.group_id is None:
            raise InvalidGroupIdError(NO_GROUP_ID)

    def assign(self, partitions: list[TopicPartition]) -> None:
        if self.settings.enable_auto_commit and self.subscription.assignment:
            self._soon(self.committer.start_auto_commit, self.consumed())
        self.subscription.assign_by_user(partitions)
        self._positions.errors.clear()
        self.topics.follow()

    async def unsubscribe(self, deadline: Deadline) -> None:
        await self.group.unsubscribe(deadline)
        self._buffer.clear()
        self._positions.errors.clear()

    def seek(self, key: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        position = sought_position(offset, self.cluster.metadata.partition(key))
        self.subscription.seek(key, position)
        self._positions.errors.clear()
        self._soon(self._kick)

    def rewind(self, key: TopicPartition, offset: OffsetAndMetadata) -> None:
        """Back to a record that was given to nobody; its leader need not be asked about it."""
        self.subscription.rewind(key, offset)
        self._soon(self._kick)

    def request_reset(self, partitions: list[TopicPartition], strategy: ResetStrategy) -> None:
        with self.subscription.lock:
            for key in partitions or list(self.subscription.assignment):
                self.subscription.request_reset(key, strategy)
        self._positions.errors.clear()

    def set_paused(self, partitions: list[TopicPartition], paused: bool) -> None:
        self.subscription.set_paused(partitions, paused)
        if not paused:
            self._soon(self._on_resumed)

    def _on_resumed(self) -> None:
        self.fetcher.kick()
        self._on_arrival()

    # Positions and offsets.

    def consumed(self) -> Offsets:
        """What a commit without offsets commits."""
        offsets = self.subscription.all_consumed()
        if self.iteration is not None:
            offsets.update(self.iteration.unread())
        return offsets

    async def position(self, key: TopicPartition, deadline: Deadline) -> int:
        """The next offset to be handed out; found first if need be."""
        while True:
            self._changed = False
            state = self.subscription.assignment.get(key)
            if state is None:
                raise IllegalStateError(
                    "You can only check the position for partitions assigned to this consumer: "
                    f"{key} is not"
                )
            position = state.position
            if position is not None and state.state is FetchState.FETCHING:
                unread = {} if self.iteration is None else self.iteration.unread()
                return unread[key].offset if key in unread else position.offset
            self._raise_errors()
            self._positions.kick()
            if deadline.passed:
                raise KafkaTimeoutError(
                    f"Timeout of {deadline.timeout_ms}ms expired before the position for partition "
                    f"{key} could be determined"
                )
            await self._wait(deadline.left_ms())

    async def committed(
        self, partitions: Collection[TopicPartition], deadline: Deadline
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        started_ns = time.monotonic_ns()
        try:
            return await self.committer.offsets.committed(partitions, deadline)
        finally:
            self.metrics.spent("committed", time.monotonic_ns() - started_ns)

    def enforce_rebalance(self, reason: str | None) -> None:
        self.require_group()
        if self.settings.is_consumer_protocol:
            _log.warning("A rebalance cannot be enforced with group.protocol=consumer")
        elif self.group.membership is not None:
            text = reason or "rebalance enforced by user"
            self._soon(self.group.membership.request_rejoin, text)

    def commit_async(self, offsets: Offsets, callback: CommitCallback | None) -> None:
        self._soon(self.committer.start, offsets, callback)

    async def client_instance_id(self, deadline: Deadline) -> UUID:
        if self.telemetry is None:
            raise IllegalStateError(
                "Telemetry is not enabled. Set config `enable.metrics.push` to `true`."
            )
        return await self.telemetry.client_instance_id(timeout_ms=deadline.left_ms())

    # The end.

    async def close(
        self, deadline: Deadline, operation: GroupMembershipOperation, *, commit: bool = True
    ) -> None:
        """Commit, leave, and let go of everything; raises the first error after that."""
        try:
            await self._take_leave(deadline, operation, commit)
        finally:
            self.topics.close()
            await self._positions.close()
            await self.fetcher.close(deadline)
            self.lag.close()
            if self.telemetry is not None:
                await self.telemetry.close()
            await self.cluster.close()
            self.settings.interceptors.close()
            for deserializer in (self.settings.key_deserializer, self.settings.value_deserializer):
                _close(deserializer)
            self.registry.close()

    async def abandon(self) -> None:
        """The end of a consumer that nobody closed. It leaves its group, but commits nothing: who
        knows what became of the records, and nobody is there to run callbacks."""
        deadline = self.deadline(_ABANDON_S)
        await self.close(deadline, GroupMembershipOperation.DEFAULT, commit=False)

    async def _take_leave(
        self, deadline: Deadline, operation: GroupMembershipOperation, commit: bool
    ) -> None:
        try:
            offsets = self.consumed() if commit else {}
            done = await self.committer.auto_commit_before("closing", offsets, deadline)
            if done:
                await self.committer.tell_interceptors(done)
            # The revocations that follow have nothing to add to that.
            self.group.committer = None
            await self.group.close(deadline, operation)
        finally:
            await self.committer.close(deadline)


def _close(resource: Any) -> None:
    owner = getattr(resource, "__self__", resource)
    close = getattr(owner, "close", None)
    if close is not None:
        close()
