"""Which topics a group is subscribed to, and by how many of its members.

Names count per member, regular expressions per expression: they are resolved for the whole group,
in records of their own, independently of its members. Invariants: every counter is above zero, and
a topic is subscribed to exactly while one of the two counts it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from moldau.broker.coordinator.group.machine.consumer.member import ConsumerMember


class ResolvedRegularExpression(NamedTuple):
    topics: frozenset[str]
    version: int
    """Of the metadata that was looked at."""
    timestamp_ms: int


class Subscriptions:
    __slots__ = ("by_name", "by_regex", "regex_topics", "resolved")

    def __init__(self) -> None:
        self.by_name: dict[str, int] = {}
        """Topic: how many members name it."""
        self.by_regex: dict[str, int] = {}
        """Regular expression: how many members have it."""
        self.resolved: dict[str, ResolvedRegularExpression] = {}
        self.regex_topics: dict[str, int] = {}
        """Topic: how many resolved expressions match it."""

    def copy(self) -> Subscriptions:
        other = Subscriptions()
        other.by_name = self.by_name.copy()
        other.by_regex = self.by_regex.copy()
        other.resolved = self.resolved.copy()
        other.regex_topics = self.regex_topics.copy()
        return other

    def replace_member(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        old_names = frozenset() if old is None else old.subscribed_topic_names
        new_names = frozenset() if new is None else new.subscribed_topic_names
        if old_names != new_names:
            _count(self.by_name, old_names, -1)
            _count(self.by_name, new_names, 1)
        old_regex = _regex_of(old)
        new_regex = _regex_of(new)
        if old_regex != new_regex:
            _count(self.by_regex, old_regex, -1)
            _count(self.by_regex, new_regex, 1)

    def resolve(self, regex: str, resolved: ResolvedRegularExpression | None) -> None:
        """Keep what an expression matches; None forgets it."""
        before = self.resolved.pop(regex, None)
        if before is not None:
            _count(self.regex_topics, before.topics, -1)
        if resolved is not None:
            self.resolved[regex] = resolved
            _count(self.regex_topics, resolved.topics, 1)

    def topics(self) -> frozenset[str]:
        return frozenset(self.by_name).union(self.regex_topics)

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.by_name or topic in self.regex_topics

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """The names of one member; an expression not resolved yet matches nothing."""
        names = member.subscribed_topic_names
        regex = member.subscribed_topic_regex
        resolved = self.resolved.get(regex) if regex else None
        if resolved is None or not resolved.topics:
            return names
        return names | resolved.topics if names else resolved.topics

    def is_homogeneous(self, member_count: int) -> bool:
        """Whether all members are subscribed to the same topics, by the counters."""
        if not self.by_regex:
            return not self.regex_topics.keys() - self.by_name.keys() and all(
                count == member_count for count in self.by_name.values()
            )
        return (
            next(iter(self.by_regex.values())) == member_count
            and not self.by_name
            and all(count == 1 for count in self.regex_topics.values())
        )


def _regex_of(member: ConsumerMember | None) -> tuple[str, ...]:
    if member is None or not member.subscribed_topic_regex:
        return ()
    return (member.subscribed_topic_regex,)


def _count(counters: dict[str, int], keys: Collection[str], change: int) -> None:
    for key in keys:
        count = counters.get(key, 0) + change
        if count > 0:
            counters[key] = count
        else:
            counters.pop(key, None)
