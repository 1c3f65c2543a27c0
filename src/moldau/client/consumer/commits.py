"""Commits offsets to the group's coordinator and reads what is committed.

Invariants: a commit carries the identity of the member at the moment it is sent; one that is
refused because of it is not sent again with another behind the application's back; what fails for a
reason that passes is tried again until the deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any

from moldau.client.cluster import ClusterClient
from moldau.client.consumer.membership_interface import ConsumerGroupMetadata
from moldau.client.deadline import Deadline
from moldau.client.errors import (
    CommitFailedError,
    KafkaError,
    KafkaTimeoutError,
    RetriableError,
    StaleMemberEpochError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
    error_for,
)
from moldau.client.machine.coordinators import CoordinatorType
from moldau.client.metrics import ConsumerMetrics
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.wire.constants import NO_OFFSET
from moldau.wire.errors import COORDINATOR_MOVED, ErrorCode
from moldau.wire.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)

__all__ = ["GroupOffsets"]

# The last versions that name topics; later ones have their ids only.
_COMMIT_VERSION_MAX = 9
_FETCH_VERSION_MAX = 9
_FETCH_BEFORE_GROUPS = 7

_COORDINATOR_LOST = COORDINATOR_MOVED | {ErrorCode.REQUEST_TIMED_OUT}
_IDENTITY_REFUSED = frozenset(
    (
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.FENCED_INSTANCE_ID,
    )
)
_RETRIED_COMMIT = _COORDINATOR_LOST | {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}


class _EpochChanged(RetriableError):
    """The same commit may be made with the epoch that a heartbeat has brought."""


class GroupOffsets:
    """See the module. `on_refused` is called if a commit is refused because of its sender."""

    def __init__(
        self,
        cluster: ClusterClient,
        group_id: str,
        *,
        is_consumer_protocol: bool,
        identity: Callable[[], ConsumerGroupMetadata],
        on_refused: Callable[[ErrorCode, ConsumerGroupMetadata], None],
        metrics: ConsumerMetrics,
    ) -> None:
        self._cluster = cluster
        self._group_id = group_id
        self._is_consumer_protocol = is_consumer_protocol
        self._identity = identity
        self._on_refused = on_refused
        self._metrics = metrics

    # Committing.

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        deadline: Deadline,
        *,
        automatic: bool = False,
    ) -> None:
        """Until it is done; raises KafkaError. With `automatic`, which is for what the member still
        owns, also after the member's epoch has changed on the way, but not for topics that are
        gone: nobody waits for them to come back."""

        async def attempt() -> None:
            try:
                await self.commit_once(offsets)
            except CommitFailedError as error:
                cause = error.__cause__
                if automatic and isinstance(cause, StaleMemberEpochError):
                    raise _EpochChanged(str(cause)) from cause
                raise
            except UnknownTopicOrPartitionError as error:
                if automatic:
                    raise KafkaError(str(error)) from error
                raise

        what = "The commit of offsets"
        try:
            # What was sent is still answered, but nobody waits for it longer than that.
            async with asyncio.timeout(deadline.left_ms() / 1000):
                await self._cluster.retrying(attempt, deadline=deadline, what=what)
        except KafkaTimeoutError:
            raise
        except TimeoutError:
            raise KafkaTimeoutError(
                f"{what} was not answered within {deadline.timeout_ms} ms"
            ) from None

    async def commit_once(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """One try; raises KafkaError, retriable or not."""
        if not offsets:
            return
        identity = self._identity()
        request = OffsetCommitRequest(
            group_id=self._group_id,
            generation_id_or_member_epoch=identity.generation_id,
            member_id=identity.member_id,
            group_instance_id=identity.group_instance_id,
            topics=_commit_topics(offsets),
        )
        started_ms = self._cluster.clock.elapsed_ms()
        response: OffsetCommitResponse = await self._cluster.call_coordinator(
            CoordinatorType.GROUP, self._group_id, request, max_version=_COMMIT_VERSION_MAX
        )
        self._metrics.commit_answered(self._cluster.clock.elapsed_ms() - started_ms)
        denied: list[str] = []
        for topic in response.topics:
            for each in topic.partitions:
                if each.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    denied.append(topic.name)
                elif each.error_code != ErrorCode.NONE:
                    key = TopicPartition(topic.name, each.partition_index)
                    raise self._commit_error(each.error_code, key, identity)
        if denied:
            names = ", ".join(sorted(set(denied)))
            raise error_for(
                ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"Not authorized to access topics: {names}"
            )

    def _commit_error(
        self, error_code: int, key: TopicPartition, identity: ConsumerGroupMetadata
    ) -> KafkaError:
        error = error_for(error_code, f"committing the offset of {key}")
        code = error.code
        if code in _COORDINATOR_LOST:
            self._cluster.forget_coordinator(CoordinatorType.GROUP, self._group_id)
        if code not in _IDENTITY_REFUSED or code is None:
            if error.retriable and code not in _RETRIED_COMMIT:
                return KafkaError(f"Unexpected error in commit: {error}")
            return error
        self._on_refused(code, identity)
        if code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.FENCED_INSTANCE_ID):
            return error
        failed = CommitFailedError(
            "Offset commit cannot be completed since the consumer is not part of an active group "
            "for auto partition assignment; it is likely that the consumer was kicked out of the "
            f"group ({code.name})"
        )
        failed.__cause__ = error
        return failed

    # Reading.

    async def committed(
        self, partitions: Collection[TopicPartition], deadline: Deadline
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What is committed, None where nothing is; raises KafkaError."""
        if not partitions:
            return {}
        return await self._cluster.retrying(
            lambda: self._committed_once(partitions),
            deadline=deadline,
            what=f"Reading the committed offsets of {', '.join(sorted(map(str, partitions)))}",
        )

    async def _committed_once(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        by_topic: dict[str, list[int]] = {}
        for key in partitions:
            by_topic.setdefault(key.topic, []).append(key.partition)
        identity = self._identity()
        try:
            response = await self._ask_by_groups(by_topic, identity)
            group: Any = response.groups[0]
        except UnsupportedVersionError:
            group = response = await self._ask_by_topics(by_topic)
        if group.error_code != ErrorCode.NONE:
            raise self._fetch_error(group.error_code, identity)
        found = _read_committed(group.topics)
        return {key: found.get(key) for key in partitions}

    async def _ask_by_groups(
        self, by_topic: Mapping[str, list[int]], identity: ConsumerGroupMetadata
    ) -> OffsetFetchResponse:
        group = OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id=self._group_id,
            topics=[
                OffsetFetchRequest.OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
                for name, indexes in by_topic.items()
            ],
        )
        if self._is_consumer_protocol and identity.member_id:
            group.member_id = identity.member_id
            group.member_epoch = identity.generation_id
        response: OffsetFetchResponse = await self._cluster.call_coordinator(
            CoordinatorType.GROUP,
            self._group_id,
            OffsetFetchRequest(groups=[group], require_stable=True),
            max_version=_FETCH_VERSION_MAX,
        )
        return response

    async def _ask_by_topics(self, by_topic: Mapping[str, list[int]]) -> OffsetFetchResponse:
        """As brokers before Kafka 3.0 are asked."""
        request = OffsetFetchRequest(
            group_id=self._group_id,
            topics=[
                OffsetFetchRequest.OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
                for name, indexes in by_topic.items()
            ],
        )
        response: OffsetFetchResponse = await self._cluster.call_coordinator(
            CoordinatorType.GROUP, self._group_id, request, max_version=_FETCH_BEFORE_GROUPS
        )
        return response

    def _fetch_error(self, error_code: int, identity: ConsumerGroupMetadata) -> KafkaError:
        error = error_for(error_code, f"reading the committed offsets of group {self._group_id}")
        if error.code in _COORDINATOR_LOST:
            self._cluster.forget_coordinator(CoordinatorType.GROUP, self._group_id)
        elif error.code is ErrorCode.STALE_MEMBER_EPOCH and self._identity() != identity:
            # A heartbeat has brought another epoch meanwhile: the next try has it.
            return error_for(ErrorCode.UNSTABLE_OFFSET_COMMIT, "the member epoch has changed")
        return error


