"""Share groups, and the state of their partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from moldau.wire import messages as m
from moldau.wire.acls import AclOperation as Op
from moldau.wire.apis import ApiKey
from moldau.wire.message import Message
from support.denials.rows import (
    CLUSTER_ACTION,
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    G30,
    GROUP,
    NO_PARTITION,
    READ_GROUP,
    T29,
    TOPIC,
    group,
    row,
    topic,
)

MEMBER = "AAAAAAAAAAAAAAAAAAAAAA"


def _share_fetch(topic_id: UUID) -> Message:
    part = m.ShareFetchRequest.FetchPartition(partition_index=NO_PARTITION)
    return m.ShareFetchRequest(
        group_id=GROUP, member_id=MEMBER, share_session_epoch=0, max_wait_ms=0, min_bytes=0,
        max_bytes=1000, max_records=1, batch_size=1,
        topics=[m.ShareFetchRequest.FetchTopic(topic_id=topic_id, partitions=[part])],
    )  # fmt: skip


def _share_acknowledge(topic_id: UUID) -> Message:
    part = m.ShareAcknowledgeRequest.AcknowledgePartition(
        partition_index=NO_PARTITION,
        acknowledgement_batches=[
            m.ShareAcknowledgeRequest.AcknowledgementBatch(
                first_offset=0, last_offset=0, acknowledge_types=[1]
            )
        ],
    )
    return m.ShareAcknowledgeRequest(
        group_id=GROUP, member_id=MEMBER, share_session_epoch=1,
        topics=[m.ShareAcknowledgeRequest.AcknowledgeTopic(topic_id=topic_id, partitions=[part])],
    )  # fmt: skip


def _describe_share_offsets() -> Message:
    request = m.DescribeShareGroupOffsetsRequest
    named = request.DescribeShareGroupOffsetsRequestTopic(topic_name=TOPIC, partitions=[0])
    return request(
        groups=[request.DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=[named])]
    )


def _alter_share_offsets() -> Message:
    request = m.AlterShareGroupOffsetsRequest
    part = request.AlterShareGroupOffsetsRequestPartition(partition_index=NO_PARTITION)
    named = request.AlterShareGroupOffsetsRequestTopic(topic_name=TOPIC, partitions=[part])
    return request(group_id=GROUP, topics=[named])


def _delete_share_offsets() -> Message:
    request = m.DeleteShareGroupOffsetsRequest
    named = request.DeleteShareGroupOffsetsRequestTopic(topic_name=TOPIC)
    return request(group_id=GROUP, topics=[named])


def _state(request: Any, data: str) -> Callable[[UUID], Message]:
    def make(topic_id: UUID) -> Message:
        part = request.PartitionData(partition=0)
        made: Message = request(
            group_id=GROUP, topics=[getattr(request, data)(topic_id=topic_id, partitions=[part])]
        )
        return made

    return make


SHARE = (
    row(ApiKey.SHARE_FETCH, 1, _share_fetch, READ_GROUP, (topic(Op.READ), T29), same=False),
    row(ApiKey.SHARE_ACKNOWLEDGE, 1, _share_acknowledge, READ_GROUP, (topic(Op.READ), T29),
        same=False),
    row(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 0, _describe_share_offsets(), DESCRIBE_GROUP,
        DESCRIBE_TOPIC),
    row(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, _alter_share_offsets(), READ_GROUP,
        (topic(Op.READ), T29), same=False),
    row(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, _delete_share_offsets(), (group(Op.DELETE), G30),
        (topic(Op.READ), T29)),
    row(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0,
        _state(m.InitializeShareGroupStateRequest, "InitializeStateData"), CLUSTER_ACTION,
        same=False),
    row(ApiKey.READ_SHARE_GROUP_STATE, 0,
        _state(m.ReadShareGroupStateRequest, "ReadStateData"), CLUSTER_ACTION,
        same=False),
    row(ApiKey.WRITE_SHARE_GROUP_STATE, 0,
        _state(m.WriteShareGroupStateRequest, "WriteStateData"), CLUSTER_ACTION,
        same=False),
    row(ApiKey.DELETE_SHARE_GROUP_STATE, 0,
        _state(m.DeleteShareGroupStateRequest, "DeleteStateData"), CLUSTER_ACTION,
        same=False),
    row(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 0,
        _state(m.ReadShareGroupStateSummaryRequest, "ReadStateSummaryData"), CLUSTER_ACTION,
        same=False),
)  # fmt: skip
