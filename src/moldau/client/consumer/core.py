"""The consumer itself, on its event loop; the two faces in front of it add nothing but waiting.

Decided here: what a poll does and when it ends, when offsets are committed without being asked, and
in which order closing goes. What always holds: methods named `async` run on the loop; the others may
be called from the application's thread too, they change `subscription` under its lock and leave the
rest to the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from moldau.client.callbacks import Callbacks
from moldau.client.cluster import ClusterClient, Deadline, NetworkSettings
from moldau.client.consumer.commits import GroupOffsets
from moldau.client.consumer.consumer_records import EMPTY_RECORDS, ConsumerRecords
from moldau.client.consumer.fetch_buffer import FetchBuffer
from moldau.client.consumer.fetcher import Fetcher
from moldau.client.consumer.list_offsets import OffsetFinder
from moldau.client.consumer.membership_interface import ConsumerGroupMetadata, Membership
from moldau.client.consumer.metrics import CommitMetrics, FetchMetrics
from moldau.client.consumer.position_updates import PositionUpdater
from moldau.client.consumer.positions import Position, ResetStrategy
from moldau.client.consumer.settings import ConsumerSettings
from moldau.client.consumer.subscription import SubscriptionState
from moldau.client.errors import KafkaError, WakeupError, error_for
from moldau.client.metadata import ClusterMetadata
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.wire.errors import ErrorCode

__all__ = ["ConsumerCore"]

_log = logging.getLogger(__name__)

T = TypeVar("T")
Soon = Callable[[Callable[[], None]], None]

_FATAL_FOR_TOPICS = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION)


class ConsumerCore:
    """See the module."""

    def __init__(self, settings: ConsumerSettings, callbacks: Callbacks, soon: Soon) -> None:
        """`soon` calls something on the loop, from whatever thread."""
        self.settings = settings
        self.callbacks = callbacks
        self._soon = soon
        self.cluster = ClusterClient(
            NetworkSettings.of(settings.values, client_id=settings.client_id)
        )
        self.cluster.allow_auto_topic_creation = settings.allow_auto_create_topics
        self.cluster.on_metadata.append(self._on_metadata)
        self.subscription = SubscriptionState(settings.auto_offset_reset)
        self.membership: Membership | None = None
        self.finder = OffsetFinder(self.cluster, read_committed=settings.read_committed)
        self._buffer = FetchBuffer(self.subscription)
        self._fetcher = Fetcher(
            self.cluster,
            self.subscription,
            self._buffer,
            settings,
            FetchMetrics(),
            self._on_arrival,
        )
        self.group_offsets = self._make_group_offsets()
        self._positions = PositionUpdater(
            self.cluster, self.subscription, self.finder, self.group_offsets, self.wake
        )
        self._wanted_by_group: frozenset[str] = frozenset()
        # Set by the loop and by other threads, read everywhere.
        self._arrived = False
        self._wakeup_asked = False
        self._errors: list[KafkaError] = []
        # Of the loop only.
        self._changed = False
        self._waiter: asyncio.Future[None] | None = None
        self._wakeup_waiter: asyncio.Future[None] | None = None

    def _make_group_offsets(self) -> GroupOffsets | None:
        if self.settings.group_id is None:
            return None
        return GroupOffsets(
            self.cluster,
            self.settings.group_id,
            is_consumer_protocol=self.settings.is_consumer_protocol,
            identity=self.group_metadata,
            on_refused=self._on_commit_refused,
            metrics=CommitMetrics(),
        )

    def group_metadata(self) -> ConsumerGroupMetadata:
        if self.membership is not None:
            return self.membership.group_metadata()
        return ConsumerGroupMetadata(
            self.settings.group_id or "", group_instance_id=self.settings.group_instance_id
        )

    def _on_commit_refused(self, code: ErrorCode, sent_by: ConsumerGroupMetadata) -> None:
        if self.membership is not None:
            self.membership.on_commit_failed(code, sent_by)

    def deadline(self, timeout: float | None) -> Deadline:
        """In so many seconds; `default.api.timeout.ms` if None."""
        if timeout is None:
            return Deadline(self.cluster.clock, self.settings.default_api_timeout_ms)
        if timeout < 0:
            raise ValueError(f"timeout {timeout} must not be negative")
        return Deadline(self.cluster.clock, min(int(timeout * 1000), 2**53))

    # Polling. The application's thread collects; the loop does everything else.

    @property
    def needs_step(self) -> bool:
        """Whether there is something to do on the loop before records may be handed out."""
        membership = self.membership
        return (
            self._wakeup_asked
            or bool(self._errors)
            or bool(self._positions.errors)
            or bool(self.subscription.unready)
            or (membership is not None and membership.needs_poll)
        )

    def collect(self) -> ConsumerRecords:
        """Records that are there, decoded now; raises what stands before the next ones."""
        self._arrived = False
        found, next_offsets, made_room = self._buffer.collect(self.settings.max_poll_records)
        if made_room:
            self._soon(self._fetcher.kick)
        if not found and not next_offsets:
            return EMPTY_RECORDS
        return ConsumerRecords(found, next_offsets)

    async def step(self, deadline: Deadline) -> None:
        """Do what is due, then wait until something has arrived or the time is over."""
        while True:
            self._changed = False
            self._check_wakeup()
            self._raise_errors()
            await self._poll_membership(deadline)
            self._positions.kick()
            self._fetcher.kick()
            if self._arrived or deadline.passed:
                return
            await self._wait(deadline.left_ms())

    async def _poll_membership(self, deadline: Deadline) -> None:
        membership = self.membership
        if membership is not None and self.subscription.is_automatic and membership.needs_poll:
            await membership.poll(deadline)

    async def _wait(self, limit_ms: int) -> None:
        """Until `wake`, or something that was delayed may be tried again."""
        if self._changed:
            return
        if self.subscription.unready:
            limit_ms = min(limit_ms, self.cluster.settings.retry_backoff_ms)
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        alarm = self.cluster.clock.call_later(max(1, limit_ms), self.wake)
        try:
            await waiter
        finally:
            alarm.cancel()
            self._waiter = None

    def wake(self) -> None:
        """On the loop: look again whether there is something to do."""
        self._changed = True
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _on_arrival(self) -> None:
        self._arrived = True
        self.wake()

    def _raise_errors(self) -> None:
        for errors in (self._errors, self._positions.errors):
            if errors:
                raise errors.pop(0)

    # Waking up.

    def wakeup(self) -> None:
        """From any thread: the call that waits, or the next that would, raises WakeupError."""
        self._wakeup_asked = True
        self._soon(self._on_wakeup)

    def _on_wakeup(self) -> None:
        waiter = self._wakeup_waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
        self.wake()

    def _check_wakeup(self) -> None:
        if self._wakeup_asked:
            self._wakeup_asked = False
            raise WakeupError("the consumer was woken up")

    async def wakeable(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of something that may wait long, unless `wakeup` ends it."""
        if self._wakeup_asked:
            work.close()
            self._check_wakeup()
        loop = asyncio.get_running_loop()
        task = loop.create_task(work)
        waiter = self._wakeup_waiter = loop.create_future()
        try:
            await asyncio.wait((task, waiter), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                self._check_wakeup()
            return await task
        finally:
            self._wakeup_waiter = None
            if not task.done():
                task.cancel()

    # Metadata.

    def _on_metadata(self, picture: ClusterMetadata) -> None:
        self.subscription.on_metadata(picture)
        for topic, code in picture.errors.items():
            if code in _FATAL_FOR_TOPICS and topic in self._topics_wanted():
                self._errors.append(error_for(code, f"topic {topic}"))
        self._fetcher.kick()
        self.wake()

    def _topics_wanted(self) -> set[str]:
        with self.subscription.lock:
            topics = {key.topic for key in self.subscription.assignment}
            return topics | self.subscription.topics

    def follow_topics(self) -> None:
        """Keep the metadata of what is subscribed to or assigned; ask for what is missing."""
        if self.subscription.pattern is not None:
            self.cluster.wanted_topics = None
        else:
            self.cluster.wanted_topics = self._topics_wanted() | self._wanted_by_group
        self._soon(self._ask_for_topics)

    def _ask_for_topics(self) -> None:
        picture = self.cluster.metadata
        wanted = self.cluster.wanted_topics
        if wanted is None or not wanted <= picture.topics.keys():
            self.cluster.request_refresh(at_once=True)
        elif picture.version:
            self.subscription.on_metadata(picture)
        self.wake()

    # What the application changes.

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.subscription.assign_by_user(partitions)
        self.follow_topics()

    def seek(self, key: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        epoch = None
        if isinstance(offset, OffsetAndMetadata):
            offset, epoch = offset.offset, offset.leader_epoch
        if offset < 0:
            raise ValueError("seek offset must not be a negative number")
        view = self.cluster.metadata.partition(key)
        position = (
            Position(offset, epoch)
            if view is None
            else Position(offset, epoch, view.leader_id, view.leader_epoch)
        )
        self._positions.errors.clear()
        self.subscription.seek(key, position)
        self._soon(self._fetcher.kick)

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
        self._fetcher.kick()
        self._on_arrival()

    async def close(self, deadline: Deadline) -> None:
        await self._positions.close()
        await self._fetcher.close()
        await self.cluster.close()
