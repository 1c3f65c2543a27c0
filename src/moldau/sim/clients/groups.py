"""Offsets of groups, as every member asks for and commits them."""

from __future__ import annotations

from moldau.sim.clients.actor import Actor, check
from moldau.sim.clients.rpc import Lost
from moldau.wire.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)

TopicPartition = tuple[str, int]

GROUP_KEYS = 0
OFFSETS_TOPIC = "__consumer_offsets"
NO_TOPIC_IDS = 9


async def fetch_offset(
    actor: Actor,
    group: str,
    where: TopicPartition,
    *,
    stable: bool = True,
    member_id: str | None = None,
    member_epoch: int = -1,
) -> int:
    known = actor.history.committed(group, where)
    address = await actor.wire.coordinator(group, GROUP_KEYS)
    reign = actor.cluster.reign(OFFSETS_TOPIC)
    request = OffsetFetchRequest
    response = await actor.wire.call(
        address,
        request(
            groups=[
                request.OffsetFetchRequestGroup(
                    group_id=group,
                    member_id=member_id,
                    member_epoch=member_epoch,
                    topics=[
                        request.OffsetFetchRequestTopics(
                            name=where[0], partition_indexes=[where[1]]
                        )
                    ],
                )
            ],
            require_stable=stable,
        ),
        OffsetFetchResponse,
        max_version=NO_TOPIC_IDS,
    )
    answer = response.groups[0]
    check(answer.error_code)
    partition = answer.topics[0].partitions[0]
    check(partition.error_code)
    if reign != actor.cluster.reign(OFFSETS_TOPIC) or reign[0] != address[0]:
        raise Lost("the answer may be that of a former coordinator")
    actor.history.on_offset_fetched(group, where, partition.committed_offset, known)
    return partition.committed_offset


async def commit_offset(
    actor: Actor,
    group: str,
    where: TopicPartition,
    offset: int,
    *,
    member_id: str,
    generation: int,
) -> None:
    address = await actor.wire.coordinator(group, GROUP_KEYS)
    actor.history.on_commit_sent(group, where, offset)
    request = OffsetCommitRequest
    response = await actor.wire.call(
        address,
        request(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=[
                request.OffsetCommitRequestTopic(
                    name=where[0],
                    partitions=[
                        request.OffsetCommitRequestPartition(
                            partition_index=where[1], committed_offset=offset
                        )
                    ],
                )
            ],
        ),
        OffsetCommitResponse,
        max_version=NO_TOPIC_IDS,
    )
    check(response.topics[0].partitions[0].error_code)
    actor.history.on_committed(group, where, offset)
