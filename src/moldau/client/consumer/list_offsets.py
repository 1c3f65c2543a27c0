"""Asks leaders for offsets: by time, the first, the last; and where an epoch ends in their logs.

Invariants: a partition is asked for at the leader that the metadata names, with its epoch,
so an answer of a leader that was replaced is an error and not an old offset; what fails for a
reason that passes is tried again until the deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from moldau.client.cluster import ClusterClient
from moldau.client.consumer.machine.positions import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Position
from moldau.client.deadline import Deadline
from moldau.client.errors import KafkaError, KafkaTimeoutError, error_for
from moldau.client.errors.topics import topic_error
from moldau.client.topics import Node, OffsetAndTimestamp, TopicPartition
from moldau.clock import pause
from moldau.wire.constants import UNKNOWN_OFFSET
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)

__all__ = ["EpochEnd", "FoundOffset", "OffsetFinder"]

CONSUMER = -1


class FoundOffset(NamedTuple):
    offset: int
    timestamp: int
    leader_epoch: int | None


class EpochEnd(NamedTuple):
    leader_epoch: int
    end_offset: int


class OffsetFinder:
    """See the module."""

    def __init__(self, cluster: ClusterClient, *, read_committed: bool) -> None:
        self._cluster = cluster
        self._isolation_level = 1 if read_committed else 0

    async def by_times(
        self, timestamps: Mapping[TopicPartition, int], deadline: Deadline
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each time."""
        found = await self.find(timestamps, deadline)
        return {
            key: None if (each := found[key]) is None else OffsetAndTimestamp(*each)
            for key in timestamps
        }

    async def beginnings(
        self, partitions: Iterable[tuple[str, int]], deadline: Deadline
    ) -> dict[TopicPartition, int]:
        return await self._edges(partitions, EARLIEST_TIMESTAMP, deadline)

    async def ends(
        self, partitions: Iterable[tuple[str, int]], deadline: Deadline
    ) -> dict[TopicPartition, int]:
        return await self._edges(partitions, LATEST_TIMESTAMP, deadline)

    async def _edges(
        self, partitions: Iterable[tuple[str, int]], timestamp: int, deadline: Deadline
    ) -> dict[TopicPartition, int]:
        asked = {TopicPartition(*key): timestamp for key in partitions}
        found = await self.find(asked, deadline)
        return {key: each.offset for key, each in found.items() if each is not None}

    async def find(
        self, timestamps: Mapping[TopicPartition, int], deadline: Deadline
    ) -> dict[TopicPartition, FoundOffset | None]:
        """The first offset at or after each time (-2: the first, -1: the last); None if there is
        none. Raises KafkaTimeoutError if some cannot be had in time."""
        found: dict[TopicPartition, FoundOffset | None] = {}
        failures = 0
        await self._ensure_known(timestamps, deadline)
        while True:
            left = {key: each for key, each in timestamps.items() if key not in found}
            if not left:
                return found
            answers, error = await self.find_once(left)
            found.update(answers)
            if error is None or len(found) == len(timestamps):
                continue
            if not error.retriable:
                raise error
            failures += 1
            delay_ms = self._cluster.backoff.delay_ms(failures, self._cluster.random)
            if deadline.left_ms() <= delay_ms:
                shown = ", ".join(sorted(str(key) for key in left))
                raise KafkaTimeoutError(
                    f"Failed to get offsets by times in {deadline.timeout_ms} ms: {shown}: {error}"
                ) from error
            self._cluster.request_refresh()
            await pause(self._cluster.clock, delay_ms)

    async def find_once(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> tuple[dict[TopicPartition, FoundOffset | None], KafkaError | None]:
        """One try: what was found, and the error of those that were not. The gravest of them, one
        that does not pass, if there are several."""
        by_leader: dict[Node, dict[TopicPartition, int]] = {}
        error: KafkaError | None = None
        for key, timestamp in timestamps.items():
            leader = self._cluster.metadata.leader(key)
            if leader is None:
                error = self._unknown_leader(key)
            else:
                by_leader.setdefault(leader, {})[key] = timestamp
        found: dict[TopicPartition, FoundOffset | None] = {}
        outcomes = await asyncio.gather(
            *(self._ask(leader, part) for leader, part in by_leader.items()),
            return_exceptions=True,
        )
        for outcome in outcomes:
            if isinstance(outcome, KafkaError):
                error = _graver(error, outcome)
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                found.update(outcome[0])
                error = _graver(error, outcome[1])
        return found, error

    async def _ask(
        self, leader: Node, timestamps: Mapping[TopicPartition, int]
    ) -> tuple[dict[TopicPartition, FoundOffset | None], KafkaError | None]:
        request = ListOffsetsRequest(
            replica_id=CONSUMER,
            isolation_level=self._isolation_level,
            timeout_ms=self._cluster.settings.request_timeout_ms,
        )
        topics: dict[str, ListOffsetsRequest.ListOffsetsTopic] = {}
        for key, timestamp in timestamps.items():
            topic = topics.get(key.topic)
            if topic is None:
                topic = topics[key.topic] = ListOffsetsRequest.ListOffsetsTopic(name=key.topic)
            topic.partitions.append(
                ListOffsetsRequest.ListOffsetsPartition(
                    partition_index=key.partition,
                    current_leader_epoch=self._leader_epoch(key),
                    timestamp=timestamp,
                )
            )
        request.topics = list(topics.values())
        response: ListOffsetsResponse = await self._cluster.call(leader, request)
        found: dict[TopicPartition, FoundOffset | None] = {}
        error: KafkaError | None = None
        for answer in response.topics:
            for each in answer.partitions:
                key = TopicPartition(answer.name, each.partition_index)
                if each.error_code == ErrorCode.NONE:
                    epoch = each.leader_epoch if each.leader_epoch >= 0 else None
                    found[key] = (
                        None
                        if each.offset == UNKNOWN_OFFSET
                        else FoundOffset(each.offset, each.timestamp, epoch)
                    )
                elif each.error_code == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
                    # Written before records had times.
                    found[key] = None
                else:
                    error = _graver(error, error_for(each.error_code, f"ListOffsets of {key}"))
        return found, error

    async def epoch_ends(
        self, node_id: int, positions: Mapping[TopicPartition, Position]
    ) -> tuple[dict[TopicPartition, EpochEnd], dict[TopicPartition, KafkaError]]:
        """Where the epochs of these positions end in a leader's log (KIP-320)."""
        topics: dict[str, OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = {}
        for key, position in positions.items():
            topic = topics.get(key.topic)
            if topic is None:
                topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=key.topic)
                topics[key.topic] = topic
            topic.partitions.append(
                OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
                    partition=key.partition,
                    current_leader_epoch=position.leader_epoch,
                    leader_epoch=-1 if position.offset_epoch is None else position.offset_epoch,
                )
            )
        request = OffsetForLeaderEpochRequest(replica_id=CONSUMER, topics=list(topics.values()))
        response: OffsetForLeaderEpochResponse = await self._cluster.call(node_id, request)
        ends: dict[TopicPartition, EpochEnd] = {}
        errors: dict[TopicPartition, KafkaError] = {}
        for answer in response.topics:
            for each in answer.partitions:
                key = TopicPartition(answer.topic, each.partition)
                if each.error_code == ErrorCode.NONE:
                    ends[key] = EpochEnd(each.leader_epoch, each.end_offset)
                else:
                    errors[key] = error_for(each.error_code, f"OffsetForLeaderEpoch of {key}")
        return ends, errors

    async def _ensure_known(
        self, partitions: Mapping[TopicPartition, int], deadline: Deadline
    ) -> None:
        picture = self._cluster.metadata
        missing = {key.topic for key in partitions if picture.leader(key) is None}
        if missing:
            await self._cluster.refresh(missing, deadline=deadline)

    def _leader_epoch(self, key: TopicPartition) -> int:
        view = self._cluster.metadata.partition(key)
        return -1 if view is None else view.leader_epoch

    def _unknown_leader(self, key: TopicPartition) -> KafkaError:
        code = self._cluster.metadata.errors.get(key.topic)
        if code is not None:
            return topic_error(code, key.topic)
        if key.topic in self._cluster.metadata.topics:
            return error_for(ErrorCode.LEADER_NOT_AVAILABLE, f"{key} has no leader")
        return error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{key} is not known")


def _graver(first: KafkaError | None, second: KafkaError | None) -> KafkaError | None:
    if first is None:
        return second
    if second is not None and first.retriable and not second.retriable:
        return second
    return first
