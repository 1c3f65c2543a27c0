"""What both consumers have in common: the calls that wait for nothing."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Generic, NamedTuple

from moldau.client.consumer.committer import CommitCallback
from moldau.client.consumer.core import ConsumerCore
from moldau.client.consumer.guard import Guard
from moldau.client.consumer.machine.consumer_records import ConsumerRecords
from moldau.client.consumer.machine.iteration import RecordIteration
from moldau.client.consumer.machine.positions import EARLIEST, LATEST, ResetStrategy
from moldau.client.consumer.membership_interface import ConsumerGroupMetadata
from moldau.client.consumer.rebalance_listener import ConsumerRebalanceListener
from moldau.client.errors import IllegalStateError, InvalidTopicError
from moldau.client.machine.arguments import checked_offsets, checked_partition, checked_partitions
from moldau.client.metrics import KafkaMetric, MetricName
from moldau.client.other_clients import CONSUMER_NAMES, point_from
from moldau.client.topics import (
    OffsetAndMetadata,
    OffsetLike,
    OffsetsLike,
    PartitionLike,
    TimesLike,
    TopicPartition,
)
from moldau.client.type_parameters import K, V

__all__ = [
    "CLOSE_TIMEOUT_S",
    "ITERATION_S",
    "POLL_TIMEOUT_S",
    "ConsumerFace",
    "SubscriptionPattern",
    "check_times",
]

CLOSE_TIMEOUT_S = 30.0
POLL_TIMEOUT_S = 1.0
#: Of each poll of a loop over the consumer.
ITERATION_S = 1.0


class SubscriptionPattern(NamedTuple):
    """A regular expression that the broker evaluates (RE2), with `group.protocol=consumer`."""

    pattern: str


@point_from(CONSUMER_NAMES)
class ConsumerFace(ABC, Generic[K, V]):
    """See the module. Within `with self._guard` nobody else is inside the consumer."""

    _core: ConsumerCore
    _guard: Guard

    def __repr__(self) -> str:
        core = self._core
        with core.subscription.lock:
            topics = sorted(core.subscription.topics)
            count = len(core.subscription.assignment)
        group = "" if core.settings.group_id is None else f", group {core.settings.group_id!r}"
        what = f", topics {topics}" if topics else ""
        state = "closed" if self._guard.closed else f"{count} partitions assigned"
        return (
            f"<{type(self).__name__} {core.settings.client_id!r} at {core.cluster.bootstrap}"
            f"{group}{what}, {state}>"
        )

    # Subscribing.

    def subscribe(
        self,
        topics: Iterable[str] | re.Pattern[str] | SubscriptionPattern,
        listener: ConsumerRebalanceListener | None = None,
    ) -> None:
        """Read these topics as a member of the group `group.id`, which divides their partitions.

        `topics` are names, which replace the previous ones; a compiled `re` pattern that whole
        names have to match, also of topics created later; or a `SubscriptionPattern`, which the
        broker evaluates. `listener` is a `ConsumerRebalanceListener`.

        >>> consumer.subscribe(["orders"])
        """
        with self._guard:
            core = self._core
            core.require_group()
            _check_listener(listener)
            if isinstance(topics, re.Pattern):
                core.topics.subscribe_pattern(topics, listener)
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
        self._core.topics.subscribe_server_pattern(pattern.pattern, listener)

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
            self._core.topics.subscribe_topics(names, listener)
        else:
            self._give_up_subscription()

    def assign(self, partitions: Iterable[PartitionLike]) -> None:
        """Read exactly these partitions, without group management. They replace the previous ones;
        partitions in both keep their positions.

        >>> consumer.assign([TopicPartition("orders", 0)])
        """
        with self._guard:
            wanted = checked_partitions(partitions)
            if wanted:
                self._core.assign(wanted)
            else:
                self._give_up_subscription()

    @abstractmethod
    def _give_up_subscription(self) -> None:
        """As `unsubscribe`."""

    def assignment(self) -> set[TopicPartition]:
        """The partitions that are read now, assigned by hand or by the group.

        >>> print(sorted(consumer.assignment()))
        """
        with self._guard, self._core.subscription.lock:
            return set(self._core.subscription.assignment)

    def subscription(self) -> set[str]:
        """The topics subscribed to, with a pattern those that match it.

        >>> print(consumer.subscription())
        """
        with self._guard, self._core.subscription.lock:
            return set(self._core.subscription.topics)

    # Positions.

    def seek(self, partition: PartitionLike, offset: OffsetLike) -> None:
        """Continue at an offset; with OffsetAndMetadata its leader epoch is validated first.

        >>> consumer.seek(TopicPartition("orders", 0), 42)
        """
        with self._guard:
            self._core.seek(checked_partition(partition), offset)

    def seek_to_beginning(self, partitions: Iterable[PartitionLike] = ()) -> None:
        """Continue at the first offset of these partitions, or of all assigned ones.

        >>> consumer.seek_to_beginning()
        """
        self._request_reset(partitions, EARLIEST)

    def seek_to_end(self, partitions: Iterable[PartitionLike] = ()) -> None:
        """Continue at the end of these partitions, or of all assigned ones; with read_committed at
        the last stable offset.

        >>> consumer.seek_to_end([TopicPartition("orders", 0)])
        """
        self._request_reset(partitions, LATEST)

    def _request_reset(self, partitions: Iterable[PartitionLike], strategy: ResetStrategy) -> None:
        with self._guard:
            self._core.request_reset(checked_partitions(partitions), strategy)

    def pause(self, partitions: Iterable[PartitionLike]) -> None:
        """Return no records of these partitions until `resume`; positions and membership stay.

        >>> consumer.pause([TopicPartition("orders", 0)])
        """
        with self._guard:
            self._core.set_paused(checked_partitions(partitions), True)

    def resume(self, partitions: Iterable[PartitionLike]) -> None:
        """Return records of these partitions again; has no effect on those that are not paused.

        >>> consumer.resume(consumer.paused())
        """
        with self._guard:
            self._core.set_paused(checked_partitions(partitions), False)

    def paused(self) -> set[TopicPartition]:
        """The paused partitions.

        >>> consumer.resume(consumer.paused())
        """
        with self._guard:
            return self._core.subscription.paused()

    def current_lag(self, partition: PartitionLike) -> int | None:
        """Records between the position and the partition's end; None if the end is not known yet,
        and then it is requested in the background.

        >>> print(consumer.current_lag(TopicPartition("orders", 0)))
        """
        with self._guard:
            return self._core.lag.current(checked_partition(partition))

    def commit_async(
        self,
        offsets: OffsetsLike | None = None,
        callback: CommitCallback | None = None,
    ) -> None:
        """Commit these offsets, or the current positions, without waiting. It is not retried.

        `callback(offsets, error)` is called inside a later call of the consumer.

        >>> consumer.commit_async(callback=lambda offsets, error: print(offsets, error))
        """
        with self._guard:
            self._core.require_group()
            self._core.commit_async(self._offsets(offsets), callback)

    def _offsets(self, offsets: OffsetsLike | None) -> Mapping[TopicPartition, OffsetAndMetadata]:
        if offsets is None:
            return self._core.consumed()
        return checked_offsets(offsets)

    # The group and the client.

    def group_metadata(self) -> ConsumerGroupMetadata:
        """The ids of group, member and generation, for `Producer.send_offsets_to_transaction`.

        >>> producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        """
        with self._guard:
            self._core.require_group()
            return self._core.group.group_metadata()

    def enforce_rebalance(self, reason: str | None = None) -> None:
        """Ask for a rebalance at the next `poll`; without effect with group.protocol=consumer.

        >>> consumer.enforce_rebalance("new weights")
        """
        with self._guard:
            self._core.enforce_rebalance(reason)

    def metrics(self) -> dict[MetricName, KafkaMetric]:
        """The consumer's metrics, by Kafka's names.

        >>> rates = {name.name: metric.value for name, metric in consumer.metrics().items()}
        """
        return self._core.registry.metrics()

    def register_metric_for_subscription(self, metric: KafkaMetric) -> None:
        """Push an application metric with the client's own, if the cluster subscribes to it.

        >>> consumer.register_metric_for_subscription(metric)
        """
        telemetry = self._core.telemetry
        if telemetry is not None and metric.metric_name not in self.metrics():
            telemetry.register(metric)

    def unregister_metric_from_subscription(self, metric: KafkaMetric) -> None:
        """Stop pushing the metric.

        >>> consumer.unregister_metric_from_subscription(metric)
        """
        if self._core.telemetry is not None:
            self._core.telemetry.unregister(metric)

    def wakeup(self) -> None:
        """Can be called from any thread: the call that waits, or the next one that would, raises
        WakeupError.

        >>> signal.signal(signal.SIGTERM, lambda *_: consumer.wakeup())
        """
        if not self._guard.closed:
            self._core.wakeup.ask()

    def _release(self) -> None:
        """The consumer is closed: let go of what only the blocking one has."""
        return

    # Iterating.

    def _begin_iteration(self, records: ConsumerRecords[K, V]) -> RecordIteration:
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


def check_times(timestamps: TimesLike) -> dict[TopicPartition, int]:
    """For `offsets_for_times`, whose special times are other methods."""
    if not isinstance(timestamps, Mapping):
        raise TypeError(
            "times are a mapping from partitions to milliseconds, such as "
            f"{{TopicPartition('orders', 0): 1700000000000}}, not {timestamps!r}"
        )
    for key, timestamp in timestamps.items():
        checked_partition(key)
        if timestamp < 0:
            raise ValueError(
                f"The target time for partition {TopicPartition(*key)} is {timestamp}. "
                "The target time cannot be negative."
            )
    return {TopicPartition(*key): timestamp for key, timestamp in timestamps.items()}
