"""What both consumers have in common: the calls that wait for nothing."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import NamedTuple

from moldau.client.consumer.core import ConsumerCore
from moldau.client.consumer.positions import EARLIEST, LATEST, ResetStrategy
from moldau.client.topics import OffsetAndMetadata, TopicPartition

__all__ = ["ConsumerFace", "SubscriptionPattern"]


class SubscriptionPattern(NamedTuple):
    """A regular expression that the broker evaluates (RE2), with `group.protocol=consumer`."""

    pattern: str


class ConsumerFace:
    """See the module. `_guard` keeps others out; a call in its `with` is inside the consumer."""

    _core: ConsumerCore
    _guard: AbstractContextManager[None]

    # Subscribing.

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read exactly these partitions, without a group deciding."""
        with self._guard:
            self._core.assign(_partitions(partitions))

    def assignment(self) -> set[TopicPartition]:
        with self._guard, self._core.subscription.lock:
            return set(self._core.subscription.assignment)

    def subscription(self) -> set[str]:
        """The topics subscribed to, with a pattern those that match it."""
        with self._guard, self._core.subscription.lock:
            return set(self._core.subscription.topics)

    # Positions.

    def seek(
        self, partition: TopicPartition | tuple[str, int], offset: int | OffsetAndMetadata
    ) -> None:
        """Go on at an offset; with OffsetAndMetadata the epoch in it is validated first."""
        with self._guard:
            self._core.seek(TopicPartition(*partition), offset)

    def seek_to_beginning(
        self, partitions: Iterable[TopicPartition | tuple[str, int]] = ()
    ) -> None:
        """Of these partitions, of all assigned ones if none are given."""
        self._request_reset(partitions, EARLIEST)

    def seek_to_end(self, partitions: Iterable[TopicPartition | tuple[str, int]] = ()) -> None:
        """Of these partitions, of all assigned ones if none are given."""
        self._request_reset(partitions, LATEST)

    def _request_reset(
        self, partitions: Iterable[TopicPartition | tuple[str, int]], strategy: ResetStrategy
    ) -> None:
        with self._guard:
            self._core.request_reset(_partitions(partitions), strategy)

    def pause(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Give no records of them; their positions and the membership stay."""
        with self._guard:
            self._core.set_paused(_partitions(partitions), True)

    def resume(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        with self._guard:
            self._core.set_paused(_partitions(partitions), False)

    def paused(self) -> set[TopicPartition]:
        with self._guard:
            return self._core.subscription.paused()

    def wakeup(self) -> None:
        """From any thread: the call that waits, or the next that would, raises WakeupError."""
        self._core.wakeup()


def _partitions(given: Iterable[TopicPartition | tuple[str, int]]) -> list[TopicPartition]:
    partitions = []
    for each in given:
        topic, partition = each
        if not topic or not isinstance(topic, str) or topic.isspace():
            raise ValueError(
                f"Topic partitions to assign to cannot have null or empty topic: {each}"
            )
        partitions.append(TopicPartition(topic, partition))
    return partitions
