"""Which topics and partitions a user's pattern means, by the rules of Kafka's tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from moldau.cli.support.machine.errors import Refused

__all__ = ["INTERNAL_TOPICS", "TopicFilter", "partition_filter", "partition_rules"]

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
_RULE = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")
PartitionFilter = Callable[[str, int], bool]


class TopicFilter:
    """A regular expression that a name must match as a whole; a comma means "or"."""

    def __init__(self, pattern: str) -> None:
        cleaned = pattern.strip().replace(",", "|").replace(" ", "")
        self._text = re.sub(r"^[\"']+|[\"']+$", "", cleaned)
        try:
            self._pattern = re.compile(self._text)
        except re.error:
            raise Refused(f"{self._text} is an invalid regex.") from None

    def allows(self, topic: str, *, exclude_internal: bool = False) -> bool:
        if exclude_internal and topic in INTERNAL_TOPICS:
            return False
        return self._pattern.fullmatch(topic) is not None

    def of(self, topics: Iterable[str], *, exclude_internal: bool = False) -> list[str]:
        return [each for each in topics if self.allows(each, exclude_internal=exclude_internal)]


def partition_filter(topic: str | None, partitions: str | None) -> PartitionFilter:
    """By a pattern for topics and a list of partitions; None allows all."""
    topics = TopicFilter(".*" if topic is None else topic)
    numbers = _numbers(partitions)
    return lambda name, number: topics.allows(name) and (not numbers or number in numbers)


def _numbers(text: str | None) -> frozenset[int]:
    if not text:
        return frozenset()
    try:
        return frozenset(int(part) for part in text.split(","))
    except ValueError:
        raise Refused(
            f"--partitions expects a comma separated list of numeric partition ids, but received: "
            f"{text}"
        ) from None


def partition_rules(text: str) -> PartitionFilter:
    """By rules like `t1:1,t2:0-3,t3,t4:5-,t5:-3`: a range includes its start, not its end."""
    rules = [_rule(part) for part in text.split(",")]
    return lambda name, number: any(rule(name, number) for rule in rules)


def _rule(text: str) -> PartitionFilter:
    match = _RULE.fullmatch(text)
    if match is None:
        raise Refused(f"Invalid rule specification: {text}")
    topics = TopicFilter(match[1] or ".*")
    if match[2]:
        only = int(match[2])
        return lambda name, number: topics.allows(name) and number == only
    first = int(match[3] or 0)
    end = int(match[4]) if match[4] else None
    return lambda name, number: (
        topics.allows(name) and number >= first and (end is None or number < end)
    )
