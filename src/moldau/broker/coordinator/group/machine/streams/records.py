"""Streams groups as `__consumer_offsets` holds them: one function per record, all at version 0.

Lists are sorted, so equal states give equal bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

from moldau.broker.coordinator.group.machine.streams.members import StreamsMember
from moldau.broker.coordinator.group.machine.streams.tasks import (
    AssignedTasks,
    EpochMap,
    TaskMap,
    Tasks,
)
from moldau.broker.coordinator.group.machine.streams.topology import StreamsTopology
from moldau.broker.coordinator.machine.decision import CoordinatorRecord
from moldau.wire.messages import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)

_Current = StreamsGroupCurrentMemberAssignmentValue
_Target = StreamsGroupTargetAssignmentMemberValue
_Member = StreamsGroupMemberMetadataValue

KEYS = (
    StreamsGroupMetadataKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupTopologyKey,
)


def group_metadata(
    group_id: str,
    *,
    epoch: int,
    metadata_hash: int,
    validated_topology_epoch: int,
    assignment_configs: Mapping[str, str],
) -> CoordinatorRecord:
    return CoordinatorRecord(
        StreamsGroupMetadataKey(group_id=group_id),
        StreamsGroupMetadataValue(
            epoch=epoch,
            metadata_hash=metadata_hash,
            validated_topology_epoch=validated_topology_epoch,
            last_assignment_configs=[
                StreamsGroupMetadataValue.LastAssignmentConfig(key=key, value=value)
                for key, value in sorted(assignment_configs.items())
            ],
        ),
    )


def topology(group_id: str, value: StreamsTopology) -> CoordinatorRecord:
    record: StreamsGroupTopologyValue = value.to_value()
    return CoordinatorRecord(StreamsGroupTopologyKey(group_id=group_id), record)


def member_metadata(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    endpoint = member.user_endpoint
    return CoordinatorRecord(
        StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        _Member(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            topology_epoch=member.topology_epoch,
            process_id=member.process_id,
            user_endpoint=None
            if endpoint is None
            else _Member.Endpoint(host=endpoint.host, port=endpoint.port),
            client_tags=[
                _Member.KeyValue(key=key, value=value) for key, value in member.client_tags
            ],
        ),
    )


def target_assignment(group_id: str, member_id: str, tasks: Tasks) -> CoordinatorRecord:
    return CoordinatorRecord(
        StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        _Target(
            active_tasks=_target_tasks(tasks.active),
            standby_tasks=_target_tasks(tasks.standby),
            warmup_tasks=_target_tasks(tasks.warmup),
        ),
    )


def target_assignment_metadata(
    group_id: str, assignment_epoch: int, timestamp_ms: int
) -> CoordinatorRecord:
    return CoordinatorRecord(
        StreamsGroupTargetAssignmentMetadataKey(group_id=group_id),
        StreamsGroupTargetAssignmentMetadataValue(
            assignment_epoch=assignment_epoch, assignment_timestamp=timestamp_ms
        ),
    )


def current_assignment(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    assigned, pending = member.assigned, member.pending_revocation
    return CoordinatorRecord(
        StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        _Current(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=member.state,
            active_tasks=_epoch_tasks(assigned.active),
            standby_tasks=_current_tasks(assigned.standby),
            warmup_tasks=_current_tasks(assigned.warmup),
            active_tasks_pending_revocation=_epoch_tasks(pending.active),
            standby_tasks_pending_revocation=_current_tasks(pending.standby),
            warmup_tasks_pending_revocation=_current_tasks(pending.warmup),
        ),
    )


# Tombstones.


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """All of one member, in the order in which Kafka's replay insists on them."""
    return [
        CoordinatorRecord(key(group_id=group_id, member_id=member_id), None)
        for key in (
            StreamsGroupCurrentMemberAssignmentKey,
            StreamsGroupTargetAssignmentMemberKey,
            StreamsGroupMemberMetadataKey,
        )
    ]


def group_tombstones(group_id: str, member_ids: list[str]) -> list[CoordinatorRecord]:
    records = [
        CoordinatorRecord(key(group_id=group_id, member_id=member_id), None)
        for key in (StreamsGroupCurrentMemberAssignmentKey, StreamsGroupTargetAssignmentMemberKey)
        for member_id in member_ids
    ]
    records.append(
        CoordinatorRecord(StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), None)
    )
    records.extend(
        CoordinatorRecord(
            StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None
        )
        for member_id in member_ids
    )
    records.append(CoordinatorRecord(StreamsGroupMetadataKey(group_id=group_id), None))
    records.append(CoordinatorRecord(StreamsGroupTopologyKey(group_id=group_id), None))
    return records


# Tasks inside records.


def assigned_tasks(
    active: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds],
    standby: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds],
    warmup: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds],
    member_epoch: int,
) -> AssignedTasks:
    return AssignedTasks(
        {
            ids.subtopology_id: dict(zip(ids.partitions, _epochs(ids, member_epoch), strict=True))
            for ids in active
        },
        {ids.subtopology_id: frozenset(ids.partitions) for ids in standby},
        {ids.subtopology_id: frozenset(ids.partitions) for ids in warmup},
    )


def _epochs(ids: StreamsGroupCurrentMemberAssignmentValue.TaskIds, member_epoch: int) -> list[int]:
    epochs = ids.assignment_epochs
    if epochs is not None and len(epochs) == len(ids.partitions):
        return epochs
    # Written before assignment epochs were recorded.
    return [member_epoch] * len(ids.partitions)


def _target_tasks(tasks: TaskMap) -> list[StreamsGroupTargetAssignmentMemberValue.TaskIds]:
    return [
        _Target.TaskIds(subtopology_id=subtopology, partitions=sorted(partitions))
        for subtopology, partitions in sorted(tasks.items())
    ]


def _current_tasks(tasks: TaskMap) -> list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]:
    return [
        _Current.TaskIds(subtopology_id=subtopology, partitions=sorted(partitions))
        for subtopology, partitions in sorted(tasks.items())
    ]


def _epoch_tasks(tasks: EpochMap) -> list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]:
    return [
        _Current.TaskIds(
            subtopology_id=subtopology,
            partitions=sorted(epochs),
            assignment_epochs=[epochs[partition] for partition in sorted(epochs)],
        )
        for subtopology, epochs in sorted(tasks.items())
    ]
