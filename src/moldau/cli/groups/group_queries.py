"""Queries of the group tools: partitions, starts and ends of logs, offsets at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from moldau.cli.groups.machine.offsets import parse_topic_argument, partitions_of
from moldau.cli.support.java_errors import UnusablePartitionsError
from moldau.client.topics import TopicPartition

if TYPE_CHECKING:
    from moldau.client.admin import Admin, OffsetSpec

__all__ = ["GroupCluster"]


class GroupCluster:
    """The cluster as the group tools see it; every call waits at most `timeout` seconds."""

    def __init__(self, admin: Admin, timeout_ms: int) -> None:
        self.admin = admin
        self.timeout = timeout_ms / 1000

    def named_partitions(self, topic_arguments: Collection[str]) -> list[TopicPartition]:
        """The partitions of `--topic t` and `--topic t:0,1` arguments."""
        parsed = [parse_topic_argument(argument) for argument in topic_arguments]
        whole = {topic for topic, partitions in parsed if partitions is None}
        described = self.admin.describe_topics(whole, timeout=self.timeout) if whole else {}
        partitions = {
            topic: [info.partition for info in described[topic].partitions] for topic in whole
        }
        return partitions_of(topic_arguments, partitions)

    def check_valid(self, partitions: Collection[TopicPartition]) -> None:
        """Raises for partitions that do not exist, and for those without a leader."""
        topics = {partition.topic for partition in partitions}
        described = self.admin.describe_topics(topics, timeout=self.timeout) if topics else {}
        leaders = {
            TopicPartition(topic, info.partition): info.leader
            for topic in topics
            for info in described[topic].partitions
        }
        missing = [partition for partition in partitions if partition not in leaders]
        if missing:
            listed = ",".join(map(str, missing))
            raise UnusablePartitionsError(f'The partitions "{listed}" do not exist')
        headless = [partition for partition in partitions if leaders[partition] is None]
        if headless:
            listed = ",".join(map(str, headless))
            raise UnusablePartitionsError(f'The partitions "{listed}" have no leader')

    def starts(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        from moldau.client.admin import OffsetSpec

        return self._offsets(partitions, OffsetSpec.earliest())

    def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        from moldau.client.admin import OffsetSpec

        return self._offsets(partitions, OffsetSpec.latest())

    def at_time(
        self, partitions: Iterable[TopicPartition], timestamp: int
    ) -> dict[TopicPartition, int]:
        """The first offset of that time or later; -1 if there is none."""
        from moldau.client.admin import OffsetSpec

        return self._offsets(partitions, OffsetSpec.for_timestamp(timestamp))

    def known_ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The ends of those that have a leader; the others are left out."""
        topics = {partition.topic for partition in partitions}
        if not topics:
            return {}
        described = self.admin.describe_topics(topics, timeout=self.timeout, check=False)
        led = {
            TopicPartition(description.name, info.partition)
            for description in described.values_by_key.values()
            for info in description.partitions
            if info.leader is not None
        }
        return self.ends(partition for partition in partitions if partition in led)

    def _offsets(
        self, partitions: Iterable[TopicPartition], spec: OffsetSpec
    ) -> dict[TopicPartition, int]:
        wanted = dict.fromkeys(partitions, spec)
        if not wanted:
            return {}
        found = self.admin.list_offsets(wanted, timeout=self.timeout)
        return {partition: found[partition].offset for partition in wanted}
