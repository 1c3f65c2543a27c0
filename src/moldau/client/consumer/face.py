"""What both consumers have in common: the calls that wait for nothing."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from moldau.client.consumer.committer import CommitCallback
from moldau.client.consumer.core import ConsumerCore
from moldau.client.consumer.guard import Guard
from moldau.client.consumer.machine.consumer_records import ConsumerRecords
from moldau.client.consumer.machine.iteration import RecordIteration
from moldau.client.consumer.machine.positions import EARLIEST, LATEST, ResetStrategy
from moldau.client.consumer.membership_interface import ConsumerGroupMetadata
from moldau.client.errors import IllegalStateError, InvalidTopicError
from moldau.client.metrics import KafkaMetric, MetricName
from moldau.client.topics import (
    OffsetAndMetadata,
    OffsetLike,
    OffsetsLike,
    PartitionLike,
    TimesLike,
    TopicPartition,
)

__all__ = ["ConsumerFace", "SubscriptionPattern"]


class SubscriptionPattern(NamedTuple):
    """A regular expression that the broker evaluates (RE2), with `group.protocol=consumer`."""

    pattern: str


class ConsumerFace(ABC):
    """See the module. Within `with self._guard` nobody else is inside the consumer."""

    _core: ConsumerCore
    _guard: Guard

    # Subscribing.

    def subscribe(
        self,
        topics: Iterable[str] | re.Pattern[str] | SubscriptionPattern,
        listener: Any = None,
    ) -> None:
        """Read these topics as a member of the group `group.id`, which divides their partitions.

        `topics` are names, replacing those before; a compiled `re` pattern, which whole names
        have to match, also those of topics made later; or a `SubscriptionPattern`, which the
        broker evaluates. `listener` is a `ConsumerRebalanceListener`.
        """
        with self._guard:
            core = self._core
            core.require_group()
            _check_listener(listener)
            if isinstance(topics, re.Pattern):
                core.subscribe_pattern(topics, listener)
            elif isinstance(topics, SubscriptionPattern):
                self._subscribe_server_pattern(topics, listener)
            else:
                self._subscribe_topics(topics, listener)

    def _subscribe_server_pattern(self, pattern: SubscriptionPattern, listener: Any) -> None:
        if not self._core.settings.is_consumer_protocol:
            raise IllegalStateError(
                "Subscribe to RE2/J pattern is not supported when using the CLASSIC protocol "
                "defined in config group.protocol",
                advice="set group.protocol=consumer, or pass a compiled Python pattern",
            )
        if not pattern.pattern:
            raise ValueError("Topic pattern to subscribe to cannot be empty")
        self._core.subscribe_server_pattern(pattern.pattern, listener)

    def _subscribe_topics(self, topics: Iterable[str], listener: Any) -> None:
        if isinstance(topics, str):
            raise TypeError(f"subscribe to a list of topics: [{topics!r}], not {topics!r}")
        names = list(topics)
        for name in names:
            if not isinstance(name, str) or not name.strip():
                raise InvalidTopicError(
                    f"Topic collection to subscribe to cannot contain null or empty topic: {name!r}"
                )
        if names:
            self._core.subscribe_topics(names, listener)
        else:
            self._give_up_subscription()

    def assign(self, partitions: Iterable[PartitionLike]) -> None:
        """Read exactly these partitions, without a group dividing them. They replace those before;
        partitions in both keep their positions."""
        with self._guard:
            wanted = _partitions(partitions)
            if wanted:
                self._core.assign(wanted)
            else:
                self._give_up_subscription()

    @abstractmethod
    def _give_up_subscription(self) -> None:
        """As `unsubscribe`."""

    def assignment(self) -> set[TopicPartition]:
        """The partitions that are read now, given by hand or by the group."""
        with self._guard, self._core.subscription.lock:
            return set(self._core.subscription.assignment)

    def subscription(self) -> set[str]:
        """The topics subscribed to, with a pattern those that match it."""
        with self._guard, self._core.subscription.lock:
            return set(self._core.subscription.topics)

    # Positions.

    def seek(self, partition: PartitionLike, offset: OffsetLike) -> None:
        """Go on at an offset; with OffsetAndMetadata the epoch in it is validated first."""
        with self._guard:
            self._core.seek(TopicPartition(*partition), offset)

    def seek_to_beginning(self, partitions: Iterable[PartitionLike] = ()) -> None:
        """Of these partitions, of all assigned ones if none are given."""
        self._request_reset(partitions, EARLIEST)

    def seek_to_end(self, partitions: Iterable[PartitionLike] = ()) -> None:
        """Of these partitions, of all assigned ones if none are given; with read_committed to the
        last stable offset."""
        self._request_reset(partitions, LATEST)

    def _request_reset(self, partitions: Iterable[PartitionLike], strategy: ResetStrategy) -> None:
        with self._guard:
            self._core.request_reset(_partitions(partitions), strategy)

    def pause(self, partitions: Iterable[PartitionLike]) -> None:
        """Give no records of them until `resume`; their positions and the membership stay."""
        with self._guard:
            self._core.set_paused(_partitions(partitions), True)

    def resume(self, partitions: Iterable[PartitionLike]) -> None:
        """Give records of them again; those that are not paused are left as they are."""
        with self._guard:
            self._core.set_paused(_partitions(partitions), False)

    def paused(self) -> set[TopicPartition]:
        with self._guard:
            return self._core.subscription.paused()

    def current_lag(self, partition: PartitionLike) -> int | None:
        """Records between the position and the partition's end; None if it is not known now, and
        then it is asked for."""
        with self._guard:
            return self._core.current_lag(TopicPartition(*partition))

    def commit_async(
        self,
        offsets: OffsetsLike | None = None,
        callback: CommitCallback | None = None,
    ) -> None:
        """Commit without waiting: these offsets, or the current positions. It is not tried again.

        `callback(offsets, error)` is called inside a later call of the consumer.
        """
        with self._guard:
            self._core.require_group()
            self._core.commit_async(self._offsets(offsets), callback)

    def _offsets(self, offsets: OffsetsLike | None) -> Mapping[TopicPartition, OffsetAndMetadata]:
        if offsets is None:
            return self._core.consumed()
        found = {}
        for key, each in offsets.items():
            offset = each if isinstance(each, OffsetAndMetadata) else OffsetAndMetadata(each)
            if offset.offset < 0:
                raise ValueError(f"Invalid negative offset {offset.offset} of {key}")
            found[TopicPartition(*key)] = offset
        return found

    # The group and the client.

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Who this member is, for `Producer.send_offsets_to_transaction`."""
        with self._guard:
            self._core.require_group()
            return self._core.group.group_metadata()

    def enforce_rebalance(self, reason: str | None = None) -> None:
        """Ask for a rebalance at the next `poll`; without effect with group.protocol=consumer."""
        with self._guard:
            self._core.enforce_rebalance(reason)

    def metrics(self) -> dict[MetricName, KafkaMetric]:
        return self._core.registry.metrics()

    def register_metric_for_subscription(self, metric: KafkaMetric) -> None:
        """Push a metric of the application's with the client's own, where the cluster wants it."""
        telemetry = self._core.telemetry
        if telemetry is not None and metric.metric_name not in self.metrics():
            telemetry.register(metric)

    def unregister_metric_from_subscription(self, metric: KafkaMetric) -> None:
        if self._core.telemetry is not None:
            self._core.telemetry.unregister(metric)

    def wakeup(self) -> None:
        """From any thread: the call that waits, or the next that would, raises WakeupError."""
        if not self._guard.closed:
            self._core.wakeup.ask()

    # Iterating.

    def _begin_iteration(self, records: ConsumerRecords) -> RecordIteration:
        iteration = RecordIteration(self._core.subscription, records)
        self._core.iteration = iteration
        return iteration

    def _give_back(self) -> None:
        """What a loop over the consumer has not given yet belongs to the next poll: whether that
        is inside the loop, or a loop of asyncio was left, whose end comes late."""
        if self._core.iteration is not None:
            self._end_iteration(self._core.iteration)

    def _end_iteration(self, iteration: RecordIteration) -> None:
        """Records that were not given are read again by the next poll."""
        if self._core.iteration is iteration:
            self._core.iteration = None
        if not self._guard.closed:
            for key, offset in iteration.unread().items():
                self._core.rewind(key, offset)


def _check_listener(listener: Any) -> None:
    methods = ("on_partitions_assigned", "on_partitions_revoked", "on_partitions_lost")
    if listener is not None and not any(hasattr(listener, each) for each in methods):
        raise TypeError(f"a listener has some of the methods {', '.join(methods)}: {listener!r}")


def _partitions(given: Iterable[PartitionLike]) -> list[TopicPartition]:
    partitions = []
    for each in given:
        if not isinstance(each, tuple) or len(each) != 2 or not isinstance(each[1], int):
            raise TypeError(f"a partition is a TopicPartition or (topic, number), not {each!r}")
        topic, partition = each
        if not isinstance(topic, str) or not topic.strip():
            raise ValueError(f"a topic partition cannot have a null or empty topic: {each}")
        partitions.append(TopicPartition(topic, partition))
    return partitions


def check_times(timestamps: TimesLike) -> dict[TopicPartition, int]:
    """For `offsets_for_times`, whose special times are other methods."""
    for key, timestamp in timestamps.items():
        if timestamp < 0:
            raise ValueError(
                f"The target time for partition {TopicPartition(*key)} is {timestamp}. "
                "The target time cannot be negative."
            )
    return {TopicPartition(*key): timestamp for key, timestamp in timestamps.items()}
