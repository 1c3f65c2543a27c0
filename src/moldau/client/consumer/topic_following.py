"""The topics that a consumer reads: what is subscribed to, and their metadata.

Invariants: the client asks for exactly the topics that are subscribed to or assigned, for all of
them with a pattern; a picture older than `metadata.max.age.ms` is asked for again, and one without
a topic that may still be created after the backoff.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

from moldau.client.cluster import ClusterClient
from moldau.client.consumer.group_side import GroupSide
from moldau.client.consumer.machine.subscription import SubscriptionState
from moldau.client.consumer.settings import ConsumerSettings
from moldau.client.errors import KafkaError
from moldau.client.errors.topics import topic_error
from moldau.client.machine.metadata import ClusterMetadata
from moldau.client.metrics import ConsumerMetrics
from moldau.client.topics import TopicPartition
from moldau.clock import Alarm
from moldau.wire.errors import ErrorCode

__all__ = ["TopicFollower"]

_FATAL_FOR_TOPICS = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION)


class TopicFollower:
    """See the module. `soon` calls something on the loop, `wake` has the loop look again."""

    def __init__(
        self,
        cluster: ClusterClient,
        settings: ConsumerSettings,
        subscription: SubscriptionState,
        group: GroupSide,
        metrics: ConsumerMetrics,
        *,
        soon: Callable[..., None],
        wake: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._subscription = subscription
        self._group = group
        self._metrics = metrics
        self._soon = soon
        self._wake = wake
        self._refresh_alarm: Alarm | None = None
        self._search_alarm: Alarm | None = None
        self._searches = 0

    # What is subscribed to.

    def subscribe_topics(self, topics: Collection[str], listener: Any) -> None:
        self._subscription.subscribe_topics(topics, listener)
        self._subscribed()

    def subscribe_pattern(self, pattern: re.Pattern[str], listener: Any) -> None:
        self._subscription.subscribe_pattern(pattern, listener)
        self._subscribed()

    def subscribe_server_pattern(self, pattern: str, listener: Any) -> None:
        self._subscription.subscribe_server_pattern(pattern, listener)
        self._subscribed()

    def _subscribed(self) -> None:
        self.follow()
        self._soon(self._on_subscribed)

    def _on_subscribed(self) -> None:
        self._group.on_subscribed()
        self.match_pattern(self._cluster.metadata)

    # Metadata.

    def on_metadata(self, picture: ClusterMetadata) -> list[KafkaError]:
        """Take over a picture; returns what is wrong with topics that are read."""
        self._subscription.on_metadata(picture)
        wanted = self._topics_wanted()
        errors: list[KafkaError] = [
            topic_error(code, topic)
            for topic, code in picture.errors.items()
            if code in _FATAL_FOR_TOPICS and topic in wanted
        ]
        self.match_pattern(picture)
        self._search_missing(picture)
        return errors

    def _search_missing(self, picture: ClusterMetadata) -> None:
        """Ask again for what is not there: a topic may be created at any time, and one whose
        creation this client has caused is not there at first."""
        if not self._is_incomplete(picture):
            self._searches = 0
        elif self._search_alarm is None:
            self._searches += 1
            delay_ms = self._cluster.backoff.delay_ms(self._searches, self._cluster.random)
            self._search_alarm = self._cluster.clock.call_later(delay_ms, self._search)

    def _search(self) -> None:
        self._search_alarm = None
        if self._is_incomplete(self._cluster.metadata):
            self._cluster.request_refresh()
            # The question may fail.
            self._search_missing(self._cluster.metadata)

    def _is_incomplete(self, picture: ClusterMetadata) -> bool:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return any(
            picture.errors.get(topic, unknown).refresh_metadata
            for topic in self._cluster.wanted_topics or ()
            if topic not in picture.topics
        )

    def match_pattern(self, picture: ClusterMetadata) -> None:
        pattern = self._subscription.pattern
        if pattern is None or not picture.version:
            return
        hide_internal = self._settings.exclude_internal_topics
        topics = {
            name
            for name, view in picture.topics.items()
            if pattern.fullmatch(name) and not (hide_internal and view.is_internal)
        }
        if self._subscription.on_topics_matched(topics):
            self._group.on_subscribed()

    def _topics_wanted(self) -> set[str]:
        with self._subscription.lock:
            topics = {key.topic for key in self._subscription.assignment}
            return topics | self._subscription.topics

    def follow(self) -> None:
        """Keep the metadata of what is subscribed to or assigned; ask for what is missing."""
        if self._subscription.pattern is not None:
            self._cluster.wanted_topics = None
        else:
            self._cluster.wanted_topics = self._topics_wanted() | self._group.wanted_topics
        with self._subscription.lock:
            assigned = list(self._subscription.assignment)
        self._metrics.assigned(assigned, self._preferred_replica)
        self._soon(self._ask_for_topics)

    def _preferred_replica(self, topic: str, partition: int) -> int:
        state = self._subscription.assignment.get(TopicPartition(topic, partition))
        replica = None if state is None else state.preferred_replica
        return -1 if replica is None else replica

    def _ask_for_topics(self) -> None:
        picture = self._cluster.metadata
        wanted = self._cluster.wanted_topics
        if wanted is None or not wanted <= picture.topics.keys():
            self._cluster.request_refresh(at_once=True)
        elif picture.version:
            self._subscription.on_metadata(picture)
        if self._refresh_alarm is None:
            self._renew_metadata()
        self._wake()

    def _renew_metadata(self) -> None:
        """Metadata older than `metadata.max.age.ms` is asked for again, needed or not."""
        max_age_ms = max(1, self._cluster.settings.metadata_max_age_ms)
        age_ms = self._cluster.metadata_age_ms
        left_ms = max_age_ms if age_ms is None else max_age_ms - age_ms
        if left_ms <= 0:
            self._cluster.request_refresh()
            left_ms = max_age_ms
        self._refresh_alarm = self._cluster.clock.call_later(left_ms, self._renew_metadata)

    def close(self) -> None:
        for alarm in (self._refresh_alarm, self._search_alarm):
            if alarm is not None:
                alarm.cancel()
