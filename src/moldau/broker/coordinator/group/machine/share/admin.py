"""What administrators do to the offsets of share groups: decided here, carried out by the service.

Each change has two steps, for the offsets themselves are with the share coordinator: first the
group's record says what is about to be made or removed, then, when the share coordinator has done
it, that it is done. What fails in between is left marked and can be asked for again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from uuid import UUID

from moldau.broker.coordinator.group.machine.share import records
from moldau.broker.coordinator.group.machine.share.group import ShareGroup
from moldau.broker.coordinator.group.machine.share.groups import ShareGroups
from moldau.broker.coordinator.group.machine.share.states import TopicPartitions, merged
from moldau.broker.coordinator.machine.decision import Outbox
from moldau.broker.coordinator.machine.topics import ClusterTopics, TopicFacts
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse
from moldau.wire.messages import DeleteShareGroupOffsetsResponse as DeleteResponse

AlterTopic = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic
AlterPartition = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition
DeleteTopic = DeleteResponse.DeleteShareGroupOffsetsResponseTopic

_NO_SUCH_PARTITION = "This server does not host this topic-partition."


@dataclass(slots=True)
class Alteration:
    """Start offsets to be set, and the response if that goes well."""

    state_epoch: int
    start_offsets: dict[UUID, dict[int, int]] = field(default_factory=dict)
    topics: dict[UUID, TopicPartitions] = field(default_factory=dict)
    response: list[AlterTopic] = field(default_factory=list)


@dataclass(slots=True)
class OffsetDeletion:
    """Topics whose state is to be deleted, and those for which that cannot be."""

    topics: dict[UUID, TopicPartitions] = field(default_factory=dict)
    refused: list[DeleteTopic] = field(default_factory=list)


def begin_alteration(
    groups: ShareGroups,
    topics: ClusterTopics,
    request: AlterShareGroupOffsetsRequest,
    out: Outbox,
) -> Alteration:
    """A group that does not exist yet is created; one with members is rejected."""
    group = groups.groups.get(request.group_id) or ShareGroup(request.group_id)
    group.check_empty()
    alteration = Alteration(group.group_epoch)
    for topic in request.topics:
        facts = topics.topic(topic.topic_name)
        answered = AlterTopic(topic_name=topic.topic_name)
        alteration.response.append(answered)
        if facts is not None:
            answered.topic_id = facts.id
        for partition in topic.partitions:
            index = partition.partition_index
            answered.partitions.append(AlterPartition(partition_index=index))
            if facts is None or not 0 <= index < facts.partition_count:
                answered.partitions[-1].error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                answered.partitions[-1].error_message = _NO_SUCH_PARTITION
                continue
            alteration.start_offsets.setdefault(facts.id, {})[index] = partition.start_offset
    for topic_id, offsets in alteration.start_offsets.items():
        facts = topics.topic_by_id(topic_id)
        name = "" if facts is None else facts.name
        alteration.topics[topic_id] = TopicPartitions(name, frozenset(offsets))
    if alteration.topics:
        groups.begin_initialization(group, alteration.topics, out)
    return alteration


def begin_group_deletion(
    groups: ShareGroups, topics: ClusterTopics, group_id: str, out: Outbox
) -> dict[UUID, TopicPartitions]:
    """What the share coordinator must forget before the group can go; NON_EMPTY_GROUP."""
    group = groups.existing(group_id)
    group.check_empty()
    if group.states is None:
        return {}
    doomed = merged(group.states.initialized, group.states.initializing)
    for topic_id in group.states.deleting:
        # An earlier deletion did not come to its end.
        facts = topics.topic_by_id(topic_id)
        if facts is not None:
            doomed = merged(doomed, {topic_id: _whole(facts)})
    out.write(records.states_record(group_id, group.states.deleting_all(doomed)))
    return doomed


def begin_offset_deletion(
    groups: ShareGroups,
    topics: ClusterTopics,
    group_id: str,
    topic_names: Collection[str],
    out: Outbox,
) -> OffsetDeletion:
    group = groups.existing(group_id)
    group.check_empty()
    deletion = OffsetDeletion()
    states = group.states
    if states is None:
        return deletion
    for name in topic_names:
        facts = topics.topic(name)
        if facts is None:
            deletion.refused.append(_refused(name, _NO_SUCH_PARTITION))
        elif facts.id in states.initialized:
            deletion.topics[facts.id] = states.initialized[facts.id]
        elif facts.id in states.deleting:
            deletion.topics[facts.id] = _whole(facts)
        else:
            deletion.refused.append(_refused(name, "There is no offset information to delete."))
    if deletion.topics:
        out.write(records.states_record(group_id, states.deleting_offsets(deletion.topics)))
    return deletion


def end_offset_deletion(
    groups: ShareGroups, group_id: str, topic_ids: Collection[UUID], out: Outbox
) -> None:
    group = groups.groups.get(group_id)
    if group is not None and group.states is not None:
        states = group.states.deleted(topic_ids)
        if states != group.states:
            out.write(records.states_record(group_id, states))


def _whole(facts: TopicFacts) -> TopicPartitions:
    return TopicPartitions(facts.name, frozenset(range(facts.partition_count)))


def _refused(name: str, message: str) -> DeleteTopic:
    return DeleteTopic(
        topic_name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, error_message=message
    )
