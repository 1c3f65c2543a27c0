"""Groups of all kinds and their offsets."""

from __future__ import annotations

from uuid import UUID

from moldau.wire import messages as m
from moldau.wire.acls import AclOperation as Op
from moldau.wire.apis import ApiKey
from moldau.wire.message import Message
from support.denials.rows import (
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    G30,
    GROUP,
    HIDDEN,
    NO_PARTITION,
    READ_GROUP,
    T29,
    TOPIC,
    TXN,
    X53,
    group,
    row,
    topic,
    txn,
)


def _offset_commit(topic_id: UUID | None) -> Message:
    part = m.OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=NO_PARTITION, committed_metadata=""
    )
    named = m.OffsetCommitRequest.OffsetCommitRequestTopic(partitions=[part])
    if topic_id is None:
        named.name = TOPIC
    else:
        named.topic_id = topic_id
    return m.OffsetCommitRequest(group_id=GROUP, topics=[named])


def _offset_fetch(*, all_topics: bool) -> Message:
    named = m.OffsetFetchRequest.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])
    return m.OffsetFetchRequest(
        groups=[
            m.OffsetFetchRequest.OffsetFetchRequestGroup(
                group_id=GROUP, topics=None if all_topics else [named]
            )
        ]
    )


def _offset_fetch_of_id(topic_id: UUID) -> Message:
    named = m.OffsetFetchRequest.OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0])
    return m.OffsetFetchRequest(
        groups=[m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id=GROUP, topics=[named])]
    )


def _offset_fetch_of_one() -> Message:
    named = m.OffsetFetchRequest.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])
    return m.OffsetFetchRequest(group_id=GROUP, topics=[named])


def _offset_delete() -> Message:
    part = m.OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=NO_PARTITION)
    named = m.OffsetDeleteRequest.OffsetDeleteRequestTopic(name=TOPIC, partitions=[part])
    return m.OffsetDeleteRequest(group_id=GROUP, topics=[named])


NOBODY = "nobody"
GROUPS = (
    row(
        ApiKey.FIND_COORDINATOR,
        4,
        m.FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]),
        DESCRIBE_GROUP,
    ),
    row(ApiKey.FIND_COORDINATOR, 3, m.FindCoordinatorRequest(key=GROUP), DESCRIBE_GROUP),
    row(
        ApiKey.FIND_COORDINATOR,
        4,
        m.FindCoordinatorRequest(key_type=1, coordinator_keys=[TXN]),
        (txn(Op.DESCRIBE), X53),
    ),
    row(
        ApiKey.JOIN_GROUP,
        9,
        m.JoinGroupRequest(group_id=GROUP, session_timeout_ms=1, protocol_type="consumer"),
        READ_GROUP,
    ),
    row(
        ApiKey.JOIN_GROUP,
        5,
        m.JoinGroupRequest(group_id=GROUP, session_timeout_ms=1, protocol_type="consumer"),
        READ_GROUP,
    ),
    row(
        ApiKey.SYNC_GROUP,
        5,
        m.SyncGroupRequest(
            group_id=GROUP,
            member_id=NOBODY,
            generation_id=1,
            protocol_type="consumer",
            protocol_name="range",
        ),
        READ_GROUP,
    ),
    row(
        ApiKey.SYNC_GROUP,
        5,
        m.SyncGroupRequest(group_id=GROUP, member_id=NOBODY, generation_id=1),
    ),
    row(
        ApiKey.HEARTBEAT,
        4,
        m.HeartbeatRequest(group_id=GROUP, member_id=NOBODY, generation_id=1),
        READ_GROUP,
    ),
    row(
        ApiKey.LEAVE_GROUP,
        5,
        m.LeaveGroupRequest(
            group_id=GROUP, members=[m.LeaveGroupRequest.MemberIdentity(member_id=NOBODY)]
        ),
        READ_GROUP,
    ),
    row(ApiKey.OFFSET_COMMIT, 9, _offset_commit(None), READ_GROUP, (topic(Op.READ), T29)),
    row(ApiKey.OFFSET_COMMIT, 10, _offset_commit, READ_GROUP, (topic(Op.READ), T29)),
    row(ApiKey.OFFSET_FETCH, 9, _offset_fetch(all_topics=False), DESCRIBE_GROUP, DESCRIBE_TOPIC),
    row(
        ApiKey.OFFSET_FETCH,
        9,
        _offset_fetch(all_topics=True),
        DESCRIBE_GROUP,
        (topic(Op.DESCRIBE), HIDDEN),
    ),
    row(ApiKey.OFFSET_FETCH, 10, _offset_fetch_of_id, DESCRIBE_GROUP, DESCRIBE_TOPIC),
    row(ApiKey.OFFSET_FETCH, 7, _offset_fetch_of_one(), DESCRIBE_GROUP, DESCRIBE_TOPIC),
    row(ApiKey.OFFSET_FETCH, 1, _offset_fetch_of_one(), DESCRIBE_GROUP, DESCRIBE_TOPIC),
    row(
        ApiKey.OFFSET_DELETE,
        0,
        _offset_delete(),
        (group(Op.DELETE), G30),
        (topic(Op.READ), T29),
    ),
    row(ApiKey.LIST_GROUPS, 5, m.ListGroupsRequest(), (group(Op.DESCRIBE), HIDDEN)),
    row(
        ApiKey.DESCRIBE_GROUPS,
        6,
        m.DescribeGroupsRequest(groups=[GROUP], include_authorized_operations=True),
        DESCRIBE_GROUP,
    ),
    row(
        ApiKey.DELETE_GROUPS,
        2,
        m.DeleteGroupsRequest(groups_names=[GROUP]),
        (group(Op.DELETE), G30),
    ),
    row(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        1,
        m.ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id=NOBODY, member_epoch=5, subscribed_topic_names=[TOPIC]
        ),
        READ_GROUP,
        DESCRIBE_TOPIC,
    ),
    row(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        1,
        m.ConsumerGroupDescribeRequest(group_ids=[GROUP], include_authorized_operations=True),
        DESCRIBE_GROUP,
    ),
    row(
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        0,
        m.StreamsGroupHeartbeatRequest(group_id=GROUP, member_id=NOBODY, member_epoch=5),
        READ_GROUP,
    ),
    row(
        ApiKey.STREAMS_GROUP_DESCRIBE,
        0,
        m.StreamsGroupDescribeRequest(group_ids=[GROUP], include_authorized_operations=True),
        DESCRIBE_GROUP,
    ),
    row(
        ApiKey.SHARE_GROUP_HEARTBEAT,
        1,
        m.ShareGroupHeartbeatRequest(
            group_id=GROUP, member_id=NOBODY, member_epoch=5, subscribed_topic_names=[TOPIC]
        ),
        READ_GROUP,
        DESCRIBE_TOPIC,
    ),
    row(
        ApiKey.SHARE_GROUP_DESCRIBE,
        1,
        m.ShareGroupDescribeRequest(group_ids=[GROUP], include_authorized_operations=True),
        DESCRIBE_GROUP,
    ),
)