def _commit_topics(
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
) -> list[OffsetCommitRequest.OffsetCommitRequestTopic]:
    topics: dict[str, OffsetCommitRequest.OffsetCommitRequestTopic] = {}
    for key, each in offsets.items():
        topic = topics.get(key.topic)
        if topic is None:
            topic = OffsetCommitRequest.OffsetCommitRequestTopic(name=key.topic)
            topics[key.topic] = topic
        topic.partitions.append(
            OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=key.partition,
                committed_offset=each.offset,
                committed_leader_epoch=-1 if each.leader_epoch is None else each.leader_epoch,
                committed_metadata=each.metadata,
            )
        )
    return list(topics.values())


def _read_committed(topics: Any) -> dict[TopicPartition, OffsetAndMetadata]:
    found: dict[TopicPartition, OffsetAndMetadata] = {}
    denied: set[str] = set()
    for topic in topics:
        for each in topic.partitions:
            key = TopicPartition(topic.name, each.partition_index)
            if each.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                denied.add(topic.name)
            elif each.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise KafkaError(f"Topic or partition {key} does not exist")
            elif each.error_code != ErrorCode.NONE:
                raise error_for(each.error_code, f"reading the committed offset of {key}")
            elif each.committed_offset != NO_OFFSET:
                epoch = each.committed_leader_epoch
                found[key] = OffsetAndMetadata(
                    each.committed_offset, each.metadata or "", epoch if epoch >= 0 else None
                )
    if denied:
        raise error_for(
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            f"Not authorized to access topics: {', '.join(sorted(denied))}",
        )
    return found
