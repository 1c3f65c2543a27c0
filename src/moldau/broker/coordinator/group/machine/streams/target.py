"""Decides when a group gets a new target assignment, and writes what changed of it."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.broker.coordinator.group.machine.streams import records
from moldau.broker.coordinator.group.machine.streams.assignor import TaskGroup, TaskMember, assign
from moldau.broker.coordinator.group.machine.streams.group import StreamsGroup
from moldau.broker.coordinator.group.machine.streams.hash_order import hash_order
from moldau.broker.coordinator.group.machine.streams.internal_topics import ConfiguredTopology
from moldau.broker.coordinator.group.machine.streams.members import StreamsMember
from moldau.broker.coordinator.group.machine.streams.tasks import NO_TASKS, Tasks
from moldau.broker.coordinator.machine.decision import Outbox

NUM_STANDBY_REPLICAS = "num.standby.replicas"


def assign_anew(
    group: StreamsGroup,
    group_epoch: int,
    updated: StreamsMember | None,
    configured: ConfiguredTopology,
    assignment_configs: Mapping[str, str],
    out: Outbox,
) -> Mapping[str, Tasks]:
    """The new target assignment by member id; `updated` is a member not yet replayed."""
    members = dict(group.members)
    if updated is not None:
        members[updated.member_id] = updated
    targets = _targets(group, members, configured, assignment_configs)
    for member_id in hash_order(targets):
        if group.targets.get(member_id) != targets[member_id]:
            out.write(records.target_assignment(group.group_id, member_id, targets[member_id]))
    out.write(records.target_assignment_metadata(group.group_id, group_epoch, out.now_ms))
    return targets


def _targets(
    group: StreamsGroup,
    members: Mapping[str, StreamsMember],
    configured: ConfiguredTopology,
    assignment_configs: Mapping[str, str],
) -> Mapping[str, Tasks]:
    if not configured.is_ready:
        # No member can work before all topics exist.
        return dict.fromkeys(members, NO_TASKS)
    return assign(
        {
            member_id: TaskMember(member.process_id, group.target(member_id))
            for member_id, member in members.items()
        },
        {
            key: TaskGroup(each.task_count, each.is_stateful)
            for key, each in (configured.subtopologies or {}).items()
        },
        int(assignment_configs.get(NUM_STANDBY_REPLICAS, "0")),
    )
