"""OffsetCommit, OffsetFetch and OffsetDelete, and the expiry of offsets.

Reads the store and the group, returns records and responses; changes nothing. Topics are already
resolved: the handlers know the cluster's metadata, this module does not.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping

from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.group.machine.group import Group, PartitionCheck
from moldau.broker.coordinator.group.machine.offsets import (
    INVALID_OFFSET,
    NO_EXPIRY,
    NO_LEADER_EPOCH,
    CommittedOffset,
    OffsetStore,
    offset_record,
    offset_tombstone,
)
from moldau.broker.coordinator.machine.decision import CoordinatorRecord
from moldau.times import WallMs
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)

_DEFAULT_RETENTION = -1


def commit(
    request: OffsetCommitRequest, check: PartitionCheck, config: GroupConfig, now_ms: WallMs
) -> tuple[list[CoordinatorRecord], OffsetCommitResponse]:
    """Records and response of a commit that is allowed."""
    expire_timestamp_ms = (
        NO_EXPIRY
        if request.retention_time_ms == _DEFAULT_RETENTION
        else now_ms + request.retention_time_ms
    )
    records: list[CoordinatorRecord] = []
    topics: list[OffsetCommitResponse.OffsetCommitResponseTopic] = []
    for topic in request.topics:
        partitions: list[OffsetCommitResponse.OffsetCommitResponsePartition] = []
        for partition in topic.partitions:
            metadata = partition.committed_metadata or ""
            error = ErrorCode.NONE
            if metadata_too_large(metadata, config):
                error = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                _check_partition(check, topic.name, topic.topic_id, partition.partition_index)
                records.append(
                    offset_record(
                        request.group_id,
                        topic.name,
                        partition.partition_index,
                        offset=partition.committed_offset,
                        leader_epoch=partition.committed_leader_epoch,
                        metadata=metadata,
                        commit_timestamp_ms=now_ms,
                        expire_timestamp_ms=expire_timestamp_ms,
                        topic_id=topic.topic_id,
                    )
                )
            partitions.append(
                OffsetCommitResponse.OffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=error
                )
            )
        topics.append(
            OffsetCommitResponse.OffsetCommitResponseTopic(
                name=topic.name, topic_id=topic.topic_id, partitions=partitions
            )
        )
    return records, OffsetCommitResponse(topics=topics)


def _check_partition(
    check: PartitionCheck, topic: str, topic_id: uuid.UUID, partition: int
) -> None:
    # One partition that the caller may not commit for fails the whole request.
    error = check(topic, topic_id, partition)
    if error is not ErrorCode.NONE:
        raise ApiError(error, f"the offset of {topic}-{partition} may not be committed")


def fetch(
    store: OffsetStore,
    request: OffsetFetchRequest.OffsetFetchRequestGroup,
    *,
    require_stable: bool,
) -> OffsetFetchResponse.OffsetFetchResponseGroup:
    """Offsets of the wanted partitions, or of all that have one when no topics are named."""
    group_id = request.group_id
    topics: list[OffsetFetchResponse.OffsetFetchResponseTopics] = []
    if request.topics is None:
        for name, partitions in store.of_group(group_id).items():
            topics.append(_fetched_topic(store, group_id, name, None, partitions, require_stable))
    else:
        for topic in request.topics:
            topics.append(
                _fetched_topic(
                    store,
                    group_id,
                    topic.name,
                    topic.topic_id,
                    topic.partition_indexes,
                    require_stable,
                )
            )
    return OffsetFetchResponse.OffsetFetchResponseGroup(group_id=group_id, topics=topics)


def _fetched_topic(
    store: OffsetStore,
    group_id: str,
    name: str,
    topic_id: uuid.UUID | None,
    partitions: Iterable[int],
    require_stable: bool,
) -> OffsetFetchResponse.OffsetFetchResponseTopics:
    response = OffsetFetchResponse.OffsetFetchResponseTopics(name=name)
    if topic_id is not None:
        response.topic_id = topic_id
    for partition in partitions:
        committed = store.get(group_id, name, partition)
        error = ErrorCode.NONE
        if require_stable and store.is_pending(group_id, name, partition):
            error, committed = ErrorCode.UNSTABLE_OFFSET_COMMIT, None
        elif committed is not None and topic_id is not None and not committed.is_of_topic(topic_id):
            committed = None
        response.partitions.append(_fetched_partition(partition, committed, error))
    return response


def _fetched_partition(
    partition: int, committed: CommittedOffset | None, error: ErrorCode
) -> OffsetFetchResponse.OffsetFetchResponsePartitions:
    if committed is None:
        return OffsetFetchResponse.OffsetFetchResponsePartitions(
            partition_index=partition,
            committed_offset=INVALID_OFFSET,
            committed_leader_epoch=NO_LEADER_EPOCH,
            metadata="",
            error_code=error,
        )
    return OffsetFetchResponse.OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        error_code=error,
    )


def delete(
    store: OffsetStore, group: Group, request: OffsetDeleteRequest
) -> tuple[list[CoordinatorRecord], OffsetDeleteResponse]:
    records: list[CoordinatorRecord] = []
    topics: list[OffsetDeleteResponse.OffsetDeleteResponseTopic] = []
    known = store.partitions(request.group_id)
    for topic in request.topics:
        subscribed = group.is_subscribed_to(topic.name)
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
        topics.append(
            OffsetDeleteResponse.OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponse.OffsetDeleteResponsePartition(
                        partition_index=partition.partition_index, error_code=error
                    )
                    for partition in topic.partitions
                ],
            )
        )
        if not subscribed:
            records.extend(
                offset_tombstone(request.group_id, topic.name, index)
                for index in dict.fromkeys(p.partition_index for p in topic.partitions)
                if (topic.name, index) in known
            )
    return records, OffsetDeleteResponse(topics=topics)


def delete_all(store: OffsetStore, group_id: str) -> list[CoordinatorRecord]:
    return [
        offset_tombstone(group_id, topic, partition)
        for topic, partition in sorted(store.partitions(group_id))
    ]


def expire(
    store: OffsetStore, group: Group, config: GroupConfig, now_ms: WallMs
) -> tuple[list[CoordinatorRecord], bool]:
    """Tombstones for offsets past their retention, and whether none are left after that."""
    offsets = store.of_group(group.group_id)
    if not offsets:
        return [], not store.has_open_transaction(group.group_id)
    records: list[CoordinatorRecord] = []
    kept = store.has_open_transaction(group.group_id)
    for topic, partitions in offsets.items():
        if group.is_subscribed_to(topic):
            kept = True
            continue
        for partition, offset in partitions.items():
            start_ms = group.offsets_expire_from(offset)
            if start_ms is None:
                # The same for all its offsets: they do not expire while it is in this state.
                return [], False
            expired = offset.is_expired(now_ms, start_ms, config.offsets_retention_ms)
            if expired and not store.is_pending(group.group_id, topic, partition):
                records.append(offset_tombstone(group.group_id, topic, partition))
            else:
                kept = True
    return records, not kept


def of_topics(store: OffsetStore, topics: Mapping[str, uuid.UUID]) -> list[CoordinatorRecord]:
    """Tombstones for every offset of topics that no longer exist, by name and former id."""
    return [
        offset_tombstone(group_id, topic, partition)
        for group_id in sorted(store.known_group_ids())
        for topic, partition in sorted(store.partitions(group_id, topics))
    ]


def metadata_too_large(metadata: str, config: GroupConfig) -> bool:
    return _java_length(metadata) > config.offset_metadata_max_bytes


def _java_length(text: str) -> int:
    """The length Kafka compares with the limit: UTF-16 code units, whatever the key is called."""
    if text.isascii():
        return len(text)
    return len(text) + sum(1 for character in text if ord(character) > 0xFFFF)
