"""TxnOffsetCommit: offsets that count once their transaction is committed.

Reads the group, returns records and the response; changes nothing. The records go into the
producer's transaction, so replay keeps them pending until its marker follows. Clients of this
API know no STALE_MEMBER_EPOCH: a member of any protocol that is behind has an old generation.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from moldau.broker.coordinator.group.machine.commits import metadata_too_large
from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.group.machine.group import (
    CommitCaller,
    Group,
    PartitionCheck,
    any_partition,
)
from moldau.broker.coordinator.group.machine.offsets import NO_EXPIRY, offset_record
from moldau.broker.coordinator.machine.decision import CoordinatorRecord
from moldau.times import WallMs
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse

_TopicResult = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
_PartitionResult = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition


def commit_transactional(
    group: Group | None,
    request: TxnOffsetCommitRequest,
    topic_ids: Mapping[str, uuid.UUID],
    *,
    version: int,
    config: GroupConfig,
    now_ms: WallMs,
) -> tuple[list[CoordinatorRecord], TxnOffsetCommitResponse]:
    """Records and response of a commit; raises ApiError where nothing may be committed.

    `topic_ids` has every topic of the request.
    """
    check = _check(group, request, version)
    records: list[CoordinatorRecord] = []
    response = TxnOffsetCommitResponse()
    for topic in request.topics:
        result = _TopicResult(name=topic.name)
        response.topics.append(result)
        topic_id = topic_ids[topic.name]
        for partition in topic.partitions:
            index = partition.partition_index
            error = ErrorCode.NONE
            metadata = partition.committed_metadata or ""
            if metadata_too_large(metadata, config):
                error = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                refusal = check(topic.name, topic_id, index)
                if refusal is not ErrorCode.NONE:
                    # One partition that the member does not own fails the whole request.
                    raise ApiError(
                        _known_here(refusal), f"the offset of {topic.name}-{index} may not be set"
                    )
                records.append(
                    offset_record(
                        request.group_id,
                        topic.name,
                        index,
                        offset=partition.committed_offset,
                        leader_epoch=partition.committed_leader_epoch,
                        metadata=metadata,
                        commit_timestamp_ms=now_ms,
                        expire_timestamp_ms=NO_EXPIRY,
                        topic_id=topic_id,
                    )
                )
            result.partitions.append(_PartitionResult(partition_index=index, error_code=error))
    return records, response


def _check(group: Group | None, request: TxnOffsetCommitRequest, version: int) -> PartitionCheck:
    if group is None:
        if request.generation_id >= 0:
            raise ApiError(
                ErrorCode.ILLEGAL_GENERATION, f"group {request.group_id} has no generation"
            )
        # A producer that consumes partitions it chose itself.
        return any_partition
    caller = CommitCaller(
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        transactional=True,
        version=version,
    )
    try:
        return group.check_commit(caller)
    except ApiError as error:
        raise ApiError(_known_here(error.code), error.message) from error


def _known_here(error: ErrorCode) -> ErrorCode:
    stale = error is ErrorCode.STALE_MEMBER_EPOCH
    return ErrorCode.ILLEGAL_GENERATION if stale else error


def refused(request: TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    """The same error for every partition."""
    return TxnOffsetCommitResponse(
        topics=[
            _TopicResult(
                name=topic.name,
                partitions=[
                    _PartitionResult(partition_index=each.partition_index, error_code=error)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
